"""A result for every case and every optional part of what `heads` says of several heads."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import made_results as made
import numpy as np

from attnscope.analysis.heads.overview import viewed_overview
from attnscope.analysis.heads.view import aimed, links
from attnscope.render.sheets import Focus, overview
from attnscope.results import Kind, Overview, Special
from attnscope.results.overview import Case
from attnscope.vocabulary import Unit

SAID, CASES = overview.said, Case
PLAIN = made.DOOR[1:-1]  # without special tokens


def of_weights(weights: np.ndarray, names: list[str] = made.DOOR, kind: Kind = Kind.ENCODER) -> Overview:
    """Heads with these weights, layer by head by query by key."""
    plain, text = made.overview(*weights.shape[:2], names), made.tokens(names)
    rows = [list(layer) for layer in weights]
    spread = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1).mean(-1)
    measured = {"entropy": made.scores("entropy", spread, len(names))}
    found = links(rows, text, text, kind)
    return replace(plain, kind=kind, weights=tuple(map(tuple, weights)), scores=measured, **found)


def sharp(kind: Kind = Kind.ENCODER, *keys: int | None, names: list[str] = made.DOOR) -> Overview:
    """2 x 3 heads that look everywhere, but for the first: at a key each, or at the token before (None)."""
    count = len(names)
    weights = np.ones((2, 3, count, count))
    for head, key in zip(np.ndindex(2, 3), keys, strict=False):
        weights[*head, :, 0 if key is None else key] += 300 if key is not None else 0
        if key is None:
            weights[head] += 300 * np.eye(count, k=-1)
    weights = np.tril(weights) if kind is Kind.DECODER else weights
    return of_weights(weights / weights.sum(-1, keepdims=True), names, kind)


def far(*offsets: int) -> Overview:
    """A head each that looks so far from each query."""
    weights = np.array([[0.01 + np.roll(np.eye(13), offset, axis=1) for offset in offsets]])
    return of_weights(weights / weights.sum(-1, keepdims=True))


def measured(*names: str, **changed: object) -> Overview:
    found = made.measured(made.overview(2, 3), *names)
    main = replace(found.main, **changed)
    return replace(found, scores={**found.scores, main.measure: main})


def pair(query: int, key: int, **changed: object) -> Overview:
    return replace(aimed(made.overview(2, 3), query, key), **changed)


def sentences() -> Overview:
    names = ["[CLS]", "A", "dog", "slept", ".", "It", "sat", ".", "[SEP]"]
    return viewed_overview(made.overview(2, 3, names), by=Unit.SENTENCE, special=Special.SHOW)


EVEN = np.full((2, 3), 0.08)
EXAMPLES: dict[str, Callable[[], Overview] | tuple[Callable[[], Overview], Focus]] = {
    "focused": partial(made.overview, 2, 3),
    "focused, many layers": partial(made.overview, 16, 2),
    "focused, by place": partial(sharp, Kind.ENCODER, None),
    "focused, at each distance": partial(far, 0, 1, -1, 2, -2, 1),
    "focused, causal": partial(sharp, Kind.DECODER, None, names=PLAIN),
    "focused, one head": partial(far, 2),
    "focused, the sharper look at special tokens": partial(sharp, Kind.ENCODER, 0, 0, 0, 12, 0),
    "focused, the sharper look at one token": partial(sharp, Kind.ENCODER, 3, 3, names=PLAIN),
    "focused, the sharper look at one token each": partial(sharp, Kind.ENCODER, 3, 0, 4),
    "focused, across": lambda: replace(made.overview(2, 3), kind=Kind.CROSS),
    "focused, passed over": partial(made.overview, 12, 12),
    "focused by sentences": sentences,
    "measured": partial(measured, "distance", "self"),
    "measured, a classical order": lambda: measured("previous", even_attention=EVEN),
    "measured, of an answer": lambda: measured("previous", control=EVEN),
    "measured, links of all tokens": lambda: replace(measured("self"), aside=None),
    "measured, many heads": lambda: made.measured(made.overview(12, 12), "self"),
    "measured, one head": lambda: measured("self", values=np.where(np.arange(6).reshape(2, 3), np.nan, 0.4)),
    "measured, no key": lambda: replace(measured("self"), strongest=np.full((2, 3, 2), -1)),
    "classes": lambda: replace(
        made.overview(2, 3), scores={"pattern": made.scores("pattern", np.array([[0, 2, 4], [2, 2, np.nan]]))}
    ),
    "query": lambda: aimed(made.overview(2, 3), 8),
    "query of a decoder": lambda: aimed(replace(made.overview(2, 3), kind=Kind.CROSS), 8),
    "query of one head": lambda: aimed(made.overview(1, 1, PLAIN), 7),
    "pair": partial(pair, 4, 5),
    "pair of a decoder": lambda: aimed(replace(made.overview(2, 3), kind=Kind.CROSS), 4, 5),
    "pair, older file": partial(pair, 4, 5, weights=None),
    "first of none": partial(pair, 8, 2),
    "no number": partial(measured, "self", values=np.full((2, 3), np.nan)),
    "no number, why": partial(measured, "self", values=np.full((2, 3), np.nan), absent="no query has a key"),
}
