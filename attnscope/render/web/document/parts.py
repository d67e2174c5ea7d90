"""The parts that a page can have, of whatever result."""

from dataclasses import dataclass, field
from typing import Any

from attnscope.render.web import readings as sides
from attnscope.render.web.beside import Beside
from attnscope.render.web.blocks import Blocks
from attnscope.results import Overview


@dataclass
class Document:
    """The parts that a result has; `opening` is what is looked at first, `says` what stands beside numbers.

    `opener` is the command that opens one of its heads, with `{layer}` and `{head}` in it. `both` says of two
    readings which heads of the one and the other belong together, and whether their tokens do.
    """

    blocks: Blocks
    heading: str = ""
    opener: str = ""
    readings: list[sides.Reading] = field(default_factory=list)
    opening: dict[str, Any] = field(default_factory=dict)
    map: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    picture: dict[str, Any] | None = None
    sound: dict[str, Any] | None = None
    both: dict[str, Any] | None = None
    says: list[str] = field(default_factory=list)

    def tokens(self, side: str) -> dict[str, Any] | None:
        """The tokens of one side of what is read, where there are any."""
        return None if not self.readings else self.readings[0][side] or self.readings[0]["queries"]


def told(*parts: str) -> str:
    """What there is of `parts`, in one line."""
    return " · ".join(part for part in parts if part)


def opens(made: Document, layer: int, head: int, view: str = "sentence", **more: Any) -> None:
    """What is looked at first, where nothing else was asked for."""
    made.opening = {"layer": layer, "head": head, "view": view, "one": True, **made.opening, **more}


def all_heads(made: Document, beside: Beside) -> None:
    """The weights that a result does not hold itself: of all heads, or of some in full."""
    (overview,) = beside.heads or (None,)
    if isinstance(overview, Overview):
        made.readings.append(sides.of_overview(overview, made.blocks, beside.full))
    elif beside.full:
        made.readings.append(sides.of_heads(beside.full, made.blocks))
