"""Blocks: what a result shows, in the terms of the field and without layout.

A ranking, a curve, a grid of heads and a matrix hold exact numbers, how a person reads them, and what they
mean.
`terminal`, `plot` and `web` draw each of them once for all results.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.sheet.scale import Scale, missing
from attnscope.results import Verdict
from attnscope.tokens import Tokens

Values: TypeAlias = Sequence[Any]  # one a row; None, "" or NaN where a row has none
Form: TypeAlias = Callable[[Any], str]  # a value as a person reads it
Shape: TypeAlias = Literal["bar", "band", "span", "dot", "ring", "diamond", "tick", "line"]
Tint: TypeAlias = Literal[
    "own", "kin", "other", "faint", "loses", "gains", "floor", "control", "limit", "noise", "peers",
    "query", "key", "unrotated key", "value", "output",
]  # fmt: skip


def as_written(text: str) -> str:
    """The form of numbers that are texts already, and stand at the right as numbers do."""
    return text


@dataclass(frozen=True)
class Column:
    """A column of a table: files know it by its `name`, people by its `heading`, if it has one.

    `says` explains the heading and is told wherever the column is shown, and only there. Columns with the
    largest `spared` give way first where there is no room. `told` are the texts of its rows where a value
    alone does not make them.
    """

    name: str
    values: Values
    heading: str = ""
    form: Form = str
    says: str = ""
    scale: Scale | None = None
    spared: int = 0
    told: Sequence[str] = ()

    @property
    def words(self) -> bool:
        """Whether it holds words, which stand at the left, and not numbers."""
        return self.form is str and not self.told

    def text(self, row: int) -> str:
        value = self.values[row]
        return self.told[row] if self.told else "" if missing(value) else self.form(value)


class Table:
    """Rows of a result, exact."""

    def __init__(self, *columns: Column) -> None:
        self.columns = columns

    @classmethod
    def of(cls, names: str | Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
        """Rows for a file, which nobody reads by their headings; single words may be given as one text."""
        named = names.split() if isinstance(names, str) else names
        values = list(zip(*rows, strict=True)) or [()] * len(named)
        return cls(*map(Column, named, values))

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> Column:
        return next(each for each in self.columns if each.name == name)

    @property
    def headed(self) -> tuple[Column, ...]:
        """The columns for people: those with a heading and with something under it."""
        return tuple(
            each for each in self.columns if each.heading and any(map(each.text, range(len(each.values))))
        )


@dataclass(frozen=True)
class Mark:
    """Something drawn in each row of a ranking, at `at` or from `at` to `to`; a `line` crosses all rows.

    Its `tint` is a meaning, not a colour. The key names it by its `label`, where it has one. It stands in the
    middle of its row, or `low`, where an interval would hide another.
    """

    shape: Shape
    tint: Tint
    label: str
    at: Values
    to: Values = ()
    low: bool = False

    def ends(self, row: int) -> list[float]:
        """Where it begins and ends in a row, as far as it is there."""
        return [float(each[row]) for each in (self.at, self.to) if each and not missing(each[row])]


@dataclass(frozen=True)
class Rows:
    """Rows of a table under their names; `of` is what a row is.

    `chosen` rows are those that were asked about, `faint` ones stand back. `hidden` is how many more there
    are, which files have.
    """

    title: str
    of: str
    names: tuple[str, ...]
    table: Table
    says: str = ""
    faint: frozenset[int] = frozenset()
    chosen: frozenset[int] = frozenset()
    hidden: int = 0


@dataclass(frozen=True)
class Ranking(Rows):
    """Rows, best first or in the order of a text, and the marks that are drawn of them over one axis.

    Without marks it is a table: terminal and page show it, a picture leaves it out.
    `written` names the column whose text stands at the end of each row's marks, `axis` the ends of the axis
    where these are not the marks' own. `cells` names the columns whose shaded numbers stand before the marks
    in a picture too. What `repeats` in numbers what another block draws is left out of a picture.
    """

    measured: str = ""
    marks: tuple[Mark, ...] = ()
    written: str = ""
    axis: tuple[float, float] | None = None
    cells: tuple[str, ...] = ()
    repeats: bool = False

    def extent(self) -> tuple[float, float]:
        """The ends of the axis: those asked for, else all that is drawn, with 0 and a little room."""
        if self.axis:
            return self.axis
        ends = [end for mark in self.marks for row in range(len(mark.at)) for end in mark.ends(row)]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        room = 0.04 * (high - low or 1.0)
        return low - room if low < 0 else 0.0, high + room

    def key(self) -> tuple[str, ...]:
        """The labels of the marks that are there."""
        return tuple(mark.label for mark in self.marks if mark.label)


@dataclass(frozen=True)
class Line:
    """A number for each row of a curve, joined by a line, or from `at` to `to` a band.

    The `points` of each row stand alone: a list of numbers a row. A `ring` is drawn around the number of a
    row that is meant.
    """

    shape: Literal["line", "dashed", "band", "points", "ring"]
    tint: Tint
    label: str
    at: Values
    to: Values = ()

    def ends(self) -> list[float]:
        """All numbers that are drawn."""
        rows = (one for each in (self.at, self.to) for one in each if not missing(one))
        return [
            float(end)
            for row in rows
            for end in (row if self.shape == "points" else (row,))
            if not missing(end)
        ]


@dataclass(frozen=True)
class Curve(Rows):
    """Rows that follow one another, layer by layer or step by step, and lines over them.

    `places` are the numbers of the rows, `measured` is what all lines are in. Where `named` the axis has the
    names of the rows; where `log` equal steps up are equal ratios. Tables have the rows one below the other;
    of the `chosen` rows a picture marks the place.
    """

    places: tuple[float, ...] = ()
    named: bool = False
    measured: str = ""
    lines: tuple[Line, ...] = ()
    axis: tuple[float, float] | None = None
    log: bool = False

    def extent(self) -> tuple[float, float]:
        """The ends of what is measured: those asked for, else all that is drawn, with a little room."""
        if self.axis:
            return self.axis
        ends = [end for each in self.lines for end in each.ends()] or [0.0]
        if self.log:
            return min(end for end in ends if end > 0) / 1.2, 1.2 * max(ends)
        low, high = min(ends), max(ends)
        room = 0.04 * (high - low or 1.0)
        return low - room, high + room

    def share(self, value: float) -> float:
        """Where a value lies from the low end, 0, to the high one, 1."""
        low, high = self.extent()
        if self.log:
            value, low, high = (math.log(max(each, low)) for each in (value, low, high))
        return (value - low) / ((high - low) or 1.0)

    def key(self) -> tuple[str, ...]:
        """The labels of the lines that are there."""
        return tuple(each.label for each in self.lines if each.label)


@dataclass(frozen=True, eq=False)
class Companion:
    """What stands with the number of every head where there is room: its control, its error, its link.

    `short` is never cut. `names`, where there are any, stand below the number, cut to so many cells. Both are
    asked for by row and column.
    """

    label: str
    short: Callable[[int, int], str]
    names: Callable[[int, int, int], str] | None = None

    @classmethod
    def numbers(cls, label: str, values: np.ndarray, form: Form) -> "Companion":
        """A second number of every head, NaN where it has none."""

        def short(row: int, column: int) -> str:
            value = float(values[row, column])
            return "" if np.isnan(value) else form(value)

        return cls(label, short)

    def text(self, row: int, column: int, cells: int = 60) -> str:
        """Names and the short text in one, the names cut alone."""
        short = self.short(row, column)
        names = "" if self.names is None else self.names(row, column, cells - len(short) - bool(short))
        return f"{names} {short}".strip()


@dataclass(frozen=True, eq=False)
class HeadGrid:
    """A number for every head, layers down and heads across; NaN where there is none, shown as `absent`.

    `itself` is the place of the head that the others relate to. Heads that are not certified are outlined by
    their `verdicts`, and so are those `beyond` something, which says beyond what.
    """

    title: str
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    values: np.ndarray
    scale: Scale
    form: Form
    unit: str = ""
    says: str = ""
    itself: tuple[int, int] | None = None
    companion: Companion | None = None
    verdicts: tuple[tuple[Verdict | None, ...], ...] = ()
    beyond: tuple[str, frozenset[tuple[int, int]]] = ("", frozenset())
    absent: str = ""

    @property
    def heading(self) -> str:
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def text(self, row: int, column: int) -> str:
        """The number of one head as a person reads it."""
        value = float(self.values[row, column])
        return self.absent if np.isnan(value) else self.form(value)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Row and column of every head."""
        return [(i, j) for i in range(len(self.layers)) for j in range(len(self.heads))]

    def name(self, row: int, column: int) -> str:
        return f"L{self.layers[row]} H{self.heads[column]}"

    def doubt(self, row: int, column: int) -> Verdict | None:
        """The verdict of a head that is not certified."""
        verdict = self.verdicts[row][column] if self.verdicts else None
        return None if verdict is Verdict.CERTIFIED else verdict

    @cached_property
    def outlined(self) -> dict[tuple[int, int], Verdict | None]:
        """The heads that stand out: by a verdict that is not the best, or with None those beyond."""
        doubts = {place: each for place in self.places if (each := self.doubt(*place)) is not None}
        return dict.fromkeys(self.beyond[1]) | doubts


@dataclass(frozen=True)
class Names:
    """Rows or columns of a matrix that are no tokens: their names, and their numbers."""

    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def positions(self) -> Sequence[int]:
        return self.numbers or range(len(self.names))

    @property
    def labels(self) -> tuple[str, ...]:
        """Number and name, one of them where there is no other."""
        if not self.numbers:
            return self.names
        return tuple(f"{i} {name}".strip() for i, name in zip(self.numbers, self.names, strict=True))


Named: TypeAlias = Tokens | Names


@dataclass(frozen=True, eq=False)
class Matrix:
    """Rows that look at columns, both by their names; NaN where a cell is empty.

    `words` say what a row and what a column is, `unanswered` is told of a row without any cell. `groups` are
    the places at which a new group of rows, and of columns, begins; `marked` cells have a frame. Where there
    are more rows and columns than a medium has room for, `coarser` gives the matrix with so many of them in
    one; of others the strongest of several cells is drawn. `blank` is what an empty cell is.
    """

    title: str
    words: tuple[str, str]
    rows: Named
    columns: Named
    values: np.ndarray
    scale: Scale | Weights
    form: Form
    says: str = ""
    unanswered: str = "no valid key"
    groups: tuple[int, ...] = ()
    marked: tuple[tuple[int, int], ...] = ()
    coarser: "Callable[[int, int], Matrix] | None" = None
    blank: str = "masked"

    @property
    def pictured(self) -> bool:
        """Whether rows and columns are those of a picture: a small map of it will do."""
        return self.words == ("row", "column")


@dataclass(frozen=True, eq=False)
class HeadMatrices:
    """A small matrix for every head, layers down and heads across, all on one scale; NaN where it is masked.

    `values[i, j]` are the cells of the head at `layers[i]` and `heads[j]`. What is not certified is outlined.
    """

    title: str
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    values: np.ndarray
    scale: Weights
    verdicts: tuple[tuple[Verdict, ...], ...]
    says: str = ""


class Drawing:
    """What one kind of result alone has: a class of its own beside its sheet.

    `plot` has what draws it. Elsewhere its `plain` block stands for it, which says the same, unless a medium
    has its own way to write it; without one it is left out.
    """

    plain: "Matrix | HeadGrid | None" = None


Block: TypeAlias = Ranking | Curve | HeadGrid | Matrix | HeadMatrices | Drawing


@dataclass(frozen=True)
class Beside:
    """Blocks that are read against each other: side by side where there is room, a key told once."""

    blocks: tuple[Block, ...]


def flat(block: Block | Beside) -> tuple[Block, ...]:
    """One block, or all that stand beside one another."""
    return block.blocks if isinstance(block, Beside) else (block,)


def only(values: Values, kept: Iterable[bool]) -> list[Any]:
    """The values of the rows that are `kept`, none for the others."""
    return [value if keep else None for value, keep in zip(values, kept, strict=True)]


def both_ways(values: Values, below: str = "", above: str = "") -> tuple[Mark, Mark]:
    """Bars to both sides of 0, and what each side means; none for a row that has no number."""
    losing = [not missing(value) and value < 0 for value in values]
    loses = Mark("bar", "loses", below, only(values, losing))
    return loses, Mark("bar", "gains", above, only(values, (not each for each in losing)))


def each_of(values: np.ndarray, places: Iterable[tuple[int, int]]) -> list[float]:
    """The number of each of these heads, by row and column."""
    return [float(values[place]) for place in places]


def by_head(
    layers: Sequence[int], heads: Sequence[int], numbers: Mapping[tuple[int, int], float]
) -> np.ndarray:
    """The numbers of heads as layers down and heads across, NaN where there is none."""
    values = np.full((len(layers), len(heads)), np.nan)
    for (layer, head), number in numbers.items():
        values[layers.index(layer), heads.index(head)] = number
    return values


def ordered(values: np.ndarray) -> list[tuple[int, int]]:
    """Every place that has a number, the largest first, those that are alike in their order."""
    order = np.argsort(-values, axis=None, kind="stable")
    places = ((int(i), int(j)) for i, j in zip(*np.unravel_index(order, values.shape), strict=True))
    return [place for place in places if not np.isnan(values[place])]


def legend(columns: Iterable[Column]) -> str:
    """What these columns are: `before, after: probability of the answer; KL: ...`."""
    said: dict[str, list[str]] = {}
    for each in columns:
        if each.heading not in (headings := said.setdefault(each.says, [])):
            headings.append(each.heading)
    return "; ".join(f"{', '.join(headings)}: {says}" for says, headings in said.items() if says)
