"""Arrays as they were given, as numbers with two axes: every mistake is one line that says what and where."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnscope.errors import InputError, one_line
from attnscope.incoming import check_room
from attnscope.results.worked import Given

LISTED = 100  # bytes of a cell among Python's objects


def given_array(array: Any, what: str, *, masks: bool = False) -> Given:
    """Nested lists, or an array of NumPy or torch, as an array of two axes; a flat one is one row.

    Raises `InputError` for what has other axes and for cells that are no finite numbers, text among them.
    """
    shape = tuple(getattr(array, "shape", (1,)))
    if getattr(getattr(array, "dtype", None), "kind", "f") not in "iuf":
        raise InputError(f"{what} holds no numbers")
    if len(shape) not in (1, 2):
        axes = " x ".join(map(str, shape)) or "a single number"
        raise InputError(f"{what} is {axes}: two axes are needed, rows and columns")
    check_room(LISTED * math.prod(shape), f"{what} as numbers")
    rows = _listed(array, what)
    rows = [_listed(row, what) for row in rows] if isinstance(rows, list) else None
    if rows and not any(isinstance(row, list) for row in rows):
        rows = [rows]
    if rows is None or not all(isinstance(row, list) for row in rows):
        raise InputError(f"{what} is no list of rows such as [[1, 0], [0, 1]]")
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if isinstance(cell, list | tuple) or getattr(cell, "shape", None):
                raise InputError(f"{what}, row {i}, column {j} is a list: two axes are needed")
            if isinstance(cell, str):
                raise _no_number(cell, f"{what}, row {i}, column {j}")
    return given(rows, what, masks=masks)


def _listed(array: Any, what: str) -> Any:
    try:
        listed = array.tolist() if hasattr(array, "tolist") else array
    except RuntimeError as error:  # of a tensor without memory of its own: sparse, or on the meta device
        raise InputError(f"{what} holds no rows of numbers: {one_line(error)}") from error
    return [*listed] if isinstance(listed, tuple) else listed


def given(
    rows: Sequence[Sequence[Any]],
    what: str,
    *,
    hint: str = "",
    masks: bool = False,
    row_names: tuple[str, ...] | None = None,
    column_names: tuple[str, ...] | None = None,
) -> Given:
    """Rows of cells as an array; `InputError` for cells that are no finite numbers, ragged rows, nothing.

    With `masks` a cell may be minus infinity: a key that is masked.
    """
    if not rows or not rows[0]:
        raise InputError(f"{what} is empty{hint}")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InputError(f"{what} is ragged: row 0 has {len(rows[0])} cells, row {i} has {len(row)}")
    values = [
        [
            -math.inf if masks and _is_masked(cell) else number(cell, f"{what}, row {i}, column {j}", hint)
            for j, cell in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]
    return Given(np.array(values, np.float64), row_names, column_names)


def _is_masked(cell: Any) -> bool:
    return str(cell).lower().replace("−", "-") in ("-inf", "-infinity", "-∞", "float('-inf')")


def number(cell: Any, where: str, hint: str = "") -> float:
    """A finite number; text as Python reads it, but without underscores."""
    try:
        value = math.nan if isinstance(cell, bool) or "_" in str(cell) else float(cell)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise _no_number(cell, where, hint)
    return value


def _no_number(cell: Any, where: str, hint: str = "") -> InputError:
    shown = str(cell) if len(str(cell)) <= 30 else str(cell)[:29] + "…"
    return InputError(f"{where}: '{shown}' is no finite number{hint}")
