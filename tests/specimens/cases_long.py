"""A result for every case and every optional part of what `heads` says of one head of a long text."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_results as made
import numpy as np

from attnscope.render.sheets import Focus, long
from attnscope.results import Kind, LongHead, SpecialMass, Verdict
from attnscope.results.long import Case
from attnscope.vocabulary import Pool


def weights(tokens: int = 23) -> np.ndarray:
    """Causal rows that sum to 1."""
    random = np.random.default_rng(3)
    allowed = np.tril(np.ones((tokens, tokens), bool))
    return made.softmax(2 * random.normal(size=allowed.shape), allowed)


def long_head(
    *,
    step: int = 4,
    zoom: tuple[int, int, int, int] | None = None,
    query: int | None = None,
    pool: Pool = Pool.MEAN,
    tokens: int = 23,
    verdict: Verdict = Verdict.CERTIFIED,
) -> LongHead:
    """In blocks of `step`, or a `zoom` (first query, first key, queries, keys) pair by pair."""
    dense = weights(tokens)
    allowed = np.tril(np.ones(dense.shape, bool))
    top, left, rows, columns = zoom or (0, 0, tokens, tokens)
    step = 1 if zoom else step
    mean, largest, pairs = [[], [], []]
    for i in range(top, top + rows, step):
        for kept in (mean, largest, pairs):
            kept.append([])
        for j in range(left, left + columns, step):
            place = slice(i, min(i + step, top + rows)), slice(j, min(j + step, left + columns))
            there = dense[place][allowed[place]]
            mean[-1].append(there.mean() if there.size else np.nan)
            largest[-1].append(there.max() if there.size else np.nan)
            pairs[-1].append(there.size)
    plain = np.where(allowed, dense, 0.0)
    order = np.argsort(-plain, axis=1, kind="stable")[:, :5]
    best = np.take_along_axis(plain, order, axis=1)
    text = made.tokens([*made.DOOR, *(f"w{i}" for i in range(len(made.DOOR), tokens))][:tokens])
    return LongHead(
        layer=2,
        head=1,
        kind=Kind.DECODER,
        heads=4,
        layers=6,
        query_tokens=text,
        key_tokens=text,
        first=(top, left),
        size=(rows, columns),
        steps=(step, step),
        pool=pool,
        mean=np.array(mean),
        largest=np.array(largest),
        pairs=np.array(pairs),
        entropy=-(plain * np.log(np.where(plain > 0, plain, 1))).sum(1),
        top_keys=np.where(best > 0, order, -1),
        top_weights=np.where(best > 0, best, np.nan),
        module="layers.2.attention",
        certificate=made.certificate(verdict),
        sampled=16,
        provenance=made.provenance(),
        special_mass=SpecialMass(0.25, {"[CLS]": 0.25}),
        query=query,
        row=None if query is None else plain[query],
        notes=("in tiles: held against 16 rows in full and the output of all 23",),
    )


SAID, CASES = long.said, Case

EXAMPLES: dict[str, Callable[[], LongHead] | tuple[Callable[[], LongHead], Focus]] = {
    "spread": long_head,
    "spread of a decoder": lambda: replace(long_head(pool=Pool.MAX), kind=Kind.CROSS, blocks=2),
    "spread, an encoder without special tokens": lambda: replace(
        long_head(), kind=Kind.ENCODER, special_mass=None
    ),
    "few queries listed": (long_head, Focus(rows=5)),
    "a window": partial(long_head, zoom=(5, 3, 9, 8)),
    "row": partial(long_head, query=12),
    "row of one key": partial(long_head, query=0),
    "row of a decoder": lambda: replace(long_head(query=12), kind=Kind.CROSS),
    "row of many keys": partial(long_head, query=39, tokens=40),
    "row without keys": lambda: replace(long_head(query=12), row=np.full(23, np.nan)),
    "no key": lambda: replace(long_head(), entropy=np.full(23, np.nan), top_keys=np.full((23, 5), -1)),
}
