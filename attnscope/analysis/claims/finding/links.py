"""Which links of a text no place, distance, key or evenness explains, and whether chance would do as much.

The text and its controls are the same words in several orders, so each can stand for the text: its evidence
for a link is what the link's weight is above the most that any other of them has at the same two places, and
above what else explains it (`results.base.evidence`). Only the text that has most at two places can have
evidence there, so one pass over all texts is enough.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.results.base.evidence import LEAST, Link, Weights, explained, telling_pairs
from attnscope.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Telling:
    """Links of the first text, most evidence first, with `layer` and `head` as places among those read.

    `best` is the most evidence that any link has in each of the other texts, 0 where none has any.
    """

    links: tuple[Link, ...]
    best: Float[np.ndarray, " control"]


@dataclass(frozen=True, eq=False)
class Read:
    """The weights of all heads over one text, and its tokens on either side."""

    weights: Weights
    queries: Tokens
    keys: Tokens


def telling_links(texts: Iterable[Read], *, crosses: bool, causal: bool) -> Telling:
    """The links of the first text that have at least `LEAST` evidence, and the best of every other one."""
    first: Read | None = None
    count = 0
    for count, read in enumerate(texts):
        pairs = telling_pairs(read.queries, read.keys, crosses=crosses, causal=causal)
        weights = np.nan_to_num(read.weights)
        explains = np.where(pairs, _explains(weights, crosses), np.inf)
        if first is None:
            first, most, left = read, weights.copy(), explains
            second, whose = np.zeros_like(weights), np.zeros(weights.shape, dtype=np.int32)
            continue
        more = weights > most
        second = np.where(more, most, np.maximum(second, weights))
        most, left = np.where(more, weights, most), np.where(more, explains, left)
        whose[more] = count
    assert first is not None, "the text itself is the first"
    evidence = most - np.maximum(second, left)
    best = np.zeros(count + 1)
    np.maximum.at(best, whose, np.maximum(evidence, 0.0))
    mine = np.argwhere((whose == 0) & (evidence >= LEAST))
    links = [_link(first, second, place, crosses) for place in mine]
    return Telling(tuple(sorted(links, key=lambda link: -link.evidence)), best[1:])


def _explains(weights: Weights, crosses: bool) -> Weights:
    """The most that distance, key and evenness explain of every link."""
    explains = np.empty_like(weights)
    for i, layer in enumerate(weights):
        allowed, even = _allowed(layer)
        for j, head in enumerate(layer):
            distance, others = explained(head, allowed, crosses=crosses)
            explains[i, j] = np.fmax(np.fmax(distance, others), even)
    return np.asarray(np.where((weights > 0).any(axis=1, keepdims=True), explains, np.inf))


def _allowed(
    layer: Float[np.ndarray, "head query key"],
) -> tuple[Bool[np.ndarray, "query key"], Float[np.ndarray, "query key"]]:
    """Which pairs any head of a layer gives something, and what even attention gives them."""
    allowed = np.asarray((layer > 0).any(axis=0))
    count = np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    return allowed, np.broadcast_to(1.0 / count, allowed.shape)


def _link(text: Read, second: Weights, place: Int[np.ndarray, "4"], crosses: bool) -> Link:
    i, j, query, key = map(int, place)
    layer = np.nan_to_num(text.weights[i])
    allowed, even = _allowed(layer)
    distance, others = (each[query, key] for each in explained(layer[j], allowed, crosses=crosses))
    return Link(
        i, j, query, key,
        weight=float(layer[j, query, key]),
        controls=float(second[i, j, query, key]),
        distance=None if np.isnan(distance) else float(distance),
        others=float(others),
        even=float(even[query, key]),
    )  # fmt: skip


def in_order(tokens: Tokens, sources: Int[np.ndarray, " token"]) -> Tokens:
    """The tokens of a control: at each place the one that `sources` names."""
    return replace(tokens, items=tuple(tokens.items[int(source)] for source in sources))
