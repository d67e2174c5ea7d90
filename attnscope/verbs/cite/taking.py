"""Removes passages and measures what each sentence loses; averages attention to each passage."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

from attnscope.analysis.answers.answered import Answered, Removed
from attnscope.analysis.rows import Layer, moved, rows_of
from attnscope.errors import CertificateError
from attnscope.results.base.groups import members
from attnscope.verbs.cite.result import candidates_of

KEPT = 0.5  # of the passages in a random subset
ALPHA = 0.01  # of Lasso, on log odds by token: ContextCite's own
HELD_OUT = 0.25  # of the subsets: what the fit is tested on
CONTROLS, _TRIES = 20, 4  # halves of the other passages beside which a loss stands, at most; draws for each
_LEAST_CHANCE = 1e-12  # and most, 1 less that: log odds are no larger


def halves(passages: int, count: int, seed: int) -> Bool[np.ndarray, "subset passage"]:
    """Random subsets of passages: True where a passage is kept."""
    random = np.random.default_rng(seed)
    return np.asarray(random.random((count, passages)) < KEPT)


def fitted(
    there: Bool[np.ndarray, "subset passage"], chances: Float[np.ndarray, " subset"], tokens: int
) -> tuple[Float[np.ndarray, " passage"], float]:
    """Lasso weights of passages on a sentence's log odds, and R² on held-out subsets (ContextCite).

    `tokens` is the sentence's length. R² is NaN where the log probabilities held out are all the same.
    """
    odds = log_odds(chances)
    held = max(2, round(HELD_OUT * len(odds)))
    known, left = slice(None, -held), slice(-held, None)
    r2 = float("nan")
    if np.ptp(odds[left]) > 0:
        weights, rest = _lasso(there[known], odds[known], tokens)
        r2 = float(r2_score(odds[left], there[left] @ weights + rest))
    return _lasso(there, odds, tokens)[0], r2


def log_odds(chances: Float[np.ndarray, " subset"]) -> Float[np.ndarray, " subset"]:
    """Log odds, ln p / (1 - p), of log probabilities."""
    probable = np.clip(np.exp(chances), _LEAST_CHANCE, 1 - _LEAST_CHANCE)
    low = np.minimum(chances, np.log(probable))  # of what is least probable the log probability is known
    return np.asarray(low - np.log1p(-probable))


def _lasso(
    there: Bool[np.ndarray, "subset passage"], odds: Float[np.ndarray, " subset"], tokens: int
) -> tuple[Float[np.ndarray, " passage"], float]:
    scaler = StandardScaler()
    scaled = scaler.fit_transform(there.astype(float))
    model = Lasso(alpha=ALPHA).fit(scaled, odds / tokens)
    weights = model.coef_ / scaler.scale_
    return weights * tokens, float(model.intercept_ - scaler.mean_ @ weights) * tokens


def others_together(passages: int, candidates: Collection[int], seed: int) -> list[tuple[int, ...]]:
    """Random halves of the passages that are no candidates, all different, drawn with `seed`."""
    others = [each for each in range(passages) if each not in candidates]
    random = np.random.default_rng(seed)
    drawn = dict[tuple[int, ...], None]()
    for _ in range(_TRIES * CONTROLS):
        size = int(random.integers(len(others) // 2, (len(others) + 1) // 2 + 1))
        drawn[tuple(sorted(random.permutation(others)[: max(size, 1)].tolist()))] = None
        if len(drawn) == CONTROLS:
            break
    return [*drawn]


VERIFIED = 8  # passages that a fit puts first, which are then taken away themselves, and as many by lot
Groups = Sequence[Sequence[int]]


@dataclass(eq=False)
class Taken:
    """Log probability of each sentence before and after removals of passages and of random halves.

    The fields are named as in `Citation` and its `Statement`; `before` is with every passage.
    """

    before: Float[np.ndarray, " sentence"]
    floor: float
    without_all: Float[np.ndarray, " sentence"]
    lost: Float[np.ndarray, "sentence passage"]
    subsets: int = 0
    weights: Float[np.ndarray, "sentence passage"] | None = None
    r2: list[float] = field(default_factory=list)
    candidates: list[tuple[int, ...]] = field(default_factory=list)
    controls: list[tuple[float, ...]] = field(default_factory=list)


def taken_away(
    answered: Answered, sentences: Groups, passages: Groups, subsets: int | None, seed: int
) -> Taken:
    """Removes each passage alone; with `subsets` those that a fit to random halves ranks first, and some.

    `CertificateError` where batching shorter texts changes the model's answer.
    """
    runs, places = _Runs(answered, sentences), [frozenset(each) for each in passages]
    alone = places if subsets is None else []
    found = answered.without([(), frozenset().union(*places), *alone])
    before, floor = runs.untouched(found[0])
    all_gone, *without = before - runs.told(found[1:])
    lost = np.full((len(before), len(places)), np.nan)
    taken = Taken(before, floor, all_gone, lost, r2=[float("nan")] * len(before))
    if subsets is None:
        lost[:] = np.transpose(without)
    else:
        each = _by_halves(taken, runs, places, subsets, seed)
        lost[:, each] = (before - runs.without([places[i] for i in each])).T
    taken.candidates = [candidates_of(row) for row in lost]
    _hold_against(taken, runs, places, seed)
    return taken


@dataclass(frozen=True, eq=False)
class _Runs:
    answered: Answered
    sentences: Groups

    def untouched(self, beside: Float[np.ndarray, " token"]) -> tuple[Float[np.ndarray, " sentence"], float]:
        """Log probability of each sentence, and the largest change by batching it `beside` shorter texts."""
        one = self.answered.untouched()
        if self.answered.strays(one, beside):
            raise CertificateError(
                "the model answers otherwise where texts stand side by side: what removing does is unknown"
            )
        alone, moved = self.told(np.stack([one, beside]))
        return alone, float(np.abs(alone - moved).max())

    def without(self, removed: Sequence[Removed]) -> Float[np.ndarray, "run sentence"]:
        return self.told(self.answered.without(removed))

    def told(self, chances: Float[np.ndarray, "run token"]) -> Float[np.ndarray, "run sentence"]:
        return np.stack([chances[:, list(each)].sum(axis=1) for each in self.sentences], axis=1)


def _by_halves(
    taken: Taken, runs: _Runs, places: Sequence[frozenset[int]], count: int, seed: int
) -> list[int]:
    """Fits random halves; returns the passages ranked first for any sentence, and as many drawn by lot."""
    taken.subsets, there = count, halves(len(places), count, seed)
    gone = [frozenset().union(*(places[i] for i in np.flatnonzero(~each).tolist())) for each in there]
    chances = runs.without(gone)
    fits = [fitted(there, chances[:, i], len(own)) for i, own in enumerate(runs.sentences)]
    taken.weights, taken.r2 = np.array([weights for weights, _ in fits]), [r2 for _, r2 in fits]
    first = {int(i) for row in taken.weights for i in np.argsort(-row, kind="stable")[:VERIFIED]}
    lot = np.random.default_rng(seed).permutation(len(places))[:VERIFIED]
    return sorted(first | {*lot.tolist()})


def _hold_against(taken: Taken, runs: _Runs, places: Sequence[frozenset[int]], seed: int) -> None:
    drawn = [
        (candidates, frozenset().union(*(places[each] for each in half)))
        for candidates in dict.fromkeys(taken.candidates)
        if candidates
        for half in others_together(len(places), candidates, seed)
    ]
    chances = runs.without([half for _, half in drawn])
    for i, candidates in enumerate(taken.candidates):
        own = [row for row, (of, _) in enumerate(drawn) if of == candidates]
        taken.controls.append(tuple((taken.before[i] - chances[own, i]).tolist()))


COPIES = 0.1  # of the tokens of the answer: a head that copies fewer is none of those that copy
LOOKS = 0.1  # of its weight a head gives to the token that it is said to copy, at least

Shares = Float[np.ndarray, "sentence passage"]


@dataclass(frozen=True, eq=False)
class Looked:
    """Weights to passages: mean over all heads, over copying heads, and by norm; None where not known."""

    attention: Shares
    copying: Shares | None
    heads: tuple[tuple[int, int], ...]
    by_norm: Shares | None


def looked(
    layers: Iterable[Layer],
    heads: Sequence[int],
    rows: Sequence[int],
    written: Sequence[int],
    keys: Sequence[int],
    passages: Sequence[Sequence[int]],
    sentences: Sequence[Sequence[int]],
) -> Looked:
    """Averages attention from `rows`, which write the ids `written`, to passages of `keys`, by sentence."""
    there = members(tuple(map(tuple, passages)), len(keys))
    own = members(tuple(map(tuple, sentences)), len(rows)).astype(float)
    own /= own.sum(axis=1, keepdims=True)
    inside, ids = there.any(axis=0), np.array(keys)
    columns, numbers = there.T.astype(float), list[int]()
    weights, scores, moving = list[np.ndarray](), list[np.ndarray](), list[np.ndarray | None]()
    for layer in layers:
        given, lengths = np.nan_to_num(rows_of(layer, heads, rows)), moved(layer)
        weights.append(given @ columns)
        strongest = np.where(inside, given, -1.0).argmax(axis=2)
        looks = np.take_along_axis(given, strongest[..., None], axis=2)[..., 0] >= LOOKS
        scores.append(((ids[strongest] == np.array(written)) & looks).mean(axis=1))
        numbers.append(layer.layer)
        moving.append(None if lengths is None else (given * lengths[list(heads)][:, None]).sum(axis=0))
    every, copied = np.array(weights), np.array(scores)  # layer, head, row, passage; layer, head
    known = [each for each in moving if each is not None]
    all_moved = np.sum(known, axis=0)
    copies = copied >= max(COPIES, copied.max() / 2)
    return Looked(
        own @ every.mean(axis=(0, 1)),
        own @ every[copies].mean(axis=0) if copies.any() else None,
        tuple((numbers[i], heads[j]) for i, j in np.argwhere(copies).tolist()),
        None
        if len(known) < len(moving)
        else own @ (all_moved / all_moved.sum(axis=1, keepdims=True)) @ columns,
    )
