"""What a page may hold beside its result: the weights of the heads that it is about, and what was typed."""

from dataclasses import dataclass, field

from attnscope.results import (
    HeadAttention,
    PictureAttention,
    PictureHeads,
    Result,
    SoundAttention,
    SoundHeads,
)
from attnscope.results.base.evidence import Opening

Laid = PictureAttention | PictureHeads | SoundAttention | SoundHeads


@dataclass(frozen=True, eq=False)
class Beside:
    """`full` are heads of the same run with queries and keys; `command` is "" where nobody typed one.

    `heads` are the results whose weights a ranking or a comparison is made of: of a comparison one for each
    side, else at most one. `opening` is the link that a page of heads opens on, where it was sought already.
    `laid` is a report's head over the picture or the sound that was read.
    `fragment` says that it stands inside another page, without a frame of its own.
    """

    full: tuple[HeadAttention, ...] = field(default=())
    command: str = ""
    heads: tuple[Result, ...] = field(default=())
    opening: Opening | None = None
    laid: Laid | None = None
    fragment: bool = False


NOTHING = Beside()
