"""Links between words by the cross-attention of all heads, from both sides; with gold, with what chance.

The weights of a target's word are those of the rows that write its pieces, the ones before them; what its own
rows look at belongs already to the word behind it. A head sees a pair of words from both sides: as the
share of the row, and as the share of the column. Its say is their geometric mean.

With gold all of that, of every head, goes into one logistic regression for each pair of words, and how sure
that is is set right by what it said of pairs that it was not fitted to (Platt 1999).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.groups import Groups, members
from attnscope.results.claims.alignment import SURE, Direction

FOLDS = 5
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
    """What was learnt of gold: a coefficient for each feature, and how sure the sum of them is."""

    coefficients: Float[np.ndarray, " feature"]
    offset: float
    slope: float
    level: float
    shares: Float[np.ndarray, " head"]

    def sums(self, words: WordWeights) -> Float[np.ndarray, " pair"]:
        return np.asarray(words.features @ self.coefficients + self.offset)

    def chances(self, words: WordWeights) -> Pairs:
        """How likely each pair is linked."""
        said = self.slope * self.sums(words) + self.level
        return np.asarray(_sigmoid(said).reshape(words.writes.shape[1:]))


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(values / 2))


def learn(cases: Sequence[WordWeights], gold: Sequence[np.ndarray]) -> Learnt:
    """The model of all cases, its sureness from parts that were each left out once."""
    features = [each.features for each in cases]
    right = [each.ravel() for each in gold]
    parts = [np.arange(len(cases)) % FOLDS == fold for fold in range(min(FOLDS, len(cases)))]
    said, truth = list[np.ndarray](), list[np.ndarray]()
    for out in parts if len(parts) > 1 else []:
        fit = _fitted(features, right, np.flatnonzero(~out))
        said += [features[i] @ fit.coef_[0] + fit.intercept_[0] for i in np.flatnonzero(out)]
        truth += [right[i] for i in np.flatnonzero(out)]
    slope, level = _platt(np.concatenate(said), np.concatenate(truth)) if said else (1.0, 0.0)
    fit = _fitted(features, right, np.arange(len(cases)))
    every = np.concatenate(features)
    return Learnt(
        fit.coef_[0], float(fit.intercept_[0]), slope, level, _shares(fit.coef_[0] * every.std(axis=0))
    )


def _fitted(features: Sequence[np.ndarray], right: Sequence[np.ndarray], chosen: np.ndarray) -> Any:
    from sklearn.linear_model import LogisticRegression

    made = LogisticRegression(C=_PENALTY, max_iter=_STEPS)
    return made.fit(np.concatenate([features[i] for i in chosen]), np.concatenate([right[i] for i in chosen]))


def _platt(said: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression(C=1e3).fit(said[:, None], right)
    return float(fit.coef_[0, 0]), float(fit.intercept_[0])


def _shares(moved: Float[np.ndarray, " feature"]) -> Float[np.ndarray, " head"]:
    """How much each head moves the answer, of all that heads move it."""
    by_head = np.abs(moved).reshape(3, -1).sum(axis=0)
    return np.asarray(by_head / by_head.sum())


def held_out(cases: Sequence[WordWeights], gold: Sequence[np.ndarray]) -> list[Pairs]:
    """The chances of each case by what was learnt on the others, a part of all cases at a time."""
    found = dict[int, Pairs]()
    for fold in range(min(FOLDS, len(cases))):
        out = [i for i in range(len(cases)) if i % FOLDS == fold]
        rest = [i for i in range(len(cases)) if i % FOLDS != fold]
        learnt = learn([cases[i] for i in rest], [gold[i] for i in rest])
        found |= {i: learnt.chances(cases[i]) for i in out}
    return [found[i] for i in range(len(cases))]


def sure(chances: Pairs) -> Bool[np.ndarray, "word other"]:
    """The pairs that are more likely linked than not."""
    return chances >= SURE
