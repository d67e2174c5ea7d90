"""Links between words by the cross-attention of all heads, from both sides; with gold, with what chance.

The weights of a target's word are those of the rows that write its pieces, the ones before them; what its own
rows look at belongs already to the word behind it. A head sees a pair of words from both sides: as the
share of the row, and as the share of the column. Its say is their geometric mean.

With gold all of that, of every head, goes into one logistic regression for each pair of words, and how sure
that is is set right by what it said of pairs that it was not fitted to (Platt 1999).
On the bundled translator isotonic and beta calibration were no closer to what is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnscope.analysis.claims.alignment.judging import FOLDS
from attnscope.errors import InputError
from attnscope.results.base.groups import Groups, members
from attnscope.results.claims.alignment import SURE, Direction

_FLOOR = 0.1  # added to a column, so that one that nobody looks at is not blown up
_PENALTY, _STEPS = 3.0, 3000

Weights = Float[np.ndarray, "head query key"]
Said = Float[np.ndarray, "head word other"]
Pairs = Float[np.ndarray, "word other"]
Linked = Bool[np.ndarray, "word other"]


@dataclass(frozen=True, eq=False)
class WordWeights:
    """By words: the rows that write each of the target's words, and those that read it."""

    writes: Said
    reads: Said

    @property
    def by_column(self) -> Said:
        """Each column over what all words of the target give it."""
        return np.asarray(self.writes / (self.writes.sum(axis=1, keepdims=True) + _FLOOR))

    @property
    def says(self) -> Said:
        """What each head says of a pair from both sides."""
        return np.asarray(np.sqrt(self.writes * self.by_column))

    @property
    def features(self) -> Float[np.ndarray, "pair feature"]:
        """All that heads say, a row for each pair of words."""
        every = np.concatenate([self.writes, self.reads, self.by_column])
        return every.reshape(len(every), -1).T


def by_words(weights: Weights, targets: Groups, sources: Groups) -> WordWeights:
    """The weights of tokens by the words of both sides: summed over keys, averaged over rows."""
    columns = weights @ members(sources, weights.shape[2]).T.astype(float)
    writes = [columns[:, [piece - 1 for piece in word]].mean(axis=1) for word in targets]
    reads = [columns[:, list(word)].mean(axis=1) for word in targets]
    return WordWeights(np.stack(writes, axis=1), np.stack(reads, axis=1))


def strongest(strengths: Pairs) -> tuple[Bool[np.ndarray, "word other"], Bool[np.ndarray, "word other"]]:
    """The strongest source of each of the target's words, and the strongest word of each source."""
    forth, back = np.zeros(strengths.shape, bool), np.zeros(strengths.shape, bool)
    forth[np.arange(len(strengths)), strengths.argmax(axis=1)] = True
    back[strengths.argmax(axis=0), np.arange(strengths.shape[1])] = True
    return forth, back


def direction(forth: bool, back: bool) -> Direction:
    """From which side a link is the strongest; one that is not is as good from both."""
    return (
        Direction.TARGET if forth and not back else Direction.SOURCE if back and not forth else Direction.BOTH
    )


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt of gold: a calibrated classifier of pairs, and how much each head moves its answer."""

    classifier: Any
    shares: Float[np.ndarray, " head"]

    def shares_of(self, _words: WordWeights) -> Float[np.ndarray, " head"]:
        return self.shares

    def chances(self, words: WordWeights) -> Pairs:
        """How likely each pair is linked."""
        said = self.classifier.predict_proba(words.features)[:, 1]
        return np.asarray(said.reshape(words.writes.shape[1:]))


def learn(cases: Sequence[WordWeights], gold: Sequence[np.ndarray]) -> Learnt:
    """The classifier of all pairs, as sure as it was right about parts that were each left out once.

    `InputError` where gold links no pair, or every one.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    features, right = np.concatenate([each.features for each in cases]), [each.ravel() for each in gold]
    part = np.repeat(np.arange(len(cases)) % FOLDS, list(map(len, right)))
    linked = np.concatenate(right)
    parts = [(np.flatnonzero(part != fold), np.flatnonzero(part == fold)) for fold in np.unique(part)]
    if any(len(np.unique(linked[rest])) < 2 for rest, _ in parts):
        raise InputError("there is nothing to learn: gold has no sure link, or no pair without one")
    base = LogisticRegression(C=_PENALTY, max_iter=_STEPS)
    made = CalibratedClassifierCV(base, cv=parts, ensemble=False).fit(features, linked)
    fit = made.calibrated_classifiers_[0].estimator
    by_head = np.abs(fit.coef_[0] * features.std(axis=0)).reshape(3, -1).sum(axis=0)
    return Learnt(made, np.asarray(by_head / by_head.sum()))


def sure(chances: Pairs) -> Bool[np.ndarray, "word other"]:
    """The pairs that are more likely linked than not."""
    return chances >= SURE
