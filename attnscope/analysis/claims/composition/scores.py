"""Composition scores of heads, from low-rank factors: no matrix of hidden by hidden is made.

What an earlier head writes is x W_V W_O; a later one reads its queries by W_Q, its keys by W_K, its values by
W_V. Elhage et al. 2021, A Mathematical Framework for Transformer Circuits: the Frobenius norm of the product
of both circuits over the product of their norms, with the later circuit W_Q W_K' entered from its queries
(Q-composition) or its keys (K), or W_V W_O from its values (V). A factor that only stands at the end of a
product counts by its triangular part, which has the same lengths: |X W D'| = |X W R'| with D = Q R.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.capture.circuits.factors import Factors
from attnscope.capture.circuits.gains import Gain
from attnscope.reference import exact
from attnscope.results.claims.composition import Through

Written = Float[Tensor, "head value_dim hidden"]
Reads = Float[Tensor, "head hidden dim"]


def written(layer: Factors, reader: Gain | None, way: Sequence[Gain], heads: Sequence[int]) -> Written:
    """W_V W_O of the heads of an earlier layer after the norms on the way, `hidden` on one side only.

    The other side is folded: the product of W_V W_O with anything from the right has the same length.
    """
    assert layer.value is not None, "asked of layers that have it"
    assert layer.output is not None, "asked of layers that have it"
    values = _triangular(_folded(layer.value.matrix, reader))
    output = exact(layer.output.matrix)[list(heads)]
    for each in way:
        output = each.forward(output)
    return values[[layer.key_head(head) for head in heads]] @ output


def reads(layer: Factors, through: Through, readers: dict[str, Gain | None], heads: Sequence[int]) -> Reads:
    """The circuit of the heads of a later layer, entered through queries, keys or values; folded likewise."""
    shared, own = [layer.key_head(head) for head in heads], list(heads)
    if through is Through.VALUE:
        assert layer.value is not None, "asked of layers that have it"
        assert layer.output is not None, "asked of layers that have it"
        end = _triangular(exact(layer.output.matrix).transpose(1, 2))[own]
        return _folded(layer.value.matrix, readers["value"])[shared] @ end.transpose(1, 2)
    assert layer.query is not None, "asked of layers that have it"
    assert layer.key is not None, "asked of layers that have it"
    queries = _folded(layer.query.matrix, readers["query"])
    keys = _folded(layer.key.matrix, readers["key"])
    if through is Through.QUERY:
        return queries[own] @ _triangular(keys)[shared].transpose(1, 2)
    return keys[shared] @ _triangular(queries)[own].transpose(1, 2)


def scores(
    early: Float[Tensor, "early value_dim hidden"], late: Float[Tensor, "late hidden dim"]
) -> Float[Tensor, "early late"]:
    """Every earlier head with every later one, 0 to 1; NaN where a circuit is nothing."""
    (first, dim, hidden), (second, _, width) = early.shape, late.shape
    product = early.reshape(-1, hidden) @ late.transpose(0, 1).reshape(hidden, -1)
    lengths = product.reshape(first, dim, second, width).square().sum((1, 3)).sqrt()
    found: Tensor = lengths / (early.flatten(1).norm(dim=1)[:, None] * late.flatten(1).norm(dim=1))
    return found


def _folded(matrix: Float[Tensor, "head read dim"], reader: Gain | None) -> Float[Tensor, "head read dim"]:
    """The matrix with the norm before it: its weight, and the mean taken away where it does so."""
    matrix = exact(matrix)
    return matrix if reader is None else reader.backward(matrix.transpose(1, 2)).transpose(1, 2)


def _triangular(matrix: Float[Tensor, "head read dim"]) -> Float[Tensor, "head rank dim"]:
    triangle: Tensor = torch.linalg.qr(matrix, mode="r").R
    return triangle
