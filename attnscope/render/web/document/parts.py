"""The parts that a page can have, of whatever result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attnscope.render.web import readings as sides
from attnscope.render.web.beside import Beside
from attnscope.render.web.blocks import Blocks
from attnscope.render.web.opening import Told
from attnscope.render.web.tokens import first_token
from attnscope.results import Overview, Special
from attnscope.vocabulary import Unit

BESIDE = 260  # tokens up to which a view stands under the text, and not in its place


@dataclass
class Document:
    """The parts that a result has; `opening` is what is looked at first, `says` what stands beside numbers.

    `opener` is the command that opens one of its heads, with `{layer}` and `{head}` in it. `both` says of two
    readings which heads of the one and the other belong together, and whether their tokens do. `told` is what
    the page says first, where that is not the answer of its sheet, and `first` whether the text or the sheet
    stands above. `below` are views that stand one after the other under the one that is chosen.
    """

    blocks: Blocks
    heading: str = ""
    opener: str = ""
    readings: list[sides.Reading] = field(default_factory=list)
    opening: dict[str, Any] = field(default_factory=dict)
    map: dict[str, Any] | None = None
    picture: dict[str, Any] | None = None
    sound: dict[str, Any] | None = None
    both: dict[str, Any] | None = None
    says: list[str] = field(default_factory=list)
    told: Told | None = None
    below: tuple[str, ...] = ()
    first: str = "text"

    def tokens(self, side: str) -> dict[str, Any] | None:
        """The tokens of one side of what is read, where there are any."""
        return None if not self.readings else self.readings[0][side] or self.readings[0]["queries"]


def told(*parts: str) -> str:
    """What there is of `parts`, in one line."""
    return " · ".join(part for part in parts if part)


def opens(made: Document, layer: int, head: int, view: str = "", **more: Any) -> None:
    """What is looked at first, where nothing else was asked for: of a long text the text, else a matrix."""
    made.opening = {"layer": layer, "head": head, "view": view or weights_view(made), **made.opening, **more}


def opened(made: Document, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a sheet opens on, its query and its key by tokens and not by what they are looked at as."""
    words, special = asked.get("words", False), asked.get("special", Special.SHOW)
    places = {
        name: first_token(asked[name], made.tokens(side), words, Special(special))
        for side, name in (("queries", "query"), ("keys", "key"))
        if name in asked
    }
    return {**asked, **places}


def weights_view(made: Document) -> str:
    """The text alone where it is long, else a matrix below it."""
    sides = (made.tokens(side) for side in ("queries", "keys"))
    return "text" if max((len(side["names"]) for side in sides if side), default=0) > BESIDE else "matrix"


def all_heads(made: Document, beside: Beside, by: Unit = Unit.WORD) -> None:
    """The weights that a result does not hold itself: of all heads, or of some in full.

    `by` is what its tokens can be taken together to.
    """
    (overview,) = beside.heads or (None,)
    if isinstance(overview, Overview):
        made.readings.append(sides.of_overview(overview, made.blocks, beside.full, by=by))
    elif beside.full:
        made.readings.append(sides.of_heads(beside.full, made.blocks, by=by))
