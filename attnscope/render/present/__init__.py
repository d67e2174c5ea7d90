"""What a result shows of itself, wherever it is: called by `attnscope.results.presented`."""

from attnscope.render.present.summary import summary
from attnscope.render.present.text import text

__all__ = ["summary", "text"]
