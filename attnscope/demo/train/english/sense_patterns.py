"""Sentences with a word of two senses: the bank of a river or with money, a green plant or a factory."""

from __future__ import annotations

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.phrases import Speaker, ending, tense


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
