"""Heads in numbers: measures of dense weights, and why some of them have no meaning for some heads."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.errors import InputError
from attnscope.measures import MEASURES, whole
from attnscope.results import HeadScores, Kind
from attnscope.tokens import Tokens

ENTROPY = ("entropy",)


def unplaced(kind: Kind, query_tokens: Tokens, key_tokens: Tokens) -> str:
    """Why queries and keys have no positions in common, in one phrase; empty where they have."""
    same = query_tokens is key_tokens or query_tokens == key_tokens
    if kind is Kind.CROSS or not same:
        return "queries and keys are not the same tokens"
    return ""


def apply_measures(
    weights: Sequence[Sequence[Float[Tensor, "query key"]]],
    names: Sequence[str],
    *,
    layers: tuple[int, ...],
    heads: tuple[int, ...],
    unplaced: str,
    words: bool = False,
) -> dict[str, HeadScores]:
    """The measures `names` of every head, `weights` by layer and head; positions count `words` or tokens.

    Where `unplaced` says why positions mean nothing, positional measures are NaN and say so; `InputError`
    where there are no others among `names`.
    """
    if unplaced and all(MEASURES[name].positional for name in names):
        others = ", ".join(name for name, measure in MEASURES.items() if not measure.positional)
        raise InputError(f"no {', '.join(names)} here: {unplaced}; what can be measured is {others}")
    return {
        name: _scores(name, weights, layers, heads, unplaced if MEASURES[name].positional else "", words)
        for name in names
    }


def _scores(
    name: str,
    weights: Sequence[Sequence[Tensor]],
    layers: tuple[int, ...],
    heads: tuple[int, ...],
    absent: str,
    words: bool,
) -> HeadScores:
    measure = MEASURES[name]
    described = measure.description
    if words and described.unit == "tokens":
        described = replace(described, unit="words")
    values = [[float("nan") if absent else measure(whole(each)) for each in row] for row in weights]
    keys = weights[0][0].shape[1]
    return HeadScores(described, layers, heads, np.array(values), measure.limits(keys), absent=absent)


def evenly_spread(allowed: Bool[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    """The same weight on each key that a query may look at; NaN where it may look at none."""
    counts = allowed.sum(axis=1, keepdims=True)
    even: Float[np.ndarray, "query key"] = np.where(counts > 0, allowed / np.maximum(counts, 1), np.nan)
    return even
