"""Whole texts of demo-reader: passages and then questions, as a chat, as plain text or as a sentence begun.

`reading` draws a text to train on, `echo` random words said twice, which ask for copying and nothing else,
`prompt` a single question to measure with. All of it follows from the random numbers that are handed in.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from attnscope.demo.train.reading.sentences import (
    FIRST,
    LIKE,
    MET,
    SECOND,
    THINGS,
    Fact,
    Name,
    aside,
    is_new,
    question,
    stated,
)

BEGIN, END, SYSTEM, USER, ASSISTANT = "[BOS]", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"
NONE = "none"  # the answer where no passage says it
PASSAGE = ("passage", ":")
SYSTEMS = ("answer only from the passages .", "answer in one word .")
CHAT, PLAIN, BEGUN = STYLES = ("chat", "plain", "begun")
QUESTION_ROOM = 13  # tokens of a question with its answer, at most about
Pair = tuple[Name, str]


@dataclass(frozen=True)
class Reading:
    """A text; `asked` are the places of its words that follow from what stands before them."""

    words: tuple[str, ...]
    asked: tuple[int, ...]
    facts: tuple[Fact, ...] = ()
    questions: tuple[tuple[Pair, str], ...] = ()  # what was asked, and the answer

    @property
    def answers(self) -> tuple[str, ...]:
        """The words that are asked for."""
        return tuple(self.words[place] for place in self.asked)


def opening(style: str, generator: random.Random) -> list[str]:
    """What stands before the passages; a chat has a system's message, or none."""
    if style != CHAT:
        return [BEGIN]
    system = [SYSTEM, *generator.choice(SYSTEMS).split()] if generator.random() < 0.7 else []
    return [BEGIN, *system, USER]


def asking(pair: Pair, style: str, first: bool, generator: random.Random) -> tuple[list[str], list[str]]:
    """A question in the words of a style, up to the answer, and what follows the answer."""
    text = question(pair, style == BEGUN, generator)
    if style == CHAT:
        return [*([] if first else [USER]), *text, ASSISTANT], [END]
    return (text if style == BEGUN else ["question", ":", *text, "answer", ":"]), ["."]


def akin(size: int, generator: random.Random) -> list[Name]:
    """About as many names that training may use, few first pieces with few second ones, all with all."""
    side = max(2, round(size**0.5))
    while True:
        names = product(generator.sample(FIRST, side), generator.sample(SECOND, side))
        if len(met := [name for name in names if not is_new(name)]) > 1:
            return met


def _some(low: int, high: int, generator: random.Random) -> int:
    """A number between two, small ones likelier."""
    number: float = low * (max(high, low) / low) ** generator.random()
    return round(number)


def passages(
    todo: Sequence[Fact],
    names: Sequence[Name],
    room: int,
    share: float,
    generator: random.Random,
    easy: bool = False,
) -> list[tuple[list[str], Fact | None]]:
    """Sentences with the facts in their order, and asides and marks of new passages among them."""
    left, told = list(reversed(todo)), list[tuple[list[str], Fact | None]]()
    while True:
        fact = left[-1] if left and (generator.random() < share or not told) else None
        words = stated(fact, generator.choice(names), generator, easy) if fact else aside(names, generator)
        room -= len(words)
        if room < 0:
            return told
        told.append((words, left.pop() if fact else None))
        if generator.random() < 0.3 and room > 12:
            told.append((list(PASSAGE), None))
            room -= len(PASSAGE)


def reading(length: int, share: float, none: float, generator: random.Random, easy: bool = False) -> Reading:
    """A text of at most `length` tokens to train on; `share` of its sentences, about, state facts.

    A quarter of the pairs that it could state are left out, and it asks for some of these: the name, the
    thing and pieces of the name stand there, but not this thing of this person. An easy text leaves nothing
    out and is dense: from such texts reading begins.
    """
    style = generator.choice(STYLES)
    share_asked = generator.uniform(0.3, 0.6) if length <= 256 else generator.uniform(0.12, 0.4)
    asked = max(2, int(length / QUESTION_ROOM * share_asked))
    words = opening(style, generator)
    size = generator.randint(3, 5) if easy else _some(2, max(5, length // 14), generator)
    names = generator.sample(MET, size) if easy or generator.random() < 0.3 else akin(size, generator)
    size = generator.randint(3, 5) if easy else _some(2, max(5, length // 22), generator)
    pairs = list(product(names, generator.sample(THINGS, min(len(THINGS), size))))
    generator.shuffle(pairs)
    left_out = 0 if easy else len(pairs) // 4
    gone, pairs = pairs[:left_out], pairs[left_out:]
    facts = [Fact(name, thing, generator.choice(LIKE)) for name, thing in pairs]
    others = names if generator.random() < 0.5 else generator.sample(MET, 20)
    told = passages(facts, others, length - len(words) - QUESTION_ROOM * asked, share, generator, easy)
    if generator.random() < 0.7:
        words += PASSAGE
    for sentence, _ in told:
        words += sentence
    known = {fact.pair: fact.like for _, fact in told if fact}
    places, questions = [], []
    for number, pair in enumerate(_asked(known, gone, asked, none, generator)):
        before, after = asking(pair, style, number == 0, generator)
        if len(words) + len(before) + 1 > length:
            break
        words += before
        places.append(len(words))
        questions.append((pair, known.get(pair, NONE)))
        words += [questions[-1][1], *after]
    stated_facts = tuple(fact for _, fact in told if fact)
    return Reading(tuple(words[:length]), tuple(places), stated_facts, tuple(questions))


def _asked(
    known: dict[Pair, str], gone: list[Pair], count: int, none: float, generator: random.Random
) -> list[Pair]:
    """What is asked: facts that are stated, each once before any comes again, and some that are not."""
    there = list(known)
    asked: list[Pair] = []
    while len(asked) < count and there:
        asked += generator.sample(there, len(there))
    if not there:
        return gone[:count]
    for at in range(len(asked[:count])):
        if generator.random() < none:
            pair = generator.choice(there)[0], generator.choice(there)[1]
            if gone and generator.random() < 0.6:
                pair = generator.choice(gone)
            asked[at] = pair
    return asked[:count]


def echo(length: int, vocabulary: Sequence[str], generator: random.Random) -> Reading:
    """Random words said twice; the second time every word but the first follows."""
    size = generator.randint(6, length // 2 - 1)
    words = [generator.choice(vocabulary) for _ in range(size)]
    return Reading((BEGIN, *words, *words), tuple(range(size + 2, 2 * size + 1)))
