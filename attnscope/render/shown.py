"""The door to `screen` for who shows one result and ends: for a head no rooms of others are opened."""

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.head.shown import Lines, head_shown
from attnscope.results import HeadView, HeadWeights, Result


def screen(result: Result, width: int, focus: Focus = WHOLE) -> Lines:
    """All that a terminal of `width` cells shows of a result, part by part from the top."""
    if isinstance(result, HeadWeights | HeadView):
        return head_shown(result, width, focus)
    from attnscope.render.screen import screen as of_any

    return of_any(result, width, focus)
