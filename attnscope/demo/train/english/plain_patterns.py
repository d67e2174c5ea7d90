"""Sentences of what happens, what people do and what things are like, one small function per pattern."""

from __future__ import annotations

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import gerund, past, plural, third
from attnscope.demo.train.english.phrases import (
    Speaker,
    does,
    ending,
    go,
    handle,
    like,
    modal,
    outcome,
    when,
    with_article,
)


def happened(s: Speaker) -> str:
    """When the bell rang, the dog barked. The old door opened slowly."""
    thing = s.thing(article="the") if s.chance(0.7) else s.somebody()
    if s.chance(0.5):
        tail = f" {s.pick(lex.ADVERBS)}" if s.chance(0.5) else ending(s, 0.7)
        return f"{thing.text} {does(s, thing)}{tail} ."
    other = s.thing(article="the")
    start = f"{thing.text} {does(s, thing)}"
    return (
        f"when {start} , {other.text} {does(s, other)} ."
        if s.chance(0.5)
        else f"{start} {when(s)} {other.text} {does(s, other)} ."
    )


def did(s: Speaker) -> str:
    """She locked the door last night."""
    who, thing = s.subject(), s.thing(many=0.2)
    verb = s.pick(thing.kind.done) if thing.kind else "see"
    form = s.pick(
        (
            past(verb),
            past(verb),
            f"did not {verb}",
            f"{who.was} {gerund(verb)}",
            f"can {verb}",
            f"will {verb}",
        )
    )
    return f"{who.text} {form} {thing.text}{ending(s, 0.5)} ."


def resembles(s: Speaker) -> str:
    """The door is locked. My apples were sweet."""
    thing = s.thing() if s.chance(0.7) else s.somebody()
    return (
        f"{thing.text} {s.pick((thing.am, thing.was))} {s.one('very |too |not |so ||||')}{like(s, thing)} ."
    )


def identity(s: Speaker) -> str:
    """I am a teacher. She met a doctor."""
    who = s.subject()
    while who.pronoun in ("we", "they"):
        who = s.subject()
    person = s.trait(lex.PERSON_TRAITS) + s.pick(lex.EITHER + lex.HE[:3] + lex.SHE[:3])
    verb = past(s.pick(lex.PERSON_DONE)) if s.chance(0.6) else s.pick((who.am, who.am, who.was))
    return f"{who.text} {verb} {with_article(person)}{ending(s, 0.2)} ."


def errand(s: Speaker) -> str:
    """Tom is going to the cinema to see a film."""
    who, place = s.subject(), s.pick(tuple(lex.PLACES))
    purpose = s.fill(s.pick(lex.PLACES[place][1]), who)
    going = s.pick(
        (
            f"{who.am} going",
            f"{who.am} going",
            "went",
            f"{who.was} going",
            f"{go(who)}",
            "walked",
            "had to go",
        )
    )
    return f"{who.text} {going} to the {place} to {purpose} ."


def wish(s: Speaker) -> str:
    """We would like to eat bread."""
    who, place = s.subject(), s.pick(tuple(lex.PLACES))
    purpose = s.fill(s.pick(lex.PLACES[place][1]), who)
    text = f"{who.text} {modal(s, who)} {purpose} "
    tail = s.one(f"|today|tomorrow|{lex.PLACES[place][0]} the {place}")
    return f"{text}{tail} .".replace("  ", " ")


def chores(s: Speaker) -> str:
    """She has to water the flowers in the garden: doing something to a thing somewhere."""
    who, thing = s.subject(), s.thing(many=0.3)
    return (
        f"{who.text} {modal(s, who)} {s.pick(thing.kind.done) if thing.kind else 'see'} "
        f"{thing.text}{ending(s, 0.5)} ."
    )


def relative(s: Speaker) -> str:
    """The man who locked the door was tired. The dog that barked is hungry."""
    if s.chance(0.5):
        who, thing = s.person(names=0), s.thing()
        return f"{who.text} who {handle(s, thing)} {thing.text} {who.was} {like(s, who)} ."
    thing = s.thing(article="the")
    return f"{thing.text} that {does(s, thing)} {thing.was} {like(s, thing)} ."


def job(s: Speaker) -> str:
    """She is a baker and she bakes bread."""
    who, name = s.person(), s.pick(tuple(lex.JOBS))
    return (
        f"{who.text} is {with_article(name)} and {who.he} {third(s.pick(lex.JOBS[name]))}{ending(s, 0.2)} ."
    )


def thought(s: Speaker) -> str:
    """I think that the door is open."""
    who, thing = s.subject(), s.thing() if s.chance(0.7) else s.somebody()
    return (
        f"{who.text} {past(s.pick(('think', 'say', 'know', 'hope', 'hear')))} that {thing.text} "
        f"{thing.was} {like(s, thing)} ."
    )


def how(s: Speaker) -> str:
    """And that is how I met your brother."""
    name = s.pick(tuple(lex.ENDINGS))
    return outcome(s, name, s.subject())


def several(s: Speaker) -> str:
    """The box and the lamp were heavy. Dogs bark."""
    kind = s.kind()
    if s.chance(0.4) and not kind.mass:
        return f"{plural(s.pick(kind.nouns))} {s.pick(kind.does)} ."
    first, second = s.thing(kind, many=0), s.thing(kind, many=0)
    return f"{first.text} and {second.text} were {s.pick(kind.like)}{ending(s, 0.2)} ."
