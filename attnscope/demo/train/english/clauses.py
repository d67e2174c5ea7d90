"""What sentences and stories are put together from: what happens to whom, in which tense, where and when."""

from __future__ import annotations

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import gerund, past, third
from attnscope.demo.train.english.phrases import Mention, Speaker


def does(s: Speaker, who: Mention) -> str:
    """Something that this kind of thing, or a person, does: "opened", "woke up"."""
    return past(s.pick(who.kind.does if who.kind else lex.PERSON_DOES))


def like(s: Speaker, who: Mention) -> str:
    """What it can be like: "locked", "hungry"."""
    return s.pick(who.kind.like if who.kind else lex.PERSON_LIKE)


def when(s: Speaker) -> str:
    return s.pick(lex.FRAMES["when"])


def ending(s: Speaker, probability: float = 0.25) -> str:
    """Perhaps a place or a time: " in the kitchen", " last night"."""
    return " " + s.pick(lex.ROOMS if s.chance(0.5) else lex.TIMES) if s.chance(probability) else ""


def event(s: Speaker, who: Mention) -> str:
    """What is said of a pronoun: "opened", "was locked", "began to bark", "suddenly opened"."""
    draw = s.generator.random()
    if draw < 0.6:
        return does(s, who)
    if draw < 0.8:
        return f"{who.was} {like(s, who)}"
    verb = s.pick(who.kind.does if who.kind else lex.PERSON_DOES)
    return f"began to {verb}" if draw < 0.9 else f"{s.pick(lex.ADVERBS)} {past(verb)}"


def handle(s: Speaker, thing: Mention) -> str:
    """Something that people do to it: "locked", "fed"."""
    return past(s.pick(thing.kind.done if thing.kind and s.chance(0.7) else ("see", "find", "buy", "sell")))


def go(who: Mention) -> str:
    """The present tense of going, agreeing with who goes."""
    return "go" if who.plural else "goes"


def modal(s: Speaker, who: Mention) -> str:
    """One of "would like to", "has to", "wants to"."""
    frame = s.pick(lex.FRAMES["wish"])
    return frame if who.plural or frame.startswith("would") else f"{third(frame.split()[0])} to"


def tense(s: Speaker, who: Mention, do: str) -> str:
    """One of "works in", "worked in", "has to work in", agreeing with who does it."""
    draw = s.generator.random()
    if draw < 0.45:
        return past(do)
    if draw < 0.7:
        return do if who.plural else third(do)
    return f"{modal(s, who)} {do}" if draw < 0.85 else f"{who.was} {gerund(do)}"


def outcome(s: Speaker, name: str, who: Mention) -> str:
    """The last sentence of a story."""
    start = s.one("and that is how|and that is how|and that is how|that is how|and that is why|and so")
    return f"{start} {who.he if who.link else who.text} {s.fill(s.pick(lex.ENDINGS[name][1]), who)} ."
