"""Arrays as they are typed, and cells from anywhere: finite numbers in rows of one length."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.cli.arrays.pasted import is_pasted, pasted_rows
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.results.worked import Given

_HOW = 'type rows as "1,0; 0,1" or "[[1,0],[0,1]]", or name a .csv, .json or .npy file'


def typed(text: str, what: str, *, masks: bool = False) -> "Given":
    """`1,0,1; 0,1,0`: rows between semicolons, cells between commas or blanks; or an array that is pasted."""
    if is_pasted(text):
        return given(pasted_rows(text, what), what, hint=f": {_HOW}", masks=masks)
    if not text.strip(" ;\n"):
        raise InputError(f"{what} is empty: {_HOW}")
    rows = [row.strip() for row in re.split("[;\n]", text.strip(" ;\n"))]
    cells = [[cell.strip() for cell in row.split(",")] if "," in row else row.split() for row in rows]
    return given(cells, what, hint=f": {_HOW}", masks=masks)


def given(
    rows: Sequence[Sequence[Any]],
    what: str,
    *,
    hint: str = "",
    masks: bool = False,
    row_names: tuple[str, ...] | None = None,
    column_names: tuple[str, ...] | None = None,
) -> "Given":
    """Rows of cells as an array; `InputError` for cells that are no finite numbers, ragged rows, nothing.

    With `masks` a cell may be minus infinity: a key that is masked.
    """
    import numpy as np

    from attnscope.results.worked import Given

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
        shown = str(cell) if len(str(cell)) <= 30 else str(cell)[:29] + "…"
        raise InputError(f"{where}: '{shown}' is no finite number{hint}")
    return value
