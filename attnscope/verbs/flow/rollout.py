"""Attention multiplied through the layers: rollout and flow (Abnar and Zuidema 2020), and value zeroing.

    A_l = (W_l + I) / rowsum,   R_l = A_l R_(l-1),   R before the first layer is I

W_l is the mean over heads of the weights of layer l, I the part of its input that a layer adds to its output.
The same A_l are the capacities of the flow: a graph with a node for each token and layer. In place of W_l may
stand the norms of what all heads move together (`lengths`). Value zeroing (Mohebbi et al. 2023) measures
how each token's values change the vector of every other token:

    C_l[i, j] = 1 - cosine of token i's vector behind layer l, as it is and without the values of token j
    rows divided by their sums,   R_l = C_l R_(l-1)

Unlike a weight, C covers the whole layer: output projection, residual, norm, feed-forward. So no identity is
mixed in: what a token keeps of itself is on the diagonal already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor, nn

from attnscope.analysis.heads.view import Units
from attnscope.analysis.rows import Layer, allowed_of, rows_of
from attnscope.attention import AttentionCall
from attnscope.capture import Selection
from attnscope.capture.intervening.value_zeroing import value_zeroing_on
from attnscope.errors import CertificateError, InputError
from attnscope.reference import exact
from attnscope.results.base.groups import members
from attnscope.results.claims.effect import Intervention
from attnscope.verbs.flow.result import Flow

Matrix = Float[np.ndarray, "query key"]
_WHOLE = 2**28  # a capacity of 1 as the integer that SciPy's max-flow needs


def mixed(weights: Float[np.ndarray, "row key"], rows: Sequence[int] | None = None) -> Matrix:
    """A of one layer, (W + I) / rowsum; a row without keys is the identity row.

    `rows` are the query positions where the weights hold only some rows.
    """
    both = np.nan_to_num(weights)
    both[np.arange(len(both)), np.arange(len(both)) if rows is None else rows] += 1
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def shares(moved: Matrix) -> Matrix:
    """Every row divided by its sum; a row of zeros stays zero."""
    known = np.nan_to_num(moved)
    sums = known.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(known, sums, out=np.zeros_like(known), where=sums > 0))


def rollout(layers: Sequence[Matrix]) -> Float[np.ndarray, "layer query key"]:
    """Rollout R up to every layer, from the A of each layer; rows sum to 1."""
    reached, found = np.eye(len(layers[0])), []
    for layer in layers:
        reached = layer @ reached
        found.append(reached)
    return np.array(found)


def max_flow(layers: Sequence[Matrix], query: int) -> Float[np.ndarray, " key"]:
    """Maximum flow from `query` in the last layer to every input token; capacities are the A of each layer.

    By Dinic's algorithm, once per input token; capacities are rounded down to multiples of 2**-28.
    """
    count = len(layers[0])
    graph, source = _graph(layers), len(layers) * count + query
    flows = [maximum_flow(graph, source, key).flow_value for key in range(count)]
    return np.array(flows, dtype=np.float64) / _WHOLE


def _graph(layers: Sequence[Matrix]) -> csr_array:
    """Capacity graph: node `l * count + i` is token i after l layers, node i the input token."""
    count = len(layers[0])
    starts, ends, sizes = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    for number, layer in enumerate(layers):
        whole = np.floor(layer * _WHOLE).astype(np.int32)
        queries, keys = np.nonzero(whole)
        starts.append((number + 1) * count + queries)
        ends.append(number * count + keys)
        sizes.append(whole[queries, keys])
    nodes = (len(layers) + 1) * count
    places = (np.concatenate(starts).astype(np.int32), np.concatenate(ends).astype(np.int32))
    return csr_array((np.concatenate(sizes), places), shape=(nodes, nodes))


def rolled_out(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, heads: Sequence[int], tokens: int
) -> tuple[Float[np.ndarray, "layer query key"], Intervention]:
    """Rollout by value zeroing: zero each token's values in each selected layer, in `heads`, multiply layers.

    The second result says whether the values were really zero.
    Raises `InputError` where a layer cannot be run alone with other values, or reads other positions.
    """
    made = value_zeroing_on(model, inputs, selection)
    if {*made.lengths.values()} != {tokens}:
        raise InputError("the layers read other positions than the tokens")
    found = [shares_of_change(made.distances(layer, heads).numpy()) for layer in made.layers]
    return rollout(found), Intervention.of(made.back, made.lost, made.unseen, made.faithful)


def shares_of_change(distances: Matrix) -> Matrix:
    """Every row divided by its sum; a row of zeros becomes the identity row."""
    sums = distances.sum(axis=1, keepdims=True)
    itself = np.eye(len(distances))
    return np.asarray(np.where(sums > 0, distances / np.where(sums > 0, sums, 1), itself))


Shares = Float[np.ndarray, "layer key"]


def by_units(result: Flow, units: Units) -> Flow:
    """Sum the shares of a flow over the tokens of each unit; effects are of whole units already."""
    assert units.query is not None, "something was followed"
    belongs = members(units.keys, len(result.tokens)).T.astype(float)

    def summed(shares: Shares | None) -> Float[np.ndarray, "layer unit"] | None:
        return None if shares is None else np.asarray(shares @ belongs)

    ablated = result.ablated
    if ablated is not None:
        effects = [ablated.effects[unit[0]] if unit in {*ablated.groups} else np.nan for unit in units.keys]
        ablated = replace(ablated, effects=np.array(effects), groups=())
    return replace(
        result,
        query=units.query,
        tokens=units.key_tokens,
        raw=result.raw @ belongs,
        rollout=result.rollout @ belongs,
        by_norm=summed(result.by_norm),
        zeroed=summed(result.zeroed),
        ablated=ablated,
        answers_at=result.query,
    )


_AT_ONCE = 2**21  # most weights read at once, over all heads
_HIDDEN = 2**22  # most numbers of value vectors held at once, over all heads
ByLayer = Float[np.ndarray, "layer key"]


@dataclass(frozen=True, eq=False)
class Back:
    """Shares of each key by layer: mean weights `raw`, `rollout`, and rollout by norm.

    For several query tokens it is the mean over them. `by_norm` is None where some output projection is
    not known.
    """

    raw: ByLayer
    rollout: ByLayer
    by_norm: ByLayer | None


def followed_back(
    layers: Sequence[Layer], heads: Sequence[int], query: int | Float[np.ndarray, " query"]
) -> Back:
    """Shares of each key for `query`, up to every layer; `CertificateError` where weights are NaN.

    `query` is a position, or a weight for each position: then every row is the weighted mean.
    """
    count = len(layers[0].query_tokens)
    start = np.eye(count)[query] if isinstance(query, int) else query
    plain = normed = np.zeros((0, count))
    known = all(isinstance(each, AttentionCall) and each.projection is not None for each in layers)
    raw: list[Float[np.ndarray, " key"]] = []
    for layer in reversed(layers):
        plain, normed = (np.vstack([start, each]) for each in (plain, normed))
        products = overlaps(layer, heads) if known and isinstance(layer, AttentionCall) else None
        to_plain, to_normed = np.zeros_like(plain), np.zeros_like(normed)
        own = np.zeros(count)
        every = layer.heads if isinstance(layer, AttentionCall) else len(layer.weights)
        step, reached = max(1, _AT_ONCE // (every * count)), np.flatnonzero(plain.any(axis=0)).tolist()
        for rows in (reached[first : first + step] for first in range(0, len(reached), step)):
            weights = rows_of(layer, heads, rows)
            mean = mean_weights(layer, heads, rows, weights)
            to_plain += plain[:, rows] @ mixed(mean, rows)
            own += start[rows] @ mean
            if products is not None:
                moved = lengths(torch.from_numpy(weights), products).numpy()
                to_normed += normed[:, rows] @ mixed(shares(moved), rows)
        raw.insert(0, own)
        plain, normed = to_plain, to_normed
    return Back(np.array(raw), plain, normed if known else None)


def mean_weights(
    layer: Layer, heads: Sequence[int], rows: Sequence[int], weights: Float[np.ndarray, "head row key"]
) -> Float[np.ndarray, "row key"]:
    """Mean weights over heads, 0 for rows without a key; `CertificateError` where another row has NaN."""
    answered = allowed_of(layer, heads, rows).any(axis=2)
    if np.isnan(weights[answered]).any():
        raise CertificateError(
            f"the weights of layer {layer.layer} are not numbers: nothing can be followed through them"
        )
    return np.asarray(np.nan_to_num(weights).mean(axis=0))


def overlaps(call: AttentionCall, heads: Sequence[int]) -> Float[Tensor, "key head other"] | None:
    """Dot products f_h(x_j) . f_g(x_j) of projected values, for every key j and two heads, in float64.

    None where the output projection is not known.
    """
    if call.projection is None:
        return None
    step = max(1, _HIDDEN // (len(heads) * call.projection.shape[2]))
    matrices = [exact(call.projection[head]) for head in heads]
    found = []
    for start in range(0, call.v.shape[1], step):
        values = [exact(call.v[call.key_head(head), start : start + step]) for head in heads]
        vectors = torch.stack([one @ matrix for one, matrix in zip(values, matrices, strict=True)], 1)
        found.append(vectors @ vectors.mT)
    return torch.cat(found)


def lengths(
    weights: Float[Tensor, "head row key"], products: Float[Tensor, "key head other"]
) -> Float[Tensor, "row key"]:
    """Norm of the sum over heads of a_ij f(x_j), for each row and key (Kobayashi et al. 2020).

    Heads may cancel each other, so this is at most the sum of their norms. NaN for rows of NaN.
    """
    total, products = torch.zeros_like(weights[0]), products.to(weights).permute(1, 2, 0).contiguous()
    for head, own in enumerate(weights):  # blocks fit into the cache: much faster than one product per key
        others = own * products[head, head]
        for other in range(head):
            others.addcmul_(weights[other], products[head, other], value=2)
        total.addcmul_(own, others)
    return total.clamp_min_(0.0).sqrt_()
