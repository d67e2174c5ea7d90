"""What a class that is stored may say beside its fields, and the checks that these methods are made of.

for_readers    properties that files hold beside the fields: they follow from these and are not read again
check_parts()  raises `Damaged` where parts do not fit together in a way that their types do not show
derived()      the same of what is no property, by key
npz_columns()  more arrays for the npz, which follow from the fields as well
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from attnscope.errors import Damaged

Value: TypeAlias = Any  # anything that json writes, and arrays of numbers before it does
Arrays: TypeAlias = dict[str, np.ndarray]  # by name
_ROUNDING = 1e-4  # of a probability, and of a sum of them, in whatever precision


def fits(right: bool | np.bool_, wrong: str) -> None:
    if not right:
        raise Damaged(wrong)


def in_chances(values: Iterable[float], name: str, together: bool = False) -> None:
    """Checks that these lie in 0..1 or are NaN, and that they do not exceed 1 where all are `together`."""
    every = np.fromiter(values, float)
    fits(not ((every < 0) | (every > 1 + _ROUNDING)).any(), f"'{name}' is no probability")
    fits(not together or not np.nansum(every) > 1 + _ROUNDING, f"'{name}' are above 1 together")


def within(position: int | None, size: int) -> bool:
    """Whether `position` is one of `size`; None stands for no position, and is allowed."""
    return position is None or 0 <= position < size


def in_tokens(positions: Iterable[int | None], size: int, name: str) -> None:
    fits(all(within(position, size) for position in positions), f"'{name}' has a position that is no token's")


def one_for_each(rows: tuple[tuple[Any, ...], ...], shape: tuple[int, ...], name: str) -> None:
    """Checks that there is one for each layer and head."""
    right = [len(row) for row in rows] == [shape[1]] * shape[0] and bool(rows) and bool(shape[1])
    fits(right, f"'{name}' are not one for each of the layers and heads")


def columns_of(rows: Iterable[Any], whole: tuple[str, ...], numbers: tuple[str, ...] = ()) -> Arrays:
    """A column for each attribute of `rows`: -1 for a whole number that there is not, NaN for another."""
    every = list(rows)
    kinds = [(whole, np.int64, -1), (numbers, np.float64, np.nan)]
    return {
        name: np.array([none if (value := getattr(row, name)) is None else value for row in every], kind)
        for names, kind, none in kinds
        for name in names
    }
