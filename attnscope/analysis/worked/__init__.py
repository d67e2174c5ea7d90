"""Worked examples: attention on a few numbers, every step shown, nothing hidden and nothing made up."""

from attnscope.analysis.worked.attention import work_out
from attnscope.analysis.worked.dictionary import look_up
from attnscope.analysis.worked.examples import EXAMPLES, TABLE, example
from attnscope.analysis.worked.scale import scale_study

__all__ = ["EXAMPLES", "TABLE", "example", "look_up", "scale_study", "work_out"]
