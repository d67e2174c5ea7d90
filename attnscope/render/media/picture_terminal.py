"""Attention over a picture in a terminal: the patches as shades, and the strongest of them."""

import math

import numpy as np
from jaxtyping import Float
from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.text import Text

from attnscope.render.head.bars import bar
from attnscope.render.head.strongest import descending
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.certificate import GLYPHS, STYLES
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.numbers import counted, largest_magnitude, short, weight_text
from attnscope.render.kit.palette import BAR, sequential
from attnscope.render.media.words import shares_words
from attnscope.results import Overview, PictureAttention, PictureHeads, Verdict

_SHADES = " ░▒▓█"
_OWN = {1: "◆", 2: "◂▸"}
_MOST = 8  # patches that are listed
_CELL = 13  # a patch (r13c12), its weight, and a mark


def picture_patches(result: PictureAttention, width: int) -> RenderableType:
    """A grid of shades, its scale, the strongest patches, and where the rest of the row lies."""
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
    told = "each cell: the strongest patch and its weight; the bluer, the more lies on the picture"
    return Group(*lines, Text(told, style=DIM), *verdict_lines(overview))


def _grid(weights: Float[np.ndarray, "row column"], cell: tuple[int, ...] | None, width: int) -> list[Text]:
    rows, columns = weights.shape
    margin = len(f"r{rows - 1}") + 1
    wide = next((cells for cells in (2, 1) if margin + cells * columns <= width), 0)
    if not wide:
        return [Text(f"The grid ({rows} x {columns} patches) does not fit here: -o file.png shows it.")]
    largest = largest_magnitude(weights) or 1.0
    lines = [line(" " * margin, (_columns(columns, wide), DIM))]
    for row in range(rows):
        shades = [_shade(float(weight) / largest) * wide for weight in weights[row]]
        colours = [sequential(float(weight), largest) for weight in weights[row]]
        parts = [(shade, colour) for shade, colour in zip(shades, colours, strict=True)]
        if cell is not None and cell[0] == row:
            parts[cell[1]] = (_OWN[wide], colours[cell[1]])
        lines.append(line((left(f"r{row}", margin), DIM), *parts))
    scale = " ".join(f"{shade} from {_bound(i * largest / 5)}" for i, shade in enumerate(_SHADES) if i)
    own = "" if cell is None else f" · {_OWN[wide]} the query's own patch"
    unread = " · the dots are not read" if np.isnan(weights).any() else ""
    return [*lines, Text(f"{scale}{own}{unread}", style=DIM)]


def _bound(weight: float) -> str:
    """A weight to three decimals, to two digits where those would not tell the bounds apart."""
    return weight_text(weight, 3) if weight >= 0.01 else short(weight)


def _shade(share: float) -> str:
    """One of five shades for 0 to 1; a dot for a patch that is not read."""
    return "·" if math.isnan(share) else _SHADES[min(int(5 * share), 4)]


def _columns(columns: int, wide: int) -> str:
    """Every fifth column by its number."""
    return "".join(left(f"c{column}", 5 * wide) for column in range(0, columns, 5))[: columns * wide]


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
