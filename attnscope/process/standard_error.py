"""Standard error: silences native libraries, and prints tracebacks without control characters.

Python prints an exception's message, notes, code lines and thread names unchanged; here they pass
`printable` first. Line ends and tabs stay, since they lay out the traceback.
"""

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any

from attnscope.printable import printable
from attnscope.process.ending import undone_by_a_signal

_LINE_ENDS_AND_TABS = "\n\t"


@contextmanager
def hushed() -> Iterator[None]:
    """Context manager: discards native writes to standard error; Python's own still arrive."""
    python = sys.stderr
    with suppress(OSError, ValueError):
        python.flush()
    try:
        kept = os.dup(2)
    except OSError:  # it is closed: nobody hears anything
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    restore = partial(os.dup2, kept, 2)
    with undone_by_a_signal(restore):
        try:
            if _is_standard_error(python):
                sys.stderr = os.fdopen(os.dup(kept), "w", buffering=1, encoding=python.encoding)
            os.dup2(nowhere, 2)
            yield
        finally:
            restore()
            sys.stderr = python  # the other one is left open: a bar may be writing to it right now
            os.close(nowhere)
            os.close(kept)


def _is_standard_error(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == 2)
    except (OSError, ValueError, AttributeError):
        return False


def show_bugs_harmlessly() -> None:
    """Installs exception hooks (program, threads, destructors) that escape control characters."""
    sys.excepthook = _write_traceback
    threading.excepthook = _of_a_thread
    sys.unraisablehook = _while_freeing


def _write_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _write("".join(traceback.format_exception(kind, error, trace)))


def _of_a_thread(given: Any) -> None:
    if not issubclass(given.exc_type, SystemExit):  # with which a thread may end
        name = "" if given.thread is None else f" {given.thread.name}"
        lines = traceback.format_exception(given.exc_type, given.exc_value, given.exc_traceback)
        _write(f"Exception in thread{name}:\n" + "".join(lines))


def _while_freeing(given: Any) -> None:
    lines = traceback.format_exception(given.exc_type, given.exc_value, given.exc_traceback)
    _write(f"{given.err_msg or 'Exception ignored in'}: {given.object!r}\n" + "".join(lines))


def _write(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(printable(text, _LINE_ENDS_AND_TABS))
        sys.stderr.flush()
