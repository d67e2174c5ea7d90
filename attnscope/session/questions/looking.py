"""The weights of a head looked at otherwise: by words, or without special tokens."""

from attnscope.analysis.views.view import viewed
from attnscope.results import HeadView, HeadWeights
from attnscope.session.request import Looking


def look_at(head: HeadWeights, looking: Looking) -> HeadView | None:
    """The weights of `head` looked at otherwise; None where that is as they are."""
    return viewed(head, words=looking.words, special=looking.treatment) if looking.changes else None
