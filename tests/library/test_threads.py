"""Models that several threads use at once answer as they do to one; nothing of it stays in the library."""

import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from transformers.masking_utils import AttentionMaskInterface
from transformers.modeling_utils import AttentionInterface

import attnscope as at
from attnscope.capture.following.takeover import takeover
from attnscope.process.machine import ALONE

TEXTS = ("The cat sat on the mat because it was tired.", "A dog opened the door.")


def in_threads(works: list[Callable[[], Any]]) -> list[Any]:
    """What each of them returns or raises, all begun at once."""
    begin, answers = threading.Barrier(len(works)), [None] * len(works)

    def run(number: int) -> None:
        begin.wait(30)
        try:
            answers[number] = works[number]()
        except Exception as error:
            answers[number] = error

    threads = [threading.Thread(target=run, args=[number], daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "two wait for each other"
    return answers


def registries() -> list[dict[str, Any]]:
    return [dict(each._global_mapping) for each in (AttentionInterface, AttentionMaskInterface)]


def numbers(model: at.Model, text: str) -> list[np.ndarray]:
    reading = model.read(text)
    entropy = reading.overview(measure="entropy").scores["entropy"]
    return [reading.head(1, 2).weights, entropy.values]


def test_two_models_in_four_threads_answer_as_in_one_also_where_some_questions_fail() -> None:
    before = registries()
    models = [at.load("demo"), at.load("demo-causal")]
    pairs = list(product(range(2), range(2)))
    alone = {(m, t): numbers(models[m], TEXTS[t]) for m, t in pairs}
    assert alone[0, 0][0].shape != alone[0, 1][0].shape

    def work(first: int) -> list[tuple[tuple[int, int], list[np.ndarray], str]]:
        found = []
        for m, t in pairs[first:] + pairs[:first]:
            answer = numbers(models[m], TEXTS[t])
            with pytest.raises(at.AttnscopeError) as refused:
                models[m].read(TEXTS[t]).head(99, 0)
            with takeover(models[m].module.modules(), fails), pytest.raises(ZeroDivisionError):
                models[m].module(**models[m].tokenizer(TEXTS[t], return_tensors="pt"))
            found.append(((m, t), answer, str(refused.value)))
        return found

    def fails(_: object) -> object:
        raise ZeroDivisionError

    for answers in in_threads([lambda first=first: work(first) for first in range(4)]):
        assert isinstance(answers, list), answers
        for key, found, refused in answers:
            assert "no layer 99" in refused
            for mine, expected in zip(found, alone[key], strict=True):
                np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-6)
    assert registries() == before
    for key, expected in alone.items():
        np.testing.assert_allclose(
            numbers(models[key[0]], TEXTS[key[1]])[0], expected[0], rtol=1e-4, atol=1e-6
        )


def test_models_can_be_loaded_by_several_threads_at_once() -> None:
    names = ["demo", "demo-causal", "demo", "demo-causal"]
    models = in_threads([lambda name=name: at.load(name) for name in names])
    assert [model.name for model in models] == names
    weights = [model.read(TEXTS[1]).head(0, 0).weights for model in models]
    np.testing.assert_array_equal(weights[0], weights[2])
    np.testing.assert_array_equal(weights[1], weights[3])


def test_whatever_touches_a_model_waits_for_the_thread_that_is_at_it() -> None:
    model, done = at.load("demo"), threading.Event()
    other = threading.Thread(target=lambda: (model.read(TEXTS[1]), done.set()), daemon=True)
    with ALONE:
        other.start()
        model.read(TEXTS[0])  # who has the lock goes on
        assert not done.wait(0.1)
    assert done.wait(60)
    waits = [at.load, at.wrap, at.outline, at.compare, at.corpus]
    for kind in (at.Model, at.Reading, *at.Reading.__mro__[1:-1], type(model.prompts([TEXTS[1]]))):
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                waits.append(member.fget if isinstance(member, property) else member)
    assert len(waits) > 30
    assert all(hasattr(each, "__wrapped__") for each in waits)
