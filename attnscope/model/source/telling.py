"""Whether size, times and inode of a file tell of every change of its content, so that it need not be read.

A call that writes moves the times at once, on every file system. A store through a memory map is told of only
where it comes to a page that has been written out: of the next ones to the same page nobody hears, for half
a minute or longer. So everything is written out first; from then on the file systems named here are told of
each first store. Those in memory write nothing out and tell of none; of those on other machines, of those
that programs make, and of other systems than Linux it is not known: there a file is read. What lies over
others (`overlay`) tells where what is under it does, which is tried on a file of our own.
"""

import mmap
import os
import tempfile
import time
from pathlib import Path

from attnscope.cachedir import kept_in

SETTLED = 2.0  # seconds; no file system in use counts more coarsely
_TELLING, _OVER_OTHERS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"}, "overlay"
_PAGE = mmap.PAGESIZE
Stamp = list[int]


def stamp(handle: int) -> Stamp:
    """What the system tells of an open file without reading it."""
    told = os.fstat(handle)
    return [told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino, told.st_dev]


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
    """The kind of the file system that an open file is of, as the kernel calls it."""
    told = Path(f"/proc/self/fdinfo/{handle}").read_text("ascii", "replace")
    mount = dict(line.split(":", 1) for line in told.splitlines() if ":" in line).get("mnt_id", "").strip()
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        mounted, _, of = line.partition(" - ")
        if mount and mounted.split(" ", 1)[0] == mount:
            return of.split(" ", 1)[0]
    return None


def _tried(device: int) -> bool:
    """Whether a store after a flush is told of on this device, which has to be that of our own folder."""
    folder = kept_in()
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
