"""A matrix in a terminal: all its numbers where they fit, else a picture of characters.

Vectors are rows of numbers too: queries, keys, values or outputs of a head, a column for each dimension.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product, zip_longest

import numpy as np
from jaxtyping import Float, Int
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit import palette
from attnscope.render.kit.cells import (
    DIM,
    HEADING,
    RowHeads,
    cell_texts,
    column_widths,
    columns_of,
    digits_of,
    headings,
    left,
    line,
    right,
    row_heads,
    settled,
    stacked,
    widest,
)
from attnscope.render.kit.numbers import alike_texts, largest_magnitude, significant
from attnscope.render.kit.palette import Scale, by_root, diverging, sequential
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.words import STYLES
from attnscope.render.sheet.blocks import Matrix, as_panel
from attnscope.render.sheet.steps import Steps, shape_words, spelled_out, texts
from attnscope.render.terminal.ranking import folded
from attnscope.render.terminal.raster import Raster, Side, ink_of
from attnscope.results import Verdict
from attnscope.results.steps import Step
from attnscope.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Shading:
    """Shades of a matrix: `shares` from 0 to 1, or -1 to 1 where `signed`, NaN where a pair is masked.

    `plain` are the shares without sign, 0 for the least number. `ends` and `plain_ends` are the texts of the
    least and the largest share, `scale` is that of weights, `told` a note for the legend.
    """

    shares: Float[np.ndarray, "row column"]
    plain: Float[np.ndarray, "row column"]
    ends: tuple[str, str]
    plain_ends: tuple[str, str]
    signed: bool = False
    scale: Scale | None = None
    told: str = ""

    def style(self, row: int, column: int) -> str:
        share = float(self.shares[row, column])
        return diverging(share, 1.0) if self.signed else sequential(share)


def shading(shown: Panel) -> Shading:
    """The shades of a panel."""
    values = np.where(shown.visible, shown.values, np.nan)
    if shown.show != "weights":
        return _around_0(shown, values)
    scale, shares = shown.scale, shown.scale.shades(values)
    (_, low), *_, (_, high) = scale.ticks
    told = f"shades: {scale.told}" if scale.told else ""
    return Shading(shares, shares, (low, high), (low, high), scale=scale, told=told)


def _around_0(shown: Panel, values: Float[np.ndarray, "row column"]) -> Shading:
    extent = shown.extent or 1.0
    seen = values[np.isfinite(values)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 0.0)
    return Shading(
        shares=values / extent,
        plain=(values - low) / ((high - low) or 1.0),
        ends=(significant(-extent), significant(extent)),
        plain_ends=(significant(low), significant(high)),
        signed=True,
    )


_MOST_ROWS = 60  # rows whose numbers are all written
_LINES = 48  # lines of a picture
_LABEL = 13  # cells of a name beside it
_TOLD = 0.05  # below this largest weight two decimals say too little: shades are drawn


def numbers(block: Matrix, width: int) -> list[Text] | None:
    """All numbers of a block under stacked headings; None where they do not fit `width` cells."""
    shown = as_panel(block)
    if shown.column_tokens is None:
        return vector(shown, width) if len(shown.row_tokens) == 1 else vectors(shown, width)
    if block.coarser is not None and float(np.nanmax(block.values, initial=0.0)) < _TOLD:
        return None
    shades = shading(shown)
    if (lines := number_table(shown, shades, width)) is None:
        return None
    blank = "blank: masked" if shown.masked else ""
    told = " · ".join(each for each in (blank, shades.told) if each and block.measured)
    return [*lines, *folded(Text(told, style=DIM), width)] if told else lines


class Picture:
    """A matrix drawn in shades, pooled to the console's size."""

    def __init__(self, block: Matrix, width: int) -> None:
        self.block, self.width = block, width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        halves = bool(getattr(ink_of(console, options, False), "halves", False))
        block = self._fitting(2 * _LINES if halves else _LINES)
        yield from (Text(each, style=DIM) for each in (block.says,) if each)
        shown = as_panel(block)
        shades = shading(shown)
        yield picture(shown, shades, self.width, block.blank)
        if block.listed:
            yield Text()
            yield from (Text(each, style=DIM) for each in block.listing)
            yield strongest_keys(shown, shades, list(block.listed), self.width)

    @property
    def height(self) -> int:
        """Estimated number of lines."""
        return min(len(self.block.rows), _LINES)

    def _fitting(self, lines: int) -> Matrix:
        block = self.block
        if block.coarser is None:
            return block
        rows, columns = block.values.shape
        many = -(-rows // lines)
        named = many == 1 and any(block.rows.names)
        room = self.width - len(str(max(block.rows.positions))) - len("weights ") - (_LABEL if named else 0)
        return block.coarser(many, -(-columns // max(room, 8)))


def number_table(shown: Panel, shades: Shading, width: int) -> list[Text] | None:
    """All numbers of weights or scores; None where they do not fit `width` cells."""
    if len(shown.row_tokens) <= _MOST_ROWS:
        for decimals in (2, 1, 0) if shown.extent >= 10 else (2, 1):
            texts = cell_texts(shown, decimals)
            if row_heads(shown.row_tokens, 0).cells + len(shown.keys) * (widest(texts) + 1) <= width:
                return _table(shown, shades, texts, width)
    return None


def picture(shown: Panel, shades: Shading, width: int, blank: str = "masked") -> Raster:
    """The whole matrix in shades; `blank` is the legend of an empty cell."""
    return Raster(
        shares=shades.shares,
        plain=shades.plain,
        title=_title(shown),
        rows=_side(shown.row_word, shown.row_tokens),
        columns=_side(shown.column_word, shown.keys),
        ends=shades.ends,
        plain_ends=shades.plain_ends,
        width=width,
        signed=shades.signed,
        scale=shades.scale,
        blank=blank if shown.masked else "",
        told=(shades.told,) if shades.told else (),
    )


def _side(noun: str, tokens: Tokens) -> Side:
    return Side(noun, list(map(str, tokens.positions)), list(map(settled, tokens.names)))


def _table(shown: Panel, shades: Shading, texts: list[list[str]], width: int) -> list[Text]:
    names, positions = columns_of(shown.keys), shown.keys.positions
    least = widest(texts) + 1
    heads = row_heads(shown.row_tokens, width - least * len(names))
    widths = column_widths([settled(name) for name in names], least, width - heads.cells)
    lines = headings(heads, (_title(shown), shown.row_word, shown.column_word), positions, names, widths)
    for row, cells in enumerate(texts):
        styles = [shades.style(row, column) for column in range(len(cells))]
        lines.append(_row(shown, row, heads.text(row), list(zip(cells, styles, widths, strict=True))))
    return [*lines, *_sentences(shown, width)]


def _sentences(shown: Panel, width: int) -> Iterator[Text]:
    if shown.column_tokens is not None and shown.columns_apart:
        heads = row_heads(shown.column_tokens, width)
        yield from (Text(), Text(shown.column_word, DIM))
        yield from (line(heads.text(i)) for i in range(len(shown.keys)))


def _row(shown: Panel, row: int, head: str, cells: list[tuple[str, str, int]]) -> Text:
    if not shown.answered[row]:
        return line(head, (f" {shown.unanswered}", DIM))
    return line(head, *((right(text, width), style) if text else " " * width for text, style, width in cells))


def _title(shown: Panel) -> str:
    return shown.show if shown.form is None and shown.show == "weights" else ""


def vectors(shown: Panel, width: int) -> list[Text]:
    """The Euclidean norm of each vector and as many of its first dimensions as fit in `width` cells."""
    texts = cell_texts(shown)
    norms = alike_texts(np.linalg.norm(shown.values, axis=1), 2).tolist()
    cell, norm = max(widest(texts), 3) + 1, max(widest([norms]), len("norm")) + 1
    heads = row_heads(shown.row_tokens, width // 4)
    dimensions = shown.values.shape[1]
    fitting = min(max((width - heads.cells - norm - 1) // cell, 1), dimensions)
    lines = _headings(shown, heads, norm, [right(str(i), cell) for i in range(fitting)])
    for row, cells in enumerate(texts):
        lead = heads.text(row) + (right(norms[row], norm) + " " if shown.answered[row] else "")
        lines.append(_vector_row(shown, row, lead, cells[:fitting], cell))
    if fitting < dimensions:
        lines.append(
            Text(f"{dimensions - fitting} of {dimensions} dimensions left out: -o file.png shows all.")
        )
    return lines


def vector(shown: Panel, width: int) -> list[Text]:
    """All dimensions of one vector; each line begins with the number of its first dimension."""
    if not shown.answered[0]:
        return [Text(f"it has {shown.unanswered}", style=DIM)]
    values, texts = shown.values[0], cell_texts(shown)
    cell, margin = widest(texts) + 1, len(str(len(values))) + 1
    fitting = max((width - margin) // cell, 1)
    across = 10 if fitting >= 10 else 5 if fitting >= 5 else fitting
    lines = []
    for first in range(0, len(values), across):
        styled = [
            (right(text, cell), diverging(float(value), shown.extent))
            for text, value in zip(
                texts[0][first : first + across], values[first : first + across], strict=True
            )
        ]
        lines.append(line((right(str(first), margin - 1) + " ", DIM), *styled))
    return lines


def _headings(shown: Panel, heads: RowHeads, norm: int, numbers: list[str]) -> list[Text]:
    return [
        line((" " * (heads.cells + norm + 2) + "dimension →", DIM)),
        line((left(f"{shown.row_word} ↓", heads.cells) + right("norm", norm) + " " + "".join(numbers), DIM)),
    ]


def _vector_row(shown: Panel, row: int, lead: str, cells: list[str], width: int) -> Text:
    if not shown.answered[row]:
        return line(lead, (" no valid key", DIM))
    styles = [diverging(float(value), shown.extent) for value in shown.values[row]]
    return line(lead, *((right(text, width), style) for text, style in zip(cells, styles, strict=False)))


_MOST_LABEL = 10
_LEAST_ENTRY = 9


@dataclass(frozen=True)
class _Entry:
    """Widths of a key's entry in cells: position, token, number."""

    keys: Tokens
    digits: int
    label: int
    number: int

    @property
    def cells(self) -> int:
        return 2 + self.digits + 1 + self.label + 1 + self.number

    def name(self, key: int) -> str:
        return (
            f"  {self.keys.positions[key]:>{self.digits}} {left(settled(self.keys.names[key]), self.label)} "
        )


def strongest_keys(shown: Panel, shades: Shading, rows: list[int], width: int) -> RenderableType:
    """A line for each of `rows`: as many keys as fit in `width` cells, strongest first, with numbers."""
    heads = row_heads(shown.row_tokens, width // 4)
    keys = _ranked(shown, rows, most=max((width - heads.cells) // _LEAST_ENTRY, 1))
    texts = cell_texts(_of_ranked(shown, rows, keys))
    entry = _entry(shown.keys, widest(texts))
    count = max((width - heads.cells) // entry.cells, 1)
    axes = ((left(f"{shown.row_word} ↓", heads.cells), DIM), ("  strongest keys →", DIM))
    lines = [line(*axes)]
    for row, own, numbers in zip(rows, keys.tolist(), texts, strict=True):
        lines.append(
            _ranked_row(shown, shades, row, heads, entry, list(zip(own, numbers, strict=True))[:count])
        )
    return Group(*lines)


def _ranked(shown: Panel, rows: list[int], most: int) -> Int[np.ndarray, "row rank"]:
    """Positions of the `most` strongest visible keys of each query; a shorter row ends in masked keys."""
    values = np.where(shown.visible[rows], shown.values[rows], -np.inf)
    return np.argsort(-values, axis=1, kind="stable")[:, :most]


def _of_ranked(shown: Panel, rows: list[int], keys: Int[np.ndarray, "row rank"]) -> Panel:
    values = np.take_along_axis(shown.values[rows], keys, axis=1)
    return replace(shown, values=values, visible=np.take_along_axis(shown.visible[rows], keys, axis=1))


def _entry(keys: Tokens, number: int) -> _Entry:
    label = max((cell_len(settled(name)) for name in keys.names), default=0)
    return _Entry(keys, digits_of(keys), min(label, _MOST_LABEL), number)


def _ranked_row(
    shown: Panel, shades: Shading, row: int, heads: RowHeads, entry: _Entry, keys: list[tuple[int, str]]
) -> Text:
    """Line of one query; `keys` are positions by falling rank, each with its number as text."""
    if not shown.answered[row]:
        return line(heads.text(row), (f"  {shown.unanswered}", DIM))
    parts: list[tuple[str, StyleType] | str] = []
    for key, number in keys:
        if shown.visible[row, key]:
            parts += [entry.name(key), (right(number, entry.number), shades.style(row, key))]
    return line((heads.text(row), HEADING), *parts)


INDENT = "  "
_FEWEST_DECIMALS = 2
_MOST_STEP_ROWS, _FIRST_ROWS, _MOST_PAIR_ROWS = 12, 4, 60
_WIDEST_LABEL, _MOST_HEADING = 20, 12
_NARROWEST = 2  # cells of a column


def steps(block: Steps, width: int) -> list[Text]:
    """Lines of the steps, each with its shape, its numbers, and one cell spelled out."""
    lines = [Text(block.title, style=STYLES[Verdict.FAILED])] if block.title else []
    for step in block.steps:
        lines += [*([Text()] if lines else []), _heading(step), *grid(step, width, block.decimals)]
        if spelled := spelled_out(step, block.decimals):
            lines.append(Text(INDENT + spelled, style=DIM))
    return lines


def _heading(step: Step) -> Text:
    """Heading of a step: `scores = Q Kᵀ   1 x 3 (queries x keys) · how well each key fits each query`."""
    made = f" = {step.formula}" if step.formula else ""
    meaning = f" · {step.meaning}" if step.meaning else ""
    shape = (shape_words(step), HEADING)
    return Text.assemble((step.matrix.symbol, HEADING), made, "   ", shape, (meaning, DIM))


def grid(step: Step, width: int, decimals: int) -> list[Text]:
    """The step's matrix in `width` cells, with a line that counts left-out rows and columns."""
    matrix = step.matrix
    rows, columns = matrix.values.shape
    most = _MOST_PAIR_ROWS if matrix.columns.word == "key" else _MOST_STEP_ROWS
    shown = rows if rows <= most else _FIRST_ROWS
    head = min(max(cell_len(settled(name)) for name in matrix.rows.names[:shown]), _WIDEST_LABEL)
    room = width - len(INDENT) - head
    fewest = 0 if matrix.columns.word == "key" and not step.weights else min(decimals, _FEWEST_DECIMALS)
    tried = [*product(range(decimals, fewest - 1, -1), (2, 1))]
    if (_NARROWEST + 1) * columns > room:
        tried = tried[-1:]  # no number of decimals lets all columns fit
    for places, gap in tried:
        cells = texts(matrix.values, places, shown)
        cells = (cells if step.allowed is None else np.where(step.allowed[:shown], cells, "")).tolist()
        least = max(widest(cells), _NARROWEST) + gap
        if least * columns <= room:
            break
    fitting = max(room // least, 1)
    names = [settled(name) for name in matrix.columns.names[:fitting]]
    widths = column_widths([left(name, _MOST_HEADING).rstrip() for name in names], least, room)
    lines = _step_headings(names, head, widths)
    for name, values, row in zip(matrix.rows.names, matrix.values, cells, strict=False):
        coloured = [
            (right(text, width), _style(step, float(value))) if text else " " * width
            for text, value, width in zip(row, values, widths, strict=False)
        ]
        lines.append(line(INDENT + left(settled(name), head), *coloured))
    left_out = [f"{rows - shown} more rows"] if shown < rows else []
    left_out += [f"{columns - len(widths)} more columns"] if len(widths) < columns else []
    if left_out:
        lines.append(Text(f"{INDENT}… {', '.join(left_out)} (-o FILE.csv has all)", style=DIM))
    return lines


def _step_headings(names: list[str], head: int, widths: list[int]) -> list[Text]:
    stacks = [stacked(name, width - 1)[:3] for name, width in zip(names, widths, strict=True)]
    lines = []
    for level in zip_longest(*stacks, fillvalue=""):
        words = "".join(right(part, width) for part, width in zip(level, widths, strict=True))
        lines.append(line(INDENT + " " * head, (words, DIM)))
    return [each for each in lines if each.plain.strip()]


def _style(step: Step, value: float) -> str:
    if step.weights:
        return palette.sequential(by_root().shade(value))
    return palette.diverging(value, largest_magnitude(step.matrix.values))
