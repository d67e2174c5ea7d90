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


def softmax_cell(logits: Matrix, sink: float | None = None) -> Cell | None:
    """The first pair that is allowed, its logit before those of the other keys that its query may look at.

    A sink is one more of them. None where no query has a key.
    """
    seen = np.argwhere(np.isfinite(logits.values))
    if not len(seen):
        return None
    row, column = seen[0].tolist()
    own = logits.values[row]
    others = np.delete(own, column)
    every = [own[column], *others[np.isfinite(others)], *([] if sink is None else [sink])]
    return Cell(row, column, "softmax", _floats((logit,) for logit in every))


def _floats(terms: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(number) for number in term) for term in terms)
