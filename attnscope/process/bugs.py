"""A bug is told by its traceback, which steers no terminal, whatever its message and its source lines hold.

Python prints the message of an exception, its notes, the lines of code and the names of threads as they are.
Here they pass the one printer first. Line ends and tabs stay: they are how a traceback is laid out.
"""

import sys
import threading
import traceback
from types import TracebackType
from typing import Any

from attnscope.printable import printable

_LAID_OUT = "\n\t"


def tell_bugs_harmlessly() -> None:
    """From here on, of what nobody catches: in the program, in its threads, and where an object is freed."""
    sys.excepthook = _tell
    threading.excepthook = _in_a_thread
    sys.unraisablehook = _while_freeing


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _write("".join(traceback.format_exception(kind, error, trace)))


def _in_a_thread(given: Any) -> None:
    if not issubclass(given.exc_type, SystemExit):  # with which a thread may end
        name = "" if given.thread is None else f" {given.thread.name}"
        told = traceback.format_exception(given.exc_type, given.exc_value, given.exc_traceback)
        _write(f"Exception in thread{name}:\n" + "".join(told))


def _while_freeing(given: Any) -> None:
    told = traceback.format_exception(given.exc_type, given.exc_value, given.exc_traceback)
    _write(f"{given.err_msg or 'Exception ignored in'}: {given.object!r}\n" + "".join(told))


def _write(told: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(printable(told, _LAID_OUT))
        sys.stderr.flush()
