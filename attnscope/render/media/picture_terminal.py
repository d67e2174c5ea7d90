"""Attention over a picture in a terminal: the patches as numbers on colours, and the strongest of them."""

import math

import numpy as np
from jaxtyping import Float
from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import counted, largest_magnitude, short, weight_text
from attnscope.render.kit.palette import BAR, sequential
from attnscope.render.kit.words.certificate import GLYPHS, STYLES
from attnscope.render.media.words import shares_words
from attnscope.render.terminal.raster import Raster, Side
from attnscope.render.terminal.strongest import descending
from attnscope.results import Overview, PictureAttention, PictureHeads, Verdict

_OWN, _UNREAD = "◆", "·"
_MOST = 8  # patches that are listed
_CELL = 13  # a patch (r13c12), its weight, and a mark


def picture_patches(result: PictureAttention, width: int) -> RenderableType:
    """The patches as a grid, its scale, the strongest of them, and where the rest of the row lies."""
    grid = _grid(result.weights, result.gaze.cell, width)
    return Group(*grid, Text(""), *_strongest(result.weights, width), Text(shares_words(result), style=DIM))


def picture_heads(result: PictureHeads, width: int) -> RenderableType:
    """For each head the patch that the query weighs most, that weight, and the share on the picture."""
    overview = result.overview
    margin = len(f"L{max(overview.layers)}") + 1
    per_block = max((width - margin) // _CELL, 1)
    lines: list[Text] = []
    for start in range(0, len(overview.heads), per_block):
        columns = range(start, min(start + per_block, len(overview.heads)))
        heads = "".join(left(f" H{overview.heads[j]}", _CELL) for j in columns)
        lines.append(line(" " * margin, (heads, HEADING)))
        for i, layer in enumerate(overview.layers):
            cells = [part for j in columns for part in _head_cell(result, i, j)]
            lines.append(line((left(f"L{layer}", margin), HEADING), *cells))
    told = "each cell: the strongest patch and its weight; colour: the share of the weight on the picture"
    return Group(*lines, Text(told, style=DIM), *verdict_lines(overview))


def _grid(
    weights: Float[np.ndarray, "row column"], cell: tuple[int, ...] | None, width: int
) -> list[RenderableType]:
    """Every patch by its number on a colour; where those do not fit, as a cell without."""
    rows, columns = weights.shape
    margin = len(f"r{rows - 1}") + 1
    largest = largest_magnitude(weights) or 1.0
    power = max(1 - math.floor(math.log10(largest)), 2)
    texts = [[_hundred(weight, power) for weight in row] for row in weights.tolist()]
    wide = max(max(map(len, row)) for row in texts) + 1
    if margin + wide * columns > width:
        return [_picture(weights, cell, largest, width)]
    lines: list[RenderableType] = [line(" " * margin, (_columns(columns, wide), DIM))]
    for row, numbers in enumerate(texts):
        marked = [_OWN + text if cell == (row, i) else text for i, text in enumerate(numbers)]
        styles = [sequential(float(weight), largest) for weight in weights[row]]
        parts = [(right(text, wide), style) for text, style in zip(marked, styles, strict=True)]
        lines.append(line((left(f"r{row}", margin), DIM), *parts))
    told = [f"weights x {10**power}, coloured from 0 to {_bound(largest)}"]
    told += [] if cell is None else [f"{_OWN} the query's own patch"]
    told += [f"{_UNREAD} not read"] if np.isnan(weights).any() else []
    return [*lines, Text(" · ".join(told), style=DIM)]


def _hundred(weight: float, power: int) -> str:
    """A weight in two digits, which stand for the largest up to a hundred."""
    return _UNREAD if math.isnan(weight) else f"{weight * 10**power:.0f}"


def _picture(
    weights: Float[np.ndarray, "row column"], cell: tuple[int, ...] | None, largest: float, width: int
) -> Raster:
    rows, columns = weights.shape
    told = [] if cell is None else [f"the query's own patch is r{cell[0]}c{cell[1]}"]
    shares, ends = weights / largest, ("0", f"{_bound(largest)}, the largest weight")
    return Raster(
        shares=shares,
        plain=shares,
        title="weights",
        rows=Side("row", [f"r{row}" for row in range(rows)], [""] * rows),
        columns=Side("column", [f"c{column}" for column in range(columns)], [""] * columns),
        ends=ends,
        plain_ends=ends,
        width=width,
        blank="not read" if np.isnan(weights).any() else "",
        told=tuple(told),
    )


def _bound(weight: float) -> str:
    """A weight to three decimals, in two digits where those would not say it."""
    return weight_text(weight, 3) if weight >= 0.01 else short(weight)


def _columns(columns: int, wide: int) -> str:
    """Every fifth column by its number."""
    return "".join(right("" if column % 5 else f"c{column}", wide) for column in range(columns))


def _strongest(weights: Float[np.ndarray, "row column"], width: int) -> list[Text]:
    """The strongest patches, each with its weight and a bar."""
    read = int(np.isfinite(weights).sum())
    ranked = descending(weights.flatten())[: min(read, _MOST)]
    places = [divmod(place, weights.shape[1]) for place in ranked]
    names = [f"r{row}c{column}" for row, column in places]
    label = max(len(name) for name in (*names, "patch"))
    full = largest_magnitude(weights) or 1.0
    lines = [line((f"{left('patch', label)}  weight", DIM))]
    for name, place in zip(names, places, strict=True):
        number = f"{left(name, label)}  {right(weight_text(float(weights[place]), 3), 6)}  "
        share = float(weights[place]) / full
        lines.append(line(number, (bar(share, max(min(width, 80) - len(number), 8)), BAR)))
    return lines


def _head_cell(result: PictureHeads, i: int, j: int) -> list[tuple[str, StyleType] | str]:
    """`r13c12 .018` on a colour for the share on the picture, and the mark of a verdict below the best."""
    weights = result.weights[i, j]
    row, column = divmod(int(np.nanargmax(weights)), weights.shape[1])
    verdict = result.overview.certificates[i][j].verdict
    certified = verdict is Verdict.CERTIFIED
    mark = " " if certified else (GLYPHS[verdict], STYLES[verdict])
    shown = left(f"r{row}c{column}", _CELL - 6) + right(weight_text(largest_magnitude(weights), 3), 4)
    return [" ", (shown, sequential(float(np.nansum(weights)))), mark]


def verdict_lines(overview: Overview) -> list[Text]:
    """How many heads have which verdict, a line each."""
    every = [certificate.verdict for layer in overview.certificates for certificate in layer]
    return [
        Text(
            f"{GLYPHS[each]} {each.value}: {every.count(each)} of {counted(len(every), 'head')}", STYLES[each]
        )
        for each in Verdict
        if each in every
    ]
