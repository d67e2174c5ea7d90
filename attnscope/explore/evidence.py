"""Which heads a measured number speaks for: what position or special tokens alone explain stands behind.

A head that looks one offset away from nearly every query, or gives most of its weight to special tokens, to
the first key or to keys that every other query looks at too, is sharp whatever the words are.
"""

from collections.abc import Iterable, Mapping
from math import isnan, nan

import numpy as np

from attnscope.explore.state import Head
from attnscope.results import Overview
from attnscope.results.base.evidence import Explained
from attnscope.results.claims.ranking import HALF
from attnscope.vocabulary import Kind

PLACE, SPECIAL, FIRST, KEY = "position", "special", "first key", "any query"
_FIXED, _MOST = 0.8, 0.5  # of the queries at one offset; of the weight
JUDGED = ("fixed", "offset", "special-tokens", "first")
SHARP = ("entropy", "confidence", "evenness")  # measures of which this says what they are worth


def explained(overviews: Iterable[Overview]) -> dict[Head, str]:
    """The heads that look where they look whatever the words are, and by what that is told."""
    found: dict[Head, str] = {}
    for overview in overviews:
        shares = {
            PLACE: (_FIXED, _at_one_offset(overview)),
            SPECIAL: (_MOST, _values(overview, "special-tokens")),
            FIRST: (_MOST, _values(overview, "first")),
            KEY: (_MOST, _from_anywhere(overview)),
        }
        for why, (least, values) in shares.items():
            for head, value in values.items():
                if value >= least:  # NaN is not
                    found.setdefault(head, why)
    return found


def _at_one_offset(overview: Overview) -> Mapping[Head, float]:
    """The share of queries whose strongest key stands there, of those with a token at that offset."""
    count, offsets = len(overview.query_tokens), _values(overview, "offset")
    return {
        head: share * count / max(count - abs(offsets[head]), 1)
        for head, share in _values(overview, "fixed").items()
        if not isnan(offsets.get(head, nan))
    }


def _from_anywhere(overview: Overview) -> Mapping[Head, float]:
    """The share of a head's weight that lies on keys to which other queries give half as much or more."""
    if overview.weights is None:
        return {}
    found, crosses = dict[Head, float](), overview.kind is Kind.CROSS
    for layer, heads in zip(overview.layers, overview.weights, strict=True):
        known = Explained.of(np.nan_to_num(np.stack(heads)), crosses=crosses)
        shared = np.where(known.others >= HALF * known.weights, known.weights, 0.0).sum(axis=(1, 2))
        shares = shared / np.maximum(known.weights.sum(axis=(1, 2)), np.finfo(float).tiny)
        found |= {(layer, head): float(each) for head, each in zip(overview.heads, shares, strict=True)}
    return found


def sharpest(overviews: Iterable[Overview]) -> Head | None:
    """The head of the least entropy that nothing else explains; None where there is none."""
    every = tuple(overviews)
    without = explained(every)
    left = {
        head: value
        for overview in every
        for head, value in _values(overview, "entropy").items()
        if head not in without and not isnan(value)
    }
    return min(left, key=lambda head: (left[head], head), default=None)


def _values(overview: Overview, measure: str) -> Mapping[Head, float]:
    scores = overview.scores.get(measure)
    if scores is None:
        return {}
    return {
        (layer, head): float(scores.values[i, j])
        for i, layer in enumerate(scores.layers)
        for j, head in enumerate(scores.heads)
    }
