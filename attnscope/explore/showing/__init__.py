"""What every pane shows of a state and of the answers that are known: a key, a drawing, a title.

The key tells when nothing has changed. What is not known yet says so; what went wrong stands where its
answer would.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed
from attnscope.explore.drawing.shown import Shown
from attnscope.explore.state import State
from attnscope.render.kit.cells import DIM
from attnscope.render.sheet.blocks import Beside, Block, Rows, flat

Find = Callable[[ask.Question], Any]
WAITS = Text("reading …", DIM)
BAD = "bold red"
_ELSEWHERE = "o writes a .csv of all"


@dataclass(frozen=True)
class Part:
    """What a pane shows."""

    key: Any
    drawing: Callable[[int, int], RenderableType]
    title: str = ""
    subtitle: str | Callable[[int, int], str] = ""


def head(state: State, find: Find) -> Shown | None:
    """The head as it is looked at, None where it is not known."""
    answer = find(ask.head_of(state))
    return None if answer is None or isinstance(answer, Failed) else answer


def in_pane(block: Block | Beside) -> Block | Beside:
    """The block, whose rows and columns without room are told of as they are to be had here, by a key."""
    if isinstance(block, Beside):
        return Beside(tuple(one for each in block.blocks for one in flat(in_pane(each))))
    return replace(block, unshown="", elsewhere=_ELSEWHERE) if isinstance(block, Rows) else block
