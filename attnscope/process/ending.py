"""Ends the program on a signal, undoing temporary changes first.

Python answers Ctrl-C with an exception. A library that is being imported may swallow it or make another
error of it, a destructor prints it and goes on, and before the program stands it is a traceback. So nothing
is raised here: the handler clears away what was announced to `undone_by_a_signal`, and ends the process. It
is in force only where the program is the process; who uses the library keeps Python's own answer.

This is imported before all else, and until it is an interrupt ends in Python's own way: so it imports little.
"""

import os
import signal
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # as `typing` has it, whose import alone takes longer than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

INTERRUPTED = 130
UNFINISHED = ".part"  # what the name of a file ends in that is not whole yet, and begins with a dot
_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # not all of them everywhere
_to_undo: "list[Callable[[], object]]" = []
_to_say: "list[str]" = []


@contextmanager
def undone_by_a_signal(undo: "Callable[[], object]") -> "Iterator[None]":
    """Context manager: a signal that ends the program calls `undo` first."""
    _to_undo.append(undo)
    try:
        yield
    finally:
        _to_undo.remove(undo)


@contextmanager
def said_when_interrupted(words: str) -> "Iterator[None]":
    """Context manager: an interrupt that ends the program adds `words` to its message."""
    _to_say.append(words)
    try:
        yield
    finally:
        _to_say.remove(words)


@contextmanager
def temporary_folder() -> "Iterator[str]":
    """Context manager: a temporary folder, removed at the end and on a signal."""
    import shutil
    import tempfile
    from functools import partial

    folder = tempfile.mkdtemp()
    with undone_by_a_signal(remove := partial(shutil.rmtree, folder, ignore_errors=True)):
        try:
            yield folder
        finally:
            remove()


@contextmanager
def written_whole(target: "Path") -> "Iterator[BinaryIO]":
    """Context manager: a file for writing that replaces `target` in one step, and only without an error.

    Until then it is a new file beside `target`, under a name that nobody foresees and that leads nowhere
    else; it goes where this ends by an error or a signal. Who may read it is what the umask says.
    """
    part = target.with_name(unfinished_name())
    with undone_by_a_signal(part.unlink), open(part, "xb") as file:
        try:
            yield file
            file.close()
            os.replace(part, target)
        except BaseException:
            file.close()
            with suppress(OSError):
                part.unlink()
            raise


def unfinished_name() -> str:
    """A random hidden name for a temporary file."""
    return f".{os.urandom(16).hex()}{UNFINISHED}"


def answer_signals() -> None:
    """Installs the handlers for signals that end a program, except for ignored ones."""
    for name in _STOPPING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, _: object) -> None:
    """Signal handler: on an interrupt prints a line and exits with 130; on others dies by that signal."""
    for name in _STOPPING:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    for undo in reversed(_to_undo):
        with suppress(OSError):
            undo()
    if number == signal.SIGINT:
        with suppress(OSError):
            said = ": ".join(["attnscope", "interrupted", *_to_say])
            os.write(2, f"{said}\n".encode("utf-8", "backslashreplace"))
        os._exit(INTERRUPTED)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
