"""A matrix in a page: a coloured cell for each pair, its number under the pointer, and in it where it fits.

Nothing of it needs a script. Of very many rows and columns several are one cell, which is said.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from rich.cells import cell_len

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, pooled
from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.sheet.blocks import Matrix, Named, Names
from attnscope.render.sheet.scale import Scale
from attnscope.render.web.blocks import escape, shaded

_MOST_CELLS, _MOST_NUMBERS = 96, 20  # rows or columns of a page, and with a number in every cell
_LARGE, _SMALL = 30, 9  # pixels of a cell with a number, and without
_LETTER, _LINE, _LONGEST = 7.4, 13, 60  # pixels of a wide letter and of a line; cells of a label


def matrix(block: Matrix) -> str:
    """Title, what it says, and the cells under their names."""
    shown = _fitting(block)
    said = " · ".join(each for each in (shown.says, *_legend(shown)) if each)
    said = f'<p class="told">{escape(said)}</p>' if said else ""
    key = _key(shown.scale) if block.measured and isinstance(shown.scale, Weights) else ""
    title = f"<h2>{escape(block.title)}</h2>" if block.title else ""
    return f'{title}{said}<div class="wide">{_drawing(shown)}</div>{key}'


def _key(scale: Weights) -> str:
    count, paper = 40, Scale(0.0, 1.0)
    cells = (
        f'<rect x="{4 * i}" width="4.5" height="8" class="shade" style="{shaded(paper, i / (count - 1))}"/>'
        for i in range(count)
    )
    ticks = (
        f'<text x="{4 * count * shade:.0f}" y="18" class="tick" '
        f'text-anchor="{"start" if shade < 0.05 else "middle"}">{escape(text)}</text>'
        for shade, text in ((scale.shade(place), text) for place, text in scale.ticks)
    )
    drawn = "".join((*cells, *ticks))
    return f'<svg width="{4 * count + 12}" height="22" role="img" aria-label="colours">{drawn}</svg>'


def _legend(block: Matrix) -> Iterator[str]:
    if block.measured and isinstance(block.scale, Weights):
        yield f"colours: {block.scale.told}" if block.scale.told else ""
        yield "empty: masked" if np.isnan(block.values).any() else ""


def _fitting(block: Matrix) -> Matrix:
    """With as many cells as a page has room for; of several the strongest, where it cannot be made again."""
    rows, columns = (-(-count // _MOST_CELLS) for count in block.values.shape)
    if rows == columns == 1:
        return block
    if block.coarser is not None:
        return block.coarser(rows, columns)
    scale = block.scale
    if isinstance(scale, Weights):
        scale = replace(scale, tops=np.maximum.reduceat(scale.tops, range(0, len(scale.tops), rows)))
    row, column = block.words
    told = f"each cell the strongest of {counted(rows, row)} x {counted(columns, column)}"
    return replace(
        block,
        scale=scale,
        rows=_every(block.rows, rows),
        columns=_every(block.columns, columns),
        values=pooled(block.values, rows, columns),
        says=" · ".join(each for each in (block.says, told) if each),
        groups=(),
        marked=(),
    )


def _every(side: Named, step: int) -> Names:
    return Names(tuple(side.names[::step]), tuple(side.positions[::step]))


def _drawing(block: Matrix) -> str:
    (rows, columns), few = block.values.shape, max(block.values.shape) <= _MOST_NUMBERS
    cell = _LARGE if few else _SMALL
    down, across = _labels(block.rows, cell), _labels(block.columns, cell)
    left, above = (_LETTER * max(map(cell_len, each), default=0) + 6 for each in (down, across))
    shapes = [*_cells(block, left, above, cell, few)]
    for row, label in enumerate(down):
        start = f'x="{left - 4:.0f}" y="{above + (row + 0.5) * cell + 4:.0f}" text-anchor="end"'
        shapes += [f"<text {start}>{escape(label)}</text>"] if label else []
    for column, label in enumerate(across):
        x, y = left + (column + 0.5) * cell + 4, above - 4
        turn = f'transform="translate({x:.0f} {y:.0f}) rotate(-90)"'
        shapes += [f"<text {turn}>{escape(label)}</text>"] if label else []
    for place in block.groups:
        x, y = left + place * cell, above + place * cell
        lines = f"M{x} {above}v{rows * cell}M{left} {y}h{columns * cell}"
        shapes.append(f'<path d="{lines}" stroke="var(--ink)"/>')
    for row, column in block.marked:
        corner = f'x="{left + column * cell}" y="{above + row * cell}" width="{cell}" height="{cell}"'
        shapes.append(f'<rect {corner} fill="none" stroke="var(--chosen)" stroke-width="2"/>')
    size = f'width="{left + columns * cell + 2:.0f}" height="{above + rows * cell + 2:.0f}"'
    return f'<svg {size} class="matrix" role="img" aria-label="{escape(block.title)}">{"".join(shapes)}</svg>'


def _labels(side: Named, cell: int) -> list[str]:
    step = max(1, -(-_LINE // cell))
    return [fit(label, _LONGEST) if i % step == 0 else "" for i, label in enumerate(side.labels)]


def _cells(block: Matrix, left: float, above: float, cell: int, few: bool) -> Iterator[str]:
    shades, paper = (
        _shades(block),
        Scale(0.0, 1.0, "rising" if isinstance(block.scale, Weights) else "signed"),
    )
    for (row, column), value in np.ndenumerate(block.values):
        if np.isnan(value):
            continue
        x, y, text = left + column * cell, above + row * cell, block.text(float(value))
        shade = f'class="shade" style="{shaded(paper, float(shades[row, column]))}"'
        query, key = settled(block.rows.labels[row]), settled(block.columns.labels[column])
        told = escape(f"{query} → {key}: {text}")
        place = f'x="{x:.0f}" y="{y:.0f}" width="{cell}" height="{cell}"'
        yield f"<rect {place} {shade}><title>{told}</title></rect>"
        if few:
            middle = f'x="{x + cell / 2:.0f}" y="{y + cell / 2 + 4:.0f}" text-anchor="middle"'
            yield f'<text {middle} {shade} pointer-events="none">{escape(text)}</text>'


def _shades(block: Matrix) -> np.ndarray:
    if isinstance(block.scale, Weights):
        return block.scale.shades(block.values)
    return np.array([[block.scale.share(float(each)) for each in row] for row in block.values])
