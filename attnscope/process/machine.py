"""What the machine gives this program: how much memory, and a folder for what it can make again.

Sizes and times are read and written as people write them. Nothing is made here, and no folder but the user's
own is ever named.
"""

import os
import re
import sys
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([kmgt]?)b?", re.IGNORECASE)


def left() -> int | None:
    """Bytes that can still be taken, rather too many than too few; None where nothing tells."""
    bounds = [bound for bound in (_available(), _container_limit(), _process_limit()) if bound is not None]
    return min(bounds, default=None)


def gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def duration(seconds: float) -> str:
    """From a second on: `17.7 s`, `7 min`, `2.5 h`, `3 days`."""
    if seconds < 7200:
        return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.0f} days"


def peak_memory() -> int | None:
    """The most memory that this process has had, in bytes; None where the system does not tell.

    What Linux says of a process's use counts whoever started it with it, so its memory is looked at itself.
    """
    status = _STATUS.read_text("utf-8", "replace") if _STATUS.is_file() else ""
    if found := re.search(r"VmHWM:\s*(\d+) kB", status):
        return 1024 * int(found[1])
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def bytes_of(written: str) -> int | None:
    """The size that is called `500MB` or `2GB`; None for what is no size."""
    size = _SIZE.fullmatch(written)
    return None if size is None else int(float(size[1]) * _UNITS[size[2].casefold()])


def _available() -> int | None:
    """Memory and swap that are free or can be freed; all that there is where the system does not tell."""
    if _MEMINFO.is_file():
        lines = (line.split() for line in _MEMINFO.read_text("ascii").splitlines())
        sizes = {line[0]: int(line[1]) for line in lines if len(line) > 1}
        return 1024 * (sizes["MemAvailable:"] + sizes.get("SwapFree:", 0))
    if sys.platform != "win32" and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _container_limit() -> int | None:
    limit = _CONTAINER_LIMIT.read_text("ascii").strip() if _CONTAINER_LIMIT.is_file() else "max"
    return int(limit) if limit.isdigit() else None


def _process_limit() -> int | None:
    """What this process may still map (`ulimit -v`), where it is limited and the system tells what it has."""
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or not _STATM.is_file():
        return None
    taken = int(_STATM.read_text("ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return max(limit - taken, 0)


_DIGESTS = "ATTNSCOPE_DIGESTS"  # off: no hash of a large file is remembered
_OFF = {"off", "no", "none", "0", "false"}


def digests_folder() -> Path | None:
    """The folder of remembered hashes; None where that is off, or where this user has no place of his own."""
    if os.environ.get(_DIGESTS, "").strip().casefold() in _OFF:
        return None
    own = _own_folder()
    return None if own is None else own / "attnscope" / "digests"


def is_ours(handle: int) -> bool:
    """Whether an open file belongs to who runs this program, so that nobody else says what stands in it."""
    own = getattr(os, "geteuid", None)  # not on Windows
    return own is None or bool(os.fstat(handle).st_uid == own())


def _own_folder() -> Path | None:
    if (named := os.environ.get("XDG_CACHE_HOME", "")) and os.path.isabs(named):
        return Path(named)  # the standard says that what is not absolute does not count
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    return Path(home, "Library", "Caches") if sys.platform == "darwin" else Path(home, ".cache")
