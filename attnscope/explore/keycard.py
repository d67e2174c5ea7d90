"""The card of all keys."""

from rich.text import Text

from attnscope.explore.keys import KEYS
from attnscope.render.kit.cells import HEADING
from attnscope.render.kit.labels import left

_WIDE = 8


def card() -> Text:
    """One line a key, and what the mouse does."""
    lines = [Text.assemble((left(each.shown, _WIDE), HEADING), each.does) for each in KEYS]
    lines.append(
        Text.assemble(
            (left("mouse", _WIDE), HEADING), "a head, a pair or a token: goes there; the wheel moves on"
        )
    )
    return Text("\n").join(lines)
