"""SHA-256 of large files, cached on disk, so that an unchanged file is not read again.

A hash is cached only where the file's size, times and inode reveal every change (`lasting_stamp`), and not
where the file changed while it was read; elsewhere a file is read each time. The cache entry holds the stamp
of its file, and is ignored where that differs or the entry is damaged.

A write call moves the times at once, on every file system. A store through a memory map moves them only when
it touches a page that has been written out: further stores to the same page go unseen for half a minute or
longer. So the file is flushed first; from then on the file systems named here show each first store. Those in
memory flush nothing and show none; network and FUSE file systems, and systems other than Linux, are not known
to: there a file is read. An overlay shows what its lower file system does, which is tried on a file of our
own.
"""

import hashlib
import json
import mmap
import os
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from attnscope.process.ending import written_whole
from attnscope.process.machine import digests_folder, is_ours

SETTLED = 2.0  # seconds; no file system in use counts more coarsely
_TELLING, _OVER_OTHERS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"}, "overlay"
_PAGE = mmap.PAGESIZE
Stamp = list[int]

LARGE = 32 * 2**20  # bytes; smaller files are read each time
_SUFFIX = ".json"
_FORM = 2  # version of a cache entry and of how it is made
_MOST = 256  # most files in the cache
_HASH = re.compile(r"[0-9a-f]{64}")


def stamp(handle: int) -> Stamp:
    """Size, modification and change times, inode and device of an open file."""
    status = os.fstat(handle)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def lasting_stamp(handle: int) -> Stamp | None:
    """The stamp of an open file where every later change must alter it, else None.

    A file that has just been written has none: a next change could fall into the same tick of the clock.
    """
    try:
        if not _settled(stamp(handle)):
            return None
        kind = _kind(handle)
        if kind not in _TELLING and not (kind == _OVER_OTHERS and _tried(os.fstat(handle).st_dev)):
            return None
        os.fsync(handle)
        now = stamp(handle)
    except OSError:
        return None
    return now if _settled(now) else None


def _settled(of: Stamp) -> bool:
    return max(of[1:3]) < time.time_ns() - SETTLED * 1e9


def _kind(handle: int) -> str | None:
    fdinfo = Path(f"/proc/self/fdinfo/{handle}").read_text("ascii", "replace")
    mount = dict(line.split(":", 1) for line in fdinfo.splitlines() if ":" in line).get("mnt_id", "").strip()
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        mounted, _, of = line.partition(" - ")
        if mount and mounted.split(" ", 1)[0] == mount:
            return of.split(" ", 1)[0]
    return None


def _tried(device: int) -> bool:
    """True where a store after a flush moves the times on this device, tried in our own folder."""
    folder = digests_folder()
    if folder is None:
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        handle = file.fileno()
        if os.fstat(handle).st_dev != device:
            return False
        os.truncate(handle, _PAGE)
        with mmap.mmap(handle, _PAGE) as page:
            page[0] = 1
            os.utime(handle, ns=(0, 0))
            os.fsync(handle)
            page[0] = 2
            return os.fstat(handle).st_mtime_ns != 0


def sha256(file: Path) -> str:
    """The SHA-256 of a file's bytes as 64 hexadecimal digits, as `sha256sum` prints it."""
    with file.open("rb") as stream:
        handle = stream.fileno()
        before = stamp(handle)
        if before[0] < LARGE:
            return hashlib.sha256(stream.read()).hexdigest()
        note = _note(before)
        if note is not None and (remembered := _remembered(note, before)) is not None:
            return remembered
        lasting = None if note is None else lasting_stamp(handle)
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if note is not None and lasting == before and stamp(handle) == before:
            _remember(note, before, found)
    return found


def unread(file: Path, *, lasting: bool = False) -> str | None:
    """The stamp of a large file as text, in place of its content; None for a file below 32 MiB.

    With `lasting` None also where a later change could leave the stamp as it is (see `lasting_stamp`).
    """
    with file.open("rb") as stream:
        found = lasting_stamp(stream.fileno()) if lasting else stamp(stream.fileno())
    return None if found is None or found[0] < LARGE else json.dumps(found)


def _note(of: Stamp) -> Path | None:
    folder = digests_folder()
    name = hashlib.sha256(json.dumps(of).encode()).hexdigest()[:32]
    return None if folder is None else folder / f"{name}{_SUFFIX}"


def _remembered(note: Path, of: Stamp) -> str | None:
    try:
        with note.open("rb") as file:
            noted = json.loads(file.read()) if is_ours(file.fileno()) else {}
        found, check = noted["sha256"], noted["check"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    whole = isinstance(found, str) and _HASH.fullmatch(found) and check == _check(of, found)
    return found if whole else None


def _check(of: Stamp, found: str) -> str:
    return hashlib.sha256(json.dumps([_FORM, of, found]).encode()).hexdigest()


def _remember(note: Path, of: Stamp, found: str) -> None:
    """Write the cache entry atomically; where that fails, the file is read again next time."""
    noted = {"sha256": found, "check": _check(of, found)}
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(note) as file:
            file.write(json.dumps(noted).encode())
        _forget_all_but_the_newest(note.parent)


def _forget_all_but_the_newest(folder: Path) -> None:
    found = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for each in found[_MOST:]:
        each.unlink()
