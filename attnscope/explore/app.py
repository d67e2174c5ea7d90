"""The explorer as one program of Textual: all that its keys do, on one board.

Nothing is computed here, and nothing slow runs on this thread: the model is opened and asked on others.
"""

import os

from rich.console import Console

from attnscope.explore.drawing.surface import Surface
from attnscope.explore.screen.messages import Notices
from attnscope.explore.screen.viewing import Moving, Viewing
from attnscope.explore.screen.writing import Writing
from attnscope.explore.source import Source
from attnscope.explore.terminal import left_as_it_was, shows_pictures
from attnscope.render.terminal.ramps import Background
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

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
    pixels = shows_pictures(os.environ)
    surface = Surface(screen.color_system, background, screen.no_color, pixels)
    explorer = Explorer(source, notices, surface)
    with left_as_it_was():
        ended = explorer.run()
    if ended == INTERRUPTED:
        raise KeyboardInterrupt
    if explorer.return_code:
        raise SystemExit(explorer.return_code)
    return explorer.commands
