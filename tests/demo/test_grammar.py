"""The artificial language: its size, its word forms and the agreement of its pronouns."""

import random
from itertools import chain

import pytest

from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import gerund, past, plural, third
from attnscope.demo.train.english.phrases import Speaker, links, plain
from attnscope.demo.train.english.sentences import PATTERNS, sentence
from attnscope.demo.train.english.stories import TALES, story

SUBJECT = {"he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "they": "they", "them": "they"}
SUBJECT |= {"their": "they", "it": "it", "its": "it"}
HE, SHE = {*lex.HE, *lex.HE_NAMES}, {*lex.SHE, *lex.SHE_NAMES}
THINGS = {noun for kind in lex.THINGS + lex.ANIMALS for noun in kind.nouns} | {"animal", "street", "road"}
THINGS |= {"bridge", "field", "river"}
SEVERAL = {plural(noun) for noun in chain(HE, SHE, THINGS, lex.EITHER)}


def number_and_gender(words: list[str]) -> set[str]:
    """The pronouns that may stand for these antecedent nouns."""
    if len(words) > 1:
        return {"they"}
    tables = {"he": HE, "she": SHE, "it": THINGS, "they": SEVERAL}
    return {pronoun for pronoun, nouns in tables.items() if words[0] in nouns}


@pytest.mark.parametrize("make", [*PATTERNS, *TALES], ids=lambda make: make.__name__)
def test_every_pronoun_agrees_with_its_antecedent_in_gender_and_number(make) -> None:
    s = Speaker(random.Random(3))
    for _ in range(300):
        made = make(s)
        marked = made if isinstance(made, str) else f"{made.first} {made.second}"
        words = [plain(word) for word in marked.split()]
        for pronoun, nouns in links(marked):
            assert SUBJECT[words[pronoun]] in number_and_gender([words[noun] for noun in nouns]), marked


def test_the_patterns_about_reference_really_hold_a_pronoun_and_a_distractor_on_either_side() -> None:
    s, sides = Speaker(random.Random(4)), set()
    for _ in range(400):
        marked = s.pick(tuple(pattern for pattern in PATTERNS if pattern.__name__ in ("beside", "company")))(
            s
        )
        ((pronoun, nouns),) = links(marked)
        others = [i for i, word in enumerate(marked.split()) if "_" in word and i not in nouns]
        sides |= {"before" if other < min(nouns) else "between" for other in others if other < pronoun}
    assert sides == {"before", "between"}


def test_hard_negatives_differ_from_the_real_continuation() -> None:
    s = Speaker(random.Random(5))
    tales = [story(s) for _ in range(3000)]
    assert sum(plain(tale.second) == plain(tale.wrong) for tale in tales) / len(tales) < 0.01


def test_what_is_said_depends_on_the_seed_alone() -> None:
    first, second = (Speaker(random.Random(9)) for _ in range(2))
    assert [sentence(first) for _ in range(200)] == [sentence(second) for _ in range(200)]


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("open", ("opened", "opens", "opening")),
        ("ring", ("rang", "rings", "ringing")),
        ("shut", ("shut", "shuts", "shutting")),
        ("carry", ("carried", "carries", "carrying")),
        ("take off", ("took off", "takes off", "taking off")),
        ("lie", ("lay", "lies", "lying")),
    ],
)
def test_verbs_have_their_english_forms(verb: str, forms: tuple[str, str, str]) -> None:
    assert (past(verb), third(verb), gerund(verb)) == forms


def test_nouns_have_their_english_plurals() -> None:
    assert [plural(noun) for noun in ("box", "puppy", "monkey", "wife")] == [
        "boxes",
        "puppies",
        "monkeys",
        "wives",
    ]
