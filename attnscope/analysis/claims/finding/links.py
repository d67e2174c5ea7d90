"""Which links of a text no place, distance, key or evenness explains, and whether chance would do as much.

The text and its controls are the same words in several orders, so each can stand for the text: its evidence
for a link is what the link's weight is above the most that any other of them has at the same two places, and
above what else explains it (`results.base.evidence`). Only the text that has most at two places can have
evidence there, so one pass over all texts is enough.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.evidence import LEAST, Explained, Link, Weights, telling_pairs
from attnscope.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Telling:
    """Links of the first text, most evidence first, with `layer` and `head` as places among those read.

    `best` is the most evidence that any link has in each of the other texts, 0 where none has any.
    `explained` is the most that may explain each weight of the first text, NaN for what is no pair of words.
    """

    links: tuple[Link, ...]
    best: Float[np.ndarray, " control"]
    explained: Weights


@dataclass(frozen=True, eq=False)
class Read:
    """The weights of all heads over one text, and its tokens on either side."""

    weights: Weights
    queries: Tokens
    keys: Tokens


def telling_links(texts: Iterable[Read], *, crosses: bool, causal: bool) -> Telling:
    """The links of the first text that have at least `LEAST` evidence, and the best of every other one."""
    others = iter(texts)
    text = next(others)
    shape, count = text.weights.shape, 0
    most, second, left = np.full(shape, -1.0), np.zeros(shape), np.zeros(shape)
    whose = np.zeros(shape, dtype=np.int32)
    for count, read in enumerate(chain([text], others)):
        pairs = telling_pairs(read.queries, read.keys, crosses=crosses, causal=causal)
        for i, layer in enumerate(read.weights):
            explained = Explained.of(np.nan_to_num(layer), crosses=crosses)
            weights, more = explained.weights, explained.weights > most[i]
            np.maximum(second[i], np.minimum(most[i], weights), out=second[i])
            np.maximum(most[i], weights, out=most[i])
            np.copyto(left[i], np.where(pairs & explained.allowed, explained.most, np.inf), where=more)
            whose[i][more] = count
    evidence = most - np.maximum(second, left)
    best = np.zeros(count + 1)
    np.maximum.at(best, whose.ravel(), np.maximum(evidence, 0.0).ravel())
    links, told = list[Link](), telling_pairs(text.queries, text.keys, crosses=crosses, causal=causal)
    others_most = np.where(whose == 0, second, most)
    for i, layer in enumerate(text.weights):
        explained = Explained.of(np.nan_to_num(layer), crosses=crosses)
        others_most[i] = np.where(told & explained.allowed, np.fmax(others_most[i], explained.most), np.nan)
        mine = np.argwhere((whose[i] == 0) & (evidence[i] >= LEAST)).tolist()
        links += [
            explained.link(i, (j, query, key), float(second[i, j, query, key])) for j, query, key in mine
        ]
    return Telling(tuple(sorted(links, key=lambda link: -link.evidence)), best[1:], others_most)


def in_order(tokens: Tokens, sources: Int[np.ndarray, " token"]) -> Tokens:
    """The tokens of a control: at each place the one that `sources` names."""
    return replace(tokens, items=tuple(tokens.items[int(source)] for source in sources))
