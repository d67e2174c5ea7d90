"""Grids of heads, layers down and heads across: a number or a small matrix per head."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.sheet.table import Form, Scale
from attnscope.results import Verdict


@dataclass(frozen=True, eq=False)
class Companion:
    """Text beside the number of every head where there is room: its control, error or link.

    `short` is never cut; `names` stands below the number, cut to the given cells. Both are functions of row
    and column.
    """

    label: str
    short: Callable[[int, int], str]
    names: Callable[[int, int, int], str] | None = None

    @classmethod
    def numbers(cls, label: str, values: np.ndarray, form: Form) -> "Companion":
        """A companion that shows a second number per head, empty for NaN."""

        def short(row: int, column: int) -> str:
            value = float(values[row, column])
            return "" if np.isnan(value) else form(value)

        return cls(label, short)

    def text(self, row: int, column: int, cells: int = 60) -> str:
        """Column text: names (shortened to fit), then the short text."""
        short = self.short(row, column)
        names = "" if self.names is None else self.names(row, column, cells - len(short) - bool(short))
        return f"{names} {short}".strip()


@dataclass(frozen=True, eq=False)
class HeadGrid:
    """A number for every head, layers down and heads across; NaN where there is none, shown as `absent`.

    `itself` is the head that the others relate to. Heads are outlined if their `verdicts` say that they are
    not certified, or if they are `beyond` (a phrase, and their places). If `whole`, a terminal writes all
    numbers, however many lines they take.
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
    whole: bool = False

    @property
    def heading(self) -> str:
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def ends(self) -> tuple[str, str]:
        """Texts of the numbers at the ends of the scale."""
        low, high = ("0" if value == 0 else self.form(value) for value in (self.scale.low, self.scale.high))
        return low, high

    def text(self, row: int, column: int) -> str:
        """Text of a head's number."""
        value = float(self.values[row, column])
        return self.absent if np.isnan(value) else self.form(value)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Row and column of every head."""
        return [(i, j) for i in range(len(self.layers)) for j in range(len(self.heads))]

    def name(self, row: int, column: int) -> str:
        return f"L{self.layers[row]} H{self.heads[column]}"

    def doubt(self, row: int, column: int) -> Verdict | None:
        """The verdict of a head that is not certified; None for one that is."""
        verdict = self.verdicts[row][column] if self.verdicts else None
        return verdict if verdict is not None and verdict.stands_out else None

    @cached_property
    def outlined(self) -> dict[tuple[int, int], Verdict | None]:
        """Outlined heads by place: the verdict of one not certified, or None for one in `beyond`."""
        doubts = {place: each for place in self.places if (each := self.doubt(*place)) is not None}
        return dict.fromkeys(self.beyond[1]) | doubts


@dataclass(frozen=True, eq=False)
class HeadMatrices:
    """A small matrix for every head, layers down and heads across, all on one scale; NaN where masked.

    `values[i, j]` are the cells of the head at `layers[i]` and `heads[j]`. Heads that are not certified are
    outlined.
    """

    title: str
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    values: np.ndarray
    scale: Weights
    verdicts: tuple[tuple[Verdict, ...], ...]
    says: str = ""


def each_of(values: np.ndarray, places: Iterable[tuple[int, int]]) -> list[float]:
    """Numbers of the heads at these places (row, column)."""
    return [float(values[place]) for place in places]


def by_head(
    layers: Sequence[int], heads: Sequence[int], numbers: Mapping[tuple[int, int], float]
) -> np.ndarray:
    """Array of the heads' numbers, layers down and heads across, NaN where there is none."""
    values = np.full((len(layers), len(heads)), np.nan)
    for (layer, head), number in numbers.items():
        values[layers.index(layer), heads.index(head)] = number
    return values
