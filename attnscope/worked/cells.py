"""The first cell of a step, taken apart into the numbers that it is made of."""

from collections.abc import Iterable

import numpy as np

from attnscope.results.worked import Cell, Matrix


def product_cell(
    left: Matrix, right: Matrix, bias: Matrix | None = None, *, transposed: bool = False
) -> Cell:
    """A row of `left` times a column of `right`, or times a row of it where it is `transposed`."""
    factors = right.values[0] if transposed else right.values[:, 0]
    terms = _floats(zip(left.values[0], factors, strict=True))
    return Cell(0, 0, "products", terms if bias is None else (*terms, (float(bias.values[0, 0]),)))


def quotient_cell(scores: Matrix, divisor: float) -> Cell:
    return Cell(0, 0, "quotient", ((float(scores.values[0, 0]), divisor),))


def tanh_cell(query: Matrix, key: Matrix, vector: Matrix) -> Cell:
    """The products of `vector` with the tanh of a row of `query` plus a row of `key`."""
    arguments = query.values[0] + key.values[0]
    return Cell(0, 0, "tanh", _floats(zip(vector.values[0], arguments, strict=True)))


def softmax_cell(logits: Matrix) -> Cell:
    """The logits of the first query, those that are masked left out; the first key is never masked."""
    row = logits.values[0]
    return Cell(0, 0, "softmax", _floats((logit,) for logit in row[np.isfinite(row)]))


def _floats(terms: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(number) for number in term) for term in terms)
