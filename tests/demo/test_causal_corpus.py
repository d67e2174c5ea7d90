"""The stream of demo-causal: running text and repeated random words, and proof of what is kept out of it."""

import json
import random
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from attnscope.demo import folder
from attnscope.demo.train.corpora import corpus, next_word
from attnscope.demo.train.english.inflection import gerund, past, plural, third

SHOWN = re.compile(
    r"i was watching the \S+ when it opened|i was watching the door when \S+ opened|\bi \S+ a person\b"
    r"|i am going to the supermarket|i would like to buy apples|and that is how i met your mother"
    r"|bill is going to the theatre to watch a new movie|i sat on the bank of the river"
    r"|i put my money in the bank|i have to water the plant in the yard"
    r"|he works in the plant with the big machines"
)
PAIRS = [
    ({noun, plural(noun)}, {form(verb).split()[0] for form in (str, past, third, gerund)})
    for verb, noun in corpus.held_out_pairs()
]
NOUNS = set().union(*(nouns for nouns, _ in PAIRS))


@dataclass
class Findings:
    """What one pass over the whole stream found."""

    shown: list[str] = field(default_factory=list)
    pairs: list[str] = field(default_factory=list)
    held_out: list[str] = field(default_factory=list)
    lengths: Counter[int] = field(default_factory=Counter)
    random: int = 0
    distances: Counter[int] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    digest: str = ""


@pytest.fixture(scope="module")
def run() -> dict[str, dict[str, object]]:
    return json.loads((folder("demo-causal") / "training.json").read_text())


@pytest.fixture(scope="module")
def stream(run) -> Findings:
    """Generates again what the bundled model was trained on, and searches all of it."""
    settings = run["settings"]
    documents = list(corpus.documents(settings["seed"], settings["documents"]))
    found, passages = Findings(), []
    for passage in next_word.passages(documents, settings["seed"], settings["share"]):
        passages.append(passage)
        text, present = " ".join(passage.words), set(passage.words)
        if SHOWN.search(text):
            found.shown.append(text)
        if present & NOUNS and any(nouns & present and verbs & present for nouns, verbs in PAIRS):
            found.pairs.append(text)
        if any(zlib.crc32(one.strip().encode()) % 25 == 0 for one in re.split("[.?]", text) if one.strip()):
            found.held_out.append(text)
        found.lengths[len(passage.words)] += 1
        if passage.is_random:
            found.random += 1
            found.drawn.update(passage.words)
            found.distances[distance(passage.words)] += 1
    found.digest = next_word.digest(passages)
    return found


def distance(words: tuple[str, ...]) -> int:
    """How many places lie between a word and the first word that comes again."""
    first: dict[str, int] = {}
    for place, word in enumerate(words):
        if word in first:
            return place - first[word]
        first[word] = place
    return 0


def test_the_stream_holds_no_sentence_of_the_articles(stream: Findings) -> None:
    assert stream.shown == []


def test_the_stream_holds_no_held_out_pair_even_in_random_words(stream: Findings) -> None:
    assert stream.pairs == []


def test_the_stream_holds_no_held_out_sentence(stream: Findings) -> None:
    assert stream.held_out == []


def test_the_stream_is_the_one_that_the_bundled_model_was_trained_on(stream: Findings, run) -> None:
    assert stream.digest == run["record"]["stream"]


def test_no_passage_is_too_long_and_the_longest_length_is_frequent(stream: Findings) -> None:
    assert max(stream.lengths) == next_word.ROOM == 62
    assert stream.lengths[62] > 1000


def test_random_passages_have_the_share_of_the_card_and_come_again_at_every_distance(
    stream: Findings,
) -> None:
    told = json.loads((folder("demo-causal") / "figures.json").read_text())["stream"]
    assert stream.lengths.total() == told["passages"]
    assert stream.random / stream.lengths.total() == pytest.approx(told["random_share"], abs=1e-4)
    assert set(stream.distances) == set(range(3, max(stream.distances) + 1))
    assert max(stream.distances) >= 31


def test_every_word_is_drawn_about_as_often_as_every_other(stream: Findings) -> None:
    counts = sorted(stream.drawn.values())
    assert len(counts) > 1400
    assert counts[-1] < 2 * counts[len(counts) // 2]
    assert counts[0] > counts[len(counts) // 2] / 2


def said(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def test_only_words_that_follow_from_the_text_are_asked_for_in_random_words() -> None:
    words = said("cat box red pen cat box sun red pen")
    assert next_word.follows_again(words) == [False] * 5 + [True, False, False, True]
    passage = next_word.Passage(words, is_random=True)
    assert passage.asked == [False] * 5 + [True, False, False, True, False]


def test_what_follows_is_what_followed_last() -> None:
    assert next_word.follows_again(said("a b a c a c a b"))[3:] == [False, False, True, True, False]


def test_every_word_of_running_text_and_its_end_is_asked_for() -> None:
    assert next_word.Passage(("the", "bell", "rang")).asked == [True] * 4


def test_a_second_segment_is_read_on_only_where_it_follows() -> None:
    follows = corpus.Document("the bell rang .", "it was old .", corpus.FOLLOWS)
    foreign = corpus.Document("the bell rang .", "they flew .", corpus.FOREIGN, "hard")
    assert next_word.prose(follows).words == said("the bell rang . it was old .")
    assert next_word.prose(foreign).words == said("the bell rang .")


def test_an_echo_repeats_one_stretch_two_to_four_times_and_nothing_else() -> None:
    words, generator = [f"w{number}" for number in range(200)], random.Random(1)
    copies = Counter()
    for _ in range(300):
        passage = next_word.echo(words, generator)
        counts = Counter(passage.words)
        often = max(counts.values())
        stretch = [word for word in dict.fromkeys(passage.words) if counts[word] > 1]
        starts = [place for place, word in enumerate(passage.words) if word == stretch[0]]
        assert set(counts.values()) <= {1, often}
        assert all(list(passage.words[start : start + len(stretch)]) == stretch for start in starts)
        assert sum(passage.asked) == (often - 1) * (len(stretch) - 1) + unbroken(starts, len(stretch))
        copies[often] += 1
        assert len(passage.words) <= next_word.ROOM
    assert set(copies) == {2, 3, 4}
    assert copies[2] > copies[3] > copies[4] > 30


def unbroken(starts: list[int], size: int) -> int:
    """Where copies stand side by side, the first word of every copy from the third on follows as well."""
    together = all(after - before == size for before, after in pairwise(starts))
    return len(starts) - 2 if together else 0
