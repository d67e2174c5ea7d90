"""When each word of what is said is heard, beside what gold or shuffled heads say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.errors import InputError
from attnscope.results import Sound
from attnscope.results.base.groups import Groups
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs
from attnscope.tokens import Frames, Tokens
from attnscope.verbs.align.answer import (
    Aligning,
    Attended,
    Cases,
    Scored,
    Told,
)
from attnscope.verbs.align.gold import GoldTimes, read_times
from attnscope.verbs.align.judging import (
    NEAR,
    Rows,
    Shares,
    Times,
    equal_parts,
    even,
    score_times,
)
from attnscope.verbs.align.question import Align
from attnscope.verbs.align.result import Alignment, Timing, WordTime
from attnscope.verbs.align.timing import (
    Case,
    LearntTimes,
    Timed,
    learn_times,
    median_width,
    timed,
)
from attnscope.verbs.align.word_links import AligningWords, Side, written_by


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
    """The times of the words: by what gold teaches where there is some to learn on."""

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
        return Scored(sum(len(each.begins) for each in true), scores, chain(*chances), chain(*right))


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
    """The words of a sound with their times, those of a text with the words that they stand for."""
    files = (None if each is None else Path(each) for each in (asked.gold, asked.learn))
    return (TimingWords if reading.asked.sensed else AligningWords)(*files).answer(reading, chosen)
