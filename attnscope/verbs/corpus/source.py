"""Files of a corpus: their address, form, compression and digest, and how they are opened.

gzip, bzip2 and xz are read by the standard library, zstandard by Arrow. An archive that is damaged or cut
short gives what stands before the damage, and then a `BrokenArchive`.

A run that goes on must go on with the same texts, and where it is kept is called after them, so their digests
come first (`Signed`). A large local file is hashed by a thread while libraries are imported; and not again
for as long as the system tells of every change to it and tells of none (`digests`).
"""

import bz2
import gzip
import io
import lzma
import threading
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

from attnscope import incoming
from attnscope.errors import InputError, one_line
from attnscope.verbs.corpus.question import FIELD
from attnscope.verbs.corpus.store import Chunks, Place, place_of

_AT_ONCE = 2**16


class Packing(StrEnum):
    """The compression of a file."""

    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTANDARD = "zstandard"


SUFFIXES = (
    dict.fromkeys((".gz", ".gzip"), Packing.GZIP)
    | {".bz2": Packing.BZIP2}
    | dict.fromkeys((".xz", ".lzma"), Packing.XZ)
    | dict.fromkeys((".zst", ".zstd"), Packing.ZSTANDARD)
)
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
    """Compressed data is damaged from here on, or ends too early; the message says which."""


def unpacked_name(name: str) -> str:
    """The file name without its compression suffix; `InputError` for an archive of another kind."""
    stem, dot, last = name.rpartition(".")
    if (why := _OTHERS.get(f".{last.lower()}")) and dot:
        raise InputError(f"cannot read '{name}': it is {why}")
    plain = stem if dot and f".{last.lower()}" in SUFFIXES else name
    if plain != name and plain.lower().endswith(".tar"):
        raise InputError(f"cannot read '{name}': it is {_OTHERS['.tar']}")
    return plain


def packing_by_name(name: str) -> Packing | None:
    """The compression that a file's suffix names, or None."""
    return SUFFIXES.get(f".{name.rpartition('.')[2].lower()}")


def packing_by_start(start: bytes) -> Packing | None:
    """The compression that a file's first bytes show, or None."""
    return next((packing for sign, packing in _BEGIN.items() if start.startswith(sign)), None)


@contextmanager
def unpacked(packing: Packing, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Context manager: the decompressed content as a stream."""
    with io.BufferedReader(_Unpacked(packing, file), _AT_ONCE) as content:
        yield content


def position(content: IO[bytes]) -> int | None:
    """Compressed bytes consumed so far; None for a plain file."""
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
        """Marks the stream closed for Arrow; the file itself stays open."""
        self.closed = True


class _Unpacked(Chunks):
    def __init__(self, packing: Packing, file: IO[bytes]) -> None:
        self.taken = _Counted(file)
        super().__init__(_content(packing, cast(IO[bytes], self.taken)))


def _content(packing: Packing, file: IO[bytes]) -> Generator[bytes]:
    """Decompressed chunks; damage becomes one `BrokenArchive`, after all content before it."""
    given = 0
    try:
        stream = _OPENERS[packing](file)
        some = getattr(stream, "read1", stream.read)  # what is there, up to the damage
        while content := some(_AT_ONCE):
            given += len(content)
            yield content
    except InputError:
        raise
    except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        damaged = f"it is damaged ({one_line(error)}): what stands before may be wrong, too"
        too_early = isinstance(error, EOFError) or "runcated" in str(error)
        why = "it ends too early" if too_early else damaged
        raise BrokenArchive(f"after {given:,} bytes of text {why}") from error


def _zstandard(file: IO[bytes]) -> IO[bytes]:
    import pyarrow

    return cast(IO[bytes], pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd"))


_OPENERS: dict[Packing, Callable[[IO[bytes]], IO[bytes]]] = {
    Packing.GZIP: lambda file: cast(IO[bytes], gzip.GzipFile(fileobj=file)),
    Packing.BZIP2: lambda file: cast(IO[bytes], bz2.BZ2File(file)),
    Packing.XZ: lambda file: cast(IO[bytes], lzma.LZMAFile(file)),  # noqa: SIM115
    Packing.ZSTANDARD: _zstandard,
}


class Form(StrEnum):
    """The form in which texts stand in a file."""

    LINES = "lines"
    FILE = "file"
    JSONL = "jsonl"
    CONLLU = "conllu"
    PARQUET = "parquet"


_BY_SUFFIX = dict.fromkeys((".jsonl", ".ndjson", ".json"), Form.JSONL)
_BY_SUFFIX |= {".conllu": Form.CONLLU, ".parquet": Form.PARQUET}


@dataclass(frozen=True)
class Source:
    """A file of a corpus: its place, the form and field of its texts, and its compression.

    `strict` says that what cannot be read ends the run, in place of being set aside.
    """

    place: Place
    name: str
    form: Form
    field: str = FIELD
    packing: Packing | None = None
    strict: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of the file's bytes; for a remote file of its store's signature."""
        with self._there():
            return self.place.signature

    @property
    def size(self) -> int:
        """Size of the file in bytes, compressed if it is; 0 where unknown."""
        with self._there():
            return self.place.size or 0

    @property
    def from_its_start(self) -> bool:
        """Whether the file can only be read in order from its start."""
        if self.form in (Form.FILE, Form.PARQUET):
            return False
        return self.packing is not None or not self.place.by_range

    @contextmanager
    def opened(self, start: int = 0, end: int | None = None) -> Iterator[IO[bytes]]:
        """Context manager: the content from `start` to about `end`; of Parquet with random access."""
        with self._there():
            if self.form is Form.PARQUET:
                file = self.place.at_random()
            else:
                file = self.place.open(0 if self.packing else start, None if self.packing else end)
        with file:
            if self.packing is None:
                yield file
                return
            with unpacked(self.packing, file) as content:
                yield content

    @contextmanager
    def _there(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise InputError(f"cannot read '{self.place}': no such file") from error


def source_of(place: Place, name: str, form: str | None, field: str, strict: bool = False) -> Source:
    """The source at a place, its form and compression by its name or its first bytes."""
    packing, plain = packing_by_name(place.name), unpacked_name(place.name)
    if packing is None and (local := place.local) is not None and local.is_file():
        with suppress(OSError, InputError):  # whoever reads it says what is wrong
            packing = packing_by_start(place.read(0, 8))
    if form is not None and form not in [*Form]:
        raise InputError(f"no format '{form}': {', '.join(Form)}")
    found = _BY_SUFFIX.get(Path(plain).suffix.lower(), Form.LINES) if form is None else Form(form)
    if packing is not None and found is Form.PARQUET:
        raise InputError(f"cannot read '{place}': a Parquet file within {packing}: unpack it")
    return Source(place, name, found, field, packing, strict)


@contextmanager
def parquet(source: Source) -> Iterator[Any]:
    """Context manager: an open Parquet file; `InputError` where it is none, or lacks the column."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    footer = None if source.place.local is not None else _footer(source, source.digest)
    with source.opened() as opened:
        try:
            file = ParquetFile(opened, metadata=footer)
            there = file.schema_arrow.names
            if source.field not in there:
                names = ", ".join(f"'{name}'" for name in there) or "none"
                raise InputError(
                    f"no field '{source.field}' in '{source.name}': its columns are {names} (--field)"
                )
            yield file
        except (OSError, pyarrow.ArrowException) as error:
            why = getattr(error, "strerror", None) or "it is no whole Parquet file"
            raise InputError(f"cannot read '{source.name}': {why}") from error


@lru_cache(maxsize=64)
def _footer(source: Source, digest: str) -> Any:
    import pyarrow
    from pyarrow.parquet import read_metadata

    try:
        with source.opened() as opened:
            return read_metadata(opened)
    except pyarrow.ArrowException as error:
        raise InputError(f"cannot read '{source.name}': it is no whole Parquet file") from error


class Signed:
    """Sources with their digests, which a thread computes."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self._found: Future[list[str]] = Future()
        # it ends with the program, which waits for no file that nobody wants to know of any more
        threading.Thread(target=self._find, name="attnscope-digests", daemon=True).start()

    def _find(self) -> None:
        try:
            self._found.set_result([source.digest for source in self.sources])
        except BaseException as error:
            self._found.set_exception(error)

    @property
    def digests(self) -> Sequence[str]:
        """The digest of each source; waits for the thread."""
        return self._found.result()

    def check_unchanged(self) -> None:
        """Raises `InputError` where a source has changed: nobody knows which of its texts were read."""
        for source in self.sources:
            source.place.ask_anew()
        for source, digest in zip(self.sources, self.digests, strict=True):
            if source.digest != digest:
                raise InputError(
                    f"'{source.name}' changed while it was measured, so what was read is neither it nor what "
                    "it was: remove the run's folder, or name another with --run"
                )


_TEXTS = (".txt", ".text", ".lines", ".jsonl", ".ndjson", ".json", ".conllu", ".parquet")
_PATTERN = "*?["


def files_of(named: Sequence[str | Path | Place]) -> tuple[Place, ...]:
    """Every file that is named, in order; `InputError` where one is missing or given twice."""
    files: list[Place] = []
    for each in map(place_of, named):
        each.ask_anew()
        for place in _files(each):
            if place in files:
                raise InputError(f"'{place}' is given twice: its texts would count twice")
            files.append(place)
    return tuple(files)


def _files(place: Place) -> Iterator[Place]:
    if is_piped(place):
        yield place
    elif (found := _of_the_hub(place)) is not None:
        yield from found
    elif is_pattern(place):
        hidden = place.name.startswith(".")
        if not (found := [file for file in place.files() if hidden or not file.name.startswith(".")]):
            raise InputError(f"no file is called like '{place}'")
        yield from found
    elif place.address.endswith("/") or (not _is_web(place) and place.is_folder()):
        yield from _in_folder(place)
    else:
        yield place


def _of_the_hub(place: Place) -> list[Place] | None:
    if not place.address.startswith("hf://datasets/"):
        return None
    from attnscope.verbs.corpus.store import hub

    if (split := hub.named(place.address)) is None:
        return None
    ends = [f"{end}{packed}" for end in _TEXTS for packed in ("", *SUFFIXES)]
    return [replace(place, address=file) for file in hub.files_of_split(place.address, split, ends)]


def is_piped(place: Place) -> bool:
    """Whether the place is standard input."""
    return place.address == str(incoming.STANDARD_INPUT)


def check_named(name: str) -> None:
    """Raises `InputError` where a local path does not exist; imports nothing heavy."""
    place = place_of(name)
    if (local := place.local) is not None and not is_pattern(place) and not local.is_dir():
        incoming.check_there(local)


def is_pattern(place: Place) -> bool:
    """Whether the address has wildcards, and no file has them in its own name."""
    if place.local is not None:
        return any(sign in place.address for sign in _PATTERN) and not place.exists()
    return any(sign in place.address for sign in ("*" if _is_web(place) else _PATTERN))


def _is_web(place: Place) -> bool:
    return place.address.startswith(("http://", "https://"))


def _in_folder(folder: Place) -> Iterator[Place]:
    found = [file for file in folder.files() if not file.name.startswith((".", "_"))]
    plain = [unpacked_name(file.name) if packing_by_name(file.name) else file.name for file in found]
    texts = [file for file, name in zip(found, plain, strict=True) if name.lower().endswith(_TEXTS)]
    if not texts:
        there = f": it has {len(found)} others" if found else ": it is empty" if folder.exists() else ""
        raise InputError(
            f"no file of texts in '{folder}'{there}; read are {', '.join(_TEXTS)}, packed or not"
        )
    yield from texts
