"""Worked examples: attention on numbers that are given, every step named and proved. Never prints or plots.

Beside `attnscope.analysis` and not in it, so that numbers need no transformers: only `theatre` has a model.
"""

from attnscope.worked.attention import work_out
from attnscope.worked.dictionary import look_up
from attnscope.worked.examples import EXAMPLES, TABLE, example
from attnscope.worked.scale import scale_study

__all__ = ["EXAMPLES", "TABLE", "example", "look_up", "scale_study", "work_out"]
