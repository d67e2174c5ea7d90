"""Arrays as a user writes them, typed or in files: every mistake is one line that says where."""

import csv
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from attnscope import incoming
from attnscope.errors import InputError, one_line
from attnscope.results.given import LISTED, given, given_array
from attnscope.results.stored.archive import ARCHIVE, ARRAY, array_in, arrays_in
from attnscope.results.worked import Given

_HOW = 'type rows as "1,0; 0,1" or "[[1,0],[0,1]]", or name a .csv, .json or .npy file'


def typed(text: str, what: str, *, masks: bool = False) -> Given:
    """`1,0,1; 0,1,0`: rows between semicolons, cells between commas or blanks; or an array that is pasted."""
    if is_pasted(text):
        return given(pasted_rows(text, what), what, hint=f": {_HOW}", masks=masks)
    if not text.strip(" ;\n"):
        raise InputError(f"{what} is empty: {_HOW}")
    rows = [row.strip() for row in re.split("[;\n]", text.strip(" ;\n"))]
    cells = [[cell.strip() for cell in row.split(",")] if "," in row else row.split() for row in rows]
    return given(cells, what, hint=f": {_HOW}", masks=masks)


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
    if "," not in row:
        return row.split()
    cells = [cell.strip() for cell in row.split(",")]
    return cells if cells[-1] else cells[:-1]


MASKING = ("scores",)  # where minus infinity is a masked key
CAPITALS = {"Q": "q", "K": "k", "V": "v"}  # how formulas call them, as a file may


def read_array(text: str, what: str, *, masks: bool = False) -> Given:
    """One array, typed, pasted, or from the .csv, .json (nested lists) or .npy file that `text` names."""
    path = Path(text)
    if path.suffix.lower() not in (".csv", ".json", ".npy"):
        return typed(text, what, masks=masks)
    content, name = incoming.content(path), f"{what} in {path}"
    if path.suffix.lower() == ".csv":
        return _from_csv(content, name, masks)
    if path.suffix.lower() == ".json":
        return given_array(incoming.parsed(content, str(path)), name, masks=masks)
    if not content.startswith(ARRAY):
        raise InputError(f"cannot read '{path}': it holds no array of NumPy")
    return given_array(array_in(content, str(path)), name, masks=masks)


def read_arrays(
    path: Path, arrays: Collection[str], names: Collection[str]
) -> tuple[dict[str, Given], dict[str, tuple[str, ...]]]:
    """The arrays and the names of their axes in a .json or .npz file; `-` reads JSON from standard input."""
    name = incoming.called(path)
    if path.suffix.lower() == ".npz":
        content = incoming.content(path)
        if not content.startswith(ARCHIVE):
            raise InputError(f"cannot read '{path}': it is no archive of arrays of NumPy")
        held: Any = arrays_in(content, str(path))
    elif path == incoming.STANDARD_INPUT or path.suffix.lower() == ".json":
        held = incoming.parsed(incoming.content(path), name)
    else:
        raise InputError(
            f"cannot read '{path}': name a .json or .npz file, or - for JSON from standard input"
        )
    if not isinstance(held, dict):
        raise InputError(f"{name} holds no object with arrays by name: {', '.join(arrays)}")
    keys = {key: key for key in arrays} | CAPITALS
    if spare := sorted(held.keys() - {*keys, *names}):
        raise InputError(f"unknown in {name}: {', '.join(spare)}; known are {', '.join((*arrays, *names))}")
    if twice := [letter for letter, key in CAPITALS.items() if {letter, key} <= held.keys()]:
        raise InputError(f"{name} has {twice[0]} and {CAPITALS[twice[0]]}: they are the same, give one")
    return (
        {
            key: given_array(held[called], f"{called} in {name}", masks=key in MASKING)
            for called, key in keys.items()
            if called in held
        },
        {key: _names(held[key], f"{key} in {name}") for key in names if key in held},
    )


def _names(value: Any, what: str) -> tuple[str, ...]:
    listed = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{what} is no list of names")
    for name in listed:
        incoming.check_name(name, what)
    return tuple(listed)


def _from_csv(content: bytes, what: str, masks: bool) -> Given:
    """Lines of cells. Words in all of the first line are column names, in all of a first column row names.

    Lines that begin with `#` are left out; cells are between commas, or semicolons or tabs where the
    first line has no comma.
    """
    cells = sum(content.count(sign) for sign in (b",", b";", b"\t", b"\n"))
    incoming.check_room(LISTED * cells, f"{what} as numbers")
    text = incoming.text(content.removeprefix(incoming.BOM), what)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = next((sign for sign in ",;\t" if lines and sign in lines[0]), ",")
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    except csv.Error as error:
        raise InputError(f"{what} is no CSV: {one_line(error)}") from error
    header = rows.pop(0) if len(rows) > 1 and all(_is_word(cell) for cell in rows[0][1:] or rows[0]) else None
    named = bool(rows) and all(len(row) > 1 and _is_word(row[0]) for row in rows)
    return given(
        [row[named:] for row in rows],
        what,
        masks=masks,
        row_names=tuple(row[0] for row in rows) if named else None,
        column_names=tuple(header[named:]) if header else None,
    )


def _is_word(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return bool(cell)
    return False
