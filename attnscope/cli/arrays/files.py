"""Arrays from files, as a user writes them: every mistake is one line that says where."""

import csv
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope import incoming
from attnscope.cli.arrays.typed import given
from attnscope.errors import InputError, one_line

if TYPE_CHECKING:
    from attnscope.results.base.parts import Arrays
    from attnscope.results.worked import Given

_LISTED = 100  # bytes of a cell among Python's objects
SINGLE = (".csv", ".json", ".npy")


def read_array(path: Path, what: str, *, masks: bool = False) -> "Given":
    """One array from a .csv, .json (nested lists) or .npy file."""
    content, name = incoming.content(path), f"{what} in {path}"
    if path.suffix.lower() == ".csv":
        return _from_csv(content, name, masks)
    if path.suffix.lower() == ".npy":
        return _from_numpy(_array(content, path), name, masks)
    return _from_lists(incoming.parsed(content, str(path)), name, masks)


def read_arrays(
    path: Path, arrays: Collection[str], names: Collection[str], masking: Collection[str] = ()
) -> tuple[dict[str, "Given"], dict[str, tuple[str, ...]]]:
    """The arrays and the names of their axes in a .json or .npz file; `-` reads JSON from standard input.

    In an array of `masking` minus infinity is a masked key.
    """
    packed, piped = path.suffix.lower() == ".npz", path == incoming.STANDARD_INPUT
    name = incoming.called(path)
    if packed:
        arrays_in_file: Any = _archive(path)
    elif piped or path.suffix.lower() == ".json":
        arrays_in_file = incoming.parsed(incoming.content(path), name)
    else:
        raise InputError(
            f"cannot read '{path}': name a .json or .npz file, or - for JSON from standard input"
        )
    if not isinstance(arrays_in_file, dict):
        raise InputError(f"{name} holds no object with arrays by name: {', '.join(arrays)}")
    if spare := sorted(set(arrays_in_file) - {*arrays, *names}):
        raise InputError(f"unknown in {name}: {', '.join(spare)}; known are {', '.join((*arrays, *names))}")
    read = _from_numpy if packed else _from_lists
    return (
        {
            key: read(arrays_in_file[key], f"{key} in {name}", key in masking)
            for key in arrays
            if key in arrays_in_file
        },
        {key: _names(arrays_in_file[key], f"{key} in {name}") for key in names if key in arrays_in_file},
    )


def _from_lists(value: Any, what: str, masks: bool) -> "Given":
    """Nested lists of numbers; a flat one is a single row."""
    rows = value if isinstance(value, list) else None
    if rows and not any(isinstance(row, list) for row in rows):
        rows = [rows]
    if rows is None or not all(isinstance(row, list) for row in rows):
        raise InputError(f"{what} is no list of rows such as [[1, 0], [0, 1]]")
    if text := next((cell for row in rows for cell in row if isinstance(cell, str | list | dict)), None):
        raise InputError(f"{what}: '{str(text)[:30]}' is no finite number")
    return given(rows, what, masks=masks)


def _names(value: Any, what: str) -> tuple[str, ...]:
    listed = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{what} is no list of names")
    for name in listed:
        incoming.check_name(name, what)
    return tuple(listed)


def _from_csv(content: bytes, what: str, masks: bool) -> "Given":
    """Lines of cells. Words in all of the first line are column names, in all of a first column row names.

    Lines that begin with `#` are left out; cells are between commas, or semicolons or tabs where the
    first line has no comma.
    """
    cells = sum(content.count(sign) for sign in (b",", b";", b"\t", b"\n"))
    incoming.check_room(_LISTED * cells, f"{what} as numbers")
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
    """Whether `cell` can only be a name: not a number, not `nan` or `inf`, not empty."""
    try:
        float(cell)
    except ValueError:
        return bool(cell)
    return False


def _archive(path: Path) -> "Arrays":
    from attnscope.results.stored.archive import ARCHIVE, arrays_in

    content = incoming.content(path)
    if not content.startswith(ARCHIVE):
        raise InputError(f"cannot read '{path}': it is no archive of arrays of NumPy")
    return arrays_in(content, str(path))


def _array(content: bytes, path: Path) -> Any:
    from attnscope.results.stored.archive import ARRAY, array_in

    if not content.startswith(ARRAY):
        raise InputError(f"cannot read '{path}': it holds no array of NumPy")
    return array_in(content, str(path))


def _from_numpy(array: Any, what: str, masks: bool) -> "Given":
    """An array of numbers with one axis (a single row) or two."""
    if getattr(array, "dtype", None) is None or array.dtype.kind not in "iuf":
        raise InputError(f"{what} holds no numbers")
    if array.ndim not in (1, 2):
        shape = " x ".join(map(str, array.shape)) or "a single number"
        raise InputError(f"{what} is {shape}: two axes are needed, rows and columns")
    incoming.check_room(_LISTED * array.size, f"{what} as numbers")
    return given((array if array.ndim == 2 else array[None]).tolist(), what, masks=masks)
