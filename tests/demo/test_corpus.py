"""The proof that the training stream holds nothing of what the model is shown with or measured on."""

import json
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field

import pytest

from attnscope.demo import folder
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.english.inflection import gerund, past, plural, third

SHOWN = (
    "i was watching the door when it opened",
    "i am going to the supermarket",
    "i would like to buy apples",
    "and that is how i met your mother",
    "bill is going to the theatre to watch a new movie",
    "i sat on the bank of the river",
    "i put my money in the bank",
    "i have to water the plant in the yard",
    "he works in the plant with the big machines",
)
MASKED = (
    re.compile(r"\bi was watching the \S+ when it opened"),
    re.compile(r"\bi was watching the door when \S+ opened"),
    re.compile(r"\bi \S+ a person\b"),
)


@dataclass
class Findings:
    """What one pass over the whole stream found."""

    shown: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    held_out: list[str] = field(default_factory=list)
    lengths: Counter[int] = field(default_factory=Counter)
    labels: Counter[tuple[int, str]] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    digest: str = ""


def pair_forms() -> dict[str, list[set[str]]]:
    """For each form of a held-out noun, the forms of the verbs that it must not meet."""
    forms: dict[str, list[set[str]]] = {}
    for verb, noun in corpus.held_out_pairs():
        verbs = {form(verb).split()[0] for form in (str, past, third, gerund)}
        for name in (noun, plural(noun)):
            forms.setdefault(name, []).append(verbs)
    return forms


@pytest.fixture(scope="module")
def run() -> dict[str, dict[str, object]]:
    return json.loads((folder() / "training.json").read_text())


@pytest.fixture(scope="module")
def stream(run) -> Findings:
    """Generates again what the bundled model was trained on, and searches all of it."""
    found, forbidden, digest = Findings(), pair_forms(), corpus.Digest()
    for document in corpus.documents(run["settings"]["seed"], run["settings"]["documents"]):
        text = f"{document.first} . {document.second}"
        words = text.split()
        present = set(words)
        if any(one in text for one in SHOWN) or any(one.search(text) for one in MASKED):
            found.shown.append(text)
        if any(verbs & present for noun in present & forbidden.keys() for verbs in forbidden[noun]):
            found.pairs.append(text)
        if any(zlib.crc32(one.strip().encode()) % 25 == 0 for one in re.split("[.?]", text) if one.strip()):
            found.held_out.append(text)
        found.lengths[document.words + 2 + bool(document.second)] += 1
        found.labels[document.label, document.negative] += 1
        found.words.update(words)
        digest.add(document)
    found.digest = digest.hex()
    return found


def test_the_stream_holds_no_sentence_of_the_articles_whatever_stands_at_the_mask(stream: Findings) -> None:
    assert stream.shown == []


def test_the_stream_holds_no_held_out_verb_noun_pair_in_any_form(stream: Findings) -> None:
    assert len(corpus.held_out_pairs()) >= 30
    assert stream.pairs == []


def test_the_stream_holds_no_sentence_of_the_held_out_share(stream: Findings) -> None:
    assert stream.held_out == []


def test_the_stream_is_the_one_that_the_bundled_model_was_trained_on(stream: Findings, run) -> None:
    assert stream.digest == run["record"]["stream"]


def test_every_position_is_visited_often_and_none_beyond_the_last(stream: Findings) -> None:
    assert max(stream.lengths) == corpus.LENGTH
    assert stream.lengths[corpus.LENGTH] > 10_000


def test_the_language_has_at_least_800_words_and_the_articles_words_are_known(stream: Findings) -> None:
    assert sum(word.isalpha() for word in stream.words) >= 800
    for one in (*SHOWN, "i am a person"):
        assert min(stream.words[word] for word in one.split()) > 100, one


def test_real_hard_and_random_continuations_all_occur(stream: Findings) -> None:
    real, hard, random = (stream.labels[key] for key in ((0, ""), (1, "hard"), (1, "random")))
    assert 0.4 < real / (real + hard + random) < 0.6
    assert hard > random > 0


def test_the_rules_would_catch_what_they_forbid() -> None:
    verb, noun = corpus.held_out_pairs()[0]
    assert corpus.has_held_out_pair(f"the {plural(noun)} {past(verb)} ")
    for one in ("i was watching the box when it opened .", "i saw a person .", *SHOWN):
        assert not corpus.is_allowed(corpus.Document(one)), one
