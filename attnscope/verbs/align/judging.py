"""Scores word links and word times against gold, beside a diagonal and chance."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from attnscope.analysis.controls import wilson
from attnscope.errors import InputError
from attnscope.results.base.groups import Groups, members
from attnscope.verbs.align.result import SURE, LinkScore, Reliability, TimeScore

FOLDS = 5  # parts of what is learnt on, each of which is judged by the others
NEAR = 0.1  # seconds: a begin that lies no farther off counts as right
_ENDS = (0.5, 0.7, 0.9, 0.97, 1.0)

Case = TypeVar("Case")
Way = TypeVar("Way")
Pairs = Float[np.ndarray, "word other"]
Linked = Bool[np.ndarray, "word other"]


@dataclass(frozen=True, eq=False)
class Gold:
    """Sure and possible links of one sentence pair."""

    sure: Linked
    possible: Linked


def score_links(
    name: str, strengths: Sequence[np.ndarray], links: Sequence[np.ndarray], gold: Sequence[Gold]
) -> LinkScore:
    """Precision, recall and alignment error rate of `links` over all pairs; `strengths` rank the links."""
    counts, found, words = np.zeros(4), 0, 0
    for strength, linked, true in zip(strengths, links, gold, strict=True):
        counts += [linked.sum(), (linked & true.possible).sum(), true.sure.sum(), (linked & true.sure).sum()]
        known = true.possible.any(axis=1)
        words += int(known.sum())
        found += int(true.possible[np.arange(len(strength)), strength.argmax(axis=1)][known].sum())
    return _score(name, counts, found, words, len(gold))


def _score(name: str, counts: np.ndarray, found: float, words: int, cases: int) -> LinkScore:
    answered, possible, sure, hit = counts.tolist()
    return LinkScore(
        name,
        possible / answered if answered else 0.0,
        hit / sure if sure else 0.0,
        1 - (hit + possible) / (answered + sure) if answered + sure else 0.0,
        found / words if words else 0.0,
        answered / cases,
    )


def score_diagonal(gold: Sequence[Gold]) -> LinkScore:
    """Baseline: the score of linking each word to the source word at the same relative position."""
    ways = list[Pairs]()
    for each in gold:
        count, others = each.sure.shape
        words = np.arange(count)
        ways.append(np.zeros((count, others)))
        ways[-1][words, np.rint(words * (others - 1) / max(1, count - 1)).astype(int)] = 1.0
    return score_links("diagonal", ways, [way > 0 for way in ways], gold)


def score_even(gold: Sequence[Gold]) -> LinkScore:
    """Baseline: the expected score of linking each word to a source word drawn by lot."""
    counts, found, words = np.zeros(4), 0.0, 0
    for each in gold:
        others, known = each.sure.shape[1], each.possible.any(axis=1)
        counts += [len(each.sure), each.possible.sum() / others, each.sure.sum(), each.sure.sum() / others]
        found += float(each.possible[known].sum()) / others
        words += int(known.sum())
    return _score("any word", counts, found, words, len(gold))


def left_out(cases: Sequence[Case], learn: Callable[[list[Case]], Way]) -> list[Way]:
    """Cross-validation: for each case what `learn` makes of the cases outside its fold."""
    parts = min(FOLDS, len(cases))
    by_part = [learn([each for i, each in enumerate(cases) if i % FOLDS != part]) for part in range(parts)]
    return [by_part[i % FOLDS] for i in range(len(cases))]


def reliabilities(said: Iterable[float], right: Iterable[bool]) -> tuple[Reliability, ...]:
    """Calibration by confidence bin: the share that is right and its Wilson interval; empty bins left out."""
    chances, truth = np.array([*said], dtype=float), np.array([*right], dtype=bool)
    made = list[Reliability]()
    for low, high in zip((0.0, *_ENDS), _ENDS, strict=False):
        inside = (chances >= low) & ((chances < high) | (high == 1.0))
        if count := int(inside.sum()):
            share = float(truth[inside].mean())
            made.append(
                Reliability(low, high, count, float(chances[inside].mean()), share, *wilson(share, count))
            )
    return tuple(made)


@dataclass(frozen=True, eq=False)
class Times:
    """Begins and ends of words in seconds."""

    begins: Float[np.ndarray, " word"]
    ends: Float[np.ndarray, " word"]


def score_times(name: str, said: Sequence[Times], gold: Sequence[Times]) -> TimeScore:
    """Errors of begins and ends in milliseconds: median, 90th percentile, share within 100 ms."""
    begins = 1000 * np.concatenate([np.abs(a.begins - b.begins) for a, b in zip(said, gold, strict=True)])
    ends = 1000 * np.concatenate([np.abs(a.ends - b.ends) for a, b in zip(said, gold, strict=True)])
    return TimeScore(name, *_spread(begins), *_spread(ends))


def _spread(off: Float[np.ndarray, " word"]) -> tuple[float, float, float]:
    return float(np.median(off)), float(np.quantile(off, 0.9)), float((off <= 1000 * NEAR).mean())


def equal_parts(sizes: Sequence[int], seconds: float) -> Times:
    """Baseline: word times by cutting the sound in proportion to `sizes`."""
    ends = np.cumsum(sizes) * seconds / sum(sizes)
    return Times(np.concatenate([[0.0], ends[:-1]]), ends)


DRAWS = 99
_ROUNDS, _NOTHING = 100, 1e-12

Rows = Float[np.ndarray, "head row key"]
Shares = Float[np.ndarray, " head"]


def even(heads: int) -> Shares:
    """Equal shares: 1 / heads for each."""
    return np.full(heads, 1 / heads)


def by_sharpness(rows: Rows) -> Shares:
    """Shares by the geometric mean of a head's sharpness and monotony; equal where no head has both."""
    rest = np.clip(1 - rows.sum(axis=2, keepdims=True), 0, None)
    whole = np.concatenate([rows, rest], axis=2)
    entropy = -(whole * np.log(whole + _NOTHING)).sum(axis=2).mean(axis=1)
    sharp = np.clip(1 - entropy / np.log(whole.shape[2]), 0, None)
    values = np.sqrt(sharp * _monotone(rows))
    total = float(values.sum())
    return values / total if total > _NOTHING else even(len(values))


def _monotone(rows: Rows) -> Float[np.ndarray, " head"]:
    """Correlation of each head's mean key with its row number, at least 0; 1 where rows are fewer than 3."""
    count = rows.shape[1]
    if count < 3:
        return np.ones(len(rows))
    centres = rows @ np.arange(rows.shape[2]) / (rows.sum(axis=2) + _NOTHING)
    centres = centres - centres.mean(axis=1, keepdims=True)
    places = np.arange(count) - (count - 1) / 2
    spread = np.sqrt((centres**2).sum(axis=1) * (places**2).sum())
    found = np.divide(centres @ places, spread, out=np.zeros(len(rows)), where=spread > 1e-9)
    return np.asarray(np.clip(found, 0, None))


def fitted(masses: Float[np.ndarray, "case head"]) -> Shares:
    """The mixture of heads that makes the right keys likeliest (expectation maximisation).

    `masses` is what each head gives to the right keys of each case. The likelihood has one maximum.
    """
    shares = even(masses.shape[1])
    for _ in range(_ROUNDS):
        taken = masses * shares + _NOTHING
        shares = (taken / taken.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def mixed(rows: Rows, shares: Shares) -> Float[np.ndarray, "row key"]:
    """The rows of all heads averaged by `shares`."""
    return np.asarray(np.tensordot(shares, rows, axes=1))


def agreement(rows: Rows, shares: Shares) -> float:
    """Mean over rows of the largest mixed weight: high where heads look sharply at the same key."""
    return float(mixed(rows, shares).max(axis=1).mean())


def shuffled(rows: Rows, shares: Shares, draws: int = DRAWS, seed: int = 0) -> Float[np.ndarray, " draw"]:
    """Agreement in `draws` controls, where the rows of each head are permuted by themselves.

    A head keeps how sharp it is and which keys it likes whatever the row: heads that all look at the full
    stop agree as much as before. What is lost is what the row has to do with the key.
    """
    random, used = np.random.default_rng(seed), shares > 0
    kept, own = rows[used], shares[used]
    each = np.arange(len(kept))[:, None]
    orders = (np.argsort(random.random(kept.shape[:2]), axis=1) for _ in range(draws))
    return np.array([agreement(kept[each, order], own) for order in orders])


_FLOOR = 0.1  # added to a column, so that one that nobody looks at is not blown up
_PENALTY, _STEPS = 3.0, 3000

Weights = Float[np.ndarray, "head query key"]
Said = Float[np.ndarray, "head word other"]


@dataclass(frozen=True, eq=False)
class WordWeights:
    """Weights of heads by word: of the rows that write each target word, and of those that read it."""

    writes: Said
    reads: Said

    @property
    def by_column(self) -> Said:
        """`writes` divided by its column sums, over all target words."""
        return np.asarray(self.writes / (self.writes.sum(axis=1, keepdims=True) + _FLOOR))

    @property
    def says(self) -> Said:
        """Strength of each word pair by head: the geometric mean of `writes` and `by_column`."""
        return np.asarray(np.sqrt(self.writes * self.by_column))

    @property
    def features(self) -> Float[np.ndarray, "pair feature"]:
        """Features of each word pair: `writes`, `reads` and `by_column` of every head."""
        every = np.concatenate([self.writes, self.reads, self.by_column])
        return every.reshape(len(every), -1).T


def by_words(weights: Weights, targets: Groups, sources: Groups) -> WordWeights:
    """Weights of tokens gathered into words of both sides: summed over keys, averaged over rows."""
    columns = weights @ members(sources, weights.shape[2]).T.astype(float)
    writes = [columns[:, [piece - 1 for piece in word]].mean(axis=1) for word in targets]
    reads = [columns[:, list(word)].mean(axis=1) for word in targets]
    return WordWeights(np.stack(writes, axis=1), np.stack(reads, axis=1))


def strongest(strengths: Pairs) -> tuple[Bool[np.ndarray, "word other"], Bool[np.ndarray, "word other"]]:
    """Masks: the strongest source of each target word, and the strongest target of each source word."""
    forth, back = np.zeros(strengths.shape, bool), np.zeros(strengths.shape, bool)
    forth[np.arange(len(strengths)), strengths.argmax(axis=1)] = True
    back[strengths.argmax(axis=0), np.arange(strengths.shape[1])] = True
    return forth, back


@dataclass(frozen=True, eq=False)
class Learnt:
    """A calibrated classifier of word pairs, learnt from gold, and the share of each head in its answer."""

    classifier: Any
    shares: Float[np.ndarray, " head"]

    def shares_of(self, _words: WordWeights) -> Float[np.ndarray, " head"]:
        return self.shares

    def chances(self, words: WordWeights) -> Pairs:
        """Probability that each word pair is linked."""
        said = self.classifier.predict_proba(words.features)[:, 1]
        return np.asarray(said.reshape(words.writes.shape[1:]))


def learn(cases: Sequence[WordWeights], gold: Sequence[np.ndarray]) -> Learnt:
    """Fits a logistic regression of links on the weights of heads, calibrated by cross-validation.

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
