"""Rows of weights of a layer, as many as a question needs, however that layer was read."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.capture.returned import ReturnedLayer
from attnscope.reference import exact
from attnscope.sdpa import Operands, attend

Layer = AttentionCall | ReturnedLayer


def rows_of(
    layer: Layer, heads: Sequence[int], queries: Sequence[int] | None = None
) -> Float[np.ndarray, "head row key"]:
    """The weights of `heads` for some queries, or for all (None), recomputed in float64 or as returned."""
    if isinstance(layer, ReturnedLayer):
        found = exact(layer.weights[list(heads)])
        return np.asarray((found if queries is None else found[:, list(queries)]).numpy())
    return np.asarray(attend(_operands(layer, queries)).weights[list(heads)].numpy())


def _operands(call: AttentionCall, queries: Sequence[int] | None) -> Operands:
    """What the weights of all heads are computed from, for these queries; nothing of the values."""
    rows = slice(None) if queries is None else list(queries)
    sinks = call.sinks
    if sinks is not None and sinks.numel() > len(sinks):
        sinks = sinks[:, rows]
    bias = call.bias
    return Operands(
        q=exact(call.q[:, rows]),
        k=exact(call.k),
        v=exact(call.v[..., :0]),
        scale=call.scale,
        softcap=call.softcap,
        bias=None if bias is None else bias[:, rows],
        allowed=None if call.allowed is None else call.allowed[:, rows],
        sinks=None if sinks is None else exact(sinks),
    )


def allowed_rows(layer: Layer, head: int, queries: Sequence[int]) -> Tensor:
    """Which keys these queries may look at in a head; all where it is only known what was returned."""
    if isinstance(layer, ReturnedLayer):
        return torch.ones(len(queries), layer.weights.shape[2], dtype=torch.bool)
    return layer.allowed_matrix(head)[list(queries)]


def moved(layer: Layer) -> Float[np.ndarray, "head key"] | None:
    """How much each head can move of each key, ||f(x)||; None where the output projection is not known."""
    if isinstance(layer, ReturnedLayer) or layer.projection is None:
        return None
    from attnscope.measures.moved import moved_norms

    return np.asarray(moved_norms(layer.v, layer.projection).numpy())


def vectors_of(
    layer: Layer, heads: Sequence[int], keys: Sequence[int]
) -> Float[np.ndarray, "head key hidden"] | None:
    """f(x) of a few keys, the value as it arrives in the hidden state; None where that is not known."""
    if isinstance(layer, ReturnedLayer) or layer.projection is None:
        return None
    shared = layer.heads // len(layer.v)
    values = [exact(layer.v[head // shared][list(keys)]) for head in heads]
    made = [each @ exact(layer.projection[head]) for head, each in zip(heads, values, strict=True)]
    return np.asarray(torch.stack(made).numpy())
