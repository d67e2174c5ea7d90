"""The SHA-256 of a large file, remembered from when it was read whole: so one layer of it costs one layer.

It is remembered only where the file's size, times and inode tell of every change (`lasting_stamp`), and not
of one that changed while it was read; anywhere else a file is read each time. What is remembered stands
together with what it is of, and counts for nothing where that is not the same, or is not whole.

A call that writes moves the times at once, on every file system. A store through a memory map is told of only
where it comes to a page that has been written out: of the next ones to the same page nobody hears, for half
a minute or longer. So everything is written out first; from then on the file systems named here are told of
each first store. Those in memory write nothing out and tell of none; of those on other machines, of those
that programs make, and of other systems than Linux it is not known: there a file is read. What lies over
others (`overlay`) tells where what is under it does, which is tried on a file of our own.
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

LARGE = 32 * 2**20  # bytes; less is read in no time
_SUFFIX = ".json"
_FORM = 2  # of a note, and of what it takes to make one
_MOST = 256  # files that are remembered
_HASH = re.compile(r"[0-9a-f]{64}")


def stamp(handle: int) -> Stamp:
    """What the system tells of an open file without reading it."""
    status = os.fstat(handle)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def lasting_stamp(handle: int) -> Stamp | None:
    """The stamp of an open file, where every change from now on makes it another one; else None.

    One that has just been written has none: a next change could fall into the same tick of the clock.
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
    """Whether a store after a flush is told of on this device, which has to be that of our own folder."""
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
    """The SHA-256 of the bytes of a file, in hexadecimal digits, as `sha256sum` prints it."""
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
    """What stands for the content of a large file without reading it: it is the same while that is.

    That holds of what was found to be `lasting`, and is None where it is not, or the file is not large.
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
    """Keep it, whole or not at all; where it cannot be kept, the file is read again next time."""
    noted = {"sha256": found, "check": _check(of, found)}
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(note) as file:
            file.write(json.dumps(noted).encode())
        _forget_all_but_the_newest(note.parent)


def _forget_all_but_the_newest(folder: Path) -> None:
    """Also of what somebody who was killed left unfinished."""
    found = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for each in found[_MOST:]:
        each.unlink()
