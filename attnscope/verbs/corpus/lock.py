"""Only one process works on a run at a time.

On this machine the system holds the lock, and it ends with its holder however that ends. Elsewhere it is a
file with a name that nobody else has, which its holder writes again and again. Who finds one waits for longer
than that takes, by a clock that does not jump, and takes over what nobody has written since. Should two work
on a run for a while after all, nothing is lost or counted twice: the same part has the same name.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from attnscope.errors import InputError
from attnscope.session.listener import Listener
from attnscope.verbs.corpus.store import NotWrittenError, Place

BEAT = 5.0  # seconds between two writes
SETTLED = 1.0  # seconds until what was written by two is what one of them wrote
_MISSED = 3  # beats


@contextmanager
def locked(place: Place, of: str, listener: Listener) -> Iterator[None]:
    """While open nobody else works on the run in the folder `of`; `InputError` where somebody does."""
    local = place.local
    with _flock(local, of) if local is not None else _lease(place, of, listener):
        yield


@contextmanager
def _flock(place: Path, of: str) -> Iterator[None]:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"'{of}' is no folder: name another with --run") from error
    except OSError as error:
        raise NotWrittenError(f"cannot write '{place}': {error.strerror or error}") from error
    try:
        if not _alone(handle, place):
            raise _another(of)
        yield
    finally:
        os.close(handle)


def _another(of: str) -> InputError:
    return InputError(f"another process works on '{of}': wait for it")


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
def _lease(place: Place, of: str, listener: Listener) -> Iterator[None]:
    mine, through = token_hex(16), threading.Event()
    with listener.working("looking whether another process works on it"):
        if (there := _read(place)) is not None:
            through.wait(_MISSED * BEAT)
            if _read(place) not in (there, None):
                raise _another(of)
        place.write(mine.encode())
        through.wait(SETTLED)
        if (_read(place) or b"").partition(b" ")[0] != mine.encode():
            raise _another(of)

    def beat() -> None:
        count = 0
        while not through.wait(BEAT):
            count += 1
            with suppress(InputError):  # of a network that is back at the next one
                place.write(f"{mine} {count}".encode())

    beating = threading.Thread(target=beat, daemon=True)
    beating.start()
    try:
        yield
    finally:
        through.set()
        beating.join()
        with suppress(InputError):
            place.remove()


def _read(place: Place) -> bytes | None:
    try:
        return place.read()
    except FileNotFoundError:
        return None
