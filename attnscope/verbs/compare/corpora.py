"""Compares two corpora, or one under two models, head by head: as read, and at equal length.

Class by class of length the two means are held against each other, each class with the mean of its shares in
both (Kitagawa 1955). Within a class the texts of one may still be longer: the slope from class to class, one
for both corpora, takes that out. All of it is one weighted sum of the means of classes, so its standard error
is exact as theirs are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import stdtrit

from attnscope.errors import InputError
from attnscope.results import HeadScores
from attnscope.results.claims.ranking import LEVEL
from attnscope.verbs.compare.corpora_result import CorpusDifference, ScoresApart
from attnscope.verbs.corpus.result import FEWEST, Corpus, LengthPair, can_be_equal

Means = Float[np.ndarray, "length layer head"]
OfHeads = Float[np.ndarray, "layer head"]


@dataclass(frozen=True, eq=False)
class Side:
    """One corpus by length class: each head's mean, standard error and count, and the class's log tokens.

    NaN and a count of 0 stand where no text is of the class.
    """

    mean: Means
    error: Means
    count: Means
    long: Float[np.ndarray, " length"]

    @property
    def enough(self) -> Bool[np.ndarray, "length layer head"]:
        """Mask of classes with enough texts for a standard error."""
        return self.count >= FEWEST


def at_equal_length(first: Side, second: Side) -> tuple[OfHeads, OfHeads, OfHeads, OfHeads, OfHeads]:
    """Both means at equal length, standard error and freedom of their difference, and the effect of length.

    NaN for a head that has no class with enough texts of both.
    """
    sides = first, second
    shared = first.enough & second.enough
    counts = [np.where(shared, side.count, 0.0) for side in sides]
    with np.errstate(invalid="ignore"):
        shares = [np.asarray(count / count.sum(axis=0)) for count in counts]
    weights = (shares[0] + shares[1]) / 2
    gap = np.nan_to_num(second.long - first.long)[:, None, None]
    lifted = [np.zeros_like(weights) for _ in sides]  # by how much each mean counts in what is taken out
    for i in range(len(gap)):
        for own, slope in zip(lifted, _slope(sides, i), strict=True):
            own += weights[i] * gap[i] * slope
    means = [np.where(side.enough, side.mean, 0.0) for side in sides]
    errors = [np.where(side.enough, side.error, 0.0) for side in sides]
    taken = (lifted[0] * means[0] + lifted[1] * means[1]).sum(axis=0)
    a = (weights * means[0]).sum(axis=0) + taken / 2
    b = (weights * means[1]).sum(axis=0) - taken / 2
    counts = [-weights - lifted[0], weights - lifted[1]]  # of every mean in the difference
    parts = [(count * error) ** 2 for count, error in zip(counts, errors, strict=True)]
    over_shared = (shares[1] * means[1] - shares[0] * means[0]).sum(axis=0)
    free = freedom(np.concatenate(parts), np.concatenate([side.count for side in sides]))
    return a, b, np.sqrt((parts[0] + parts[1]).sum(axis=0)), free, over_shared - (b - a)


def freedom(variances: Float[np.ndarray, "part layer head"], texts: Means) -> OfHeads:
    """Degrees of freedom of a sum of independent means with these variances (Welch 1947, Satterthwaite 1946).

    NaN where nothing varies.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(variances.sum(0) ** 2 / (variances**2 / np.maximum(texts - 1, 1)).sum(0))


def _slope(sides: tuple[Side, Side], i: int) -> list[Means]:
    """Coefficient of every mean in the least-squares slope over class `i` and its neighbours.

    The slope has a level of its own for each side; it is 0 where there is none.
    """
    near = slice(max(i - 1, 0), i + 2)
    away, squares = [], []
    for side in sides:
        count = np.where(side.enough, side.count, 0.0)[near]
        long = np.nan_to_num(side.long[near])[:, None, None]
        middle = (count * long).sum(axis=0) / np.maximum(count.sum(axis=0), 1)
        away.append(count * (long - middle))
        squares.append((count * (long - middle) ** 2).sum(axis=0))
    square = squares[0] + squares[1]
    found = []
    for side, own in zip(sides, away, strict=True):
        whole = np.zeros_like(side.count)
        whole[near] = np.where(square > 1e-12, own / np.where(square > 1e-12, square, 1.0), 0.0)
        found.append(whole)
    return found


def corpora_apart(a: Corpus, b: Corpus) -> CorpusDifference:
    """Compares two corpora, second less first; `InputError` where no layer, head and measure is in both.

    The texts of both are taken as independent of each other. Where both are the same texts, as under two
    models, the error is too large rather than too small as long as their values are positively correlated.
    """
    if a.kind is not b.kind:
        raise InputError(f"one corpus is of {a.kind} attention, the other of {b.kind}: no head is in both")
    layers = tuple(layer for layer in a.layers if layer in b.layers)
    heads = tuple(head for head in a.heads if head in b.heads)
    names = [
        name
        for name, measured in a.measures.items()
        if name in b.measures and not measured.scores.description.classes
        if not measured.absent and not b.measures[name].absent
    ]
    if not layers or not heads or not names:
        raise InputError("the two corpora have no layer, head and measure in common")
    sides = a, b
    lengths = tuple(_pairs(a, b))
    digests = [set(each.read.digests) for each in sides]
    same_files = "both read the same files" if digests[0] == digests[1] else "both read some files"
    return CorpusDifference(
        reads=(a.read, b.read),
        kind=a.kind,
        layers=layers,
        heads=heads,
        measures={name: _apart(name, sides, layers, heads, lengths) for name in names},
        lengths=lengths,
        verdict_of_each=(a.verdict, b.verdict),
        provenances=(a.provenance, b.provenance),
        tower=a.tower if a.tower == b.tower else "",
        shown=next((name for name in (b.shown, a.shown) if name in names), ""),
        notes=(f"{same_files}: errors are those of independent texts",) if digests[0] & digests[1] else (),
    )


def _pairs(a: Corpus, b: Corpus) -> Iterator[LengthPair]:
    sides = [{each.least: each for each in corpus.lengths} for corpus in (a, b)]
    for least in sorted({*sides[0], *sides[1]}):
        one, other = (side.get(least) for side in sides)
        most = next(each.most for each in (one, other) if each is not None)
        texts = one.texts if one else 0, other.texts if other else 0
        yield LengthPair(least, most, texts, (one.tokens if one else 0, other.tokens if other else 0))


def _apart(
    name: str,
    sides: tuple[Corpus, Corpus],
    layers: tuple[int, ...],
    heads: tuple[int, ...],
    lengths: tuple[LengthPair, ...],
) -> ScoresApart:
    every, by_class = [], []
    for corpus in sides:
        own, rows = corpus.measures[name], [corpus.layers.index(layer) for layer in layers]
        place = ..., np.array(rows)[:, None], [corpus.heads.index(head) for head in heads]
        every.append([each[place] for each in (own.values, own.error, own.count)])
        numbers = [[pair.least for pair in lengths].index(each.least) for each in corpus.lengths]
        found = [np.full((len(lengths), len(layers), len(heads)), none) for none in (np.nan, np.nan, 0.0)]
        for values, there in zip(found, own.of_lengths[place], strict=True):
            values[numbers] = there
        long = np.full(len(lengths), np.nan)
        long[numbers] = [np.log(each.mean) for each in corpus.lengths]
        by_class.append(Side(found[0], found[1], found[2], long))
    (first, second), errors, texts = zip(*every, strict=True)
    as_read = second - first
    alone, error = np.full_like(as_read, np.nan), np.hypot(*errors)
    free = freedom(np.stack(errors) ** 2, np.stack(texts))
    if can_be_equal(lengths):
        first, second, error, free, alone = at_equal_length(*by_class)
    difference = second - first
    size = float(np.nanmax(np.abs(difference), initial=0.0)) or 1.0
    description = sides[0].measures[name].scores.description
    return ScoresApart(
        scores=HeadScores(description, layers, heads, difference, (-size, size)),
        first=first,
        second=second,
        error=error,
        limit=beyond_by_chance(free),
        as_read=as_read,
        length_alone=alone,
        of_lengths=np.stack([np.stack([each.mean, each.error]) for each in by_class]),
    )


def beyond_by_chance(free: OfHeads) -> OfHeads:
    """Standard errors by which a head must differ: by chance some head does in 1 of 20 comparisons.

    Student's t at a level that all heads share alike (Bonferroni); NaN where there is only one head.
    """
    heads = int((free > 0).sum())
    if heads < 2:
        return np.full_like(free, np.nan)
    return np.asarray(stdtrit(free, 1 - LEVEL / (2 * heads)))
