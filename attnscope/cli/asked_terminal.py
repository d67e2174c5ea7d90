"""The terminal is asked for its background, as those of Unix are: Windows has none of these calls.

Its answer is read with echo switched off, and its modes are put back whatever happens. Nothing that a user
has typed ahead is swallowed.
"""

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from attnscope.process.ending import undone_by_a_signal

if TYPE_CHECKING:
    from attnscope.render.terminal.ramps import Background

assert sys.platform != "win32"  # so mypy looks no further where it is asked about Windows

# the background, then what every terminal answers: where only that comes back, the first is not known
_QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
_COLOUR = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)")
_END = re.compile(rb"\x1b\[\?[0-9;]*c")
_PATIENCE = 0.4  # seconds; a terminal answers in a few milliseconds, one far away in a round trip
_MIDDLE = 0.5


answer: "Background | None" = None  # what it answered in this process, if it was asked


def asked() -> "Background":
    """What the terminal answers; unknown where there is none, it says nothing, or keys wait to be read."""
    global answer
    answer = answer or _asked()
    return answer


def _asked() -> "Background":
    with suppress(OSError, termios.error):
        place = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        try:
            return _told_by(place)
        finally:
            os.close(place)
    return "unknown"


def _told_by(place: int) -> "Background":
    if os.tcgetpgrp(place) != os.getpgrp():
        return "unknown"  # a program in the background would be stopped
    with _silent(place):
        if _readable(place, 0.0):
            return "unknown"
        os.write(place, _QUESTION)
        colour = _COLOUR.search(_answer(place))
    return "unknown" if colour is None else _of_colour(*colour.groups())


def _of_colour(*parts: bytes) -> "Background":
    """By its lightness as the eye has it; each part is hexadecimal, of one to four digits."""
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in parts)
    return "light" if 0.299 * red + 0.587 * green + 0.114 * blue > _MIDDLE else "dark"


def _answer(place: int) -> bytes:
    """All that comes up to the end that every terminal sends, or as much as comes in time."""
    answer, until = b"", time.monotonic() + _PATIENCE
    while not _END.search(answer) and _readable(place, until - time.monotonic()):
        answer += (more := os.read(place, 1024))
        if not more:
            break
    return answer


def _readable(place: int, seconds: float) -> bool:
    return bool(select.select([place], [], [], max(seconds, 0.0))[0])


@contextmanager
def _silent(place: int) -> Iterator[None]:
    """The terminal hands out every byte at once and shows none, until its own modes are back."""
    before = termios.tcgetattr(place)

    def restore() -> None:
        termios.tcsetattr(place, termios.TCSANOW, before)

    with undone_by_a_signal(restore):
        try:
            tty.setcbreak(place, termios.TCSANOW)
            yield
        finally:
            restore()
