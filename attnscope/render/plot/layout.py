"""How large the cells of a stage are, which of its rows and columns are named, and in which letters.

Up to 64 tokens all are named. Of more, every tenth or so, with its position, beside a mark; cells are then
whole dots of a picture, so that none is wider than another, and of very many several share a block. Messages
of a chat are stretches beside the axes: a line along each, with whose it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from attnscope.render.kit.cells import clusters, fit, settled
from attnscope.render.kit.page import Frame
from attnscope.render.kit.palette import FAINT, INK
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.sheet.blocks import Named
from attnscope.tokens import Section, Tokens

BAND = 11.0  # points between a matrix and the names of its rows or columns
MOST_NUMBERS = 16  # rows and columns of a heat map with a number in every cell
MOST_NAMED = 64  # rows and columns that are all named
_WIDEST_LABEL, _WIDEST_TICK = 32, 14  # characters
_WIDEST_SENTENCE = 48  # characters of a sentence in the margin
_WIDEST_NAME = 62  # of a row that is no token
_LEAST_SIZE, _LARGEST_SIZE, _TICK_SIZE = 4.5, 9.0, 6.5  # points
_TICK_EVERY = 0.15  # inches at least
_DOTS = 200  # in an inch
_LARGEST_SIDE, _LEAST_BLOCK = 2200, 2  # dots, of a whole heat map and of a block of its cells


@dataclass(frozen=True)
class Grid:
    """Size of a cell in inches, the labels of both sides and their font size in points.

    A label is "" where none is shown. Labels stand upright (`rotated`) above columns that are narrower than
    the widest of them. Where there are very many tokens, `block` rows and columns are drawn as one. Messages
    of a chat are drawn along the sides that have some, `down` and `across`.
    """

    wide: float
    high: float
    rows: list[str]
    columns: list[str]
    size: float
    rotated: bool
    block: int = 1
    down: tuple[Section, ...] = ()
    across: tuple[Section, ...] = ()

    @property
    def above(self) -> float:
        """Inches that the labels of the columns take, and messages below them."""
        turned = [label for label in self.columns if self.turned(label)]
        labels = max([line_height(self.size), *(text_width(label, self.size) for label in turned)])
        return labels + (BAND / 72 if self.across else 0.0)

    @property
    def left(self) -> float:
        """Inches that the labels of the rows take, and messages beside them."""
        labels = max((text_width(label, self.size) for label in self.rows), default=0.0)
        return labels + (BAND / 72 if self.down else 0.0)

    @property
    def marked(self) -> bool:
        """Whether only some are named, beside a mark."""
        return max(len(self.rows), len(self.columns)) > MOST_NAMED

    def turned(self, label: str) -> bool:
        """Whether a label is turned: one character never lies on its side."""
        return self.rotated and len(clusters(label)) > 1


def grid(shown: Panel) -> Grid:
    """The layout that keeps every label of `shown` legible."""
    pairs = shown.column_tokens is not None
    rows, columns = shown.values.shape
    longest = max(rows, columns if pairs else 0)
    block = max(1, math.ceil(longest * _LEAST_BLOCK / _LARGEST_SIDE))
    high = side(longest)
    wide = high if pairs else _dimension(columns)
    large = longest <= MOST_NAMED and isinstance(shown.row_tokens, Tokens)
    size = min(max(high * 72 * 0.7, _LEAST_SIZE), _LARGEST_SIZE) if large else _TICK_SIZE
    named = _margin(shown.row_tokens) or _names(shown.row_tokens, high)
    across = _across(shown, columns, wide)
    messages = _sections(shown.row_tokens), _sections(shown.column_tokens)
    return Grid(wide, high, named, across, size, pairs and not _fits(across, size, wide), block, *messages)


def _sections(tokens: object) -> tuple[Section, ...]:
    return tokens.sections if isinstance(tokens, Tokens) else ()


def _dimension(count: int) -> float:
    """Width of one dimension of a vector: whole dots where there are many."""
    return min(0.44, 9 / count) if count <= MOST_NAMED else max(9 * _DOTS // count, 1) / _DOTS


def _fits(labels: list[str], size: float, wide: float) -> bool:
    return max((text_width(label, size) for label in labels), default=0.0) <= wide - 0.06


def side(cells: int) -> float:
    """Side of a cell in inches: generous for a few tokens, small enough for many to stay on one page."""
    if cells <= MOST_NAMED:
        return 0.44 if cells <= MOST_NUMBERS else 0.25 if cells <= 30 else 0.17
    block = math.ceil(cells * _LEAST_BLOCK / _LARGEST_SIDE)
    return _LARGEST_SIDE // math.ceil(cells / block) / block / _DOTS


def _names(tokens: Named, cell: float) -> list[str]:
    if len(tokens) <= MOST_NAMED:
        return token_labels(tokens)
    every = tick_step(cell)
    named = zip(tokens.positions, tokens.names, strict=True)
    labels = [f"{position} {fit(name, _WIDEST_TICK)}".strip() for position, name in named]
    return sparse(labels, every)


def _margin(tokens: Named) -> list[str]:
    if not _of_sentences(tokens) or len(tokens) > MOST_NAMED:
        return []
    assert isinstance(tokens, Tokens), "only these are of sentences"
    numbered = zip(tokens.positions, tokens.in_full, strict=True)
    return [f"{number} {fit(text, _WIDEST_SENTENCE)}" for number, text in numbered]


def _across(shown: Panel, columns: int, wide: float) -> list[str]:
    tokens = shown.column_tokens
    if tokens is None:
        every = 1 if columns <= MOST_NUMBERS else 8
        return sparse([str(i) for i in range(columns)], every)
    if shown.columns_apart and (texts := _margin(tokens)):
        return texts
    if not _of_sentences(tokens):
        return _names(tokens, wide)
    return sparse([str(number) for number in tokens.positions], tick_step(wide) if wide < _TICK_EVERY else 1)


def _of_sentences(tokens: Named) -> bool:
    return isinstance(tokens, Tokens) and tokens.of_sentences


def tick_step(cell: float) -> int:
    """Every how many cells of this size there is room for a label: 1, 2, 5, 10, 20, 50, ..."""
    unit = 1
    while True:
        for step in (unit, 2 * unit, 5 * unit):
            if step * cell >= _TICK_EVERY:
                return step
        unit *= 10


def sparse(labels: list[str], every: int) -> list[str]:
    """Every so many of the labels, "" in the place of the others."""
    return [label if i % every == 0 else "" for i, label in enumerate(labels)]


def token_labels(tokens: Named) -> list[str]:
    """Unique labels; one that has to be cut carries its position instead of its end, if it is a token's."""
    if not isinstance(tokens, Tokens):
        return [fit(label, _WIDEST_NAME) for label in tokens.labels]
    cut = [fit(label, _WIDEST_LABEL) for label in tokens.labels]
    whole = zip(cut, tokens.labels, strict=True)
    return [label if label == full else f"{label}@{i}" for i, (label, full) in enumerate(whole)]


def head_frame(shown: Panel, laid: Grid | None = None) -> Frame:
    """The size of the axes for `shown` and the room that its labels need."""
    laid = laid or grid(shown)
    rows, columns = shown.values.shape
    left, top = laid.left + 0.4, laid.above + 0.32
    return Frame(laid.wide * columns, laid.high * rows, left=left, top=top, share=_share(laid))


def _share(laid: Grid) -> float:
    """How much of their size the cells can do with before labels touch; whole dots stay what they are."""
    if laid.marked:
        return 1.0
    letters = line_height(laid.size)
    widest = max((text_width(label, laid.size) for label in laid.columns), default=0.0) + 0.06
    return min(1.0, max(letters / laid.high, (letters if laid.rotated else widest) / laid.wide))


_LINE, _NAME, _SIZE = 2.5, 6.5, 6.0  # points: from the matrix, and of the letters
_GAP = 0.12  # of a cell, between two messages


def draw_sections(axes: Axes, which: Literal["x", "y"], sections: Sequence[Section], cell: float) -> None:
    """A line for each along one side, its name where that has room; a cell is so many inches long."""
    dots = axes.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]

    def off(points: float) -> ScaledTranslation:
        across, up = (0.0, points / 72) if which == "x" else (-points / 72, 0.0)
        return ScaledTranslation(across, up, dots)

    along = axes.transData
    edge = blended_transform_factory(*((along, axes.transAxes) if which == "x" else (axes.transAxes, along)))
    side = 1.0 if which == "x" else 0.0
    for each in sections:
        start, end = each.first + _GAP, each.first + each.count - _GAP
        middle, room = (start + end) / 2, (end - start) * cell
        ends = ((start, end), (side, side)) if which == "x" else ((side, side), (start, end))
        axes.plot(*ends, color=FAINT, linewidth=1.6, clip_on=False, transform=edge + off(_LINE), zorder=4)
        name = settled(each.name)
        name = next(
            (cut for most in range(len(name), 2, -1) if text_width(cut := fit(name, most), _SIZE) <= room), ""
        )
        place = (middle, side) if which == "x" else (side, middle)
        axes.text(
            *place, name, transform=edge + off(_NAME), size=_SIZE, color=INK, ha="center", va="center",
            rotation=0 if which == "x" else 90, parse_math=False,
        )  # fmt: skip
