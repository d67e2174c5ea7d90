"""Single sentences of the artificial language: one small function per pattern, lower-case, split by spaces.

Lower case and spaces because the tokenizer lower-cases and splits anyway. In every pattern with a pronoun the
sentence holds one fitting antecedent and, as a rule, a distractor before or behind it that does not fit: by
gender or number, or because it does other things (dogs bark, doors open).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from attnscope.demo import lexicon as lex
from attnscope.demo.inflection import gerund, past, plural, third
from attnscope.demo.phrases import Mention, Speaker, with_article


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


def go(who: Mention) -> str:
    """The present tense of going, agreeing with who goes."""
    return "go" if who.plural else "goes"


def wish(s: Speaker) -> str:
    """We would like to eat bread."""
    who, place = s.subject(), s.pick(tuple(lex.PLACES))
    purpose = s.fill(s.pick(lex.PLACES[place][1]), who)
    text = f"{who.text} {modal(s, who)} {purpose} "
    tail = s.one(f"|today|tomorrow|{lex.PLACES[place][0]} the {place}")
    return f"{text}{tail} .".replace("  ", " ")


def modal(s: Speaker, who: Mention) -> str:
    """One of "would like to", "has to", "wants to"."""
    frame = s.pick(lex.FRAMES["wish"])
    return frame if who.plural or frame.startswith("would") else f"{third(frame.split()[0])} to"


def chores(s: Speaker) -> str:
    """She has to water the flowers in the garden: doing something to a thing somewhere."""
    who, thing = s.subject(), s.thing(many=0.3)
    return (
        f"{who.text} {modal(s, who)} {s.pick(thing.kind.done) if thing.kind else 'see'} "
        f"{thing.text}{ending(s, 0.5)} ."
    )


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


WAYS = ("street", "road", "bridge", "field", "river")


def relative(s: Speaker) -> str:
    """The man who locked the door was tired. The dog that barked is hungry."""
    if s.chance(0.5):
        who, thing = s.person(names=0), s.thing()
        return f"{who.text} who {handle(s, thing)} {thing.text} {who.was} {like(s, who)} ."
    thing = s.thing(article="the")
    return f"{thing.text} that {does(s, thing)} {thing.was} {like(s, thing)} ."


def money_bank(s: Speaker) -> str:
    """The bank with money."""
    who = s.subject()
    do = s.pick(
        (
            "keep {my} money in",
            "put {my} coins in",
            "borrow some money from",
            "get {my} money from",
            "take {my} gold to",
            "work in",
            "save {my} money in",
            "go to",
            "ask for money in",
            "put the money in",
            "keep {my} savings in",
        )
    )
    thief = s.one("the thief|the robber|the judge|the lawyer")
    if s.chance(0.2):
        return f"{thief} stole {s.one('the money|the gold|the coins|all the money')} from the bank ."
    return (
        f"{who.text} {tense(s, who, s.fill(do, who))} the {s.one('|||old |new |big ')}bank{ending(s, 0.2)} ."
    )


def river_bank(s: Speaker) -> str:
    """The bank of a river."""
    who, water = s.subject(), s.pick(("river", "river", "river", "stream", "lake", "canal", "creek", "brook"))
    do = s.pick(
        (
            "sit on",
            "stand on",
            "walk along",
            "sleep on",
            "lie on",
            "fish from",
            "play on",
            "rest on",
            "camp on",
            "swim to",
        )
    )
    side = s.one("|||green |other |steep |muddy ")
    if s.chance(0.2):
        thing = s.thing(s.pick(lex.ANIMALS), article="the")
        return f"{thing.text} {s.one('drank|slept|sat|lay|was')} on the bank of the {water} ."
    return f"{who.text} {tense(s, who, do)} the {side}bank of the {water}{ending(s, 0.15)} ."


def green_plant(s: Speaker) -> str:
    """The plant that grows."""
    who = s.subject()
    plants, where = (
        s.one("plant|plant|plants|flowers|tree|roses|bush|grass"),
        s.one("garden|yard|field|park|pot|window box"),
    )
    do = s.pick(("water", "water", "cut", "look at", "smell", "move", "buy", "grow"))
    if s.chance(0.3):
        return (
            f"the {s.one('|green |tall |little ')}plant in the {where} "
            f"{s.one('grew|bloomed|wilted|needs water|was dry|was green')} ."
        )
    return f"{who.text} {tense(s, who, do)} the {plants} in the {where} ."


def working_plant(s: Speaker) -> str:
    """The plant of a factory."""
    who = s.subject()
    place = s.one("plant|plant|plant|factory|workshop")
    machines = s.one("machines|engines|robots|computers|workers|trucks")
    size = s.one("big|old|new|noisy|heavy|loud|hot|")
    do = s.pick(
        ("work in", "work in", "work at", "build cars in", "repair the machines in", "build engines in")
    )
    with_what = s.one("|") or f" with the {size} {machines}"
    return f"{who.text} {tense(s, who, do)} the {place}{with_what}{ending(s, 0.15)} .".replace("  ", " ")


def tense(s: Speaker, who: Mention, do: str) -> str:
    """One of "works in", "worked in", "has to work in", agreeing with who does it."""
    draw = s.generator.random()
    if draw < 0.45:
        return past(do)
    if draw < 0.7:
        return do if who.plural else third(do)
    return f"{modal(s, who)} {do}" if draw < 0.85 else f"{who.was} {gerund(do)}"


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


def outcome(s: Speaker, name: str, who: Mention) -> str:
    """The last sentence of a story."""
    start = s.one("and that is how|and that is how|and that is how|that is how|and that is why|and so")
    return f"{start} {who.he if who.link else who.text} {s.fill(s.pick(lex.ENDINGS[name][1]), who)} ."


def several(s: Speaker) -> str:
    """The box and the lamp were heavy. Dogs bark."""
    kind = s.kind()
    if s.chance(0.4) and not kind.mass:
        return f"{plural(s.pick(kind.nouns))} {s.pick(kind.does)} ."
    first, second = s.thing(kind, many=0), s.thing(kind, many=0)
    return f"{first.text} and {second.text} were {s.pick(kind.like)}{ending(s, 0.2)} ."


Pattern = Callable[[Speaker], str]
PATTERNS: dict[Pattern, int] = {
    watched: 12, noticed: 7, beside: 9, company: 8, encounter: 9, owner_and_thing: 8, handled_twice: 5,
    called: 5, belongings: 8, gift: 4, far_away: 4, happened: 9, did: 8, resembles: 4, identity: 5, errand: 5,
    wish: 3, chores: 3, exists: 3, crossing: 3, relative: 4, money_bank: 2, river_bank: 2, green_plant: 2,
    working_plant: 2, job: 3, thought: 2, how: 2, several: 4,
}  # fmt: skip
_DRAW = tuple(pattern for pattern, weight in PATTERNS.items() for _ in range(weight))


def sentence(s: Speaker) -> str:
    """One marked sentence of a pattern chosen by its weight."""
    return s.pick(_DRAW)(s)
