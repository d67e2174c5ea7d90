"""When each word is heard, by dynamic time warping of cross-attention, as published for Whisper.

Each head's weights are set in relation to the other rows' (z-scores over rows, frame by frame), smoothed by a
median over time, and mixed; the path through that which gathers most, forward in both, gives each row its
stretch of the sound (Radford et al. 2022; the code of Whisper, `timing.py`). There a word begins where the
one before it ends, so silence between words goes to the next one. Here it begins where its own row first has
a quarter of the most that it has in its stretch, since heads look at nothing of a pause.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import median_filter

from attnscope.results.base.groups import Groups
from attnscope.verbs.align.judging import Rows, Shares, by_sharpness, even, fitted, mixed

MEDIAN = 0.14  # seconds: seven of Whisper's frames
_RISE = 0.25  # of the most of a row in its stretch
_LEAST = 1e-6

Matrix = Float[np.ndarray, "row frame"]


def median_width(seconds: float) -> int:
    """How many frames the median is over: an odd number, 1 for none."""
    return 2 * int(MEDIAN / seconds / 2 + 1e-9) + 1


def smoothed(rows: Rows, width: int) -> Rows:
    """Each weight in standard deviations of its frame over all rows, then the median over time."""
    scaled = (rows - rows.mean(axis=1, keepdims=True)) / (rows.std(axis=1, keepdims=True) + _LEAST)
    return np.asarray(median_filter(scaled, size=(1, 1, width))) if width > 1 else scaled


def path(gain: Matrix) -> Int[np.ndarray, "step 2"]:
    """Rows and frames of the path from the first of both to the last that gathers most.

    A step goes on by one row, one frame, or both. A row is summed from its begin, so that the best entry
    into it is a running minimum: as many steps as rows, and not one for each pair.
    """
    cost = -gain
    best = np.empty_like(cost)
    best[0] = np.cumsum(cost[0])
    for i in range(1, len(cost)):
        entered = np.minimum(best[i - 1], np.concatenate([[np.inf], best[i - 1, :-1]]))
        summed = np.cumsum(cost[i])
        best[i] = summed + np.minimum.accumulate(entered - np.concatenate([[0.0], summed[:-1]]))
    return _traced(best)


def _traced(best: Matrix) -> Int[np.ndarray, "step 2"]:
    """The path from its end back: the cheapest way in, both at once before a row before a frame."""
    i, j = best.shape[0] - 1, best.shape[1] - 1
    steps = [(i, j)]
    while i or j:
        both = best[i - 1, j - 1] if i and j else np.inf
        row = best[i - 1, j] if i else np.inf
        frame = best[i, j - 1] if j else np.inf
        if both <= row and both <= frame:
            i, j = i - 1, j - 1
        elif row <= frame:
            i -= 1
        else:
            j -= 1
        steps.append((i, j))
    return np.array(steps[::-1])


@dataclass(frozen=True, eq=False)
class Timed:
    """When each word begins and ends in seconds, and what speaks for it.

    `jumps` are the begins as published, each where the word before it ends. `strength` is the share of a
    word's weight between its begin and end, `peaks` the share of heads whose strongest frame of its first row
    lies within 100 ms of the begin.
    """

    begins: Float[np.ndarray, " word"]
    ends: Float[np.ndarray, " word"]
    jumps: Float[np.ndarray, " word"]
    strength: Float[np.ndarray, " word"]
    peaks: Float[np.ndarray, " word"]
    rows: Float[np.ndarray, "word frame"]


def timed(rows: Rows, shares: Shares, words: Groups, seconds: float, near: float) -> Timed:
    """The times of `words`, whose pieces are rows; behind the last of them one more row ends it."""
    steps = path(mixed(smoothed(rows, median_width(seconds)), shares))
    plain = mixed(rows, shares)
    stretches = [steps[steps[:, 0] == i, 1] for i in range(rows.shape[1])]
    first = np.array([stretch[0] for stretch in stretches])
    starts = np.array([_rise(plain[word[0]], stretches[word[0]]) for word in words])
    stops = np.array([max(first[word[-1] + 1], start + 1) for word, start in zip(words, starts, strict=True)])
    by_word = np.stack([plain[list(word)].mean(axis=0) for word in words])
    inside = [
        row[a:b].sum() / max(row.sum(), _LEAST) for row, a, b in zip(by_word, starts, stops, strict=True)
    ]
    tops = rows[:, [word[0] for word in words]].argmax(axis=2)
    peaks = shares @ (np.abs(tops - starts) * seconds <= near + seconds)
    return Timed(
        seconds * starts, seconds * stops, seconds * first[[word[0] for word in words]],
        np.array(inside), np.asarray(peaks), by_word,
    )  # fmt: skip


def _rise(row: Float[np.ndarray, " frame"], stretch: Int[np.ndarray, " step"]) -> int:
    """The first frame of the stretch at which the row has risen to a quarter of its most there."""
    inside = row[stretch]
    return int(stretch[np.argmax(inside >= _RISE * inside.max())])


@dataclass(frozen=True, eq=False)
class Case:
    """One sound: rows of heads over frames, which of them are pieces of a word, and when words are heard.

    A frame is `seconds` long, the sound `length`.
    """

    rows: Rows
    words: Groups
    seconds: float
    begins: Float[np.ndarray, " word"]
    ends: Float[np.ndarray, " word"]
    length: float

    @property
    def read(self) -> tuple[Groups, float]:
        return self.words, self.seconds

    @property
    def masses(self) -> Float[np.ndarray, "word head"]:
        """What each head gives to the frames of each word where it is heard."""
        frames = self.seconds * (np.arange(self.rows.shape[2]) + 0.5)
        inside = [(frames >= a) & (frames <= b) for a, b in zip(self.begins, self.ends, strict=True)]
        own = [self.rows[:, list(word)].mean(axis=1) for word in self.words]
        return np.array([row[:, near].sum(axis=1) for row, near in zip(own, inside, strict=True)])


@dataclass(frozen=True, eq=False)
class LearntTimes:
    """What was learnt of gold: the share of each head, how far begins and ends lie off, how sure a begin is.

    `shares` is None where heads do best by how sharp they are in each sound. `late` is what is taken from
    begins and ends, in seconds: the middle of what they lie off.
    """

    shares: Shares | None
    late: tuple[float, float]
    coefficients: Float[np.ndarray, " feature"]
    offset: float

    def shares_of(self, own: Any) -> Shares:
        return by_sharpness(own.rows) if self.shares is None else self.shares

    def timed(self, rows: Rows, words: Groups, seconds: float, near: float) -> Timed:
        """The times by these shares, set right by what such times lie off."""
        shares = by_sharpness(rows) if self.shares is None else self.shares
        found = timed(rows, shares, words, seconds, near)
        begins = np.maximum(found.begins - self.late[0], 0.0)
        return replace(found, begins=begins, ends=np.maximum(found.ends - self.late[1], begins))

    def chances(self, found: Timed) -> Float[np.ndarray, " word"]:
        """How likely each begin lies close to the true one."""
        said = _features(found) @ self.coefficients + self.offset
        return np.asarray(0.5 * (1 + np.tanh(said / 2)))


def learn_times(cases: Sequence[Case], near: float) -> LearntTimes:
    """The way to count heads that lies least off on gold, and how sure the begins are that it finds.

    Ways are: all alike, by how sharp each is, and as the mixture that gives most to the true times.
    """
    mixture = fitted(np.concatenate([each.masses for each in cases]))
    ways = (None, even(len(mixture)), mixture)
    tried = [LearntTimes(way, (0.0, 0.0), np.zeros(2), 0.0) for way in ways]
    offs = [_off(way, cases, near) for way in tried]
    best = min(range(len(ways)), key=lambda i: float(np.abs(offs[i]).mean()))
    late = float(np.median(offs[best][0])), float(np.median(offs[best][1]))
    chosen = replace(tried[best], late=late)
    found = [chosen.timed(each.rows, each.words, each.seconds, near) for each in cases]
    right = np.concatenate([np.abs(a.begins - b.begins) <= near for a, b in zip(found, cases, strict=True)])
    if right.all() or not right.any():
        level = (right.sum() + 1) / (len(right) + 2)
        return replace(chosen, offset=float(np.log(level / (1 - level))))
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression().fit(np.concatenate([_features(one) for one in found]), right)
    return replace(chosen, coefficients=fit.coef_[0], offset=float(fit.intercept_[0]))


def _off(way: LearntTimes, cases: Sequence[Case], near: float) -> Float[np.ndarray, "end word"]:
    """How far begins and ends lie off, in seconds, late ones above 0."""
    found = [way.timed(each.rows, each.words, each.seconds, near) for each in cases]
    begins = [one.begins - each.begins for one, each in zip(found, cases, strict=True)]
    ends = [one.ends - each.ends for one, each in zip(found, cases, strict=True)]
    return np.stack([np.concatenate(begins), np.concatenate(ends)])


def _features(found: Timed) -> Float[np.ndarray, "word 2"]:
    strength = np.clip(found.strength, 1e-3, 1 - 1e-3)
    return np.stack([np.log(strength / (1 - strength)), 4 * found.peaks], axis=1)
