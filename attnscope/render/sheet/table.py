"""Rows of numbers: columns that people and files read, and the marks and lines that are drawn of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.sheet.scale import Scale, missing

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
    alone does not make them. Columns that follow one another `under` a common heading have it once.
    """

    name: str
    values: Values
    heading: str = ""
    form: Form = str
    says: str = ""
    scale: Scale | None = None
    spared: int = 0
    under: str = ""
    told: Sequence[str] = ()

    @property
    def words(self) -> bool:
        """Whether it holds words, which stand at the left, and not numbers."""
        return self.form is str and not self.told

    def text(self, row: int) -> str:
        value = self.values[row]
        text = self.told[row] if self.told else "" if missing(value) else self.form(value)
        return printable(text, LEFT_TO_RIGHT)


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


def meanings(columns: Iterable[Column]) -> list[str]:
    """What each of these columns is, in a line: `before, after: probability of the answer`."""
    said: dict[str, list[str]] = {}
    for each in columns:
        if each.heading not in (headings := said.setdefault(each.says, [])):
            headings.append(each.heading)
    return [f"{', '.join(headings)}: {says}" for says, headings in said.items() if says]


def legend(columns: Iterable[Column]) -> str:
    """What columns are in one line: `before, after: probability of the answer; KL: ...`."""
    return "; ".join(meanings(columns))


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


def only(values: Values, kept: Iterable[bool]) -> list[Any]:
    """The values of the rows that are `kept`, none for the others."""
    return [value if keep else None for value, keep in zip(values, kept, strict=True)]


def both_ways(values: Values, below: str = "", above: str = "", *, costs: bool = False) -> tuple[Mark, Mark]:
    """Bars to both sides of 0, and what each side means; none for a row that has no number.

    Red are those below 0, which take from an answer; of what something `costs` those above it.
    """
    losing = [not missing(value) and (value > 0 if costs else value < 0) for value in values]
    below, above = (above, below) if costs else (below, above)
    loses = Mark("bar", "loses", below, only(values, losing))
    return loses, Mark("bar", "gains", above, only(values, (not each for each in losing)))
