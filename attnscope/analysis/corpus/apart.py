"""Two corpora, or one under two models, held against each other: as they were read, and at equal length."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from attnscope.analysis.corpus.equal_length import Side, at_equal_length
from attnscope.errors import InputError
from attnscope.results import Corpus, CorpusDifference, HeadScores
from attnscope.results.claims.corpora import ScoresApart
from attnscope.results.claims.corpus import CorpusScores
from attnscope.results.claims.lengths import LengthPair, can_be_equal


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
    """The classes that either has, with the texts of both."""
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
    """One of the corpora at the layers and heads of both, by the classes of length of either."""

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
    if can_be_equal(lengths):
        equal = at_equal_length(*by_class)
        means, error, alone = (equal.first, equal.second), equal.error, equal.length_alone
    difference = means[1] - means[0]
    size = float(np.nanmax(np.abs(difference), initial=0.0)) or 1.0
    return ScoresApart(
        scores=HeadScores(first.scores.description, a.layers, a.heads, difference, (-size, size)),
        first=means[0],
        second=means[1],
        error=error,
        chance=beyond_by_chance(difference.size),
        as_read=as_read,
        length_alone=alone,
        of_lengths=np.stack([np.stack([each.mean, each.error]) for each in by_class]),
    )


def beyond_by_chance(heads: int) -> float:
    """How many errors off one of so many heads would be by chance, in the mean."""
    return NormalDist().inv_cdf(1 - 1 / (2 * heads)) if heads > 1 else math.nan
