"""What a model answers to a long text, no queries by keys held: against the short way, and plain runs."""

from collections.abc import Callable
from typing import Any

import long_text
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaForCausalLM

import attnscope as at
from attnscope import demo
from attnscope.analysis import prediction
from attnscope.session.questions.claims import rows

LENGTH = 61
TEXTS = {
    "demo": "I was watching the [MASK] when it opened.",
    "demo-causal": "I put my money in the bank and sat on the",
    "demo-translate": "I was watching the red door when it opened.",
}


def close(found: object, expected: object) -> None:
    """Within the rounding of two kernels in float32, through all layers and the word head."""
    assert np.allclose(found, expected, rtol=1e-4, atol=5e-6, equal_nan=True)


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    return long_text.llama(6)


def guesses(made: Any) -> list[tuple[int, float]]:
    return [(guess.id, guess.probability) for blank in made.blanks for guess in blank.guesses]


ASKED: dict[str, Callable[[Any], Any]] = {
    "predict": lambda reading: reading.predict(),
    "layers": lambda reading: reading.predict_layers(controls=3),
    "rank": lambda reading: reading.ablate(rank=True, top=3, controls=3),
    "one": lambda reading: reading.ablate(1, 2),
}


@pytest.mark.parametrize("model", TEXTS)
def test_the_answer_to_a_long_text_is_that_of_eager_attention(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.load(model).read(TEXTS[model])
    whole = reading.predict()
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.predict()
    assert [each[0] for each in guesses(long)] == [each[0] for each in guesses(whole)]
    close([each[1] for each in guesses(long)], [each[1] for each in guesses(whole)])
    assert (whole.provenance.kernel, long.provenance.kernel) == ("eager", "sdpa, some queries at a time")


def test_the_answer_to_a_long_text_is_what_the_plain_library_says(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS["demo-causal"]
    plain = AutoModelForCausalLM.from_pretrained(demo.folder().parent / "causal", attn_implementation="eager")
    reading = at.load("demo-causal").read(text)
    with torch.no_grad():
        chances = plain.eval()(torch.tensor([reading.tokens.ids])).logits[0, -1].double().softmax(-1)
    monkeypatch.setattr(rows, "LONG", 4)
    found = reading.predict().blanks[0].guesses
    close([each.probability for each in found], [float(chances[each.id]) for each in found])


def test_the_word_head_answers_after_a_long_text_alone(
    llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, reading = list[int](), at.wrap(llama).read(ids=long_text.ids(LENGTH))
    whole = reading.predict()
    monkeypatch.setattr(prediction, "_MANY", 4)
    with llama.lm_head.register_forward_hook(lambda _module, _given, output: made.append(output.shape[1])):
        long = reading.predict()
    assert made == [1]
    assert [each[0] for each in guesses(long)] == [each[0] for each in guesses(whole)]
    close([each[1] for each in guesses(long)], [each[1] for each in guesses(whole)])


@pytest.mark.parametrize("model", ["demo", "demo-causal"])
def test_layers_of_a_long_text_answer_as_those_of_a_short_one(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.load(model).read(TEXTS[model])
    whole = reading.predict_layers(controls=3)
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.predict_layers(controls=3)
    assert long.provenance.kernel == "sdpa, some queries at a time"
    for one, other in zip(long.places, whole.places, strict=True):
        for mine, its in zip(one.layers, other.layers, strict=True):
            close((mine.probability, mine.control), (its.probability, its.control))


@pytest.mark.parametrize("how", [{"rank": True, "top": 3}, {"part": "mlp"}, {"layers": 1}])
def test_what_becomes_of_a_long_answer_is_what_becomes_of_a_short_one(
    how: dict, llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = at.wrap(llama).read(ids=long_text.ids(LENGTH))
    whole = reading.ablate(**how)
    monkeypatch.setattr(rows, "LONG", 4)
    long = reading.ablate(**how)
    assert long.provenance.kernel == "sdpa, some queries at a time"
    its = {(each.layer, each.head): each.change for each in whole.alone}
    close([each.change for each in long.alone], [its[each.layer, each.head] for each in long.alone])
    assert long.alone


@pytest.mark.parametrize("asked", ASKED)
def test_no_answer_to_a_long_text_holds_queries_by_keys(
    asked: str, llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a length at which code that did would be seen: no tensor of the whole answer has its pairs."""
    reading = at.wrap(llama).read(ids=long_text.ids(LENGTH))
    monkeypatch.setattr(rows, "LONG", 4)
    with long_text.Squares(LENGTH) as squares:
        ASKED[asked](reading)
    assert squares.made == []
    monkeypatch.setattr(rows, "LONG", LENGTH)
    with long_text.Squares(LENGTH) as squares:
        ASKED[asked](reading)
    assert squares.made


@pytest.mark.parametrize("asked", ASKED)
def test_a_kernel_that_is_asked_for_by_name_answers_also_to_a_long_text(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LONG", 4)
    reading = at.load("demo-causal", attn="eager").read(TEXTS["demo-causal"])
    assert ASKED[asked](reading).provenance.kernel == "eager"
