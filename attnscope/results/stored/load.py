"""A stored result read again; whatever is wrong with the file is one line."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np

from attnscope.errors import InputError
from attnscope.results.base.parts import Arrays
from attnscope.results.result import Result
from attnscope.results.stored.document import NO_RESULT, restored
from attnscope.tokens import printable

_PICTURES = (b"\x89PNG", b"%PDF", b"<?xml", b"<svg", b"\xff\xd8\xff", b"GIF8")
_ARRAYS = b"PK\x03\x04"


def load(path: str | Path) -> Result:
    """The result in a .npz or .json file that attnscope wrote; which of the two it is, its content tells.

    `InputError` where there is no such file, or it cannot be read, is damaged, of a newer attnscope, or no
    result. What JSON leaves out (see `attnscope.results.stored.document`) is None in the result.
    """
    name = printable(str(path))
    content = _content(Path(path), name)
    if content.startswith(_ARRAYS):
        return _from_npz(content, name)
    if content.startswith((*_PICTURES, b"# schema: attnscope.")) or _is_told(Path(path)):
        raise InputError(
            f"cannot read '{name}': pictures and CSV cannot be read again: give the .npz or .json"
        )
    return _from_json(content, name)


def _content(path: Path, name: str) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"cannot read '{name}': it is a folder")
        if path.exists() and not path.is_file():
            raise InputError(f"cannot read '{name}': it is no file")
        content = path.read_bytes()
    except (OSError, ValueError, MemoryError) as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None)
        raise InputError(f"cannot read '{name}': {why or 'it cannot be opened'}") from error
    if not content.strip():
        raise InputError(f"'{name}' is empty")
    return content


def _is_told(path: Path) -> bool:
    """Whether the name says that it is a picture or a table."""
    return path.suffix.lower() in (".png", ".svg", ".pdf", ".csv")


def _from_json(content: bytes, name: str) -> Result:
    try:
        told = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError, MemoryError) as error:
        if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            raise InputError(f"'{name}' {NO_RESULT}: give a .npz or .json that it wrote") from error
        raise InputError(f"'{name}' is damaged: {_where(error)}") from error
    return restored(told, None, name)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _where(error: BaseException) -> str:
    """What is wrong with a JSON text, and where."""
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON from line {error.lineno} on"
    return "it is no JSON in UTF-8"


def _from_npz(content: bytes, name: str) -> Result:
    try:
        arrays = _arrays(content)
    except Exception as error:  # whatever zipfile, zlib and NumPy make of bytes that are not what they say
        raise InputError(f"'{name}' is damaged: it is no whole npz archive of plain arrays") from error
    meta = arrays.pop("meta", None)
    if meta is None or meta.dtype.kind != "U" or meta.shape != ():
        raise InputError(f"'{name}' {NO_RESULT}: it is an npz without 'meta'")
    try:
        told = json.loads(str(meta), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{name}' is damaged: its 'meta' is no JSON") from error
    return restored(told, arrays, name)


def _arrays(content: bytes) -> Arrays:
    """Every member of an npz. None may say that it is larger than it is, and nothing is unpickled."""
    found: Arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                continue
            data = io.BytesIO(archive.read(member))
            major, _ = np.lib.format.read_magic(data)
            header = (
                np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = header(data)
            count = 1
            for size in shape:
                count *= int(size)
            if min(shape, default=0) < 0 or count * dtype.itemsize > member.file_size:
                raise ValueError(member.filename)
            data.seek(0)
            found[member.filename.removesuffix(".npy")] = np.lib.format.read_array(data, allow_pickle=False)
    return found
