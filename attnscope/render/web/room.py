"""Extra content of a page, and the estimated size of a page of weights.

The size is estimated from tokens, layers and heads before any model runs. Beyond `DENSE_BYTES` a page holds
the `KEPT` largest weights of each row, and says what share they are. A page may become a quarter larger than
estimated; beyond that it is refused.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from attnscope.errors import InputError
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
    """Extra content of a page: heads in full, the command, other results, and the first link.

    `full` are heads of the same run with queries and keys; `command` is "" where none was typed. `heads` are
    the results whose weights a ranking or a comparison is made of: one for each side of a comparison, else at
    most one. `opening` is the link that a page of heads opens on, if already known. `laid` is a report's head
    over its picture or sound. `fragment` is true for a page inside another page.
    """

    full: tuple[HeadAttention, ...] = field(default=())
    command: str = ""
    heads: tuple[Result, ...] = field(default=())
    opening: Opening | None = None
    laid: Laid | None = None
    fragment: bool = False


NOTHING = Beside()


MOST_BYTES = 20_000_000  # estimated size up to which a page is made
HARD_BYTES = 25_000_000  # actual size up to which a page is written
DENSE_BYTES = 9_000_000  # of the weights of many heads up to which all are kept
KEPT = 64  # weights of a row beyond that
FINE_TOKENS = 110  # up to which weights have 16 bits, where there is room for them
_EXACT = 4.8  # bytes of a weight of a head alone
_FRAME = 90_000  # bytes of style, script, certificates and tables


def expected_bytes(heads: int, queries: int, keys: int, *, causal: bool) -> float:
    """Estimated bytes of a page of so many heads, from pages of MiniLM (benchmarks/page.py).

    The weights of a longer text take less each, since more of them are small; masked ones take nearly
    nothing.
    """
    longest, seen = max(queries, keys), heads * queries * keys * (0.5 if causal else 1.0)
    if heads == 1:
        return _EXACT * seen + _FRAME
    fine, sparing = seen * 2.1, seen * 4.6 / longest**0.457
    dense = fine if longest <= FINE_TOKENS and fine <= DENSE_BYTES else sparing
    if dense > DENSE_BYTES and keys > KEPT:
        dense = min(dense, heads * queries * (80 + 14 * math.log2(longest / 500)))
    return float(dense) + _FRAME


def fits(layers: int, heads: int, queries: int, keys: int, causal: bool) -> bool:
    """True where a page of all these heads is estimated to be small enough."""
    return expected_bytes(layers * heads, queries, keys, causal=causal) <= MOST_BYTES


def check_room(layers: int, heads: int, queries: int, keys: int, causal: bool) -> None:
    """Raise `InputError` for a page estimated larger than `MOST_BYTES`, with what to leave out."""
    size = expected_bytes(layers * heads, queries, keys, causal=causal)
    if size > MOST_BYTES:
        extent = queries, keys, causal
        instead = what_fits(layers * heads, *extent)
        raise InputError(too_large(f"about {size / 1e6:.0f}", layers * heads, max(queries, keys), instead))


def both_fit(sides: Sequence[tuple[int, int, int, int, bool]]) -> bool:
    """True where a page of two readings has room for all heads, and for one of each in full.

    `InputError` where even one head of each does not fit.
    """
    alone = sum(expected_bytes(1, *side[2:4], causal=side[4]) for side in sides)
    if alone > MOST_BYTES:
        tokens, limit = max(max(side[2:4]) for side in sides), f"{MOST_BYTES / 1e6:.0f} MB"
        told = f"a page of one head a side over {tokens} tokens would have about {alone / 1e6:.0f} MB"
        raise InputError(f"{told}, more than the {limit} that open quickly: shorten the texts")
    every = sum(expected_bytes(side[0] * side[1], *side[2:4], causal=side[4]) for side in sides)
    return alone + every <= MOST_BYTES


def what_fits(heads: int, queries: int, keys: int, causal: bool) -> str:
    """Advice for a page that is too large: fewer heads, or a shorter text."""
    fewer = (n for n in range(heads - 1, 0, -1) if fits(1, n, queries, keys, causal))
    if found := next(fewer, 0):
        return room_for(found)
    longest = math.isqrt(int((MOST_BYTES - _FRAME) / _EXACT * (2 if causal else 1)))
    return f"shorten the text to about {longest // 100 * 100:,} tokens for one head"


def room_for(heads: int) -> str:
    """Advice that `heads` heads would fit, or a shorter text."""
    few = "one head has" if heads == 1 else f"{heads} heads have"
    return f"{few} room (--layer, --head), or shorten the text"


def too_large(size: str, heads: int, tokens: int, instead: str) -> str:
    """Error text for a page of `size` MB that is refused."""
    whose, limit = "one head" if heads == 1 else f"{heads} heads", f"{MOST_BYTES / 1e6:.0f} MB"
    told = f"a page of {whose} over {tokens} tokens would have {size} MB"
    return f"{told}, more than the {limit} that open quickly: {instead}"
