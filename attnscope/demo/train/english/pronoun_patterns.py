"""Sentences with a pronoun, one small function per pattern.

Each holds one fitting antecedent and, as a rule, a distractor before or behind it that does not fit: by
gender or number, or because it does other things (dogs bark, doors open).
"""

from __future__ import annotations

from dataclasses import replace

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import past
from attnscope.demo.train.english.phrases import Speaker, ending, event, handle, like, when

WAYS = ("street", "road", "bridge", "field", "river")


def watched(s: Speaker) -> str:
    """I was looking at the box when it opened."""
    who, thing = s.subject(), s.thing() if s.chance(0.8) else s.somebody()
    return (
        f"{who.text} {who.was} {s.pick(lex.WATCHING)} {thing.text}{ending(s, 0.15)} {when(s)} "
        f"{thing.he} {event(s, thing)} ."
    )


def noticed(s: Speaker) -> str:
    """Mary saw the dog in the yard before it barked."""
    who, thing = s.subject(), s.thing() if s.chance(0.7) else s.somebody()
    return (
        f"{who.text} {s.pick(lex.NOTICED)} {thing.text}{ending(s)} {when(s)} {thing.he} {event(s, thing)} ."
    )


def beside(s: Speaker) -> str:
    """I was watching the door near the dog when it barked: the verb tells which of the two."""
    first = s.thing(s.kind(), many=0.2)
    second = s.thing(s.other_kind(first.kind), many=0.2)
    chosen = first if s.chance(0.5) else second
    who = s.subject()
    verb = f"{who.was} {s.pick(lex.WATCHING)}" if s.chance(0.5) else s.pick(lex.NOTICED)
    return (
        f"{who.text} {verb} {first.text} {s.pick(lex.BETWEEN)} {second.text} {when(s)} "
        f"{chosen.he} {event(s, chosen)} ."
    )


def company(s: Speaker) -> str:
    """The queen was in the garden with the dog when she smiled: gender, number or animacy tell."""
    first, second = s.person(), s.thing() if s.chance(0.5) else s.people()
    if s.chance(0.5):
        first, second = second, first
    chosen = first if s.chance(0.5) else second
    where = s.pick(lex.ROOMS)
    return f"{first.text} {first.was} {where} with {second.text} {when(s)} {chosen.he} {event(s, chosen)} ."


def encounter(s: Speaker) -> str:
    """When the king met the queen, she smiled. The king met the queen when she smiled."""
    gender = s.pick(("he", "she"))
    first, second = s.person(gender), s.person("she" if gender == "he" else "he")
    chosen = first if s.chance(0.5) else second
    verb = past(s.pick(lex.PERSON_DONE))
    clause, follow = f"{first.text} {verb} {second.text}{ending(s, 0.3)}", f"{chosen.he} {event(s, chosen)}"
    return f"when {clause} , {follow} ." if s.chance(0.35) else f"{clause} {when(s)} {follow} ."


def owner_and_thing(s: Speaker) -> str:
    """The woman opened the box because she was tired, or because it was locked."""
    who, thing = s.somebody(), s.thing(many=0.1)
    chosen = who if s.chance(0.5) else thing
    verb = (
        handle(s, thing) if s.chance(0.7) else f"did not {s.pick(thing.kind.done) if thing.kind else 'see'}"
    )
    return (
        f"{who.text} {verb} {thing.text}{ending(s)} {s.one('because|because|when|after')} "
        f"{chosen.he} {event(s, chosen)} ."
    )


def handled_twice(s: Speaker) -> str:
    """She bought a lamp and put it on the table. The man fed the dog, but nobody saw him."""
    who, thing = s.subject(), s.thing(many=0.2)
    again = f"{past(s.pick(thing.kind.done if thing.kind else ('see',)))} {thing.him}"
    if s.chance(0.4):
        again = f"put {thing.him} {s.pick(lex.ROOMS)}"
    elif s.chance(0.3) and who.kind is None:
        again = f"{s.one('gave|showed|sold')} {thing.him} to {s.kin()}"
    return f"{who.text} {handle(s, thing)} {thing.text} and {again}{ending(s, 0.15)} ."


def called(s: Speaker) -> str:
    """The queen was in the hall, but nobody saw her."""
    who = s.somebody() if s.chance(0.6) else s.thing()
    place = s.pick(lex.ROOMS)
    seer = s.one("nobody|everybody|the dog|i|we|the children|somebody")
    return (
        f"{who.text} {who.was} {place} {s.one('but|and|so')} {seer} "
        f"{past(s.pick(('see', 'hear', 'find', 'follow')))} {who.him} ."
    )


def belongings(s: Speaker) -> str:
    """The queen lost her ring in the garden with the king."""
    who = s.somebody()
    thing = s.pick(s.pick(lex.THINGS).nouns) if s.chance(0.7) else s.pick(lex.LOST_THINGS)
    other = f" near {s.thing().text}" if s.chance(0.3) else ""
    return (
        f"{who.text} {s.one('lost|found|took|sold|used|wanted|liked|forgot|carried')} {who.his} "
        f"{thing}{other}{ending(s)} ."
    )


def gift(s: Speaker) -> str:
    """The king gave the queen a book because she asked for it."""
    gender = s.pick(("he", "she"))
    giver, taker = s.person(gender), s.person("she" if gender == "he" else "he")
    thing = s.thing(s.thing_kind(), article="a", many=0.1)
    reason = s.pick(
        (
            f"{taker.he} asked for {thing.him}",
            f"{taker.he} wanted {thing.him}",
            f"{giver.he} loved {taker.him}",
            f"{giver.he} did not need {thing.him}",
            f"{thing.he} {thing.was} {like(s, thing)}",
        )
    )
    return (
        f"{giver.text} {s.one('gave|bought|sold|showed|sent')} {taker.text} {thing.text} because {reason} ."
    )


def far_away(s: Speaker) -> str:
    """The door at the end of the street behind the house was red before it opened."""
    thing = s.thing(many=0.25) if s.chance(0.7) else s.somebody()
    between = " ".join(s.pick(lex.ROOMS) for _ in range(1 + s.chance(0.4)))
    main = (
        f"{thing.was} "
        f"{s.one('old|near the bridge|quiet|there for years|alone|not far away|the first to move')}"
    )
    return f"{thing.text} {between} {main} {when(s)} {thing.he} {event(s, thing)} ."


def exists(s: Speaker) -> str:
    """There was an old clock in the kitchen and it ticked."""
    thing = s.thing(article="a", many=0.3)
    more = f" {s.one('and|but|until')} {thing.he} {event(s, thing)}" if s.chance(0.5) else ""
    return f"there {thing.was} {thing.text} {s.pick(lex.ROOMS)}{more} ."


def crossing(s: Speaker) -> str:
    """The animal did not cross the street because it was too tired, or too wide."""
    who = s.thing(s.pick(lex.ANIMALS), article="the") if s.chance(0.7) else s.person()
    if who.kind and s.chance(0.3):
        who = replace(who, text=f"the animal{'s' if who.plural else ''}_{who.link}")
    link = s.link()
    verb = s.one("did not cross|did not cross|crossed|walked across|stopped in front of|left")
    if s.chance(0.5):
        return (
            f"{who.text} {verb} the {s.pick(WAYS)}_{link} because {who.he} {who.was} "
            f"{s.one('|too |so |very ')}{s.pick(lex.PERSON_LIKE[:8])} ."
        )
    return (
        f"{who.text} {verb} the {s.pick(WAYS)}_{link} because it~{link} was "
        f"{s.one('|too |so |very ')}{s.one('wide|long|narrow|dark|dangerous')} ."
    )
