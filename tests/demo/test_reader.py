"""The bundled demo-reader and its texts, which are read again by patterns that are written here."""

import json
import random
import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from attnscope.demo import folder
from attnscope.demo.train.evaluation import reader as evaluate
from attnscope.demo.train.evaluation.induction import without
from attnscope.demo.train.reading import batches, prompts, stream, tokenizer
from attnscope.demo.train.reading.sentences import NAMES, NEW, is_new

PATH = folder("demo-reader")
PASSAGES = (
    "Passage: Velna has a blue key. The hat of Marton is round. Passage: Velton has a wooden boat."
    " Marton was tired and Joda was quiet. For Joda, the hat is clean."
)


@pytest.fixture(scope="module")
def bundle() -> evaluate.Bundle:
    return evaluate.Bundle(PATH)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((PATH / "figures.json").read_text())


def answer(bundle: evaluate.Bundle, messages: list[dict[str, str]]) -> list[str]:
    ids = bundle.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=False
    )
    written = bundle.model.generate(ids, max_new_tokens=4)[0, ids.shape[1] :]
    return bundle.tokenizer.convert_ids_to_tokens(written.tolist())


def test_the_stream_is_the_one_that_the_bundled_model_was_trained_on(bundle) -> None:
    run = json.loads((PATH / "training.json").read_text())
    assert batches.digest(run["settings"]["seed"], bundle.ids) == run["record"]["stream"]
    assert batches.digest(run["settings"]["seed"] + 1, bundle.ids) != run["record"]["stream"]


@pytest.mark.parametrize("length", [64, 1024])
def test_questions_about_names_it_never_met_are_answered(bundle, length: int) -> None:
    asked = prompts_of(length, {64: 60, 1024: 10}[length])
    assert all(is_new(one.pair[0]) for one in asked)
    answers = bundle.answers(asked)
    assert {one.answer == "none" for one in asked} == {True, False}
    right = [found == one.answer for found, one in zip(answers, asked, strict=True)]
    assert sum(right) / len(right) >= 0.9


def prompts_of(length: int, count: int) -> list[prompts.Prompt]:
    generator = random.Random(length)
    return [prompts.prompt(length, "new", generator) for _ in range(count)]


def test_the_card_says_what_is_asked_of_the_model(told) -> None:
    """Ninety-five in a hundred about names never met, at every length that was trained."""
    trained = [one for length, one in told["new_names"].items() if int(length) <= 1024]
    assert len(trained) == 5
    assert min(one["all"] for one in trained) >= 0.95


def test_the_guide_tells_what_the_figures_say_of_the_heads_that_copy(told) -> None:
    guide = " ".join((PATH.parents[2] / "docs" / "guide" / "kinds.md").read_text().split())
    heads = told["heads"]
    assert f"Over {heads['prompts']} prompts of {heads['tokens']} tokens about names" in guide
    assert [heads["without_each"][1], heads["without_first"][7]] == [[1.0] * 8, 0.0]
    assert f"without the four that look most, {100 * heads['without_first'][3]:.0f} % are right" in guide
    assert heads["without_as_many_others"][7] == heads["without_layer"][2] == 1.0


def test_a_chat_goes_on_for_several_turns_and_each_answer_ends(bundle) -> None:
    messages = [
        {"role": "system", "content": "Answer only from the passages."},
        {"role": "user", "content": f"{PASSAGES} What is the key of Velna?"},
    ]
    assert answer(bundle, messages) == ["blue", "<|end|>"]
    messages += [
        {"role": "assistant", "content": "blue"},
        {"role": "user", "content": "Which boat does Velton have?"},
    ]
    assert answer(bundle, messages) == ["wooden", "<|end|>"]
    messages += [
        {"role": "assistant", "content": "wooden"},
        {"role": "user", "content": "What is the boat of Velna?"},
    ]
    assert answer(bundle, messages) == ["none", "<|end|>"]


@pytest.mark.parametrize(
    ("end", "word"),
    [
        ("Question: what is Marton's hat? Answer:", "round"),
        ("In short, the hat of Joda is", "clean"),
        ("In short, Marton's boat is", "none"),
    ],
)
def test_a_bare_prompt_is_answered(bundle, end: str, word: str) -> None:
    ids = bundle.tokenizer(f"{PASSAGES} {end}", return_tensors="pt")["input_ids"]
    best = bundle.model(ids).logits[0, -1].argmax().item()
    assert bundle.words[best] == word


def test_the_answer_goes_with_the_heads_that_copy_and_stays_without_as_many_others(bundle, told) -> None:
    heads = told["heads"]
    asked = [one for one in prompts_of(128, 40) if one.sentence]

    def right(places: list[list[int]]) -> float:
        with without(bundle.model, [(layer, head) for layer, head in places]):
            found = bundle.answers(asked)
        return evaluate.share(a == one.answer for a, one in zip(found, asked, strict=True))

    assert len(heads["others"]) == len(heads["copying"]) > 1
    assert not {*map(tuple, heads["others"])} & {*map(tuple, heads["copying"])}
    assert right([]) >= 0.95
    assert right(heads["copying"]) <= 0.2
    assert right(heads["others"]) >= 0.9


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


def test_no_new_name_stands_in_any_training_text(readings) -> None:
    for one in readings:
        names = {pair for pair in pairwise(one.words) if pair[1].startswith("##")}
        assert names
        assert not any(is_new(name) for name in names)
        assert not NEW_NAMES & set(plain(one.words).split())


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
