"""The one way to a terminal: a console that takes every text as text, and sends none that could steer it.

Only what rich itself sends moves the cursor or sets a colour. A sheet is harmless before it is laid out, so
that its widths are right; here it is made sure of for all that is printed.
"""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from attnscope.printable import LEFT_TO_RIGHT, printable

_OURS = "\n" + LEFT_TO_RIGHT


class Paper(Console):
    """A console without markup, emoji codes and highlighting."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(emoji=False, markup=False, highlight=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's, every text of it harmless."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, _OURS), segment.style)
