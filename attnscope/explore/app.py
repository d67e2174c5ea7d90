"""The explorer as one program of Textual: all that its keys do, on one board.

Nothing is computed here, and nothing slow runs on this thread: the model is opened and asked on others.
"""

from attnscope.explore.screen.messages import Notices
from attnscope.explore.screen.moving import Moving
from attnscope.explore.screen.viewing import Viewing
from attnscope.explore.screen.writing import Writing

INTERRUPTED = "interrupted"


class Explorer(Moving, Viewing, Writing):
    """A key changes the state, the state says what is asked, answers are drawn on the board."""

    CSS_PATH = "explore.tcss"

    def action_leave(self) -> None:
        self.exit()

    def action_interrupt(self) -> None:
        self.exit(INTERRUPTED)


__all__ = ["INTERRUPTED", "Explorer", "Notices"]
