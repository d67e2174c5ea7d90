"""Two corpora, or one under two models, held against each other: as they were read, and at equal length.

Class by class of length the two means are held against each other, each class with the mean of its shares in
both (Kitagawa 1955). Within a class the texts of one may still be longer: the slope from class to class, one
for both corpora, takes that out. All of it is one weighted sum of the means of classes, so its standard error
is exact as theirs are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import stdtrit

from attnscope.errors import InputError
from attnscope.results import HeadScores
from attnscope.results.claims.ranking import LEVEL
from attnscope.verbs.compare.corpora_result import CorpusDifference, ScoresApart
from attnscope.verbs.corpus.result import FEWEST, Corpus, CorpusScores, LengthPair, can_be_equal

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
    """The means of both at equal length, the error of their difference, and what lengths alone make of it.

    `freedom` is the degrees of freedom of that error.
    """

    first: OfHeads
    second: OfHeads
    error: OfHeads
    freedom: OfHeads
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
    parts = [(count * error) ** 2 for count, error in zip(counts, errors, strict=True)]
    variance = _summed(parts[0] + parts[1])
    over_shared = _summed(shares[1] * means[1] - shares[0] * means[0])
    texts = np.concatenate([side.count for side in sides])
    return EqualLength(a, b, np.sqrt(variance), freedom(np.concatenate(parts), texts), over_shared - (b - a))


def freedom(variances: Float[np.ndarray, "part layer head"], texts: Means) -> OfHeads:
    """Degrees of freedom of a sum of independent means with these variances (Welch 1947, Satterthwaite 1946).

    NaN where nothing varies.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(variances.sum(0) ** 2 / (variances**2 / np.maximum(texts - 1, 1)).sum(0))


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


def corpora_apart(a: Corpus, b: Corpus) -> CorpusDifference:
    """Second less first, of the layers, heads and measures that both have; `InputError` where there are none.

    The texts of both are taken as independent of each other. Where both are the same texts, as under two
    models, the error is too large rather than too small as long as what they give goes together.
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
    shown = next((name for name in (b.shown, a.shown) if name in names), "")
    lengths = _pairs(a, b)
    first, second = (_Cut(each, layers, heads, lengths) for each in (a, b))
    return CorpusDifference(
        reads=(a.read, b.read),
        kind=a.kind,
        layers=layers,
        heads=heads,
        measures={name: _apart(name, first, second, lengths) for name in names},
        lengths=lengths,
        verdict_of_each=(a.verdict, b.verdict),
        provenances=(a.provenance, b.provenance),
        tower=a.tower if a.tower == b.tower else "",
        shown=shown,
        notes=_notes(a, b),
    )


def _notes(a: Corpus, b: Corpus) -> tuple[str, ...]:
    first, second = set(a.read.digests), set(b.read.digests)
    if not first & second:
        return ()
    same_files = "both read the same files" if first == second else "both read some files"
    return (f"{same_files}: errors are those of independent texts",)


def _pairs(a: Corpus, b: Corpus) -> tuple[LengthPair, ...]:
    sides = [{each.least: each for each in corpus.lengths} for corpus in (a, b)]
    pairs = []
    for least in sorted({*sides[0], *sides[1]}):
        of = [side.get(least) for side in sides]
        most = next(each.most for each in of if each is not None)
        texts, tokens = (
            [0 if each is None else getattr(each, name) for each in of] for name in ("texts", "tokens")
        )
        pairs.append(LengthPair(least, most, (texts[0], texts[1]), (tokens[0], tokens[1])))
    return tuple(pairs)


class _Cut:
    def __init__(
        self, corpus: Corpus, layers: Sequence[int], heads: Sequence[int], lengths: Sequence[LengthPair]
    ) -> None:
        self.corpus, self.layers, self.heads = corpus, tuple(layers), tuple(heads)
        rows = [corpus.layers.index(layer) for layer in layers]
        self._place = np.ix_(rows, [corpus.heads.index(head) for head in heads])
        self._classes = [
            {pair.least: i for i, pair in enumerate(lengths)}[each.least] for each in corpus.lengths
        ]
        self._size = len(lengths)

    def at(self, values: Float[np.ndarray, "a_layer a_head"]) -> Float[np.ndarray, "layer head"]:
        return np.asarray(values[self._place])

    def by_length(self, scores: CorpusScores) -> Side:
        """Its classes; NaN and 0 where there is no text."""
        shape = self._size, len(self.layers), len(self.heads)
        found = [np.full(shape, none) for none in (np.nan, np.nan, 0.0)]
        for own, values in zip(found, scores.of_lengths, strict=True):
            own[self._classes] = [self.at(each) for each in values]
        long = np.full(self._size, np.nan)
        long[self._classes] = [np.log(each.mean) for each in self.corpus.lengths]
        return Side(found[0], found[1], found[2], long)


def _apart(name: str, a: _Cut, b: _Cut, lengths: tuple[LengthPair, ...]) -> ScoresApart:
    first, second = (side.corpus.measures[name] for side in (a, b))
    means, errors = (
        (a.at(x), b.at(y)) for x, y in ((first.values, second.values), (first.error, second.error))
    )
    as_read = means[1] - means[0]
    by_class = a.by_length(first), b.by_length(second)
    alone = np.full_like(as_read, np.nan)
    error = np.hypot(*errors)
    texts = np.stack([a.at(first.count), b.at(second.count)])
    free = freedom(np.stack(errors) ** 2, texts)
    if can_be_equal(lengths):
        equal = at_equal_length(*by_class)
        means, error, alone = (equal.first, equal.second), equal.error, equal.length_alone
        free = equal.freedom
    difference = means[1] - means[0]
    size = float(np.nanmax(np.abs(difference), initial=0.0)) or 1.0
    return ScoresApart(
        scores=HeadScores(first.scores.description, a.layers, a.heads, difference, (-size, size)),
        first=means[0],
        second=means[1],
        error=error,
        limit=beyond_by_chance(free),
        as_read=as_read,
        length_alone=alone,
        of_lengths=np.stack([np.stack([each.mean, each.error]) for each in by_class]),
    )


def beyond_by_chance(free: OfHeads) -> OfHeads:
    """How many errors each head must be off, so that by chance in 1 of 20 comparisons some head is.

    Student's t at a level that all heads share alike (Bonferroni); NaN where there is no choice of heads.
    """
    heads = int((free > 0).sum())
    if heads < 2:
        return np.full_like(free, np.nan)
    return np.asarray(stdtrit(free, 1 - LEVEL / (2 * heads)))
