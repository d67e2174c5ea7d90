"""Machine resources: memory left and used, the cache folder, faster start, and one thread at a time.

Sizes and times are read and written as people write them. No folder is created, and only the user's own
cache folder is named.

The command starts faster than its libraries by two means (`hasten`), which importing attnscope does not use,
and which environment variables switch off: Python's garbage collector waits until a model is in memory
(`benchmarks/startup.py` measures it), and torch's waiting threads soon sleep instead of spinning on cores
that others could use. Every library is imported unchanged.

One thread at a time, in the whole process, runs functions decorated by `alone`: those that change a model in
memory, or state that libraries share. Reading attention puts functions into transformers' global registries,
and hooks into the model. Both are removed again; meanwhile another thread would see them, or remove what is
not its own. The lock is reentrant, so that no thread waits for itself.
"""

import functools
import gc
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import ParamSpec, TypeVar

_MEMINFO = Path("/proc/meminfo")
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([kmgt]?)b?", re.IGNORECASE)
COLLECT = "ATTNSCOPE_COLLECT"  # set to anything: the collector works as Python has it
WAITING = "OMP_WAIT_POLICY"  # set to anything: threads wait as it says
_SPINS = "GOMP_SPINCOUNT", "1000"  # as libgomp does by itself where it has more threads than cores
_MANY = 50_000  # objects made before the collector looks at the youngest; Python's own number is 700
_hastened = False
P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

ALONE = RLock()
_DIGESTS = "ATTNSCOPE_DIGESTS"  # off: no hash of a large file is remembered
_OFF = {"off", "no", "none", "0", "false"}


def left() -> int | None:
    """Bytes of memory that can still be allocated (an upper bound); None where unknown."""
    bounds = [bound for bound in (_available(), _container_limit(), _process_limit()) if bound is not None]
    return min(bounds, default=None)


def gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def duration(seconds: float) -> str:
    """A duration as text: `17.7 s`, `7 min`, `2.5 h`, `3 days`."""
    if seconds < 7200:
        return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.0f} days"


def peak_memory() -> int | None:
    """Peak memory of this process in bytes; None where the system does not tell.

    On Linux `ru_maxrss` counts the parent process too, so `VmHWM` is read instead.

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
    """The size in bytes of `500MB` or `2GB`; None where the text is no size."""
    size = _SIZE.fullmatch(written)
    return None if size is None else int(float(size[1]) * _UNITS[size[2].casefold()])


def _available() -> int | None:
    """Available memory and free swap in bytes, or all physical memory; None where unknown."""
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
    """Bytes left under the address-space limit (`ulimit -v`); None without a limit or where unknown."""
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or not _STATM.is_file():
        return None
    taken = int(_STATM.read_text("ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return max(limit - taken, 0)


def digests_folder() -> Path | None:
    """The folder of cached file hashes; None where caching is off or there is no user cache folder."""
    if os.environ.get(_DIGESTS, "").strip().casefold() in _OFF:
        return None
    from platformdirs import user_cache_path

    own = user_cache_path("attnscope", appauthor=False) / "digests"
    return own if own.is_absolute() else None


def is_ours(handle: int) -> bool:
    """Whether an open file is owned by the user who runs this program."""
    own = getattr(os, "geteuid", None)  # not on Windows
    return own is None or bool(os.fstat(handle).st_uid == own())


def hasten() -> None:
    """Speeds up the start of this process: rarer garbage collection, threads that soon sleep."""
    global _hastened
    _hastened = True
    if not os.environ.get(COLLECT):
        gc.set_threshold(_MANY, *gc.get_threshold()[1:])
    if not os.environ.get(WAITING):
        os.environ.setdefault(*_SPINS)  # read when torch is imported


@contextmanager
def lean_loading() -> Iterator[None]:
    """Context manager for importing transformers and loading models: no garbage collection."""
    collecting = gc.isenabled()
    gc.disable()  # imports make hundreds of thousands of objects, and all of them stay
    try:
        yield
    finally:
        if _hastened and not os.environ.get(COLLECT):
            gc.freeze()  # what there is by now is never looked at again
        if collecting:
            gc.enable()


def alone(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: the function runs while no other decorated function runs in another thread."""

    @functools.wraps(function)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        with ALONE:
            return function(*args, **kwargs)

    return waiting


def each_alone(cls: C) -> C:
    """Class decorator: wraps all public methods, properties and `__init__` with `alone`."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__repr__"):
            continue
        if inspect.isfunction(member):
            setattr(cls, name, alone(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(alone(member.fget)))
    return cls
