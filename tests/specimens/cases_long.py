"""A result for every case and every optional part of what `heads` says of one head of a long text."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_long_heads as made
import numpy as np

from attnscope.render.focus import Focus
from attnscope.render.sheets import long
from attnscope.results import Kind, LongHead
from attnscope.results.long import Case
from attnscope.vocabulary import Pool

SAID, CASES = long.said, Case

EXAMPLES: dict[str, Callable[[], LongHead] | tuple[Callable[[], LongHead], Focus]] = {
    "spread": made.long_head,
    "spread of a decoder": lambda: replace(made.long_head(pool=Pool.MAX), kind=Kind.CROSS, blocks=2),
    "spread, an encoder without special tokens": lambda: replace(
        made.long_head(), kind=Kind.ENCODER, special_mass=None
    ),
    "few queries listed": (made.long_head, Focus(rows=5)),
    "a window": partial(made.long_head, zoom=(5, 3, 9, 8)),
    "row": partial(made.long_head, query=12),
    "row of one key": partial(made.long_head, query=0),
    "row of a decoder": lambda: replace(made.long_head(query=12), kind=Kind.CROSS),
    "row of many keys": partial(made.long_head, query=39, tokens=40),
    "row without keys": lambda: replace(made.long_head(query=12), row=np.full(23, np.nan)),
    "no key": lambda: replace(made.long_head(), entropy=np.full(23, np.nan), top_keys=np.full((23, 5), -1)),
}
