"""One token followed back through the layers: its row of the rollout, without any layer's matrix.

    r_L = e,   r_(l-1) = r_l A_l       A_l as in `attnscope.analysis.claims.flow.rollout`

From the last layer to the first only those rows are read from which something comes: one of the last layer,
in a causal model none behind the token. They are recomputed in blocks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.claims.finding.rows import Layer, allowed_of, rows_of
from attnscope.analysis.claims.flow.rollout import mixed, shares
from attnscope.attention import AttentionCall
from attnscope.errors import CertificateError
from attnscope.reference import exact

_AT_ONCE = 2**21  # weights of a block, of all heads
_HIDDEN = 2**22  # numbers of the vectors that some keys bring in all heads
ByLayer = Float[np.ndarray, "layer key"]


@dataclass(frozen=True, eq=False)
class Back:
    """Of one token by layer: its mean weights alone, its row of the rollout, and the same by norm.

    Of several tokens it is the mean over these. `by_norm` is None where the way out of some heads is not
    known.
    """

    raw: ByLayer
    rollout: ByLayer
    by_norm: ByLayer | None


def followed_back(
    layers: Sequence[Layer], heads: Sequence[int], query: int | Float[np.ndarray, " query"]
) -> Back:
    """What reaches `query` through the layers up to each; `CertificateError` where weights are no numbers.

    It is a position, or how much of each: then every row is the mean by that.
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
        for rows in _blocks(layer, np.flatnonzero(plain.any(axis=0))):
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


def _blocks(layer: Layer, rows: np.ndarray) -> Iterator[list[int]]:
    heads = layer.heads if isinstance(layer, AttentionCall) else len(layer.weights)
    step = max(1, _AT_ONCE // (heads * len(layer.key_tokens)))
    yield from (rows[start : start + step].tolist() for start in range(0, len(rows), step))


def mean_weights(
    layer: Layer, heads: Sequence[int], rows: Sequence[int], weights: Float[np.ndarray, "head row key"]
) -> Float[np.ndarray, "row key"]:
    """The mean over heads, 0 for rows without a key; `CertificateError` where others are no numbers."""
    answered = allowed_of(layer, heads, rows).any(axis=2)
    if np.isnan(weights[answered]).any():
        raise CertificateError(
            f"the weights of layer {layer.layer} are not numbers: nothing can be followed through them"
        )
    return np.asarray(np.nan_to_num(weights).mean(axis=0))


def overlaps(call: AttentionCall, heads: Sequence[int]) -> Float[Tensor, "key head other"] | None:
    """f_h(x_j) . f_g(x_j) of every key j and two heads, in float64: the products of what it brings in each.

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
    """||sum over heads of a_ij f(x_j)||: how much of a key all heads move together (Kobayashi et al. 2020).

    Heads may pull against each other, so this is less than the sum of their lengths. NaN for rows of NaN.
    """
    total, products = torch.zeros_like(weights[0]), products.to(weights).permute(1, 2, 0).contiguous()
    for head, own in enumerate(weights):  # a block lies in the cache: much faster than a product for each key
        others = own * products[head, head]
        for other in range(head):
            others.addcmul_(weights[other], products[head, other], value=2)
        total.addcmul_(own, others)
    return total.clamp_min_(0.0).sqrt_()
