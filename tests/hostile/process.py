"""Running one invocation in a fork of this process, and watching over it.

`warm_up` imports what is heavy, once, and must leave this process with one thread only.
"""

import contextlib
import importlib
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from .child import become, entry_point
from .invocation import Invocation, Outcome
from .place import Place, paths_in

SECONDS, PATIENCE, BYTES = 60, 60, 5 << 30  # of processor time, of doing nothing, of memory: no more


def warm_up(place: Place, first: Iterable[Invocation] = ()) -> None:
    """Import every module of the program, and what the `first` invocations import besides.

    They run in forks, which tell what they loaded: so nothing but imports happens here.
    """
    os.environ.update(place.environment(()))
    import torch

    import attnscope

    torch.set_num_threads(1)
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # it begins a thread: who is forked imports it
    for found in pkgutil.walk_packages(attnscope.__path__, "attnscope."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    importlib.import_module(entry_point().split(":")[0])
    for invocation in first:
        told = place.root / "modules"
        told.unlink(missing_ok=True)
        run(invocation, place, loaded=told)
        if told.exists():
            for name in told.read_text().splitlines():
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
    del sys.modules["pyarrow"]
    # fonts are cut with it, pages read by it; another user may not be let into this Python's folder
    "".encode("utf-32-be")
    importlib.import_module("importlib.readers")
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"{threads} threads in the process that is to be forked")


def run(invocation: Invocation, place: Place, loaded: Path | None = None) -> Outcome:
    """What comes of the invocation in the current folder as it is now."""
    before = set(paths_in(place.current))
    reader, writer = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            become(invocation, place, writer, loaded)
        except BaseException:
            place.crash.write_text("the campaign itself:\n" + traceback.format_exc())
        os._exit(99)
    os.close(writer)
    os.read(reader, 1)  # the child is about to start
    os.close(reader)
    status, stopped = _watch(child, invocation.interrupt, invocation.kill)
    seconds = time.monotonic() - start
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    left = tuple(sorted(path for path in paths_in(place.current) if path not in before))
    kept = {name: place.current / name for name in left if not name.endswith("/")}
    return Outcome(
        code=os.waitstatus_to_exitcode(status),
        stdout=place.out.read_bytes(),
        stderr=place.err.read_bytes(),
        seconds=seconds,
        stopped=stopped,
        stack=place.crash.read_text(errors="replace"),
        left=left,
        temporary=tuple(paths_in(place.temporary)),
        canaries=tuple(paths_in(place.canaries)),
        files={name: path.read_bytes() for name, path in kept.items() if path.is_file()},
    )


def _watch(child: int, interrupt: float | None, kill: float | None) -> tuple[int, str]:
    """The wait status, and the limit that the child was stopped by."""
    start, checked, meter = time.monotonic(), 0.0, Meter(child)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status, ""
        now = time.monotonic() - start
        if interrupt is not None and now >= interrupt:
            os.kill(child, signal.SIGINT)
            interrupt = None
        if kill is not None and now >= kill:
            os.kill(child, signal.SIGKILL)
            kill = None
        if now - checked > 0.1:
            checked = now
            if limit := meter.beyond(now):
                return _end(child), limit
        time.sleep(0.003 if now < 2 else 0.02)


class Meter:
    """What a process has used so far, and since when nothing; that the machine is busy is no fault of it."""

    def __init__(self, process: int) -> None:
        self._file = Path(f"/proc/{process}/stat")
        self._used, self._since = 0.0, 0.0

    def beyond(self, now: float) -> str:
        """The limit that it is beyond, `now` seconds after its start; empty where it is beyond none."""
        try:
            fields = self._file.read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if used > self._used + 0.05:
            self._used, self._since = used, now
        if used > SECONDS:
            return f"{SECONDS} s of processor time"
        if now - self._since > PATIENCE:
            return f"{PATIENCE} s of doing nothing"
        if int(fields[21]) * os.sysconf("SC_PAGE_SIZE") > BYTES:
            return f"{BYTES >> 30} GiB of memory"
        return ""


def _end(child: int) -> int:
    """Ask the child where it is, then end it."""
    os.kill(child, signal.SIGUSR1)
    time.sleep(0.3)
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]
