"""Arrays as they are typed, and cells from anywhere: finite numbers in rows of one length."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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


_OPENING = re.compile(r"\s*(?:\w+\s*=)?\s*(?:[\w.]+\s*\()?\s*(?=[\[(])")  # nothing, `Q =`, `np.array(`
_CLOSING = re.compile(r"(?:\s*,\s*(?:\w+\s*=\s*)?[^\[\]()]*)?[\s)]*")  # `, dtype=float32)`
_PARTS = re.compile(r"[\[\]]|[^\[\]]+")


def is_pasted(text: str) -> bool:
    """Whether `text` is in brackets, with no more than a name or a call before them."""
    return _OPENING.match(text) is not None


def pasted_rows(text: str, what: str) -> list[list[str]]:
    """The cells of every row, not yet numbers; a flat list is one row, a batch of one the rows in it."""
    if "..." in text or "…" in text:
        raise InputError(f"{what} is cut short by '...': print it whole, or name a .npy file")
    opening = _OPENING.match(text)
    assert opening is not None, "asked before"
    body = text[opening.end() :].replace("\n", " ")
    square = body if body.startswith("[") else body.replace("(", "[").replace(")", "]")
    rows, blocks, rest = _in_brackets(square, what)
    if not _CLOSING.fullmatch(rest):
        raise InputError(f"{what}: what follows the array is no part of it: '{rest.strip()[:30]}'")
    if blocks > 1:
        raise InputError(f"{what} has {blocks} blocks of rows: two axes are needed, rows and columns")
    return rows


def _in_brackets(text: str, what: str) -> tuple[list[list[str]], int, str]:
    """The rows within the first brackets, how many brackets hold rows, and what is left behind them."""
    depth, blocks, end, before = 0, 0, 0, ""
    rows: list[list[str]] = []
    levels: set[int] = set()  # how deep the numbers stand
    for part in (part for part in _PARTS.finditer(text) if part[0].strip(" ,\t")):
        if part[0] == "[":
            depth += 1
        elif part[0] == "]":
            rows += [[]] if before == "[" else []
            blocks += before == "]" and depth == max(levels, default=0) - 1
            depth -= 1
        else:
            levels.add(depth)
            rows += [_cells(row) for row in part[0].split(";")]
        before, end = part[0], part.end()
        if depth == 0:
            break
    if depth:
        raise InputError(f"{what}: a bracket is not closed")
    if len(levels) > 1:
        raise InputError(f"{what} has rows and single numbers side by side")
    return rows, blocks, text[end:]


def _cells(row: str) -> list[str]:
    """The cells between commas, or blanks where there are none; a comma may stand behind the last."""
    if "," not in row:
        return row.split()
    cells = [cell.strip() for cell in row.split(",")]
    return cells if cells[-1] else cells[:-1]
