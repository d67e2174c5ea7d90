"""One stage of a head as a heat-coloured table; as a picture of characters where the table does not fit."""

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.head.telling import most_telling, telling_words
from attnscope.render.kit.cells import (
    DIM,
)
from attnscope.render.kit.stage import MOST_LISTED, Panel, Show, panel
from attnscope.render.kit.words.weights import head_of, special_words, sums_words, view_words
from attnscope.render.terminal.matrix import number_table, picture
from attnscope.render.terminal.shading import shading
from attnscope.render.terminal.strongest import strongest_keys
from attnscope.render.terminal.vectors import vectors
from attnscope.results import HeadAttention, HeadView, HeadWeights
from attnscope.vocabulary import Scaling


def matrix(
    result: HeadWeights | HeadView,
    show: Show,
    width: int,
    scale: Scaling = Scaling.AUTO,
    listed: int | None = MOST_LISTED,
) -> RenderableType:
    """Rows are queries, columns are keys, masked cells blank; `width` in terminal cells.

    Where the numbers do not fit, a picture of them and the strongest keys of `listed` queries, None for all.
    Vectors have their dimensions as columns. `scale` is how strong weights are coloured.
    """
    shown = panel(result, show, scale)
    if shown.column_tokens is None:
        return Group(vectors(shown, width), *_captions(result, shown))
    shades = shading(shown)
    if (numbers := number_table(shown, shades, width)) is not None:
        return Group(numbers, *_captions(result, shown, shades.told))
    rows = most_telling(result, shown, listed)
    parts: list[RenderableType] = [picture(shown, shades, width)]
    if rows:
        parts += [Text(), *_listed(result, shown, rows), strongest_keys(shown, shades, rows, width)]
    return Group(*parts, *_captions(result, shown, table=False))


def _listed(result: HeadWeights | HeadView, shown: Panel, rows: list[int]) -> list[Text]:
    """Which queries are listed below, where not all are, and how to see more of them."""
    if len(rows) == len(shown.row_tokens):
        return []
    more = "--rows all lists every query, --query TOKEN ranks the keys of one"
    return [Text(each, style=DIM) for each in (telling_words(result, shown, rows), more)]


def _captions(
    result: HeadWeights | HeadView, shown: Panel, shades: str = "", table: bool = True
) -> list[Text]:
    """What a reader has to know about the numbers above; `shades` of how strong they are coloured."""
    weights = shown.show == "weights"
    told = [sums_words(result)] if weights else _formula(head_of(result), shown)
    if table and shown.column_tokens is not None and shown.masked:
        told.insert(1, "blank: masked")
    told += [shades] if shades else []
    further = [special_words(head_of(result).special_mass), " · ".join(view_words(result))] if weights else []
    return [Text(line, style=DIM) for line in (" · ".join(told), *further) if line]


def _formula(result: HeadWeights, shown: Panel) -> list[str]:
    if not isinstance(result, HeadAttention):
        return []
    if shown.show == "scores":
        return [f"q·k before the scale of {result.scale:.4g}"]
    if shown.show == "scaled":
        capped = "" if result.softcap is None else f", capped at ±{result.softcap:g}"
        return [f"what enters the softmax: q·k x {result.scale:.4g}{capped}, with any bias of the model"]
    return []
