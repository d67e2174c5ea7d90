"""Tables: columns for people and files, marks and lines drawn from them, and colour scales."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.palette import (
    FAINT,
    RAMPS,
    SIGNED,
    WEIGHT,
    Ground,
    between,
    diverging,
    readable_on,
    sequential,
)


@dataclass(frozen=True)
class Scale:
    """Numbers as colours: `rising` is dark at its high end, `falling` at its low one, `signed` around 0.

    Red always means taken from an answer, blue given to it. So changes and shares are `signed`, red below 0,
    and losses `costs`, red above 0. `ends` are the meanings of the least and the largest value.
    """

    low: float
    high: float
    kind: Literal["rising", "falling", "signed", "costs"] = "rising"
    ends: tuple[str, str] = ("", "")

    @classmethod
    def around(cls, values: Any, ends: tuple[str, str] = ("", ""), *, costs: bool = False) -> "Scale":
        """Symmetric scale around 0, red below and blue above; the reverse for `costs`."""
        extent = largest_magnitude(np.asarray(values, float)) or 1.0
        return cls(-extent, extent, "costs" if costs else "signed", ends)

    @property
    def around_0(self) -> bool:
        return self.kind in ("signed", "costs")

    def share(self, value: float) -> float:
        """Position of a value between the low end, 0, and the high end, 1; NaN for NaN."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return math.nan if math.isnan(share) else min(max(share, 0.0), 1.0)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The colours from the low end to the high one, as `#rrggbb`."""
        return self._anchors("light")

    def _anchors(self, on: Ground) -> tuple[str, ...]:
        named = RAMPS[on][SIGNED if self.around_0 else WEIGHT]
        return named[::-1] if self.kind in ("falling", "costs") else named

    @property
    def shades(self) -> tuple[str, str]:
        """Words for the looks of the low and the high end, such as light and dark."""
        named = {"rising": ("light", "dark"), "falling": ("dark", "light")}
        return named.get(self.kind, self._sides)

    @property
    def _sides(self) -> tuple[str, str]:
        return ("blue", "red") if self.kind == "costs" else ("red", "blue")

    def strength(self, value: float) -> float:
        """Strength of a value's colour, 0 to 1; on scales around 0, -1 to 1 with red below 0."""
        share = self.share(value)
        share = 1 - share if self.kind in ("falling", "costs") else share
        return 2 * share - 1 if self.around_0 else share

    def style(self, value: float) -> str:
        """The terminal's style name of a value; empty for NaN."""
        strength = self.strength(value)
        return diverging(strength, 1.0) if self.around_0 else sequential(strength)

    def meaning(self, form: Callable[[float], str]) -> str:
        """Phrase for the meanings of the ends in a terminal; "" where the ends have none."""
        shades = {"rising": ("faint", "strong"), "falling": ("strong", "faint")}
        ends = zip((self.low, self.high), self.ends, shades.get(self.kind, self._sides), strict=True)
        told = (
            " ".join(filter(None, (form(value) if value else "0", meant, f"({shade})")))
            for value, meant, shade in ends
        )
        return ", ".join(told) if any(self.ends) else ""

    def paper(self, value: float, on: Ground = "light") -> tuple[str, str]:
        """Colours of a cell and of its ink; white and faint for NaN."""
        share = self.share(value)
        if math.isnan(share):
            return "#ffffff", FAINT
        ground = between(self._anchors(on), share)
        return ground.hex, readable_on(ground).hex


def missing(value: object) -> bool:
    """True for None, "" and NaN."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


Values: TypeAlias = Sequence[Any]  # one a row; None, "" or NaN where a row has none
Form: TypeAlias = Callable[[Any], str]  # a value as a person reads it
Shape: TypeAlias = Literal["bar", "band", "span", "dot", "ring", "diamond", "tick", "line"]
Tint: TypeAlias = Literal[
    "own", "kin", "other", "faint", "loses", "gains", "floor", "control", "limit", "noise", "peers",
    "query", "key", "unrotated key", "value", "output",
]  # fmt: skip


def as_written(text: str) -> str:
    """Form for columns whose numbers are texts already: returns the text, aligned right."""
    return text


@dataclass(frozen=True)
class Column:
    """A table column: files know it by its `name`, people by its `heading`, if it has one.

    `says` explains the heading wherever the column is shown. Columns with a larger `spared` are dropped first
    if there is no room. `told` are the rows' texts, where these do not follow from the value alone. Adjacent
    columns with the same `under` share that heading.
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
        """True where the column holds words, which are aligned left."""
        return self.form is str and not self.told

    def text(self, row: int) -> str:
        value = self.values[row]
        text = self.told[row] if self.told else "" if missing(value) else self.form(value)
        return printable(text, LEFT_TO_RIGHT)


class Table:
    """Exact rows of a result, as columns."""

    def __init__(self, *columns: Column) -> None:
        self.columns = columns

    @classmethod
    def of(cls, names: str | Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
        """Table for a file, from rows and column names without headings."""
        named = names.split() if isinstance(names, str) else names
        values = list(zip(*rows, strict=True)) or [()] * len(named)
        return cls(*map(Column, named, values))

    def __len__(self) -> int:
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> Column:
        return next(each for each in self.columns if each.name == name)

    @property
    def headed(self) -> tuple[Column, ...]:
        """Columns with a heading and at least one text."""
        return tuple(
            each for each in self.columns if each.heading and any(map(each.text, range(len(each.values))))
        )


def meanings(columns: Iterable[Column]) -> list[str]:
    """Lines that explain columns: `before, after: probability of the answer`."""
    said: dict[str, list[str]] = {}
    for each in columns:
        if each.heading not in (headings := said.setdefault(each.says, [])):
            headings.append(each.heading)
    return [f"{', '.join(headings)}: {says}" for says, headings in said.items() if says]


def legend(columns: Iterable[Column]) -> str:
    """One line that explains columns: `before, after: probability of the answer; KL: ...`."""
    return "; ".join(meanings(columns))


@dataclass(frozen=True)
class Mark:
    """A mark drawn in each row of a ranking, at `at` or from `at` to `to`; a `line` crosses all rows.

    Its `tint` is a meaning, not a colour; `label` is its text in the legend. It is drawn in the middle of its
    row, or `low`, where an interval would hide another mark.
    """

    shape: Shape
    tint: Tint
    label: str
    at: Values
    to: Values = ()
    low: bool = False

    def ends(self, row: int) -> list[float]:
        """Begin and end of the mark in a row, without missing ones."""
        return [float(each[row]) for each in (self.at, self.to) if each and not missing(each[row])]


@dataclass(frozen=True)
class Line:
    """A number for each row of a curve, joined by a line, or a band from `at` to `to`.

    `points` are a list of numbers for each row, drawn alone. A `ring` is drawn around the number of a row.
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
    """The values of the rows that are `kept`, None for the others."""
    return [value if keep else None for value, keep in zip(values, kept, strict=True)]


def both_ways(values: Values, below: str = "", above: str = "", *, costs: bool = False) -> tuple[Mark, Mark]:
    """Bars below and above 0 with their labels; none for a row without a number.

    Bars below 0 are red, because they take from an answer; with `costs`, bars above 0.
    """
    losing = [not missing(value) and (value > 0 if costs else value < 0) for value in values]
    below, above = (above, below) if costs else (below, above)
    loses = Mark("bar", "loses", below, only(values, losing))
    return loses, Mark("bar", "gains", above, only(values, (not each for each in losing)))
