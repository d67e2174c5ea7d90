"""The files of the cache, where they lie and how much room they take: one for each key, whole or not at all.

Where the room is full, what was asked for longest ago goes first.

Several processes may read, write and evict at once. A file is written beside its place and then moved there;
who has one open reads it to its end whatever happens to its name. Nothing is flushed to the disk on purpose:
what a loss of power leaves of a file is told by its hashes. Whatever fails here costs a notice and no answer.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attnscope.errors import InputError
from attnscope.process.ending import UNFINISHED, written_whole
from attnscope.process.machine import bytes_of, kept_in
from attnscope.session.cache.entry import Entry, Part, open_entry, written

ROOM = "ATTNSCOPE_CACHE_SIZE"
USUAL_ROOM = 2 * 10**9  # bytes
SUFFIX = ".capture"
_ABANDONED = 3600.0  # seconds after which an unfinished file is nobody's any more
_LARGEST_SHARE = 4  # no entry takes more than the room over this
_AFTER_EVICTION = 0.9  # of the room, so that not every run evicts
_DIGESTS = "digests/*"  # kept beside it by `attnscope.model.source.digests`


@dataclass(frozen=True)
class Place:
    """A folder of kept captures, which take at most `room` bytes."""

    folder: Path
    room: int


def place() -> Place | None:
    """Where captures are kept; None where that is off, or where this user has no place of his own.

    `InputError` for a size that is none.
    """
    folder, room = kept_in(), _room()
    return None if folder is None or not room else Place(folder / "captures", room)


def _room() -> int:
    size = os.environ.get(ROOM, "").strip()
    if not size:
        return USUAL_ROOM
    room = bytes_of(size)
    if room is None:
        raise InputError(f"{ROOM} is no size: '{size}': such as 500MB or 2GB, 0 for none")
    return room


@dataclass(frozen=True)
class Held:
    """A file of the cache: its bytes, and when it was last asked for, in seconds since 1970."""

    path: Path
    size: int
    used: float


@dataclass(frozen=True)
class Store:
    """The cache in one place. Everything may raise `OSError`, reading `DamagedEntryError` too."""

    place: Place

    def get(self, key: str) -> Entry | None:
        """The entry for `key`, None where there is none; it now counts as asked for last."""
        path = self._path(key)
        try:
            entry = open_entry(path, key)
        except FileNotFoundError:
            return None
        with suppress(OSError):
            os.utime(path)
        return entry

    def put(self, key: str, parts: Mapping[str, Part]) -> bool:
        """Keep `parts` under `key`, in place of what is there.

        False where that is too large to be kept, or all was cleared away while it was written.
        """
        size, write = written(key, time.time(), parts)
        path = self._path(key)
        if size > self.place.room // _LARGEST_SHARE:
            self._evict(path)  # the room may have become smaller
            return False
        self._folder(path.parent)
        try:
            with written_whole(path, mode=0o600) as stream:
                write(stream)
        except FileNotFoundError:
            return False
        self._evict(path)
        return True

    def drop(self, key: str) -> None:
        """Forget what is kept under `key`."""
        with suppress(OSError):
            self._path(key).unlink()

    def held(self) -> tuple[Held, ...]:
        """All that is kept, what was asked for longest ago first."""
        held = []
        for path in self._files(SUFFIX):
            with suppress(OSError):
                status = path.stat()
                held.append(Held(path, status.st_size, status.st_mtime))
        return tuple(sorted(held, key=lambda entry: (entry.used, str(entry.path))))

    def clear(self) -> int:
        """Forget everything; how many entries that was."""
        gone = 0
        for path in (*self._files(SUFFIX), *self._files(UNFINISHED)):
            path.unlink(missing_ok=True)
            gone += path.suffix == SUFFIX
        return gone

    def _path(self, key: str) -> Path:
        return self.place.folder / key[:2] / f"{key}{SUFFIX}"

    def _folder(self, folder: Path) -> None:
        """What is kept are texts that somebody asked about: nobody else's to read."""
        self.place.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in (self.place.folder, folder):
            place.mkdir(mode=0o700, exist_ok=True)

    def _files(self, suffix: str) -> Iterator[Path]:
        with suppress(FileNotFoundError, NotADirectoryError):
            for folder in sorted(self.place.folder.iterdir()):
                if len(folder.name) == 2 and folder.is_dir():
                    with suppress(OSError):
                        yield from [file for file in folder.iterdir() if file.suffix == suffix]

    def _evict(self, spared: Path) -> None:
        held = self.held()
        total = sum(entry.size for entry in held)
        if total > self.place.room:
            for entry in held:
                if total <= _AFTER_EVICTION * self.place.room:
                    break
                if entry.path != spared:
                    with suppress(OSError):
                        entry.path.unlink()
                    total -= entry.size
        for path in self._files(UNFINISHED):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()


@dataclass(frozen=True)
class Holdings:
    """What is kept: the folder (None where nothing is), files and bytes, and the room that they may take.

    `used` is when one of them was last asked for, in seconds since 1970; None without any.
    """

    folder: Path | None
    entries: int = 0
    size: int = 0
    room: int = 0
    used: float | None = None


def holdings() -> Holdings:
    """What the cache holds now."""
    where = place()
    if where is None:
        return Holdings(None)
    held = Store(where).held()
    size, used = sum(entry.size for entry in held), max((entry.used for entry in held), default=None)
    return Holdings(where.folder, len(held), size, where.room, used)


def clear() -> Holdings:
    """Forget everything that is kept; what it was. `InputError` where that fails."""
    before, where, folder = holdings(), place(), kept_in()
    if where is None or folder is None:
        return before
    try:
        Store(where).clear()
        for file in folder.glob(_DIGESTS):
            with suppress(FileNotFoundError):
                file.unlink()
    except OSError as error:
        raise InputError(f"cannot clear {where.folder}: {error.strerror or error}") from error
    return before
