"""Means of two corpora at equal length, and what the lengths of their texts alone make of a difference.

Class by class of length the two means are held against each other, each class with the mean of its shares in
both (Kitagawa 1955). Within a class the texts of one may still be longer: the slope from class to class, one
for both corpora, takes that out. All of it is one weighted sum of the means of classes, so its standard error
is exact as theirs are.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.claims.lengths import FEWEST

Means = Float[np.ndarray, "length layer head"]
OfHeads = Float[np.ndarray, "layer head"]


@dataclass(frozen=True, eq=False)
class Side:
    """One corpus by classes of length: mean, error and count of each head, and the logarithm of the tokens.

    NaN and a count of 0 stand where no text is of the class.
    """

    mean: Means
    error: Means
    count: Means
    long: Float[np.ndarray, " length"]

    @property
    def enough(self) -> Bool[np.ndarray, "length layer head"]:
        """Where the texts are enough to tell how they scatter."""
        return self.count >= FEWEST


@dataclass(frozen=True, eq=False)
class EqualLength:
    """The means of both at equal length, the error of their difference, and what lengths alone make of it."""

    first: OfHeads
    second: OfHeads
    error: OfHeads
    length_alone: OfHeads


def at_equal_length(first: Side, second: Side) -> EqualLength:
    """NaN for a head that has no class with enough texts of both."""
    sides = first, second
    shared = first.enough & second.enough
    with np.errstate(invalid="ignore"):
        shares = [_shares(np.where(shared, side.count, 0.0)) for side in sides]
    weights = (shares[0] + shares[1]) / 2
    gap = np.nan_to_num(second.long - first.long)[:, None, None]
    lifted = [np.zeros_like(weights) for _ in sides]  # by how much each mean counts in what is taken out
    for i in range(len(gap)):
        for own, slope in zip(lifted, _slope(sides, i), strict=True):
            own += weights[i] * gap[i] * slope
    means = [np.where(side.enough, side.mean, 0.0) for side in sides]
    errors = [np.where(side.enough, side.error, 0.0) for side in sides]
    taken = _summed(lifted[0] * means[0] + lifted[1] * means[1])
    a, b = _summed(weights * means[0]) + taken / 2, _summed(weights * means[1]) - taken / 2
    counts = -weights - lifted[0], weights - lifted[1]  # of every mean in the difference
    variance = _summed((counts[0] * errors[0]) ** 2 + (counts[1] * errors[1]) ** 2)
    over_shared = _summed(shares[1] * means[1] - shares[0] * means[0])
    return EqualLength(a, b, np.sqrt(variance), over_shared - (b - a))


def _summed(values: Means) -> OfHeads:
    return np.asarray(values.sum(axis=0))


def _shares(count: Means) -> Means:
    return np.asarray(count / count.sum(axis=0))


def _slope(sides: tuple[Side, Side], i: int) -> list[Means]:
    """By how much every mean of either side counts in the slope around class `i`, over it and its neighbours.

    The slope is that of least squares with a level of its own for each side; 0 where there is none.
    """
    near = slice(max(i - 1, 0), i + 2)
    away = []
    for side in sides:
        count = np.where(side.enough, side.count, 0.0)[near]
        long = np.nan_to_num(side.long[near])[:, None, None]
        middle = (count * long).sum(axis=0) / np.maximum(count.sum(axis=0), 1)
        away.append((count * (long - middle), count * (long - middle) ** 2))
    square = _summed(away[0][1]) + _summed(away[1][1])
    found = []
    for side, (own, _) in zip(sides, away, strict=True):
        whole = np.zeros_like(side.count)
        whole[near] = np.where(square > 1e-12, own / np.where(square > 1e-12, square, 1.0), 0.0)
        found.append(whole)
    return found
