"""Worked examples: attention on numbers that are given, every step named and proved. Never prints or plots.

Beside `attnscope.analysis` and not in it: numbers need no transformers, only `heads.theatre` has a model.
"""

from attnscope.worked.attention import work_out
from attnscope.worked.beside import Beside
from attnscope.worked.examples import EXAMPLES, TABLE, example, look_up
from attnscope.worked.mistakes import MISTAKES, mistaken
from attnscope.worked.model_head import work_head
from attnscope.worked.scale import scale_study

__all__ = [
    "EXAMPLES",
    "MISTAKES",
    "TABLE",
    "Beside",
    "example",
    "look_up",
    "mistaken",
    "scale_study",
    "work_head",
    "work_out",
]
