"""Ends the program on a signal, undoing temporary changes first.

Python answers Ctrl-C with an exception, which a library being imported may swallow or change, a destructor
prints and ignores, and which is a traceback while the program starts. So nothing is raised here: the handler
undoes what was registered with `undone_by_a_signal`, and ends the process. It is installed only by the
command; users of the library keep Python's own handler. Bugs are handled in `standard_error`.

This module is imported first and imports little, since an interrupt before it ends in Python's own way.
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

    Until then it is a new file beside `target` with a random name; it is removed on an error or a signal.
    Its permissions follow the umask.
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
