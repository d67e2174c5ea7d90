"""When each word of what is said is heard, beside what gold or shuffled heads say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from attnscope.analysis.claims.alignment.gold import GoldTimes, read_times
from attnscope.analysis.claims.alignment.judging import NEAR, Times, equal_parts, reliabilities, score_times
from attnscope.analysis.claims.alignment.linking import FOLDS
from attnscope.analysis.claims.alignment.timing import (
    Case,
    LearntTimes,
    Timed,
    learn_times,
    median_width,
    timed,
)
from attnscope.analysis.claims.alignment.weighing import Rows, agreement, even, shuffled
from attnscope.errors import InputError
from attnscope.results import Sound
from attnscope.results.base.groups import Groups
from attnscope.results.claims.alignment import Judged, Timing, Weighing, WordTime
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.aligning import (
    AlignQuestion,
    Cases,
    Side,
    attended,
    shares_of,
    weighed,
    written_by,
)
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs
from attnscope.tokens import Frames, Tokens


def check_gold(asked: AlignQuestion) -> None:
    """Raises `InputError` for files that are no gold, before any model is read."""
    _gold(asked)


def _gold(asked: AlignQuestion) -> tuple[tuple[GoldTimes, ...], tuple[GoldTimes, ...]]:
    gold = () if asked.gold is None else read_times(asked.gold)
    learn_from = () if asked.learn is None else read_times(asked.learn)
    if learn_from and learn_from[0].file is None:
        raise InputError(f"{learn_from[0].place}: heads are learnt on lines of sound, word, begin and end")
    if learn_from and len(learn_from) < 2:
        raise InputError(f"{learn_from[0].place}: one sound is too few to learn from: two at least")
    if gold and gold[0].file is None and len(gold) > 1:
        raise InputError(f"{gold[1].place}: gold of a second sound, which is not named")
    return gold, learn_from


@dataclass(frozen=True, eq=False)
class _Heard:
    """The words of a target over the frames of a sound: rows that write its pieces, one that ends them."""

    side: Side
    rows: Rows
    words: Groups
    seconds: float
    sound: Sound

    @classmethod
    def of(cls, reading: Reading, weights: Rows, keys: Tokens, side: Side) -> "_Heard":
        medium = None if reading.perceived is None else reading.perceived.medium
        frames = next((each for each in keys.stretches if isinstance(each, Frames)), None)
        if not isinstance(medium, Sound) or frames is None:
            raise InputError(f"{reading.model.name}: which time its positions stand for cannot be told")
        heard = min(int(np.ceil(medium.seconds / frames.seconds - 1e-9)), frames.count)
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


def time_words(reading: Reading, chosen: Chosen, asked: AlignQuestion) -> Timing:
    """The times of the words: learnt on gold where there is some, else by how sharp heads are."""
    gold, learn_from = _gold(asked)
    side = _words(reading)
    own = next((each for each in gold if each.file is None), None)
    shown = attended(reading, chosen)
    heard = _Heard.of(reading, shown.weights, shown.keys, side)
    if own is not None:
        own.check(heard.called)
    cases = Cases(reading, chosen)
    learnt_on = _read(cases, learn_from)
    learnt = learn_times(learnt_on, NEAR) if learnt_on else None
    weighing, shares = shares_of(reading, chosen, heard.rows)
    if learnt is not None:
        weighing, shares = Weighing.LEARNT, learnt.shares_of(heard.rows)
    read = (heard.words, heard.seconds, NEAR)
    found = timed(heard.rows, shares, *read) if learnt is None else learnt.timed(heard.rows, *read)
    result = Timing(
        kind=chosen.kind,
        query_tokens=side.words,
        sound=heard.sound,
        seconds=heard.seconds,
        layers=chosen.layers,
        heads=chosen.heads,
        weighing=weighing,
        weighed=weighed(chosen, shares),
        rows=found.rows,
        times=_times(found, learnt, own),
        width=median_width(heard.seconds),
        agreement=agreement(heard.rows, shares),
        shuffled=shuffled(heard.rows, shares),
        verdicts=shown.verdicts,
        provenance=shown.attention.provenance,
        learnt_on="" if asked.learn is None else asked.learn.name,
        tower=shown.tower,
        notes=shown.notes,
    )
    cased = [_case(heard, own)] if own is not None else _read(cases, gold)
    judged = _judged(asked, cases, cased or learnt_on, learnt, not cased)
    return replace(result, judged=judged, verdicts=cases.worst(shown.verdicts))


def _words(reading: Reading) -> Side:
    medium = None if reading.perceived is None else reading.perceived.medium
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


def _read(cases: Cases, gold: Sequence[GoldTimes]) -> list[Case]:
    """All sounds of gold that the model reads, with the words that gold has."""
    from attnscope.model.media.perceive import read_media

    def make(each: GoldTimes, certify: bool) -> Case:
        model, file = cases.reading.model, each.file or Path()
        encoded = read_media(model, audio=file)
        target = model.target(encoded, each.text)
        reading = replace(
            cases.reading, asked=Inputs(audio=file, target=each.text), encoded=encoded, target=target
        )
        side = Side.of(target.tokens, plain=True)
        if len(side.groups) != len(each.words):
            raise InputError(f"{model.name} does not read every word")
        written_by(side.groups, model.name)
        return _case(
            _Heard.of(reading, cases.weights(reading, certify=certify), encoded.positions, side), each
        )

    made = [case for _, case in cases.read(gold, make)]
    if gold and not made:
        raise InputError(f"{cases.reading.model.name} reads none of the sounds of gold")
    return made


def _judged(
    asked: AlignQuestion, cases: Cases, sounds: Sequence[Case], learnt: LearntTimes | None, out: bool
) -> Judged | None:
    """How the answer's way does on gold: that of `--gold`, or each part of `--learn` by the others."""
    if not sounds:
        return None
    found, chances = _found(cases, sounds, learnt, out)
    published = [timed(c.rows, even(len(c.rows)), c.words, c.seconds, NEAR) for c in sounds]
    true = [Times(each.begins, each.ends) for each in sounds]
    sizes = [[len(word) for word in each.words] for each in sounds]
    ways = {
        "these times": [Times(each.begins, each.ends) for each in found],
        "as published": [Times(one.jumps, one.ends) for one in published],
        "equal pieces": [equal_parts(size, c.length) for size, c in zip(sizes, sounds, strict=True)],
        "equal words": [
            equal_parts([1] * len(size), c.length) for size, c in zip(sizes, sounds, strict=True)
        ],
    }
    right = [np.abs(a.begins - b.begins) <= NEAR for a, b in zip(found, true, strict=True)]
    file = asked.learn if out else asked.gold
    return Judged(
        name="" if file is None else file.name,
        cases=len(sounds),
        words=sum(len(each.begins) for each in true),
        held_out=out,
        scores=tuple(score_times(name, said, true) for name, said in ways.items()),
        reliability=reliabilities(chain(*chances), chain(*right)) if chances else (),
        skipped=cases.skipped,
        certified=len(cases.verdicts),
    )


def _found(
    cases: Cases, sounds: Sequence[Case], learnt: LearntTimes | None, out: bool
) -> tuple[list[Timed], list[np.ndarray]]:
    """The times of every sound, and how sure each is: by gold that it is no part of."""
    found, chances = list[Timed](), list[np.ndarray]()
    by_part = dict[int, LearntTimes]()
    for i, each in enumerate(sounds):
        own = learnt
        if out:
            part = i % FOLDS
            if part not in by_part:
                rest = [other for j, other in enumerate(sounds) if j % FOLDS != part]
                by_part[part] = learn_times(rest, NEAR)
            own = by_part[part]
        read = (each.words, each.seconds, NEAR)
        if own is None:
            found.append(timed(each.rows, shares_of(cases.reading, cases.chosen, each.rows)[1], *read))
        else:
            found.append(own.timed(each.rows, *read))
            chances.append(own.chances(found[-1]))
    return found, chances
