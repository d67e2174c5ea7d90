"""Run a model on inputs, and capture what its chosen attention layers were given and returned.

    captured = record(model, tokenizer(text, return_tensors="pt"), Selection(layers=[3]))

works on any model object of transformers 5 that is already in memory and leaves it as it was.
"""

from attnscope.capture.following.describe import provenance_of
from attnscope.capture.run import Labels, Selection, record

__all__ = ["Labels", "Selection", "provenance_of", "record"]
