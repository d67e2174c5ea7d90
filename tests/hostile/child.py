"""The side of the fork that becomes the program: its folder, environment, streams and limits, and its end.

It finds all of these as a new process would, and ends as Python ends a program.
"""

import atexit
import contextlib
import errno
import faulthandler
import fcntl
import functools
import importlib
import io
import os
import resource
import shutil
import signal
import sys
import tomllib
import traceback
from pathlib import Path
from typing import NoReturn

from .invocation import Invocation, Stream
from .place import Place

ROOT = Path(__file__).parents[2]
NOBODY = 65534
PIPE = 63  # which a shell uses first
CRASHES = 200  # the lowest number of the file that tells of crashes, out of the program's way
SCRIPT = """import sys
sys.path[0], sys.argv[0] = {root!r}, "attnscope"
from {module} import {function}
sys.exit({function}())
"""


def become(invocation: Invocation, place: Place, ready: int, loaded: Path | None) -> NoReturn:
    """The invocation itself. `ready` is closed before it starts; `loaded` takes the modules it imported."""
    os.setpgid(0, 0)
    _surround(invocation, place, ready)
    if invocation.cold:
        _exec(invocation)
    _main(invocation, loaded)


@functools.cache  # read before another user is become, who may not be let into this folder
def entry_point() -> str:
    """`module:function` of the command, as pyproject.toml has it."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["attnscope"]


def _surround(invocation: Invocation, place: Place, ready: int) -> None:
    """Folder, environment, streams and limits as the invocation has them; `ready` is closed at last."""
    os.chdir(place.current)
    changes = [(name, value.replace("{here}", str(place.current)) if value else value)
               for name, value in invocation.environment.items()]  # fmt: skip
    environment = place.environment(changes)
    os.environ.clear()
    for name, value in environment.items():
        os.environ[name] = value
    crash = _high(os.open(place.crash, os.O_WRONLY | os.O_APPEND))
    faulthandler.enable(crash, all_threads=False)
    faulthandler.register(signal.SIGUSR1, crash, all_threads=False)
    _redirect(0, _source(invocation, place))
    _redirect(1, _sink(invocation.stdout, place.out))
    _redirect(2, _sink(invocation.stderr, place.err))
    if invocation.piped is not None:
        _pipe(invocation.piped)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if invocation.file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (invocation.file_limit, invocation.file_limit))
    _defer_interrupts()
    if invocation.homeless:
        shutil.rmtree(place.current)
    if invocation.unprivileged:
        if not invocation.homeless:
            os.chown(place.current, NOBODY, NOBODY)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    os.close(ready)


def _defer_interrupts() -> None:
    """Until the program answers interrupts itself they come again a little later, as if to a later moment."""

    def again(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)

    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.signal(signal.SIGINT, again)


def _high(number: int) -> int:
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, CRASHES)
    os.close(number)
    return moved


def _pipe(content: bytes) -> None:
    """A pipe that holds it all, which nobody writes to any more: as a shell's <(...) at its end."""
    out, into = os.pipe()
    os.write(into, content)
    os.close(into)
    os.dup2(out, PIPE, inheritable=True)
    os.close(out)


def _source(invocation: Invocation, place: Place) -> int | None:
    if invocation.stdin is Stream.CLOSED:
        return None
    if invocation.stdin is Stream.WRITABLE:
        return os.open("/dev/null", os.O_WRONLY)
    assert isinstance(invocation.stdin, bytes)
    given = place.root / "in"
    given.write_bytes(invocation.stdin)
    return os.open(given, os.O_RDONLY)


def _sink(stream: Stream, file: Path) -> int | None:
    if stream is Stream.CLOSED:
        return None
    if stream is Stream.FULL:
        return os.open("/dev/full", os.O_WRONLY)
    if stream is Stream.BROKEN:
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    return os.open(file, os.O_WRONLY | os.O_APPEND)


def _redirect(number: int, to: int | None) -> None:
    if to is None:
        with contextlib.suppress(OSError):
            os.close(number)
    else:
        os.dup2(to, number, inheritable=True)
        os.close(to)


def _exec(invocation: Invocation) -> NoReturn:
    """A process of its own, which does what the console script does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    module, function = entry_point().split(":")
    script = SCRIPT.format(root=str(ROOT), module=module, function=function)
    argv = [sys.executable, "-c", script, *invocation.argv]
    os.execv(sys.executable, [os.fsencode(each) for each in argv])


def _main(invocation: Invocation, loaded: Path | None) -> NoReturn:
    """The console script in this process, ended as Python ends one."""
    _streams()
    sys.setrecursionlimit(
        1000 + len(list(traceback.walk_stack(None)))
    )  # which hypothesis, further up, has raised
    sys.argv = ["attnscope", *invocation.argv]
    sys.path[0] = str(ROOT)
    module, function = entry_point().split(":")
    code, known = 0, set(sys.modules)
    try:
        sys.exit(getattr(importlib.import_module(module), function)())
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str) and sys.stderr:
            print(end.code, file=sys.stderr)
    except KeyboardInterrupt:
        traceback.print_exc()
        code = -signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 1
    if loaded is not None:
        loaded.write_text(
            "\n".join(
                name
                for name in sys.modules
                if name not in known and not name.startswith("transformers_modules")
            )
        )
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            code = 120 if stream is sys.stdout else code
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _streams() -> None:
    """`sys.stdin`, `stdout` and `stderr` as Python makes them at its start."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    in_c = (os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "C") in (
        "C",
        "POSIX",
    )
    lenient = errors or ("surrogateescape" if in_c else "strict")
    for number, name, mode, handler in (
        (0, "stdin", "r", lenient),
        (1, "stdout", "w", lenient),
        (2, "stderr", "w", "backslashreplace"),
    ):
        setattr(sys, name, _stream(number, mode, encoding or "utf-8", handler))
        setattr(sys, f"__{name}__", getattr(sys, name))


def _stream(number: int, mode: str, encoding: str, errors: str) -> io.TextIOWrapper | None:
    try:
        os.fstat(number)
    except OSError as error:
        if error.errno == errno.EBADF:
            return None
        raise
    binary = open(number, mode + "b", closefd=False)  # noqa: SIM115 - stays open to the end
    return io.TextIOWrapper(binary, encoding=encoding, errors=errors, line_buffering=number == 2)
