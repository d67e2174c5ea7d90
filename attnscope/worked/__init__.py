"""Worked examples: attention on numbers that are given, every step named and proved. Never prints or plots.

Beside `attnscope.analysis` and not in it: numbers need no transformers, only `theatre` has a model.
"""

from attnscope.worked.attention import work_head, work_out
from attnscope.worked.examples import EXAMPLES, TABLE, example, look_up, scale_study
from attnscope.worked.mistakes import MISTAKES, mistaken

__all__ = [
    "EXAMPLES",
    "MISTAKES",
    "TABLE",
    "example",
    "look_up",
    "mistaken",
    "scale_study",
    "work_head",
    "work_out",
]
