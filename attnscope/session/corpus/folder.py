"""What a run leaves on the disk, so that it can be cut off at any point and go on.

    manifest.json                  what it is a run of, with provenance; written first
    parts/0-000012-8c1f….parquet   what split 12 gave (level 1: splits 192 to 207, and so on; see `tree`)
    rows/000012-51ab….parquet      with --rows: what each of its texts gave (see `rows`)
    set-aside.jsonl                what could not be measured, why, and what stood there; written last

A file is written beside its place, flushed to the disk and moved there in one step; the folder is flushed
too. So whatever is found under its own name is whole, and a split whose part is not found is measured again.
The name of a part holds the digest of its bytes: one that was damaged later is found, and the same part has
the same name whoever writes it. Only one process may work on a run: the lock is the system's, and ends with
its holder however that ends. A run that is refused before anything was measured leaves nothing.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.errors import InputError
from attnscope.session.corpus.part import NotAPartError, Part, read

SCHEMA = "attnscope.corpus-run/3"
MANIFEST, PARTS, ROWS, ASIDE, LOCK = "manifest.json", "parts", "rows", "set-aside.jsonl", "lock"
_NAMED = re.compile(r"([0-9])-([0-9]{6,})-([0-9a-f]{16})\.parquet")
_DIGITS = 16


@dataclass(frozen=True, order=True)
class Named:
    """A part by its name: the `number`-th of its level, and the digest of its bytes."""

    level: int
    number: int
    digest: str

    @classmethod
    def of(cls, level: int, number: int, content: bytes) -> "Named":
        """The name of these bytes."""
        return cls(level, number, _digest(content))

    @classmethod
    def parsed(cls, name: str) -> "Named | None":
        """The part that a file of this name is, if it is one."""
        match = _NAMED.fullmatch(name)
        return None if match is None else cls(int(match[1]), int(match[2]), match[3])

    def __str__(self) -> str:
        return f"{self.level}-{self.number:06d}-{self.digest}.parquet"


class DamagedError(Exception):
    """The part of this name is not what it was."""

    def __init__(self, named: Named) -> None:
        super().__init__(str(named))
        self.named = named


class DamagedRowsError(Exception):
    """The rows of a split are not what they were."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.split = int(name.partition("-")[0])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


@dataclass(frozen=True)
class Folder:
    """One run's folder."""

    path: Path

    def claim(self, identity: Mapping[str, Any], provenance: Mapping[str, Any]) -> bool:
        """Make the folder the one of this run, or find that it is; whether it was begun before.

        `InputError` for a folder that holds another run, and says in what they differ.
        """
        place = self.path / MANIFEST
        if (manifest := self._manifest()) is not None:
            self._check_same(manifest.get("identity"), identity)
            return True
        if self.path.is_dir() and any(file.name not in (LOCK, PARTS) for file in self.path.iterdir()):
            raise InputError(f"'{self.path}' is no folder of a run and not empty: name another with --run")
        content = {"schema": SCHEMA, "identity": identity, **provenance}
        with _writing(place):
            (self.path / PARTS).mkdir(parents=True, exist_ok=True)
            plain = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            # half a character, in the name of a folder, becomes what JSON writes for it
            write_whole(place, plain.encode("utf-8", "backslashreplace"))
        return False

    def _manifest(self) -> dict[str, Any] | None:
        place = self.path / MANIFEST
        try:
            manifest = json.loads(place.read_bytes())
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise InputError(f"'{self.path}' is no folder: name another with --run") from error
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"cannot read '{place}': it is no manifest of a run") from error
        there = manifest.get("schema") if isinstance(manifest, dict) else None
        if there != SCHEMA and str(there).startswith(SCHEMA.partition("/")[0]):
            raise InputError(
                f"'{self.path}' was begun by another attnscope ({there}): remove it, or name another folder "
                "with --run"
            )
        if not isinstance(manifest, dict) or there != SCHEMA:
            raise InputError(f"'{place}' is no manifest of a run that this attnscope knows")
        return manifest

    def _check_same(self, recorded: Any, identity: Mapping[str, Any]) -> None:
        there = recorded if isinstance(recorded, dict) else {}
        wanted = json.loads(json.dumps(identity))
        other = [name for name in {**there, **wanted} if there.get(name) != wanted.get(name)]
        if other:
            name = other[0]
            differs = f"{name} is {_short(there.get(name))} there and {_short(wanted.get(name))} here"
            more = f", and so do {', '.join(other[1:])}" if other[1:] else ""
            raise InputError(
                f"'{self.path}' belongs to another run: {differs}{more}; "
                f"give that command again, or name another folder with --run"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While open no other process works on this run; `InputError` where one does."""
        place = self.path / LOCK
        with _writing(place):
            ours = (
                place,
                *(self.path / name for name in (MANIFEST, PARTS, ROWS)),
                self.path,
                *self.path.parents,
            )
            new = [place for place in ours if not place.exists()]
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _alone(handle, place):
                raise InputError(f"another process works on '{self.path}': wait for it")
            try:
                yield
            except Exception:
                self._take_back(new)
                raise
        finally:
            os.close(handle)

    def _take_back(self, new: Sequence[Path]) -> None:
        """Removes what is `new` since the lock was asked for, where no part came of it."""
        if self.parts():
            return
        for place in new:
            with suppress(OSError):
                place.unlink() if place.name in (LOCK, MANIFEST) else place.rmdir()

    def parts(self) -> list[Named]:
        """All that are there, in the order of level, number and digest."""
        names = os.listdir(self.path / PARTS) if (self.path / PARTS).is_dir() else []
        return sorted(named for name in names if (named := Named.parsed(name)) is not None)

    def part(self, named: Named) -> Part:
        """One of them; `DamagedError` where its bytes are not those that it was written with."""
        try:
            content = (self.path / PARTS / str(named)).read_bytes()
            if Named.of(named.level, named.number, content) != named:
                raise DamagedError(named)
            return read(content)
        except (OSError, NotAPartError) as error:
            raise DamagedError(named) from error

    def keep(self, part: Part, level: int, number: int) -> Named:
        """Write a part; `NotWrittenError` where it cannot be, and what was done is kept."""
        content = part.written()
        named = Named.of(level, number, content)
        place = self.path / PARTS / str(named)
        with _writing(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, content)
        return named

    def keep_rows(self, split: int, content: bytes) -> str:
        """Write the rows of a split; the name of their file."""
        name = f"{split:06d}-{_digest(content)}.parquet"
        with _writing(self.path / ROWS / name):
            (self.path / ROWS).mkdir(parents=True, exist_ok=True)
            write_whole(self.path / ROWS / name, content)
        return name

    def rows(self, name: str) -> bytes:
        """The rows of that name; `DamagedRowsError` where they are not those that were written."""
        try:
            content = (self.path / ROWS / name).read_bytes()
        except OSError as error:
            raise DamagedRowsError(name) from error
        if name.partition("-")[2] != f"{_digest(content)}.parquet":
            raise DamagedRowsError(name)
        return content

    def drop(self, named: Named) -> None:
        """Remove a part."""
        with suppress(FileNotFoundError), _writing(self.path / PARTS / str(named)):
            (self.path / PARTS / str(named)).unlink()

    def clear_leftovers(self) -> None:
        """Removes what a process that was cut off had not moved to its place."""
        for left in (each for room in (".", PARTS, ROWS) for each in (self.path / room).glob(".*.part")):
            with suppress(OSError):
                left.unlink()


def _alone(handle: int, place: Path) -> bool:
    """Whether the lock could be had, and was not just taken back; yes on Windows, which has no such locks."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return place.exists() and os.path.samestat(os.fstat(handle), place.stat())


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotWrittenError(f"cannot write '{place}': {error.strerror or error}") from error


class NotWrittenError(InputError):
    """A file of the run could not be written."""


def write_whole(place: Path, content: bytes) -> None:
    """Put `content` under a name: all of it, on the disk, or nothing."""
    stream_whole(place, lambda file: file.write(content))


def stream_whole(place: Path, write: Callable[[Any], object]) -> None:
    """The same for what `write` writes into the file that it is given."""
    part = place.with_name(f".{place.name}.part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, place)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _flush_folder(place.parent)


def _flush_folder(folder: Path) -> None:
    """So that a name survives a loss of power; not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 80 else shown[:77] + "..."
