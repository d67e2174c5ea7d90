"""How weights, queries and keys are looked at: by words, without special tokens, by a name."""

import re
from collections.abc import Sequence

from attnscope.analysis.views.view import viewed
from attnscope.results import HeadView, HeadWeights
from attnscope.session.request import Looking
from attnscope.tokens import Tokens


def look_at(head: HeadWeights, looking: Looking) -> HeadView | None:
    """The weights of `head` looked at otherwise; None where that is as they are."""
    return viewed(head, words=looking.words, special=looking.treatment) if looking.changes else None


_TIME = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?s")


def position_of(tokens: Tokens, wanted: str) -> int:
    """Where what is named stands: a token, a patch (`r2c4`), a frame (`0.20s`, or a time within it)."""
    return tokens.position(frame_at(wanted, tokens.names))


def frame_at(wanted: str, names: Sequence[str]) -> str:
    """The frame that holds a time such as `7.77s`, as it is called; what is no time within them as it is."""
    starts = {float(name[:-1]): name for name in names if _TIME.fullmatch(name)}
    if wanted in names or not starts or not _TIME.fullmatch(wanted):
        return wanted
    time, every = float(wanted[:-1]), sorted(starts)
    step = every[1] - every[0] if len(every) > 1 else 0.0
    within = [start for start in every if start <= time < start + step + 1e-9]
    return starts[within[-1]] if within else wanted
