"""The explorer as a whole: on a terminal, which is left as it was however this ends."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console

from attnscope.ending import undone_by_a_signal
from attnscope.explore.app import INTERRUPTED, Explorer, Notices
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.source import Source
from attnscope.render.terminal.ramps import Background
from attnscope.session.request import Inputs, ModelRequest, Wanted

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


def run(
    request: ModelRequest, inputs: Inputs, wanted: Wanted, screen: Console, background: Background
) -> list[str]:
    """Explore until it is left; the commands that were asked for. `screen` says how deep colours are.

    Raises `KeyboardInterrupt` where it was interrupted.
    """
    notices = Notices()
    source = Source(request, inputs, wanted, notices)
    explorer = Explorer(source, notices, Surface(screen.color_system, background, screen.no_color))
    with _terminal_left_as_it_was():
        ended = explorer.run()
    if ended == INTERRUPTED:
        raise KeyboardInterrupt
    if explorer.return_code:
        _end(explorer.return_code)  # Textual has shown the traceback of our own mistake
    return explorer.commands


@contextmanager
def _terminal_left_as_it_was() -> Iterator[None]:
    """Textual puts the terminal back where it ends by itself; here a signal does so too."""
    restore = _restoring()
    with undone_by_a_signal(restore):
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


def _end(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
