"""Files that are compressed: by what, by their name or by how they begin, and their content as it is read.

gzip, bzip2 and xz are read by the standard library, zstandard by Arrow. An archive that is damaged or cut
short gives what stands before the damage, and then a `BrokenArchive`.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import IO, Any, cast

from attnscope.errors import InputError, one_line

_AT_ONCE = 2**16


class Packing(StrEnum):
    """What a file is compressed by."""

    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTANDARD = "zstandard"


SUFFIXES = {
    ".gz": Packing.GZIP,
    ".gzip": Packing.GZIP,
    ".bz2": Packing.BZIP2,
    ".xz": Packing.XZ,
    ".lzma": Packing.XZ,
    ".zst": Packing.ZSTANDARD,
    ".zstd": Packing.ZSTANDARD,
}
_BEGIN = {
    b"\x1f\x8b": Packing.GZIP,
    b"BZh": Packing.BZIP2,
    b"\xfd7zXZ\x00": Packing.XZ,
    b"\x28\xb5\x2f\xfd": Packing.ZSTANDARD,
}
_OTHERS = {  # that hold several files, or that nothing here reads
    ".zip": "a zip archive: unpack it",
    ".tar": "an archive of files: unpack it",
    ".tgz": "an archive of files: unpack it",
    ".7z": "a 7z archive: unpack it",
    ".rar": "a rar archive: unpack it",
    ".lz4": "compressed by lz4: gzip, bzip2, xz and zstandard are read",
    ".br": "compressed by brotli: gzip, bzip2, xz and zstandard are read",
}


class BrokenArchive(Exception):
    """What is compressed is damaged from here on, or ends too early; the message says which."""


def unpacked_name(name: str) -> str:
    """The name without what says by what it is compressed; `InputError` for an archive of another kind."""
    stem, dot, last = name.rpartition(".")
    if (why := _OTHERS.get(f".{last.lower()}")) and dot:
        raise InputError(f"cannot read '{name}': it is {why}")
    plain = stem if dot and f".{last.lower()}" in SUFFIXES else name
    if plain != name and plain.lower().endswith(".tar"):
        raise InputError(f"cannot read '{name}': it is {_OTHERS['.tar']}")
    return plain


def packing_by_name(name: str) -> Packing | None:
    """What the name says that it is compressed by."""
    return SUFFIXES.get(f".{name.rpartition('.')[2].lower()}")


def packing_by_start(start: bytes) -> Packing | None:
    """What the first bytes say."""
    return next((packing for sign, packing in _BEGIN.items() if start.startswith(sign)), None)


@contextmanager
def unpacked(packing: Packing, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The content of a compressed file, in its order."""
    with _Unpacked(_OPENERS[packing], file) as raw:
        yield cast(IO[bytes], io.BufferedReader(raw, _AT_ONCE))


def position(content: IO[bytes]) -> int | None:
    """How many bytes of the file itself were taken for what was read of its content; None of a plain one."""
    raw = getattr(content, "raw", None)
    return raw.taken.count if isinstance(raw, _Unpacked) else None


class _Counted:
    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.count, self.closed = file, 0, False

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self.count += len(content)
        return content

    def close(self) -> None:
        """What Arrow asks for when it is done; the file itself is closed by who opened it."""
        self.closed = True


class _Unpacked(io.RawIOBase):
    """A stream whose damage is told in one way, whoever unpacks it, and after all that stands before."""

    def __init__(self, opener: Callable[[IO[bytes]], IO[bytes]], file: IO[bytes]) -> None:
        self._stream: IO[bytes] | None = None
        self._opener, self._given, self.taken = opener, 0, _Counted(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._stream = self._stream or self._opener(cast(IO[bytes], self.taken))
            some = getattr(self._stream, "read1", self._stream.read)  # what is there, up to the damage
            content = some(min(len(buffer), _AT_ONCE))
        except InputError:
            raise
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
            damaged = f"it is damaged ({one_line(error)}): what stands before may be wrong, too"
            too_early = isinstance(error, EOFError) or "runcated" in str(error)
            why = "it ends too early" if too_early else damaged
            raise BrokenArchive(f"after {self._given:,} bytes of text {why}") from error
        buffer[: len(content)] = content
        self._given += len(content)
        return len(content)


def _zstandard(file: IO[bytes]) -> IO[bytes]:
    import pyarrow

    return cast(IO[bytes], pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd"))


_OPENERS: dict[Packing, Callable[[IO[bytes]], IO[bytes]]] = {
    Packing.GZIP: lambda file: cast(IO[bytes], gzip.GzipFile(fileobj=file)),
    Packing.BZIP2: lambda file: cast(IO[bytes], bz2.BZ2File(file)),
    Packing.XZ: lambda file: cast(IO[bytes], lzma.LZMAFile(file)),  # noqa: SIM115
    Packing.ZSTANDARD: _zstandard,
}
