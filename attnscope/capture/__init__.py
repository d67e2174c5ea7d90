"""Model + inputs -> Capture: what the chosen attention layers were given and returned.

    captured = capture(model, tokenizer(text, return_tensors="pt"), layers=[3])

works on any model object of transformers 5 that is already in memory and leaves it as it was.
"""

from attnscope.capture.describe import provenance_of
from attnscope.capture.run import capture

__all__ = ["capture", "provenance_of"]
