"""Arrays as they stand in Python, or as NumPy and torch print them: brackets, and words around."""

import re

from attnscope.errors import InputError

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
    for part in (found for found in _PARTS.finditer(text) if found[0].strip(" ,\t")):
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
