"""Arrays in npz and npy: every header is read before any array, and nothing is ever unpickled."""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from attnscope.errors import AttnscopeError, InputError, is_out_of_memory
from attnscope.incoming import check_room
from attnscope.process.machine import gigabytes
from attnscope.results.base.parts import Arrays

ARCHIVE, ARRAY = b"PK\x03\x04", b"\x93NUMPY"  # how the files begin


class Readable(Protocol):
    """Bytes from the place on where the last call stopped."""

    def read(self, size: int = -1, /) -> bytes: ...


def arrays_in(content: bytes, name: str) -> Arrays:
    """Every array of an npz by its name; `name` is what an error calls the file.

    `InputError` for what is no such archive; `DoesNotFitError` where what it says that it holds has no room.
    """
    with _whole(name), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        sizes: dict[str, int] = {}
        for member in members:
            with archive.open(member) as stream:
                sizes[_key(member)] = _size(stream, member.file_size)
        largest = max(sizes, key=sizes.__getitem__, default="")
        own = f" ('{largest}' alone {gigabytes(sizes[largest])})" if sizes else ""
        check_room(sum(sizes.values()), f"'{name}' unpacked", own)
        arrays: Arrays = {}
        for member in members:
            with archive.open(member) as stream:
                arrays[_key(member)] = _array(stream)
        return arrays


def _key(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def array_in(content: bytes, name: str) -> np.ndarray:
    """The array of an npy."""
    with _whole(name):
        _size(io.BytesIO(content), len(content))
        return _array(io.BytesIO(content))


def _size(stream: Readable, most: int) -> int:
    """Bytes of an array as its header says; `ValueError` where so many cannot be there."""
    major, _ = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    count = 1
    for size in shape:
        count *= int(size)
    if min(shape, default=0) < 0 or count * max(dtype.itemsize, 1) > most:
        raise ValueError("an array says that it is larger than it is")
    return count * dtype.itemsize


def _array(stream: Readable) -> np.ndarray:
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):  # at its end an archive holds what was read against its checksum
        raise ValueError("something stands behind an array")
    return array


@contextmanager
def _whole(name: str) -> Iterator[None]:
    try:
        yield
    except AttnscopeError:
        raise
    except Exception as error:  # whatever zipfile, zlib, tokenize and NumPy make of them
        if is_out_of_memory(error):
            raise
        raise InputError(f"cannot read '{name}': it is damaged, or holds more than plain arrays") from error
