"""The explorer as a whole, on a terminal."""

import os

from rich.console import Console

from attnscope.explore.app import INTERRUPTED, Explorer, Notices
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.source import Source
from attnscope.explore.terminal import left_as_it_was, shows_pictures
from attnscope.render.terminal.ramps import Background
from attnscope.session.request import Inputs, ModelRequest, Wanted


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
