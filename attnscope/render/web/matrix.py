"""Markup of a matrix, and of a grid of heads: coloured cells with their numbers as tooltips.

It needs no script. With very many rows and columns several are pooled into a cell, with a note.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from rich.cells import cell_len

from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.numbers import counted, pooled
from attnscope.render.kit.palette import TINTS
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.words import verdict_words
from attnscope.render.sheet.blocks import Matrix, Named, Names
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.table import Scale, missing
from attnscope.render.web.blocks import escape, shaded, strip

_MOST_CELLS, _MOST_NUMBERS = 96, 20  # rows or columns of a page, and with a number in every cell
_LARGE, _SMALL = 30, 9  # pixels of a cell with a number, and without
_LETTER, _LINE, _LONGEST = 7.4, 13, 60  # pixels of a wide letter and of a line; cells of a label


def matrix(block: Matrix) -> str:
    """Markup of a matrix: title, caption, and cells under their names."""
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
    """The matrix with at most as many cells as a page has room for; pooled to the strongest if need be."""
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


_MOST_NUMBERED = 24  # heads of a layer whose number stands in its cell


def grid(block: HeadGrid, leads: bool = False) -> str:
    """Markup of a grid of heads; cells are links where the page `leads` to heads."""
    columns = range(len(block.heads))
    heads = "".join(f'<th scope="col">H{each}</th>' for each in block.heads)
    rows = "".join(
        f'<tr><th scope="row">L{layer}</th>{"".join(_cell(block, i, j, leads) for j in columns)}</tr>'
        for i, layer in enumerate(block.layers)
    )
    told = "; ".join(each for each in (block.says, *_marks(block)) if each)
    kind = "heads" if len(columns) <= _MOST_NUMBERED else "heads many"
    low, high = (f"{each} {meant}".strip() for each, meant in zip(block.ends, block.scale.ends, strict=True))
    shades = strip(block.scale, low, high)
    return (
        f'<h2>{escape(block.heading)}</h2><p class="told">{shades} {escape(told)}</p>'
        f'<div class="wide"><table class="{kind}"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(block: HeadGrid, i: int, j: int, leads: bool) -> str:
    if block.itself == (i, j):
        return f'<td title="{block.name(i, j)}">■</td>'
    value, text = float(block.values[i, j]), block.text(i, j)
    if missing(value):
        return f"<td>{escape(text)}</td>"
    outline = _outline(block, i, j)
    shown = escape(text) if len(block.heads) <= _MOST_NUMBERED else ""
    address = f"#L{block.layers[i]}H{block.heads[j]}"
    link = f'<a href="{address}" aria-label="{block.name(i, j)}">{shown}</a>' if leads else shown
    shade = f'class="shade" style="{shaded(block.scale, value)}{outline}"'
    return f'<td {shade} title="{escape(_told(block, i, j))}">{link}</td>'


def _outline(block: HeadGrid, i: int, j: int) -> str:
    if (i, j) not in block.outlined:
        return ""
    verdict = block.outlined[i, j]
    colour = TINTS["limit"] if verdict is None else f"var(--{verdict.value})"
    return f";box-shadow:inset 0 0 0 2px {colour}"


def _told(block: HeadGrid, i: int, j: int) -> str:
    parts = [f"{block.name(i, j)}: {block.text(i, j)} ({float(block.values[i, j]):.7g})"]
    if (found := block.companion) is not None and (text := found.text(i, j)):
        parts.append(f"{found.label} {text}")
    if verdict := block.outlined.get((i, j)):
        parts.append(verdict_words(verdict))
    return ", ".join(parts)


def _marks(block: HeadGrid) -> list[str]:
    beyond = f"outlined: {block.beyond[0]}" if None in block.outlined.values() else ""
    return [beyond, "outlined: not certified" if any(block.outlined.values()) else ""]
