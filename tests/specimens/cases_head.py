"""A result for every case and every optional part of what `heads` says of one head, or of a query of it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_results as made
import made_stored
import numpy as np
from cases_heads import PLAIN

from attnscope.analysis.heads.view import viewed
from attnscope.render.kit.stage import SHOWS
from attnscope.render.sheets import Focus, head
from attnscope.results import HeadAttention, HeadView, HeadWeights, Kind, Special
from attnscope.results.heads import Case
from attnscope.vocabulary import Unit

SAID, CASES = head.said, Case


def shifted(offset: int, names: list[str] = PLAIN) -> HeadAttention:
    """A head that looks so far from each query."""
    weights = 0.02 + np.roll(np.eye(len(names)), offset, axis=1)
    return made.head(names, weights=weights / weights.sum(axis=1, keepdims=True))


def on(*keys: int, names: list[str] = made.DOOR, weight: float = 0.9, **changed: object) -> HeadAttention:
    """A head that leaves so much of every row on the first of these keys, each less than the one before."""
    weights = made.head(names).weights * (1 - weight)
    for key, share in zip(keys, np.array([0.8, 0.2]) if len(keys) > 1 else [1.0], strict=True):
        weights[:, key] += weight * share
    return made.head(names, weights=weights, **changed)


def row(
    *weights: float, key: int | None = None, **changed: object
) -> tuple[Callable[[], HeadWeights], Focus]:
    """The second query of three tokens, with these weights."""
    text = ["I", "the", "saw"]
    return partial(made.head, text, weights=np.tile(weights, (3, 1)), **changed), Focus(queries=(1,), key=key)


def sentences(**changed: object) -> HeadView:
    return viewed(replace(made_stored.of_sentences(), **changed), by=Unit.SENTENCE, special=Special.SHOW)


EVEN = np.full((10, 10), 0.1)
VIEWS = {special: partial(viewed, made.head(), special=special) for special in Special}
EXAMPLES: dict[str, Callable[[], HeadWeights | HeadView] | tuple[Callable[[], HeadWeights | HeadView], Focus]]
EXAMPLES = {
    "link": made.head,
    "link by place": partial(shifted, -1),
    "link, causal": partial(made.head, PLAIN, causal=True),
    "link of a decoder": partial(made.head, key_names=made.DOOR[:5]),
    "link, much on special tokens": partial(on, 12, 0, weight=0.45),
    "link, much on one token and on each itself": lambda: replace(
        head := on(3, names=PLAIN, weight=0.3), weights=head.weights * 0.5 + 0.5 * np.eye(11)
    ),
    "link of a mean": lambda: replace(made.head(), head=-1),
    **{f"special tokens: {special}": make for special, make in VIEWS.items()},
    "taken up": partial(on, 3, names=PLAIN),
    "taken up by special tokens": partial(on, 12, 0),
    "taken up by one special token": partial(on, 0, names=made.DOOR[:-1]),
    "by sentences": sentences,
    "by sentences, no more than their lengths": partial(sentences, weights=EVEN),
    "by sentences of a decoder": partial(sentences, weights=EVEN, kind=Kind.CROSS),
    "no key": partial(made.head, ["a", "b"], empty=(0, 1)),
    "no key left": lambda: viewed(made.head(["[CLS]", "a"], weights=np.eye(2)[[0, 0]]), special=Special.HIDE),
    **{f"stage {stage}": (made.head, Focus(stage=stage)) for stage in SHOWS},
    "scaled of a token": (made.head, Focus(stage="scaled", queries=(2,))),
    "output of a token": (made.head, Focus(stage="output", queries=(2,))),
    "scores, capped": (partial(made.head, softcap=30.0), Focus(stage="scaled")),
    "many queries": (partial(made.head, made.DOOR * 2), Focus(rows=5)),
    "many queries, one token": (partial(on, 3, names=PLAIN), Focus(rows=5)),
    "many queries of a decoder": (partial(made.head, key_names=made.DOOR[:5]), Focus(rows=5)),
    "row, little on others": row(0.0031, 0.98, 0.02),
    "row, nearly nothing on others": row(0.0031, 0.98, 0.004),
    "row, three keys": row(0.21, 0.6, 0.1),
    "row, a key asked for": row(0.21, 0.6, 0.1, key=2),
    "row, a key with nearly nothing": row(0.0031, 0.9, 0.004, key=0),
    "row of few terms": (partial(made.head, ["I", "the", "saw"]), Focus(queries=(1,), stage="output")),
    "row, masked": (partial(made.head, causal=True), Focus(queries=(2,), key=5)),
    "row of a decoder": (partial(made.head, key_names=made.DOOR[:5]), Focus(queries=(2,))),
    "row of many keys": (partial(made.head, made.DOOR * 3), Focus(queries=(2,))),
    "row with a sink": (made_stored.sinking, Focus(queries=(2,))),
    "row without keys": (partial(made.head, empty=(2,)), Focus(queries=(2,))),
    "row of which nothing is left": (
        lambda: viewed(made.head(["[CLS]", "a"], weights=np.eye(2)[[0, 0]]), special=Special.HIDE),
        Focus(queries=(0,)),
    ),
    "returned": made_stored.returned,
}
