"""The texts that demo-reader is trained on and measured with, read again by patterns that are written here.

What a text states, what it asks and what is right is found in its words, not in what the generator says.
"""

import random
import re
from collections import Counter
from itertools import pairwise

import pytest

from attnscope.demo.train.reading import prompts, stream, tokenizer
from attnscope.demo.train.reading.sentences import (
    FACTS,
    FIRST,
    LAST,
    LIKE,
    MET,
    NAMES,
    NEW,
    SECOND,
    THINGS,
    is_new,
)

STATED = (
    (r"the (?P<T>\w+) of (?P<N>\w+) is (?P<V>\w+) \."),
    (r"(?P<N>\w+) ' s (?P<T>\w+) is (?P<V>\w+) \."),
    (r"for (?P<N>\w+) , the (?P<T>\w+) is (?P<V>\w+) \."),
    (r"(?P<N>\w+) has a (?P<V>\w+) (?P<T>\w+) \."),
)
ASKED = (
    (r"what is the (?P<T>\w+) of (?P<N>\w+) \?"),
    (r"what is (?P<N>\w+) ' s (?P<T>\w+) \?"),
    (r"which (?P<T>\w+) does (?P<N>\w+) have \?"),
    (r"in short , the (?P<T>\w+) of (?P<N>\w+) is(?! the)"),
    (r"in short , (?P<N>\w+) ' s (?P<T>\w+) is(?! the)"),
)
LENGTHS = (64, 128, 256, 512, 1024)
NEW_NAMES = {"".join(name).replace("##", "") for name in NEW}
SPELLED = {"".join(name).replace("##", ""): name for name in NAMES}
Pair = tuple[str, str]


def plain(words: tuple[str, ...]) -> str:
    """A text with its names in one word."""
    return " ".join(words).replace(" ##", "")


def found(patterns: tuple[str, ...], text: str) -> list[dict[str, str]]:
    return [match.groupdict() for pattern in patterns for match in re.finditer(pattern, text)]


def facts_of(text: str) -> dict[Pair, set[str]]:
    """What the passages of a text state, without its questions."""
    passages = re.split(r"question :|what is|which|in short", text)[0]
    told: dict[Pair, set[str]] = {}
    for fact in found(STATED, passages):
        told.setdefault((fact["N"], fact["T"]), set()).add(fact["V"])
    return told


@pytest.fixture(scope="module")
def readings() -> list[stream.Reading]:
    generator = random.Random(11)
    return [
        stream.reading(length, generator.uniform(0.3, 1.0), 0.25, generator)
        for length in LENGTHS
        for _ in range(150)
    ]


def test_names_are_two_pieces_and_every_piece_of_a_new_name_is_met_in_many_others() -> None:
    assert len(set(NAMES)) == len(FIRST) * len(SECOND) == len(MET) + len(NEW)
    assert 0.19 < len(NEW) / len(NAMES) < 0.21
    firsts, seconds = (Counter(name[at] for name in MET) for at in (0, 1))
    assert min(firsts[name[0]] for name in NEW) > 20
    assert min(seconds[name[1]] for name in NEW) > 20


def test_no_new_name_stands_in_any_training_text(readings) -> None:
    for one in readings:
        names = {pair for pair in pairwise(one.words) if pair[1].startswith("##")}
        assert names
        assert not any(is_new(name) for name in names)
        assert not NEW_NAMES & set(plain(one.words).split())


def test_in_most_texts_every_piece_of_a_name_is_shared_with_another_name_of_the_text(readings) -> None:
    """So that the whole name must be read to know which fact is meant."""
    shared = Counter[bool]()
    for one in readings:
        names = {SPELLED[name] for name, _ in facts_of(plain(one.words))}
        if len(names) > 2:
            firsts, seconds = (Counter(name[at] for name in names) for at in (0, 1))
            shared[min(len(firsts), len(seconds)) < 0.7 * len(names)] += 1
    assert shared[True] / shared.total() > 0.5


def test_the_easy_texts_say_what_a_thing_is_like_last_and_state_the_fact_of_nine_questions_in_ten() -> None:
    generator, answers = random.Random(8), Counter[bool]()
    for _ in range(300):
        one = stream.reading(64, 1.0, 0.1, generator, easy=True)
        text = plain(one.words)
        told = facts_of(text)
        assert not found(STATED[3:], text)
        for (name, thing), answer in one.questions:
            assert told.get(("".join(name).replace("##", ""), thing), {"none"}) == {answer}
            answers[answer == "none"] += 1
    assert len(LAST) == 4
    assert 0.02 < answers[True] / answers.total() < 0.12


def test_every_answer_is_what_one_passage_says_and_none_where_no_passage_does(readings) -> None:
    kinds = Counter[bool]()
    for one in readings:
        text = plain(one.words)
        told = facts_of(text)
        assert all(len(likes) == 1 for likes in told.values())
        for place, ((name, thing), answer) in zip(one.asked, one.questions, strict=True):
            (question,) = found(ASKED, plain(one.words[max(0, place - 12) : place]))[-1:]
            assert (question["N"], question["T"]) == ("".join(name).replace("##", ""), thing)
            assert one.words[place] == answer
            likes = told.get((question["N"], question["T"]), {"none"})
            assert likes == {answer}
            kinds[answer == "none"] += 1
    assert kinds[False] > 2000
    assert 0.1 < kinds[True] / kinds.total() < 0.35


def test_what_is_not_there_is_near_to_what_is(readings) -> None:
    """Of most questions without an answer the name and the thing stand there, apart from one another."""
    near = Counter[bool]()
    for one in readings:
        told = facts_of(plain(one.words))
        for (name, thing), answer in one.questions:
            if answer == "none":
                spelled = "".join(name).replace("##", "")
                near[spelled in {n for n, _ in told} and thing in {t for _, t in told}] += 1
    assert near[True] / near.total() > 0.5


def test_texts_fill_their_length_and_never_more(readings) -> None:
    for length, some in zip(LENGTHS, (readings[at : at + 150] for at in range(0, 750, 150)), strict=True):
        sizes = [len(one.words) for one in some]
        assert max(sizes) <= length
        assert sum(sizes) / len(sizes) > 0.85 * length


def test_facts_are_said_in_all_orders_of_words(readings) -> None:
    orders = Counter[str]()
    for one in readings:
        passages = re.split(r"question :|what is|which|in short", plain(one.words))[0]
        for pattern in STATED:
            order = "".join(re.findall(r"\?P<(\w)>", pattern))
            orders[order] += len(re.findall(pattern, passages))
    assert set(orders) == {"TNV", "NTV", "NVT"}
    assert min(orders.values()) > 0.1 * orders.total()
    assert len(FACTS) == 6


def test_the_same_seed_gives_the_same_texts_and_another_seed_others() -> None:
    def texts(seed: int) -> list[stream.Reading]:
        generator = random.Random(seed)
        return [stream.reading(length, 0.6, 0.25, generator) for length in LENGTHS]

    assert texts(3) == texts(3)
    assert texts(3) != texts(4)


def test_random_words_are_said_twice_and_asked_for_the_second_time() -> None:
    one = stream.echo(64, ["key", "blue", "mar", "hat"], random.Random(0))
    size = (len(one.words) - 1) // 2
    assert one.words[1 : size + 1] == one.words[size + 1 :]
    assert one.asked == tuple(range(size + 2, 2 * size + 1))
    assert max(one.asked) < len(one.words) <= 64


@pytest.mark.parametrize("kind", prompts.KINDS)
def test_a_measured_question_is_of_its_kind_and_its_answer_is_what_the_text_says(kind: str) -> None:
    generator, depths, answers = random.Random(5), Counter[int](), Counter[bool]()
    for _ in range(200):
        one = prompts.prompt(256, kind, generator)
        name, thing = one.pair
        assert is_new(name) == (kind == "new")
        told, spelled = facts_of(plain(one.words)), "".join(name).replace("##", "")
        assert told.get((spelled, thing), {"none"}) == {one.answer}
        assert found(ASKED, plain(one.words[-13:]))[-1] == {"N": spelled, "T": thing}
        akin = {n for n, t in told if t == thing and n != spelled}
        assert any(n.startswith(name[0]) for n in akin)
        assert any(n.endswith(name[1][2:]) for n in akin)
        assert len(one.words) <= 256
        answers[one.answer == "none"] += 1
        if one.sentence:
            assert one.words[one.value] == one.answer
            sentence = plain(one.words[one.sentence.start : one.sentence.stop])
            assert found(STATED, sentence)[0] == {"N": spelled, "T": thing, "V": one.answer}
            depths[int(4 * one.depth)] += 1
    assert min(depths[quarter] for quarter in range(4)) > 15
    assert 0.15 < answers[True] / 200 < 0.35


def test_every_name_is_spelled_in_its_two_pieces_and_every_word_is_known() -> None:
    spelling = tokenizer.build(2048)
    assert all(spelling.tokenize("".join(name).replace("##", "")) == list(name) for name in NAMES)
    assert {*LIKE, *THINGS, "none", "passage", "question", "answer"} <= set(spelling.get_vocab())
    assert spelling.tokenize("zyzzyva") == ["[UNK]"]


def test_a_text_as_it_is_typed_has_the_tokens_of_the_stream(readings) -> None:
    spelling = tokenizer.build(2048)
    for one in readings[:100]:
        ids = spelling(plain(one.words), add_special_tokens=False)["input_ids"]
        assert spelling.convert_ids_to_tokens(ids) == list(one.words)


def test_a_chat_is_written_as_chats_in_training_are() -> None:
    spelling = tokenizer.build(2048)
    chat = [
        {"role": "system", "content": "Answer in one word."},
        {"role": "user", "content": "Passage: Marna has a blue key. What is Marna's key?"},
        {"role": "assistant", "content": "blue"},
        {"role": "user", "content": "Which hat does Marna have?"},
    ]
    ids = spelling.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    assert plain(tuple(spelling.convert_ids_to_tokens(ids))) == (
        "[BOS] <|system|> answer in one word . "
        "<|user|> passage : marna has a blue key . what is marna ' s key ? "
        "<|assistant|> blue <|end|> <|user|> which hat does marna have ? <|assistant|>"
    )
