"""The terminal: keys come from it also where the text was piped in, and it is left as it was."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from attnscope.ending import undone_by_a_signal
from attnscope.errors import InputError

# out of the alternate screen, cursor, wrapping, mouse, pasting and keys as they were
_MODES = (
    b"?1049l",
    b"?25h",
    b"?7h",
    b"?1000l",
    b"?1003l",
    b"?1015l",
    b"?1006l",
    b"?2004l",
    b"?1004l",
    b"<u",
    b"0m",
)
_LEFT = b"".join(b"\x1b[" + each for each in _MODES)


def keys_from_the_terminal() -> None:
    """Standard input, which was read to its end, becomes the terminal; `InputError` where there is none."""
    try:
        there = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise InputError(
            "explore needs a terminal to read keys from, and found none behind the piped text: "
            "give the text itself"
        ) from error
    os.dup2(there, 0)
    os.close(there)


@contextmanager
def left_as_it_was() -> Iterator[None]:
    """Textual puts the terminal back where it ends by itself; here a signal does so too."""
    with undone_by_a_signal(_restoring()):
        yield


def _restoring() -> Callable[[], object]:
    try:
        import termios
    except ImportError:  # not on Windows
        return lambda: None
    place = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
    before = termios.tcgetattr(place)

    def restore() -> None:
        with suppress(OSError):
            os.write(2, _LEFT)
        with suppress(termios.error):
            termios.tcsetattr(place, termios.TCSANOW, before)

    return restore
