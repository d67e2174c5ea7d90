"""One file of the cache: named parts of plain values and arrays, every byte of which is under a hash.

    attnscope-capture/3 SHA256-OF-HEADER LENGTH-OF-HEADER, a line break, the header, then the blobs

The header is JSON: the key that the file answers to, its parts, and of each blob its place, length and
SHA-256. Equal blobs are there once, so that what heads share costs nothing. A part is read alone.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from attnscope.process.machine import is_ours

FORMAT = "attnscope-capture/3"
_LONGEST_LINE, _LARGEST_HEADER = 200, 64 * 2**20
_KINDS = {"<f8", "<f4", "<i8", "|b1"}

Arrays = dict[str, Any]  # of NumPy, which takes long to import: only where an entry has any


class DamagedEntryError(Exception):
    """A file of the cache that is not what it says, in a few words."""


@dataclass(frozen=True, eq=False)
class Part:
    """Values as JSON knows them, and arrays by name."""

    values: Mapping[str, Any]
    arrays: Arrays = field(default_factory=dict)


class Entry:
    """A file that was opened: its header is checked, its parts are when they are read."""

    def __init__(self, stream: BinaryIO, key: str) -> None:
        self._stream = stream
        header = _header(stream)
        if header.get("key") != key:
            raise DamagedEntryError("it answers to another question")
        self._parts, self._blobs = header["parts"], header["blobs"]
        self.made_at: float = header["made"]  # seconds since 1970
        self._start = stream.tell()

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __iter__(self) -> Any:
        return iter(self._parts)

    def part(self, name: str) -> Part:
        """One part, every byte of which was checked; `KeyError` where there is none of that name."""
        values_blob, arrays = self._parts[name]
        try:
            arrays_read = {array: self._array(*described) for array, described in arrays.items()}
            values = json.loads(zlib.decompress(self._blob(values_blob)))
        except (ValueError, TypeError, zlib.error, OSError) as error:
            raise DamagedEntryError("a part of it cannot be read") from error
        return Part(values, arrays_read)

    def __enter__(self) -> "Entry":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def digest(self, name: str) -> str:
        """What stands for all bytes of a part: a hash of its blobs' hashes, which are checked on reading."""
        values_blob, arrays = self._parts[name]
        numbers = [values_blob, *(arrays[array][0] for array in sorted(arrays))]
        return hashlib.sha256("".join(self._blobs[number][2] for number in numbers).encode()).hexdigest()

    def _array(self, number: int, kind: str, shape: list[int]) -> Any:
        import numpy as np

        if kind not in _KINDS:
            raise DamagedEntryError("a part of it cannot be read")
        return np.frombuffer(self._blob(number), dtype=kind).reshape(shape)

    def _blob(self, number: int) -> bytes:
        place, length, digest = self._blobs[number]
        self._stream.seek(self._start + place)
        content = self._stream.read(length)
        if len(content) != length or hashlib.sha256(content).hexdigest() != digest:
            raise DamagedEntryError("its numbers are not those that were written")
        return content


def _header(stream: BinaryIO) -> dict[str, Any]:
    line = stream.readline(_LONGEST_LINE).decode("ascii", "replace")
    words = line.split()
    if not line.endswith("\n") or len(words) != 3 or not words[2].isdecimal():
        raise DamagedEntryError("it is no capture")
    if words[0] != FORMAT:
        raise DamagedEntryError("another version wrote it")
    content = stream.read(min(int(words[2]), _LARGEST_HEADER))
    if hashlib.sha256(content).hexdigest() != words[1]:
        raise DamagedEntryError("its head is not what was written")
    header: dict[str, Any] = json.loads(content)
    return header


def written(key: str, made_at: float, parts: Mapping[str, Part]) -> tuple[int, Callable[[BinaryIO], None]]:
    """How many bytes an entry of `parts` takes, and what writes it to a stream."""
    blobs: dict[str, tuple[int, bytes]] = {}

    def kept(content: bytes) -> int:
        return blobs.setdefault(hashlib.sha256(content).hexdigest(), (len(blobs), content))[0]

    described = {}
    for name, part in parts.items():
        arrays = {array: _described(kept, values) for array, values in part.arrays.items()}
        values_text = json.dumps(part.values, ensure_ascii=False, allow_nan=False).encode(
            "utf-8", "surrogatepass"
        )
        described[name] = (kept(zlib.compress(values_text, 1)), arrays)
    places, start = [], 0
    for digest, (_, content) in blobs.items():
        places.append((start, len(content), digest))
        start += len(content)
    header = json.dumps({"key": key, "made": made_at, "parts": described, "blobs": places}).encode()
    first = f"{FORMAT} {hashlib.sha256(header).hexdigest()} {len(header)}\n".encode()

    def write(stream: BinaryIO) -> None:
        stream.write(first)
        stream.write(header)
        for _, content in blobs.values():
            stream.write(content)

    return len(first) + len(header) + start, write


def _described(kept: Callable[[bytes], int], values: Any) -> tuple[int, str, list[int]]:
    import numpy as np

    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    kind = np.dtype(plain.dtype).str
    if kind not in _KINDS:
        raise ValueError(f"no array of {kind} is kept")
    return kept(plain.tobytes()), kind, list(values.shape)


def open_entry(path: Path, key: str) -> Entry:
    """The entry for `key` in a file; `DamagedEntryError` where it is none, `OSError` without a file."""
    stream = path.open("rb")
    try:
        if not is_ours(stream.fileno()):  # numbers that somebody else could have written are not certified
            raise DamagedEntryError("it belongs to another user")
        return Entry(stream, key)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        stream.close()
        raise DamagedEntryError("its head cannot be read") from error
    except BaseException:
        stream.close()
        raise
