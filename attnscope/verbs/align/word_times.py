"""When each spoken word begins and ends by a model's cross-attention, scored beside baselines.

Dynamic time warping of cross-attention, as published for Whisper (Radford et al. 2022; its `timing.py`).
Each head's weights are set in relation to the other rows' (z-scores over rows, frame by frame), smoothed by a
median over time, and mixed; the path through that which gathers most, forward in both, gives each row its
stretch of the sound. There a word begins where the one before it ends, so silence between words goes to the
next one. Here it begins where its own row first has a quarter of the most that it has in its stretch, since
heads look at nothing of a pause.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import median_filter

from attnscope.errors import InputError
from attnscope.results import Sound
from attnscope.results.base.groups import Groups
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs
from attnscope.tokens import Frames, Tokens
from attnscope.verbs.align.answer import (
    Aligning,
    AligningWords,
    Attended,
    Cases,
    Scored,
    Side,
    Told,
    written_by,
)
from attnscope.verbs.align.gold import GoldTimes, read_times
from attnscope.verbs.align.judging import (
    NEAR,
    Rows,
    Shares,
    Times,
    by_sharpness,
    equal_parts,
    even,
    fitted,
    mixed,
    score_times,
)
from attnscope.verbs.align.question import Align
from attnscope.verbs.align.result import Alignment, Timing, WordTime

MEDIAN = 0.14  # seconds: seven of Whisper's frames
_RISE = 0.25  # of the most of a row in its stretch
_LEAST = 1e-6

Matrix = Float[np.ndarray, "row frame"]


def median_width(seconds: float) -> int:
    """Width of the median filter in frames: an odd number, 1 for none."""
    return 2 * int(MEDIAN / seconds / 2 + 1e-9) + 1


def smoothed(rows: Rows, width: int) -> Rows:
    """Weights as z-scores over the rows of each frame, then median-filtered over time."""
    scaled = (rows - rows.mean(axis=1, keepdims=True)) / (rows.std(axis=1, keepdims=True) + _LEAST)
    return np.asarray(median_filter(scaled, size=(1, 1, width))) if width > 1 else scaled


def path(gain: Matrix) -> Int[np.ndarray, "step 2"]:
    """(row, frame) steps of the monotone path from the first of both to the last that gathers most gain.

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
    """The path by backtracking from its end; on ties both at once before a row before a frame."""
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
    """Begin and end of each word in seconds, and the evidence for them.

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
    """Times of `words`, each a group of rows; the row after a word's last piece marks its end."""
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
    """One sound of gold: the heads' rows over frames, words as groups of rows, and the true times.

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
        """The weight that each head gives to the true frames of each word."""
        frames = self.seconds * (np.arange(self.rows.shape[2]) + 0.5)
        inside = [(frames >= a) & (frames <= b) for a, b in zip(self.begins, self.ends, strict=True)]
        own = [self.rows[:, list(word)].mean(axis=1) for word in self.words]
        return np.array([row[:, near].sum(axis=1) for row, near in zip(own, inside, strict=True)])


@dataclass(frozen=True, eq=False)
class LearntTimes:
    """Timing learnt from gold: shares of heads, the median lag of begins and ends, how sure a begin is.

    `shares` is None where heads do best by how sharp they are in each sound. `late` is subtracted
    from begins and ends, in seconds: the median errors of both.
    """

    shares: Shares | None
    late: tuple[float, float]
    coefficients: Float[np.ndarray, " feature"]
    offset: float

    def shares_of(self, own: Any) -> Shares:
        return by_sharpness(own.rows) if self.shares is None else self.shares

    def timed(self, rows: Rows, words: Groups, seconds: float, near: float) -> Timed:
        """Word times by the learnt shares, corrected by the learnt lag."""
        shares = by_sharpness(rows) if self.shares is None else self.shares
        found = timed(rows, shares, words, seconds, near)
        begins = np.maximum(found.begins - self.late[0], 0.0)
        return replace(found, begins=begins, ends=np.maximum(found.ends - self.late[1], begins))

    def chances(self, found: Timed) -> Float[np.ndarray, " word"]:
        """Probability that each begin lies close to the true one."""
        said = _features(found) @ self.coefficients + self.offset
        return np.asarray(0.5 * (1 + np.tanh(said / 2)))


def learn_times(cases: Sequence[Case], near: float) -> LearntTimes:
    """Picks the shares of heads with the smallest errors on gold, and fits the lag and the confidence.

    It tries equal shares, shares by sharpness, and the mixture that gives most to the true times.
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
    """Signed errors of begins and ends in seconds, late ones above 0."""
    found = [way.timed(each.rows, each.words, each.seconds, near) for each in cases]
    begins = [one.begins - each.begins for one, each in zip(found, cases, strict=True)]
    ends = [one.ends - each.ends for one, each in zip(found, cases, strict=True)]
    return np.stack([np.concatenate(begins), np.concatenate(ends)])


def _features(found: Timed) -> Float[np.ndarray, "word 2"]:
    strength = np.clip(found.strength, 1e-3, 1 - 1e-3)
    return np.stack([np.log(strength / (1 - strength)), 4 * found.peaks], axis=1)


@dataclass(frozen=True, eq=False)
class _Heard:
    side: Side
    rows: Rows
    words: Groups
    seconds: float
    sound: Sound

    @classmethod
    def of(cls, reading: Reading, weights: Rows, keys: Tokens, side: Side) -> "_Heard":
        medium = reading.medium
        frames = next((each for each in keys.stretches if isinstance(each, Frames)), None)
        if not isinstance(medium, Sound) or frames is None:
            raise InputError(f"{reading.model.name}: which time its positions stand for cannot be told")
        heard = frames.heard(medium.seconds)
        pieces = [piece for word in side.groups for piece in word]
        if heard <= len(pieces):
            raise InputError(f"{medium.described}: too short for {len(pieces)} pieces of words")
        rows = weights[:, [piece - 1 for piece in pieces] + [pieces[-1]]][..., list(frames.positions[:heard])]
        place = {piece: i for i, piece in enumerate(pieces)}
        words = tuple(tuple(place[piece] for piece in word) for word in side.groups)
        return cls(side, rows, words, frames.seconds, medium)

    @property
    def called(self) -> tuple[str, ...]:
        return tuple(token.text.strip() or token.name for token in self.side.words.items)


class TimingWords(Aligning[GoldTimes, Side, _Heard, Case, LearntTimes, Timing]):
    """Times the words of a sound, by heads learnt from gold where there is some."""

    def read(self, file: Path) -> tuple[GoldTimes, ...]:
        return read_times(file)

    def check(self) -> None:
        if self.learn and self.learn[0].file is None:
            raise InputError(
                f"{self.learn[0].place}: heads are learnt on lines of sound, word, begin and end"
            )
        if len(self.learn) == 1:
            raise InputError(f"{self.learn[0].place}: one sound is too few to learn from: two at least")
        if len(self.gold) > 1 and self.gold[0].file is None:
            raise InputError(f"{self.gold[1].place}: gold of a second sound, which is not named")

    def sides(self, reading: Reading) -> Side:
        return _words(reading)

    def told(self, reading: Reading, shown: Attended, sides: Side) -> Told[_Heard]:
        heard = _Heard.of(reading, shown.weights, shown.keys, sides)
        for gold in self.gold:
            if gold.of_what_is_shown:
                gold.check(heard.called)
        return Told(heard, heard.rows, heard.rows)

    def case(self, cases: Cases, gold: GoldTimes, certify: bool) -> Case:
        from attnscope.model.media.perceive import read_media

        model, file = cases.reading.model, gold.file or Path()
        encoded = read_media(model, audio=file)
        target = model.target(encoded, gold.text)
        asked = Inputs(audio=file, target=gold.text)
        reading = replace(cases.reading, asked=asked, encoded=encoded, target=target)
        side = Side.of(target.tokens, plain=True)
        if len(side.groups) != len(gold.words):
            raise InputError(f"{model.name} does not read every word")
        written_by(side.groups, model.name)
        weights = cases.weights(reading, certify=certify)
        return _case(_Heard.of(reading, weights, encoded.positions, side), gold)

    def own_case(self, told: Told[_Heard], gold: GoldTimes) -> Case:
        return _case(told.own, gold)

    def learnt(self, cases: Sequence[Case]) -> LearntTimes:
        return learn_times(cases, NEAR)

    def answered(
        self,
        told: Told[_Heard],
        shares: Shares,
        learnt: LearntTimes | None,
        gold: GoldTimes | None,
        sides: Side,
        **parts: Any,
    ) -> Timing:
        heard = told.own
        read = (heard.rows, heard.words, heard.seconds, NEAR)
        found = timed(heard.rows, shares, *read[1:]) if learnt is None else learnt.timed(*read)
        return Timing(
            query_tokens=sides.words,
            sound=heard.sound,
            seconds=heard.seconds,
            rows=found.rows,
            times=_times(found, learnt, gold),
            width=median_width(heard.seconds),
            **parts,
        )

    def scored(
        self, cases: Sequence[Case], learnt: Sequence[LearntTimes] | None, weigh: Callable[[Rows], Shares]
    ) -> Scored:
        if learnt is None:
            found = [timed(each.rows, weigh(each.rows), *each.read, NEAR) for each in cases]
            chances = list[np.ndarray]()
        else:
            both = list(zip(learnt, cases, strict=True))
            found = [way.timed(each.rows, *each.read, NEAR) for way, each in both]
            chances = [way.chances(one) for way, one in zip(learnt, found, strict=True)]
        published = [timed(each.rows, even(len(each.rows)), *each.read, NEAR) for each in cases]
        true = [Times(each.begins, each.ends) for each in cases]
        sizes = [[len(word) for word in each.words] for each in cases]
        ways = {
            "these times": [Times(each.begins, each.ends) for each in found],
            "as published": [Times(one.jumps, one.ends) for one in published],
            "equal pieces": [equal_parts(size, c.length) for size, c in zip(sizes, cases, strict=True)],
            "equal words": [
                equal_parts([1] * len(size), c.length) for size, c in zip(sizes, cases, strict=True)
            ],
        }
        right = [np.abs(a.begins - b.begins) <= NEAR for a, b in zip(found, true, strict=True)]
        scores = tuple(score_times(name, said, true) for name, said in ways.items())
        return sum(len(each.begins) for each in true), scores, chain(*chances), chain(*right)


def _words(reading: Reading) -> Side:
    medium = reading.medium
    name = reading.model.name
    if isinstance(medium, Sound) and medium.samples is not None and not np.ptp(medium.samples):
        raise InputError(f"{medium.name} is silent: there is no speech to time")
    if reading.target is None:
        raise InputError(f"{name} writes no target: align needs a decoder beside an encoder")
    side = Side.of(reading.target.tokens, plain=True)
    if not side.groups:
        heard = "the sound" if medium is None else getattr(medium, "name", "the sound")
        raise InputError(f"{name} hears no word in {heard}: --target says what is said")
    written_by(side.groups, name)
    return side


def _times(found: Timed, learnt: LearntTimes | None, gold: GoldTimes | None) -> tuple[WordTime, ...]:
    chances = None if learnt is None else learnt.chances(found)
    true = [(None, None)] * len(found.begins) if gold is None else gold.times
    return tuple(
        WordTime(
            float(found.begins[i]),
            float(found.ends[i]),
            float(found.strength[i]),
            None if chances is None else float(chances[i]),
            *true[i],
        )
        for i in range(len(found.begins))
    )


def _case(heard: _Heard, gold: GoldTimes) -> Case:
    begins, ends = np.array(gold.times).T
    return Case(heard.rows, heard.words, heard.seconds, begins, ends, heard.sound.seconds)


def aligned(reading: Reading, chosen: Chosen, asked: Align) -> Alignment | Timing:
    """Times the words of a sound, or links the words of two texts."""
    files = (None if each is None else Path(each) for each in (asked.gold, asked.learn))
    return (TimingWords if reading.asked.sensed else AligningWords)(*files).answer(reading, chosen)
