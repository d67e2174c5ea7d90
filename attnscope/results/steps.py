"""Matrices with named axes, and the arithmetic steps of a worked example."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.origin import Verdict
from attnscope.results.base.presented import Value, fits, within

WRONG = "wrong_"  # before the keys of steps that a mistake makes


@dataclass(frozen=True, eq=False)
class Given:
    """An array given by the user, with its row and column names if any."""

    values: Float[np.ndarray, "row column"]
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Axis:
    """One axis of a matrix: a `word` for what it counts (`query`), `names` and a `symbol` (`d_k`) or none."""

    word: str
    names: tuple[str, ...]
    symbol: str = ""

    @property
    def size(self) -> str:
        """The size as text: `d_k=3`, or `3` where the axis has no symbol."""
        return f"{self.symbol}={len(self.names)}" if self.symbol else str(len(self.names))

    @property
    def plural(self) -> str:
        """The plural for a sentence: `d_k`, `keys`, `queries`."""
        if self.symbol and self.word == "dimension":
            return self.symbol
        return f"{self.word[:-1]}ies" if self.word.endswith("ry") else f"{self.word}s"


@dataclass(frozen=True, eq=False)
class Matrix:
    """An array of `values` with named rows and columns; `symbol` stands for it in formulas."""

    symbol: str
    values: Float[np.ndarray, "row column"]
    rows: Axis = field(metadata={"file": "row_axis"})
    columns: Axis = field(metadata={"file": "column_axis"})

    @property
    def shape(self) -> str:
        """`3 x d_k=2`: the shape of the matrix as text."""
        return f"{self.rows.size} x {self.columns.size}"

    @property
    def reading(self) -> str:
        """The axes as text: `rows = keys, columns = d_k`; only the columns where rows have no name."""
        columns = f"columns = {self.columns.plural}"
        return f"rows = {self.rows.plural}, {columns}" if self.rows.word else columns


@dataclass(frozen=True)
class Cell:
    """The calculation of one number of a step.

    `row` and `column` are its place, `operation` is applied to its `terms`: for `products` pairs whose
    products are summed, as for `tanh` (factor, argument); for `quotient` one pair; for `softmax` one logit
    per allowed key, the cell's own first.
    """

    row: int
    column: int
    operation: Literal["products", "tanh", "quotient", "softmax"]
    terms: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, eq=False)
class Step:
    """One array of a worked example; `key` names it in files, and `formula` makes it (empty if given).

    `meaning` says in words what its numbers are. `allowed` is False where a key is masked (None: nowhere).
    Rows of `weights` steps are between 0 and 1.
    """

    key: str
    matrix: Matrix = field(metadata={"spread": True})
    formula: str = ""
    meaning: str = ""
    weights: bool = False
    allowed: Bool[np.ndarray, "row column"] | None = None
    cell: Cell | None = None

    @property
    def wrong(self) -> bool:
        """Whether the step shows the result of a mistake, beside the right one."""
        return self.key.startswith(WRONG)

    @property
    def seen(self) -> Bool[np.ndarray, "row column"]:
        """True where a value is finite and not masked."""
        finite: Bool[np.ndarray, "row column"] = np.isfinite(self.matrix.values)
        return finite if self.allowed is None else finite & self.allowed

    def check_parts(self) -> None:
        shape = self.matrix.values.shape
        names = len(self.matrix.rows.names), len(self.matrix.columns.names)
        fits(
            shape == names,
            "'row_axis' and 'column_axis' have not as many names as the step has rows and columns",
        )
        fits(self.allowed is None or self.allowed.shape == shape, "'allowed' has not the shape of its step")
        cell = self.cell
        inside = cell is None or (within(cell.row, shape[0]) and within(cell.column, shape[1]))
        fits(inside, "'cell' lies outside of its step")

    def derived(self) -> dict[str, Value]:
        axes = self.matrix.rows, self.matrix.columns
        return {
            "given": not self.formula,
            "shape": self.matrix.values.shape,
            "axes": [each.symbol or each.word for each in axes],
            **{name: each.names for name, each in zip(("rows", "columns"), axes, strict=True)},
        }


@dataclass(frozen=True)
class Check:
    """A comparison of two computations: their largest absolute `difference`, and the `tolerance`.

    `what` names the two. The tolerance is what rounding explains; beyond it the check has failed.

    """

    what: str
    difference: float
    tolerance: float
    verdict: Verdict

    for_readers = ("passed",)

    @classmethod
    def of(cls, what: str, difference: float, tolerance: float) -> "Check":
        """Makes the check, with its verdict."""
        passed = difference <= tolerance
        return cls(what, difference, tolerance, Verdict.CERTIFIED if passed else Verdict.FAILED)

    @property
    def passed(self) -> bool:
        """Whether the difference is within the tolerance."""
        return self.difference <= self.tolerance
