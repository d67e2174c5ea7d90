"""A file or folder by its address: read in part or whole, written whole or not at all, listed, removed.

A path of this machine is read and written by the system's own calls, and fsspec is not imported for it. Any
other address goes through `remote`. A place is plain data, which may travel to other machines. What is not
there is a `FileNotFoundError`; whatever else is refused is an `InputError` of one line.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from attnscope.errors import InputError, one_line
from attnscope.model.source import digests
from attnscope.printable import printable
from attnscope.process.ending import temporary_folder, written_whole
from attnscope.verbs.corpus.store import remote

P = ParamSpec("P")
T = TypeVar("T")
_HERE = ("file://", "local://")


class NotWrittenError(InputError):
    """A file could not be written, or a folder made."""


def _refusing(doing: str, kind: type[InputError] = InputError) -> Callable[[Callable[P, T]], Callable[P, T]]:
    def around(method: Callable[P, T]) -> Callable[P, T]:
        @wraps(method)
        def told(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return method(*args, **kwargs)
            except FileNotFoundError:
                if kind is InputError:
                    raise
                raise kind(f"cannot {doing} '{args[0]}': no such folder or bucket") from None
            except OSError as error:
                raise kind(f"cannot {doing} '{args[0]}': {error.strerror or one_line(error)}") from error
            except InputError as error:
                raise error if isinstance(error, kind) else kind(str(error)) from error

        return told

    return around


@dataclass(frozen=True)
class Place:
    """An address, and what the system that it names is told beside it (`options`, as JSON)."""

    address: str
    options: str = field(default="{}", repr=False)  # it may hold keys

    @classmethod
    def of(cls, address: "str | Path | Place", **options: Any) -> "Place":
        """The place of that path or address."""
        if isinstance(address, Place):
            return address
        plain = str(address)
        here = next((scheme for scheme in _HERE if plain.startswith(scheme)), "")
        return cls(plain.removeprefix(here), json.dumps(options, sort_keys=True))

    @property
    def local(self) -> Path | None:
        """The path, where it is one of this machine."""
        return None if remote.is_remote(self.address) else Path(self.address)

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.partition("?")[0].rstrip("/").rpartition("/")[2]

    def __str__(self) -> str:
        return printable(self.address)

    def __truediv__(self, name: str) -> "Place":
        local = self.local
        address = f"{self.address.rstrip('/')}/{name}" if local is None else str(local / name)
        return Place(address, self.options)

    @_refusing("read")
    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Its bytes from `start` up to `end`, or to its own end."""
        if (local := self.local) is None:
            return remote.read(self.address, self.options, start, end)
        with local.open("rb") as file:
            file.seek(start)
            return file.read(-1 if end is None else max(0, end - start))

    @_refusing("read")
    def open(self, start: int = 0, end: int | None = None) -> IO[bytes]:
        """A stream of its bytes from `start` to its own end; of another machine's it is fetched ahead.

        `end` says how far will be read for sure, so that no more than that is fetched ahead. A connection
        that breaks off is taken up where it was.
        """
        if (local := self.local) is None:
            return remote.stream(self.address, self.options, start, end)
        file = local.open("rb")
        file.seek(start)
        return file

    @_refusing("read")
    def at_random(self) -> IO[bytes]:
        """The file to be read here and there: exactly what is asked for is fetched."""
        return remote.at_random(self.address, self.options) if self.local is None else self.open()

    @_refusing("read")
    def size(self) -> int | None:
        """Its bytes; None where that is not told."""
        if (local := self.local) is None:
            return remote.facts(self.address, self.options).size
        return local.stat().st_size

    @property
    def by_range(self) -> bool:
        """Whether a part of it can be read without what stands before."""
        return self.local is not None or remote.facts(self.address, self.options).by_range

    @_refusing("read")
    def signature(self) -> str:
        """What changes with its content: the SHA-256 here, elsewhere what the store says (ETag, version)."""
        if (local := self.local) is None:
            return remote.facts(self.address, self.options).signature
        return digests.sha256(local)

    @_refusing("read")
    def stamp(self) -> tuple[int, ...] | None:
        """What the system tells of a file here without reading it: size, time, inode; None elsewhere."""
        if (local := self.local) is None:
            return None
        status = local.stat()
        return status.st_size, status.st_mtime_ns, status.st_ino

    def exists(self) -> bool:
        """Whether there is a file or folder."""
        if (local := self.local) is None:
            return remote.exists(self.address, self.options)
        return local.exists()

    def is_folder(self) -> bool:
        """Whether it is a folder, or what looks like one in a store that has none."""
        if (local := self.local) is None:
            return remote.is_folder(self.address, self.options)
        return local.is_dir()

    @_refusing("list")
    def names(self) -> list[str]:
        """The names of the files directly in this folder, in their order; none where there is no folder."""
        if (local := self.local) is None:
            return remote.names(self.address, self.options)
        with suppress(FileNotFoundError):
            return sorted(file.name for file in local.iterdir() if file.is_file())
        return []

    @_refusing("list")
    def files(self) -> "list[Place]":
        """All files in this folder and those within, or that this pattern names, by their names."""
        if (local := self.local) is None:
            return [Place(file, self.options) for file in remote.files(self.address, self.options)]
        if local.is_dir():
            found = sorted(file for file in local.rglob("*") if file.is_file())
        else:
            from glob import glob

            found = sorted(Path(file) for file in glob(self.address, recursive=True) if Path(file).is_file())
        return [Place(str(file)) for file in found]

    @_refusing("write", NotWrittenError)
    def make(self) -> None:
        """Make the folder, and those that it lies in; a store without folders needs none."""
        if (local := self.local) is not None:
            local.mkdir(parents=True, exist_ok=True)
        else:
            remote.make(self.address, self.options)

    @_refusing("write", NotWrittenError)
    def write(self, content: bytes) -> None:
        """Put `content` there: all of it, on the disk, or nothing."""
        if self.local is None:
            remote.write(self.address, self.options, content)
            return
        with self.writing() as file:
            file.write(content)

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """A file to be written; it is there, whole, when this is left without an error, and not before."""
        if (local := self.local) is None:
            with temporary_folder() as folder:
                copy = Path(folder) / "part"
                with self._writing(), copy.open("wb") as file:
                    yield file
                with self._writing():
                    remote.put(self.address, self.options, copy)
            return
        with self._writing(), written_whole(local) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _flush_folder(local.parent)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotWrittenError(f"cannot write '{self}': no such folder or bucket") from error
        except OSError as error:
            raise NotWrittenError(f"cannot write '{self}': {error.strerror or one_line(error)}") from error
        except remote.RefusedError as error:
            raise NotWrittenError(str(error)) from error

    @_refusing("remove", NotWrittenError)
    def remove(self) -> None:
        """Remove the file, or the folder with all that is in it; nothing where there is none."""
        if (local := self.local) is None:
            remote.remove(self.address, self.options)
        elif local.is_dir() and not local.is_symlink():
            shutil.rmtree(local)
        else:
            local.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """So that a name survives a loss of power; not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
