"""English word forms: the plural of a noun and the four forms of a verb, with the exceptions that we use."""

from __future__ import annotations

from functools import cache

PLURALS = {
    "man": "men", "woman": "women", "child": "children", "person": "people", "policeman": "policemen",
    "fisherman": "fishermen", "gentleman": "gentlemen", "wife": "wives", "knife": "knives",
    "shelf": "shelves", "wolf": "wolves", "fish": "fish", "salmon": "salmon", "sheep": "sheep",
    "mouse": "mice", "goose": "geese", "foot": "feet", "scarf": "scarves", "potato": "potatoes",
    "tomato": "tomatoes",
}  # fmt: skip
PAST = {
    "be": "was", "begin": "began", "bend": "bent", "bring": "brought", "break": "broke", "build": "built",
    "buy": "bought", "catch": "caught", "come": "came", "cut": "cut", "do": "did", "draw": "drew",
    "drink": "drank", "drive": "drove", "eat": "ate", "fall": "fell", "feed": "fed", "fight": "fought",
    "find": "found", "fly": "flew", "freeze": "froze", "get": "got", "give": "gave", "go": "went",
    "grow": "grew", "have": "had", "hear": "heard", "hide": "hid", "hold": "held", "keep": "kept",
    "know": "knew", "learn": "learned", "leave": "left", "lend": "lent", "lie": "lay", "light": "lit",
    "lose": "lost", "make": "made", "meet": "met", "put": "put", "read": "read", "ride": "rode",
    "ring": "rang", "rise": "rose", "run": "ran", "say": "said", "see": "saw", "sell": "sold",
    "send": "sent", "shine": "shone", "shrink": "shrank", "shut": "shut", "sing": "sang", "sink": "sank",
    "sit": "sat", "sleep": "slept", "spend": "spent", "spin": "spun", "stand": "stood", "steal": "stole",
    "sting": "stung", "swim": "swam", "take": "took", "teach": "taught", "tear": "tore",
    "think": "thought", "throw": "threw", "wake": "woke", "wear": "wore", "win": "won", "write": "wrote",
    "float": "floated", "sew": "sewed", "ski": "skied", "feel": "felt",
}  # fmt: skip
DOUBLING = {
    "stop",
    "hop",
    "step",
    "grab",
    "skip",
    "drop",
    "cut",
    "put",
    "get",
    "run",
    "sit",
    "swim",
    "spin",
    "win",
    "begin",
    "shut",
    "plan",
    "hum",
    "slip",
    "rot",
    "nod",
    "fit",
    "sip",
    "hug",
}


def _split(verb: str) -> tuple[str, str]:
    """The inflected word and what follows it: "wake up" -> ("wake", " up")."""
    head, space, rest = verb.partition(" ")
    return head, space + rest


@cache
def plural(noun: str) -> str:
    """As in "boxes", "men", "puppies"."""
    if noun in PLURALS:
        return PLURALS[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return noun[:-1] + "ies"
    return noun + "s"


@cache
def past(verb: str) -> str:
    """As in "opened", "rang", "woke up"."""
    head, rest = _split(verb)
    if head in PAST:
        return PAST[head] + rest
    if head.endswith("e"):
        return head + "d" + rest
    if head.endswith("y") and head[-2] not in "aeou":
        return head[:-1] + "ied" + rest
    return head + (head[-1] if head in DOUBLING else "") + "ed" + rest


@cache
def third(verb: str) -> str:
    """As in "opens", "watches", "has"."""
    head, rest = _split(verb)
    if head in ("be", "have"):
        return {"be": "is", "have": "has"}[head] + rest
    if head in ("go", "do"):
        return head + "es" + rest
    return plural(head) + rest if head not in PLURALS else head + "es" + rest


@cache
def gerund(verb: str) -> str:
    """As in "opening", "shutting", "waking up"."""
    head, rest = _split(verb)
    if head == "lie":
        return "lying" + rest
    if head.endswith("e") and not head.endswith(("ee", "oe")) and head != "be":
        return head[:-1] + "ing" + rest
    return head + (head[-1] if head in DOUBLING else "") + "ing" + rest
