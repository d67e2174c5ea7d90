"""How the program shows a bug: by its traceback, which steers no terminal.

Python prints the message of an exception, its notes, the lines of code and the names of threads as they are;
here they pass the one printer first. Line ends and tabs stay: they are how a traceback is laid out.
"""

import sys
import threading
import traceback
from types import TracebackType
from typing import Any

from attnscope.printable import printable

_LINE_ENDS_AND_TABS = "\n\t"


def show_bugs_harmlessly() -> None:
    """From here on, what nobody catches in the program, in its threads or where an object is freed."""
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
