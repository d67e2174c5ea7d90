"""What a page may hold beside its result: the weights of the heads that it is about, and what was typed."""

from dataclasses import dataclass, field

from attnscope.results import HeadAttention, Result
from attnscope.results.base.evidence import Opening


@dataclass(frozen=True, eq=False)
class Beside:
    """`full` are heads of the same run with queries and keys; `command` is "" where nobody typed one.

    `heads` are the results whose weights a ranking or a comparison is made of: of a comparison one for each
    side, else at most one. `opening` is the link that a page of heads opens on, where it was sought already.
    """

    full: tuple[HeadAttention, ...] = field(default=())
    command: str = ""
    heads: tuple[Result, ...] = field(default=())
    opening: Opening | None = None


NOTHING = Beside()
