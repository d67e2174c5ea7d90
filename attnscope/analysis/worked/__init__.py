"""Worked examples: attention on a few numbers, every step shown, nothing hidden and nothing made up."""

from attnscope.analysis.worked.attention import work_out
from attnscope.analysis.worked.dictionary import look_up
from attnscope.analysis.worked.examples import EXAMPLES, example
from attnscope.analysis.worked.scale import scale_study

__all__ = ["EXAMPLES", "example", "look_up", "scale_study", "work_out"]
