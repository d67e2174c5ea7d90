"""Two-sentence stories for the next-sentence task, each with a continuation that looks alike but is wrong.

A Story holds the first sentence, its real continuation, and a hard negative: the same pattern, often the same
words, but the wrong place, person, state, sense or tense of the tale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import gerund, past, third
from attnscope.demo.train.english.phrases import (
    Mention,
    Speaker,
    does,
    event,
    like,
    modal,
    outcome,
    tense,
    when,
    with_article,
)


@dataclass(frozen=True)
class Story:
    """A first sentence and two candidates for the second, all marked."""

    first: str
    second: str
    wrong: str


def another(s: Speaker, names: dict[str, tuple[str, ...]], name: str) -> str:
    """Another entry of a table, none of whose phrases belongs to the first."""
    while True:
        other = s.pick(tuple(names))
        if not set(names[other]) & set(names[name]):
            return other


PURPOSES = {place: purposes for place, (_, purposes) in lex.PLACES.items()}


def errand(s: Speaker) -> Story:
    """I am going to the market. I want to buy apples. Not: I want to borrow a book."""
    who, place = s.subject(), s.pick(tuple(lex.PLACES))
    there = f"{who.he} {s.pick((modal(s, who), 'would like to', 'would like to'))}"
    going = s.pick(
        (
            f"{who.am} going",
            f"{who.am} going",
            f"{who.am} going",
            f"{who.was} going",
            f"{who.am} on the way",
            f"{who.am} walking",
        )
    )
    right, wrong = (s.fill(s.pick(PURPOSES[name]), who) for name in (place, another(s, PURPOSES, place)))
    first = f"{who.text} {going} to the {place} ."
    mistake = f"{there} {wrong} ." if s.chance(0.6) else outcome(s, s.pick(tuple(lex.ENDINGS)), who)
    return Story(first, f"{there} {right} .", mistake)


def been(s: Speaker) -> Story:
    """Kate went to the cinema. She saw a film."""
    who, place = s.subject(), s.pick(tuple(lex.PLACES))
    right, wrong = (
        past(s.fill(s.pick(PURPOSES[name]), who)) for name in (place, another(s, PURPOSES, place))
    )
    first = f"{who.text} {s.one('went to|walked to|drove to|was at|came to|ran to')} the {place} ."
    return Story(first, f"{who.he} {right} .", f"{who.he} {wrong} .")


def stranger(s: Speaker, known: Mention) -> Mention:
    """Something or somebody that the pronoun or the verb of `known` cannot stand for."""
    while True:
        other = s.thing(s.other_kind(known.kind), many=0.3) if s.chance(0.5) else s.somebody()
        same_doings = (other.kind is None) == (known.kind is None)
        if other.pronoun != known.pronoun or not same_doings or other.kind is not known.kind:
            return other


def sequel(s: Speaker) -> Story:
    """I bought a lamp. It was dim. Not: it barked; not: she was dim."""
    who, thing = s.subject(), s.thing(many=0.25)
    first = f"{who.text} {s.one('bought|found|saw|sold|had|wanted|noticed')} {thing.text} ."
    return Story(first, f"{thing.he} {event(s, thing)} .", mistaken(s, thing, who))


def mistaken(s: Speaker, meant: Mention, also: Mention | None = None) -> str:
    """A continuation with the wrong pronoun for the same doing, or a wrong doing for the same pronoun."""
    if s.chance(0.5) and meant.pronoun in ("he", "she", "it", "they"):
        used = {meant.pronoun, also.pronoun if also else ""}
        pronoun = s.pick([word for word in ("he", "she", "it", "they") if word not in used])
        return f"{pronoun} {event(s, Mention('', pronoun, 0, meant.kind))} ."
    other = stranger(s, meant)
    while other.kind is None or other.kind is meant.kind:
        other = s.thing(s.other_kind(meant.kind), many=0)
    return f"{meant.he} {event(s, Mention('', meant.pronoun, 0, other.kind))} ."


def person_sequel(s: Speaker) -> Story:
    """The queen was in the garden. She laughed. Not: he laughed."""
    who, thing = s.somebody(), s.thing(many=0)
    with_thing = f" with {thing.text}" if s.chance(0.5) else ""
    first = (
        f"{who.text} {s.one('was|sat|stood|slept|worked') if not who.plural else 'were'} "
        f"{s.pick(lex.ROOMS)}{with_thing} ."
    )
    return Story(first, f"{who.he} {event(s, who)} .", mistaken(s, who))


def ending(s: Speaker) -> Story:
    """We danced at a wedding. And that is how I met your mother."""
    name = s.pick(tuple(lex.ENDINGS))
    who = Mention("i", "i", 0) if s.chance(0.7) else Mention("we", "we", 0)
    begin = f"{s.pick(lex.ENDINGS[name][0])} ."
    if s.chance(0.6):
        return Story(
            begin,
            outcome(s, name, who),
            outcome(s, another(s, {k: v[1] for k, v in lex.ENDINGS.items()}, name), who),
        )
    return Story(begin, outcome(s, name, who), errand(s).second)


def remedy(s: Speaker) -> Story:
    """Tom was hungry. So he ate an apple."""
    who, state = s.subject(), s.pick(tuple(lex.REMEDIES))
    right, wrong = (
        s.fill(s.pick(lex.REMEDIES[name]), who) for name in (state, another(s, lex.REMEDIES, state))
    )
    form: Callable[[str], str] = past if s.chance(0.6) else (lambda verb: f"{had(who)} to {verb}")
    start = s.one("|so |then ")
    first = f"{who.text} {who.was} {s.one('|very |so |too ')}{state} ."
    return Story(first, f"{start}{who.he} {form(right)} .", f"{start}{who.he} {form(wrong)} .")


def had(who: Mention) -> str:
    return "had" if who.was == "was" or who.plural else "have"


def profession(s: Speaker) -> Story:
    """She is a baker. She bakes bread every day."""
    who, name = s.person(), s.pick(tuple(lex.JOBS))
    right, wrong = (third(s.pick(lex.JOBS[other])) for other in (name, another(s, lex.JOBS, name)))
    often = s.one("||every day |on monday |in the morning |all day ")
    return Story(
        f"{who.text} is {with_article(name)} .", f"{who.he} {right} {often}.", f"{who.he} {wrong} {often}."
    )


RIVER = (
    "looked at the water",
    "caught some fish",
    "watched the boats",
    "sat in the green grass",
    "heard the water flow",
    "saw the ducks swim",
)
MONEY = (
    "counted the money",
    "talked to the clerk",
    "opened the safe",
    "paid with coins",
    "wanted to save money",
    "asked for money",
)
YARD = ("gave it some water", "liked the green leaves", "cut the dry leaves", "saw it grow")
WORKS = ("built engines", "repaired the machines", "worked with the robots", "heard the noisy machines")


def bank(s: Speaker) -> Story:
    """The two senses of a bank: the wrong continuation belongs to the other one."""
    who, by_river = s.subject(), s.chance(0.5)
    place = (
        f"on the {s.one('|green |other ')}bank of the {s.one('river|stream|lake|canal')}"
        if by_river
        else s.one("in the bank|at the bank|in the old bank|at the new bank")
    )
    do = s.pick(("sit", "stand", "rest", "wait")) if by_river else s.pick(("work", "wait", "stand"))
    right, wrong = (RIVER, MONEY) if by_river else (MONEY, RIVER)
    return Story(
        f"{who.text} {tense(s, who, do)} {place} .",
        f"{who.he} {s.pick(right)} .",
        f"{who.he} {s.pick(wrong)} .",
    )


def plant(s: Speaker) -> Story:
    """The two senses of a plant."""
    who, green = s.subject(), s.chance(0.5)
    first = (
        f"look at the plant in the {s.one('garden|yard|field|pot')}"
        if green
        else s.one(
            "work in the plant|work at the plant|work in the old plant|work in the plant with the trucks"
        )
    )
    right, wrong = (YARD, WORKS) if green else (WORKS, YARD)
    return Story(
        f"{who.text} {tense(s, who, first)} .", f"{who.he} {s.pick(right)} .", f"{who.he} {s.pick(wrong)} ."
    )


def question(s: Speaker) -> Story:
    """Where is the book? It is in the kitchen. Not: it is red; not: she is in the kitchen."""
    thing = s.thing(many=0.2) if s.chance(0.6) else s.somebody()
    answers = {
        f"where {thing.am} {thing.text} ?": f"{thing.he} {thing.am} {s.pick(lex.ROOMS)} .",
        f"what did {thing.text} do ?": f"{thing.he} {does(s, thing)} .",
        f"how {thing.am} {thing.text} ?": f"{thing.he} {thing.am} {like(s, thing)} .",
        f"when did you see {thing.text} ?": f"i saw {thing.him} {s.pick(lex.TIMES)} .",
    }
    first = s.pick(tuple(answers))
    if s.chance(0.5):
        return Story(first, answers[first], mistaken(s, thing))
    return Story(first, answers[first], answers[s.pick([key for key in answers if key != first])])


def busy(s: Speaker) -> Story:
    """What are you doing? I am reading a book."""
    who, state = s.somebody(), s.pick(tuple(lex.PLACES))
    right, wrong = (
        gerund(s.fill(s.pick(PURPOSES[name]), who)) for name in (state, another(s, PURPOSES, state))
    )
    first = f"what {who.am} {who.text} doing {lex.PLACES[state][0]} the {state} ?"
    return Story(first, f"{who.he} {who.am} {right} .", f"{who.he} {who.am} {wrong} .")


def noise(s: Speaker) -> Story:
    """I heard the dog in the yard. I went to the yard and saw it."""
    who, thing = s.subject(), s.thing(article="the", many=0.2)
    start = f"{who.text} {s.one('heard|saw|found|left|forgot')} {thing.text} {s.pick(lex.ROOMS)} ."
    follow = (
        f"{who.he} {past(s.pick(thing.kind.done if thing.kind else ('see',)))} {thing.him} "
        f"{when(s)} {thing.he} {event(s, thing)} ."
    )
    other = s.thing(s.other_kind(thing.kind), many=0)
    return Story(
        start,
        follow,
        f"{who.he} {past(s.pick(other.kind.done if other.kind else ('see',)))} {thing.him} {when(s)} "
        f"{thing.he} {does(s, other)} .",
    )


def two_notices(s: Speaker) -> Story:
    """A sentence with a pronoun in it, taken up once more."""
    thing = s.thing(many=0.25) if s.chance(0.6) else s.person()
    first = f"{s.subject().text} {s.pick(lex.NOTICED)} {thing.text} {when(s)} {thing.he} {event(s, thing)} ."
    return Story(
        first,
        f"{s.one('then|later|soon|now')} {thing.he} {event(s, thing)} .",
        f"{s.one('then|later|soon|now')} {mistaken(s, thing)}",
    )


Tale = Callable[[Speaker], Story]
TALES: dict[Tale, int] = {
    errand: 14,
    been: 8,
    sequel: 9,
    person_sequel: 7,
    ending: 9,
    remedy: 7,
    profession: 5,
    bank: 4,
    plant: 3,
    question: 6,
    busy: 4,
    noise: 5,
    two_notices: 5,
}
_DRAW = tuple(tale for tale, weight in TALES.items() for _ in range(weight))


def story(s: Speaker) -> Story:
    """One story of a pattern chosen by its weight."""
    return s.pick(_DRAW)(s)
