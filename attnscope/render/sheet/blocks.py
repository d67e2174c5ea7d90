"""Blocks: a result's content as rankings, curves, grids and matrices, without layout.

They hold exact numbers, their text form and their meaning. `terminal`, `plot` and `web` each draw every kind
of block.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.numbers import number
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.stage import Panel
from attnscope.render.sheet.heads import HeadGrid, HeadMatrices
from attnscope.render.sheet.table import Form, Line, Mark, Scale, Table
from attnscope.tokens import Tokens


@dataclass(frozen=True)
class Rows:
    """Rows of a table under their names; `of` is what a row is.

    `chosen` rows are emphasised, `faint` ones dimmed. `hidden` counts the rows that only files have, and
    `unshown` is the note about them. `elsewhere` says how to see rows and columns that do not fit. `sections`
    are the rows at which a heading stands.
    """

    title: str
    of: str
    names: tuple[str, ...]
    table: Table
    says: str = ""
    faint: frozenset[int] = frozenset()
    chosen: frozenset[int] = frozenset()
    hidden: int = 0
    unshown: str = ""
    elsewhere: str = ""
    sections: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Ranking(Rows):
    """Table rows, best first or in the order of a text, with marks drawn over one axis.

    Without marks it is a table, which pictures leave out. `written` names the column whose text stands behind
    each row's marks; `axis` replaces the ends of the axis. `cells` names the columns whose shaded numbers
    pictures show before the marks. A block that `repeats` the numbers of another one is left out of pictures.
    """

    measured: str = ""
    marks: tuple[Mark, ...] = ()
    written: str = ""
    axis: tuple[float, float] | None = None
    cells: tuple[str, ...] = ()
    repeats: bool = False

    def extent(self) -> tuple[float, float]:
        """Ends of the axis: the given `axis`, else those of all marks, with 0 and a little room."""
        if self.axis:
            return self.axis
        ends = [end for mark in self.marks for row in range(len(mark.at)) for end in mark.ends(row)]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        room = 0.04 * (high - low or 1.0)
        return low - room if low < 0 else 0.0, high + room

    def key(self) -> tuple[str, ...]:
        """Labels of the marks that have one."""
        return tuple(mark.label for mark in self.marks if mark.label)


@dataclass(frozen=True)
class Curve(Rows):
    """Rows in sequence, by layer or by step, with lines over them.

    `places` are the rows' numbers, `measured` is the quantity of all lines. If `named`, the axis shows the
    rows' names; if `log`, its scale is logarithmic. In tables the rows stand one below the other; pictures
    mark the `chosen` ones.
    """

    places: tuple[float, ...] = ()
    named: bool = False
    measured: str = ""
    lines: tuple[Line, ...] = ()
    axis: tuple[float, float] | None = None
    log: bool = False

    def extent(self) -> tuple[float, float]:
        """Ends of the vertical axis: the given `axis`, else those of all lines, with a little room."""
        if self.axis:
            return self.axis
        ends = [end for each in self.lines for end in each.ends()] or [0.0]
        if self.log:
            return min(end for end in ends if end > 0) / 1.2, 1.2 * max(ends)
        low, high = min(ends), max(ends)
        room = 0.04 * (high - low or 1.0)
        return low - room, high + room

    def share(self, value: float) -> float:
        """Position of a value between the low end, 0, and the high end, 1."""
        low, high = self.extent()
        if self.log:
            value, low, high = (math.log(max(each, low)) for each in (value, low, high))
        return (value - low) / ((high - low) or 1.0)

    def key(self) -> tuple[str, ...]:
        """Labels of the lines that have one."""
        return tuple(each.label for each in self.lines if each.label)


@dataclass(frozen=True)
class Names:
    """Rows or columns of a matrix that are not tokens: their names and numbers."""

    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def positions(self) -> Sequence[int]:
        return self.numbers or range(len(self.names))

    @property
    def labels(self) -> tuple[str, ...]:
        """Number and name of each row, or the name alone where there are no numbers."""
        if not self.numbers:
            return self.names
        return tuple(f"{i} {name}".strip() for i, name in zip(self.numbers, self.names, strict=True))


class Dimensions(Names):
    """Columns of vectors: dimensions, which have numbers and no names."""

    @classmethod
    def of(cls, count: int) -> "Dimensions":
        return cls(("",) * count, tuple(range(count)))


Named: TypeAlias = Tokens | Names


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix with named rows and columns; NaN where a cell is empty.

    `words` name what a row and a column is; `unanswered` is the text of a row without any cell, `blank` of an
    empty cell. `groups` are the indices at which new groups of rows and columns begin; `marked` cells are
    framed. Without a `form` the decimals depend on the room. If there are too many cells, `coarser` gives a
    pooled matrix; without it the strongest of several cells is drawn. If numbers do not fit, the strongest
    columns of the `listed` rows are shown under `listing`. `measured` labels the colour bar.
    """

    title: str
    words: tuple[str, str]
    rows: Named
    columns: Named
    values: np.ndarray
    scale: Scale | Weights
    form: Form | None
    says: str = ""
    unanswered: str = "no valid key"
    measured: str = ""
    listed: tuple[int, ...] = ()
    listing: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    marked: tuple[tuple[int, int], ...] = ()
    coarser: "Callable[[int, int], Matrix] | None" = None
    blank: str = "masked"

    @property
    def pictured(self) -> bool:
        """True where rows and columns are those of a picture, for which a small map is enough."""
        return self.words == ("row", "column")

    def text(self, value: float) -> str:
        """The text of a number that stands alone."""
        return number(value) if self.form is None else self.form(value)


@dataclass(frozen=True, eq=False)
class KeyBars(Ranking):
    """The keys of one `query` of a matrix, strongest first; a picture has them in the order of the text.

    The key `pointed` is emphasised. If `above`, the matrix is drawn above the bars, key over key.
    """

    matrix: Matrix | None = None
    query: int = 0
    pointed: int | None = None
    above: bool = False


class Drawing:
    """Base of blocks that only one kind of result has, drawn by a function of its own.

    A medium without such a function draws the `plain` block instead, or nothing.
    """

    plain: "Matrix | HeadGrid | None" = None


Block: TypeAlias = Ranking | Curve | HeadGrid | Matrix | HeadMatrices | Drawing


@dataclass(frozen=True)
class Beside:
    """Blocks to compare with each other: side by side where there is room, with one legend."""

    blocks: tuple[Block, ...]


def flat(block: Block | Beside) -> tuple[Block, ...]:
    """The blocks in a `Beside`, or the block itself as a tuple."""
    return block.blocks if isinstance(block, Beside) else (block,)


@dataclass(frozen=True, eq=False)
class Passage(Drawing):
    """A text with each token shaded by its number; NaN where it has none.

    The `chosen` tokens are framed. `says` is the caption.
    """

    title: str
    tokens: Tokens
    values: Float[np.ndarray, " token"]
    scale: Scale | Weights
    form: Form
    chosen: frozenset[int] = frozenset()
    says: str = ""


@dataclass(frozen=True, eq=False)
class Heap(Drawing):
    """Numbers as dots on one axis, and among them one that is compared with them.

    `dots` says what a dot is, `name` what `own` is the number of, `measured` what the numbers are.
    """

    title: str
    dots: str
    values: tuple[float, ...]
    name: str
    own: float
    measured: str
    form: Form


@dataclass(frozen=True)
class Tie:
    """A line between a word on the left and one on the right, with a strength from 0 to 1.

    It is `broken` where only one direction finds it; `told` is its tooltip.
    """

    left: int
    right: int
    strength: float
    broken: bool
    told: str


@dataclass(frozen=True, eq=False)
class Linked(Drawing):
    """Two columns of words with lines between linked words, under the name of each side."""

    title: str
    sides: tuple[str, str]
    left: tuple[str, ...]
    right: tuple[str, ...]
    ties: tuple[Tie, ...]
    says: str = ""


@dataclass(frozen=True)
class Statement:
    """A sentence under the question that it answers, its figures, and the command that shows more."""

    question: str
    sentence: str
    figures: str = ""
    command: str = ""


@dataclass(frozen=True, eq=False)
class Statements(Drawing):
    """Sentences in order; a terminal shows their figures and commands if `whole`."""

    title: str
    statements: tuple[Statement, ...]
    whole: bool = False


def as_panel(block: Matrix) -> Panel:
    """The matrix as a Panel, weights on their own scale, other numbers on one around 0.

    `Names` may stand for its tokens, because drawing needs only names, positions and labels.
    """
    visible = ~np.isnan(block.values)
    vectors = isinstance(block.columns, Dimensions)
    weights = block.scale if isinstance(block.scale, Weights) else None
    return Panel(
        show="scaled" if weights is None else "weights",
        row_word=block.words[0],
        row_tokens=cast("Tokens", block.rows),
        column_tokens=None if vectors else cast("Tokens", block.columns),
        values=block.values,
        visible=visible,
        answered=visible.any(axis=1) | (not block.unanswered),
        unanswered=block.unanswered,
        limit=None if isinstance(block.scale, Weights) else block.scale.high,
        common=weights,
        form=block.form,
        columns=block.words[1],
    )
