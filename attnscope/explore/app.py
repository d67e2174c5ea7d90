"""The explorer as one program of Textual: all that its keys do, on one board.

Nothing is computed here, and nothing slow runs on this thread: the model is opened and asked on others. Keys
come from the terminal also where the text was piped in, and it is left as it was.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console

from attnscope.errors import InputError
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.screen.basis import Notices
from attnscope.explore.screen.viewing import Moving, Viewing
from attnscope.explore.screen.writing import Writing
from attnscope.explore.source import Source
from attnscope.process.ending import undone_by_a_signal
from attnscope.render.terminal.console import Background
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

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
_LEFT = b"".join(b"\x1b[" + mode for mode in _MODES)


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


def _restoring() -> Callable[[], object]:
    """What puts the terminal back as it is now."""
    if sys.platform == "win32":
        return lambda: None
    import termios

    place = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
    before = termios.tcgetattr(place)

    def restore() -> None:
        with suppress(OSError):
            os.write(2, _LEFT)
        with suppress(termios.error):
            termios.tcsetattr(place, termios.TCSANOW, before)

    return restore


INTERRUPTED = "interrupted"


class Explorer(Moving, Viewing, Writing):
    """A key changes the state, the state says what is asked, answers are drawn on the board."""

    CSS_PATH = "explore.tcss"

    def action_leave(self) -> None:
        self.exit()

    def action_interrupt(self) -> None:
        self.exit(INTERRUPTED)


__all__ = ["INTERRUPTED", "Explorer", "Notices"]


def run(
    request: ModelRequest, inputs: Inputs, wanted: Wanted, screen: Console, background: Background
) -> list[str]:
    """Explore until it is left; the commands that were asked for. `screen` says how deep colours are.

    Raises `KeyboardInterrupt` where it was interrupted, and `SystemExit` after a mistake of our own, whose
    traceback Textual has shown.
    """
    notices = Notices()
    source = Source(request, inputs, wanted, notices)
    surface = Surface(screen.color_system, background, screen.no_color)
    explorer = Explorer(source, notices, surface)
    with undone_by_a_signal(_restoring()):  # where it ends by itself Textual does so
        ended = explorer.run()
    if ended == INTERRUPTED:
        raise KeyboardInterrupt
    if explorer.return_code:
        raise SystemExit(explorer.return_code)
    return explorer.commands
