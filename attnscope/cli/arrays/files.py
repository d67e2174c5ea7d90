"""Arrays from files, as a user writes them: every mistake is one line that says where."""

import csv
import io
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.cli.arrays.typed import given
from attnscope.cli.streams import read_input
from attnscope.errors import InputError, one_line

if TYPE_CHECKING:
    from attnscope.results.worked import Given

LARGEST = 64 * 2**20  # bytes of a file, or of all arrays in an archive
SINGLE = (".csv", ".json", ".npy")


def read_array(path: Path, what: str, *, masks: bool = False) -> "Given":
    """One array from a .csv, .json (nested lists) or .npy file."""
    content, name = _content(path), f"{what} in {path}"
    if path.suffix.lower() == ".csv":
        return _from_csv(content, name, masks)
    if path.suffix.lower() == ".npy":
        return _from_numpy(_numpy(content, path), name, masks)
    return _from_lists(_json(content, str(path)), name, masks)


def read_arrays(
    path: Path, arrays: Collection[str], names: Collection[str], masking: Collection[str] = ()
) -> tuple[dict[str, "Given"], dict[str, tuple[str, ...]]]:
    """The arrays and the names of their axes in a .json or .npz file; `-` reads JSON from standard input.

    In an array of `masking` minus infinity is a masked key.
    """
    packed, name = path.suffix.lower() == ".npz", "standard input" if str(path) == "-" else str(path)
    if packed:
        arrays_in_file: Any = _archive(path)
    elif name == "standard input":
        arrays_in_file = _json(read_input(LARGEST + 1), name)
    elif path.suffix.lower() == ".json":
        arrays_in_file = _json(_content(path), name)
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


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}") from error
    if len(content) > LARGEST:
        raise InputError(f"'{path}' is too large: at most {LARGEST // 2**20} MiB")
    return content


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise InputError(f"{name} is not valid UTF-8") from error


def _json(content: bytes, name: str) -> Any:
    try:
        return json.loads(_text(content, name))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no JSON: {one_line(error)}") from error


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
    return tuple(listed)


def _from_csv(content: bytes, what: str, masks: bool) -> "Given":
    """Lines of cells. Words in all of the first line are column names, in all of a first column row names.

    Lines that begin with `#` are left out; cells are between commas, or semicolons or tabs where the
    first line has no comma.
    """
    lines = [line for line in _text(content, what).splitlines() if line.strip() and not line.startswith("#")]
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


def _numpy(content: bytes, path: Path) -> Any:
    import numpy as np

    if not content.startswith((b"PK", b"\x93NUMPY")):
        raise InputError(f"cannot read '{path}': it holds no arrays of NumPy")
    with _whole(path):
        return np.load(io.BytesIO(content), allow_pickle=False)


def _archive(path: Path) -> dict[str, Any]:
    archive = _numpy(_content(path), path)
    if not hasattr(archive, "files"):
        raise InputError(f"cannot read '{path}': it is no archive of arrays")
    if sum(member.file_size for member in archive.zip.infolist()) > LARGEST:
        raise InputError(f"'{path}' is too large unpacked: at most {LARGEST // 2**20} MiB")
    with _whole(path):
        return {key: archive[key] for key in archive.files}


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Around NumPy alone, which reads bytes that are not what they say."""
    try:
        yield
    except Exception as error:  # whatever zipfile, zlib, tokenize and NumPy make of them
        raise InputError(f"cannot read '{path}': it is damaged, or holds more than plain arrays") from error


def _from_numpy(array: Any, what: str, masks: bool) -> "Given":
    """An array of numbers with one axis (a single row) or two."""
    if getattr(array, "dtype", None) is None or array.dtype.kind not in "iuf":
        raise InputError(f"{what} holds no numbers")
    if array.ndim not in (1, 2):
        shape = " x ".join(map(str, array.shape)) or "a single number"
        raise InputError(f"{what} is {shape}: two axes are needed, rows and columns")
    return given((array if array.ndim == 2 else array[None]).tolist(), what, masks=masks)
