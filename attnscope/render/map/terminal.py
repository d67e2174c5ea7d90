"""The map of a head in a terminal: not as a drawing but as the numbers behind it.

How far the map can be trusted comes first, then the keys of the chosen queries by weight, or one key as
several queries see it, or of every query the strongest and the nearest key.
"""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.map.tables import compared, nearest, ranked
from attnscope.render.map.words import (
    DISCLAIMER,
    centring_words,
    correlation_words,
    points_words,
    settings_words,
    trust_words,
)
from attnscope.results import Projection

_BETWEEN = 4
_BAD = "bold red"


def projection(result: Projection, queries: Sequence[int], key: int | None, width: int) -> RenderableType:
    """How far to trust the map, then what was asked for, in `width` cells.

    The keys of `queries` by weight; with a `key` also how each of them sees it, and only that where there
    are several; without queries one line for each.
    """
    parts = [*_honesty(result)]
    if not queries:
        parts += ["", *nearest(result, width)]
    if queries and (key is None or len(queries) == 1):
        parts += ["", *_beside([ranked(result, query, width) for query in queries], width)]
    if queries and key is not None:
        parts += ["", *compared(result, queries, key, width)]
    return Group(*parts)


def _honesty(result: Projection) -> list[RenderableType]:
    settled_words = Text(" · ".join(settings_words(result)), style=DIM if result.settled else _BAD)
    points = points_words(result)
    return [
        settled_words,
        *([Text(" · ".join(points), DIM)] if points else []),
        Text(trust_words(result)),
        Text(correlation_words(result)),
        *([Text(centring)] if (centring := centring_words(result)) else []),
        Text(DISCLAIMER, DIM),
    ]


def _beside(blocks: list[list[Text]], width: int) -> list[RenderableType]:
    """Blocks of lines side by side where all fit in `width`, else one under the other."""
    widths = [max(each.cell_len for each in block) for block in blocks]
    if sum(widths) + _BETWEEN * (len(blocks) - 1) > width:
        return [part for i, block in enumerate(blocks) for part in ([""] if i else []) + block]
    joined: list[RenderableType] = []
    for row in range(max(map(len, blocks))):
        text = Text(no_wrap=True)
        for block, wide in zip(blocks, widths, strict=True):
            part = block[row] if row < len(block) else Text()
            text.append_text(part)
            text.append(" " * (wide - part.cell_len + _BETWEEN))
        text.rstrip()
        joined.append(text)
    return joined
