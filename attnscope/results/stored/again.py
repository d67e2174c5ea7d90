"""Recomputes a stored head from its queries, keys, values and mask, with NumPy only.

It repeats the arithmetic of `attnscope.arithmetic`, so that a file can be checked without torch.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attnscope.results.base.groups import Special, members, regrouped
from attnscope.results.heads import HeadAttention, HeadView

_EPSILON = float(np.finfo(np.float64).eps)
Stage = tuple[str, Float[np.ndarray, "query column"], Float[np.ndarray, "query column"]]


def can_be_computed(head: HeadAttention) -> bool:
    """Whether the weights can be recomputed; they cannot where each query has its own sink."""
    return not head.sink_by_query


def wrong_stage(head: HeadAttention) -> str:
    """The name of the first stage that does not follow from the stored ones before it; empty where all do.

    The tolerance is the rounding error of adding the terms of a stage in another order (Higham 2002).
    """
    for name, tolerated, again in _stages(head):
        stored = getattr(head, name)
        off = np.abs(stored - again)
        if not (np.isnan(stored) == np.isnan(again)).all() or (off > tolerated).any():
            return name
    return ""


def _stages(head: HeadAttention) -> Iterator[Stage]:
    q, k, v, scale, dim = head.q, head.k, head.v, head.scale, head.q.shape[1]
    rounding = 4 * dim * _EPSILON * (np.abs(q) @ np.abs(k).T)
    yield "scores", rounding, q @ k.T

    scaled = head.scores * scale
    scaled = scaled if head.softcap is None else head.softcap * np.tanh(scaled / head.softcap)
    size = np.abs(scaled)
    for added in head.terms.values():
        scaled, size = scaled + added, size + np.abs(added)
    scaled = np.where(head.allowed, scaled, np.nan)
    yield "scaled", 8 * _EPSILON * (len(head.terms) + 1) * (1 + size), scaled

    logits = np.where(head.allowed, head.scaled, -np.inf)
    peak = logits.max(axis=1, keepdims=True, initial=-np.inf)
    if head.sink is not None:
        peak = np.maximum(peak, head.sink)
    with np.errstate(invalid="ignore"):
        unnormalised = np.exp(logits - np.where(np.isfinite(peak), peak, np.nan))
        total = unnormalised.sum(axis=1, keepdims=True)
        if head.sink is not None:
            total = total + np.exp(head.sink - peak)
        weights = np.where(head.answered[:, None], unnormalised / total, np.nan)
    keys = head.weights.shape[1]
    largest = np.abs(np.where(head.allowed, head.scaled, 0.0)).max(axis=1, keepdims=True, initial=0.0)
    yield "weights", 4 * _EPSILON * (keys + 8 + largest) * np.ones_like(weights), weights

    bound = (
        4
        * _EPSILON
        * (keys + 1)
        * (np.abs(np.nan_to_num(head.weights)) @ np.abs(v) + np.abs(v).max(initial=0.0))
    )
    yield "output", bound, head.weights @ v


def view_follows(view: HeadView) -> bool:
    """Whether a view's weights and allowed pairs follow from its head and groups."""
    scaled = view.special is Special.RENORMALISE
    again = regrouped(view.head.weights, view.query_groups, view.key_groups, renormalise=scaled)
    rows = members(view.query_groups, len(view.head.query_tokens))
    columns = members(view.key_groups, len(view.head.key_tokens))
    seen = np.array_equal(view.allowed, rows @ view.head.allowed @ columns.T)
    return seen and bool(np.allclose(view.weights, again, rtol=1e-9, atol=1e-12, equal_nan=True))
