"""Files and folders by address, local or remote: read, written as a whole, listed, removed.

A path of this machine is read and written by the system's own calls; any other address, wherever fsspec
reaches, is a place of `remote`. A place is plain data, which may travel to other machines. What is not there
is a `FileNotFoundError`; whatever else is refused is an `InputError` of one line.
"""

import io
import json
import os
import re
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from attnscope.errors import InputError, one_line
from attnscope.model.source import digests
from attnscope.printable import printable
from attnscope.process.ending import written_whole

_REMOTE = re.compile(r"(?!(?:file|local)://)[A-Za-z][A-Za-z0-9+.-]+://")


class NotWrittenError(InputError):
    """A file or folder could not be written."""


class RefusedError(InputError):
    """A store refuses for good: trying again is of no use."""


@dataclass(frozen=True)
class Place:
    """A file or folder of this machine; base class of remote places."""

    address: str

    @property
    def local(self) -> Path | None:
        """The local path; None for a remote place."""
        return Path(self.address)

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.partition("?")[0].rstrip("/").rpartition("/")[2]

    def __str__(self) -> str:
        return printable(self.address)

    def __truediv__(self, name: str) -> "Place":
        return Place(str(Path(self.address) / name))

    @contextmanager
    def telling(self, doing: str) -> Iterator[None]:
        """Context manager: turns a system's error while `doing` something into one line."""
        kind = InputError if doing in ("read", "list") else NotWrittenError
        try:
            yield
        except FileNotFoundError as error:
            if doing != "write":
                raise
            raise kind(f"cannot {doing} '{self}': no such folder or bucket") from error
        except OSError as error:
            raise kind(f"cannot {doing} '{self}': {error.strerror or one_line(error)}") from error
        except RefusedError as error:
            raise error if kind is InputError else kind(str(error)) from error

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The file's bytes from `start` up to `end`, or to its end."""
        with self.telling("read"), self.open(start, end) as file:
            return file.read(-1 if end is None else max(0, end - start))

    def open(self, start: int = 0, end: int | None = None) -> IO[bytes]:
        """A stream of the file's bytes from `start` on; a remote file is fetched as it is read.

        `end` says how far will be read for sure, so that no more than that is fetched at first. A connection
        that breaks off is taken up where it was.
        """
        with self.telling("read"):
            file = Path(self.address).open("rb")  # noqa: SIM115
            file.seek(start)
            return file

    def at_random(self) -> IO[bytes]:
        """The file opened for random access: only requested bytes are fetched."""
        return self.open()

    @property
    def size(self) -> int | None:
        """Size in bytes; None where the store does not tell."""
        with self.telling("read"):
            return Path(self.address).stat().st_size

    @property
    def by_range(self) -> bool:
        """Whether a range of bytes can be read without those before it."""
        return True

    @property
    def signature(self) -> str:
        """Fingerprint of the content: SHA-256 of a local file, else the store's own (ETag, version)."""
        with self.telling("read"):
            return digests.sha256(Path(self.address))

    def ask_anew(self) -> None:
        """Drops cached facts about the store's files, which may have changed."""

    def exists(self) -> bool:
        """Whether the file or folder exists."""
        return Path(self.address).exists()

    def is_folder(self) -> bool:
        """Whether the place is a folder, or looks like one in a store without folders."""
        return Path(self.address).is_dir()

    def names(self) -> list[str]:
        """Sorted names of the files directly in this folder; empty where there is no folder."""
        with self.telling("list"), suppress(FileNotFoundError):
            return sorted(file.name for file in Path(self.address).iterdir() if file.is_file())
        return []

    def files(self) -> "list[Place]":
        """All files below this folder, or that match this pattern, sorted by name."""
        from glob import glob

        with self.telling("list"):
            folder = Path(self.address)
            found = folder.rglob("*") if folder.is_dir() else map(Path, glob(self.address, recursive=True))
            return [Place(str(file)) for file in sorted(file for file in found if file.is_file())]

    def make(self) -> None:
        """Makes the folder and its parents; a store without folders needs none."""
        with self.telling("write"):
            Path(self.address).mkdir(parents=True, exist_ok=True)

    def write(self, content: bytes) -> None:
        """Writes `content` as a whole, or not at all."""
        with self.writing() as file:
            file.write(content)

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Context manager: a file to write, which appears, whole, only on exit without an error."""
        path = Path(self.address)
        with self.telling("write"), written_whole(path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):  # so that its name survives a loss of power, where a folder can be opened
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove(self) -> None:
        """Removes the file, or the folder with its content, if it exists."""
        path = Path(self.address)
        with self.telling("remove"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


class Chunks(io.RawIOBase):
    """A readable file over the chunks of a generator, which it closes."""

    def __init__(self, chunks: Generator[bytes]) -> None:
        self._chunks, self._held = chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._held = self._held or memoryview(next(self._chunks, b""))
        given = self._held[: len(buffer)]
        buffer[: len(given)] = given
        self._held = self._held[len(given) :]
        return len(given)

    def close(self) -> None:
        self._chunks.close()
        super().close()


def place_of(address: str | Path | Place, **options: Any) -> Place:
    """The place of a path or address; `options` are for the file system that an address names."""
    if isinstance(address, Place):
        return address
    plain = str(address)
    if not _REMOTE.match(plain):
        return Place(plain.removeprefix("file://").removeprefix("local://"))
    from attnscope.verbs.corpus.store.remote import RemotePlace

    return RemotePlace(plain, json.dumps(options, sort_keys=True))
