"""Heads measured by an answer, against masks of heads moved by hand and the gradients of torch itself."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from families import CONFIGS, DIM, HEADS, KEY_HEADS
from torch import Tensor, nn

from attnscope.analysis.claims.ablation import attribution as measured
from attnscope.analysis.claims.ablation.attribution import attributed
from attnscope.analysis.claims.ablation.estimates import measured_estimates
from attnscope.analysis.claims.ablation.question import log_probabilities, other_answers, runner_up
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import AnswerRows
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.capture.intervening.passing import Observed
from attnscope.errors import InputError
from attnscope.results import HeadScores
from attnscope.vocabulary import Kind

ROW = 4
ANSWERS = ((5,), (9,), (20,), (31,), (44,))
NAMES = ("importance", "attention-gradient", "attention-gradient-positive")
MODELS: dict[str, tuple[Any, str]] = {
    "bert": (hf.BertForMaskedLM, "bert.encoder.layer.{}.attention.output.dense"),
    "gpt2": (hf.GPT2LMHeadModel, "transformer.h.{}.attn.c_proj"),
    "llama": (hf.LlamaForCausalLM, "model.layers.{}.self_attn.o_proj"),
    "t5": (hf.T5ForConditionalGeneration, "decoder.block.{}.layer.0.SelfAttention.o"),
    "gpt_oss": (hf.GptOssForCausalLM, "model.layers.{}.self_attn.o_proj"),
}
CROSS = "decoder.block.{}.layer.1.EncDecAttention.o"
# step of a mask and how near the derivative comes: some norms are made in float32 whatever the model is in
STEPS = {"bert": (1e-5, 1e-6), "gpt2": (1e-5, 1e-6)}
COARSE = (1e-2, 2e-2)
ENCODER = "encoder.block.{}.layer.0.SelfAttention.o"


@cache
def model_and_inputs(family: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """In float64 where the family can, so that a difference of two runs is a derivative."""
    torch.manual_seed(0)
    model = MODELS[family][0]._from_config(CONFIGS[family](), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    drawn = torch.Generator().manual_seed(1)
    inputs = {"input_ids": torch.randint(3, 97, (1, 7), generator=drawn)}
    if family == "t5":
        inputs["decoder_input_ids"] = torch.randint(3, 97, (1, 6), generator=drawn)
    return (model if family == "gpt_oss" else model.double()), inputs


@cache
def experiments(family: str, kind: Kind | None = None) -> Experiments:
    model, inputs = model_and_inputs(family)
    length = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    asked = AnswerRows(lambda output: output["logits"], (ROW,), length)
    if kind is None and family == "t5":
        kind = Kind.DECODER
    return experiments_on(model, inputs, Selection(kind=kind), asked)


@cache
def scores(family: str, kind: Kind | None = None) -> dict[str, HeadScores]:
    made = experiments(family, kind)
    layers = sorted({layer for layer, _ in made.answers})
    return attributed(made, ANSWERS, NAMES, layers, range(HEADS))


def chance(family: str, answer: int) -> Tensor:
    model, inputs = model_and_inputs(family)
    return model(**inputs).logits[0, ROW].log_softmax(-1)[answer]


def scaled(family: str, path: str, head: int, by: float, answer: int = ANSWERS[0][0]) -> float:
    """ln p of the answer in a run in which the projection reads so many times the head's output."""

    def mask(_: nn.Module, given: Any) -> Any:
        masked = given[0].clone()
        masked[..., head * DIM : head * DIM + DIM] *= by
        return (masked,)

    handle = model_and_inputs(family)[0].get_submodule(path).register_forward_pre_hook(mask)
    try:
        with torch.no_grad():
            return float(chance(family, answer))
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("family", "kind", "path"),
    [
        *((family, None, path) for family, (_, path) in MODELS.items()),
        ("t5", Kind.CROSS, CROSS),
        ("t5", Kind.ENCODER, ENCODER),
    ],
)
def test_importance_is_the_derivative_by_a_mask_over_the_head(
    family: str, kind: Kind | None, path: str
) -> None:
    found, (step, near) = scores(family, kind), STEPS.get(family, COARSE)
    for layer, head in ((0, 0), (1, 4), (2, 5)):
        place = path.format(layer)
        loss = [-scaled(family, place, head, 1 + sign * step) for sign in (1, -1)]
        derivative = (loss[0] - loss[1]) / (2 * step)
        assert abs(derivative) > 1e-3, "the head does nothing: nothing is compared"
        assert found["importance"].values[layer, head] == pytest.approx(abs(derivative), rel=near)
        assert found["attention-gradient"].values[layer, head] == pytest.approx(-derivative, rel=near)


def test_another_head_has_another_derivative() -> None:
    loss = [scaled("llama", "model.layers.1.self_attn.o_proj", 3, 1 + sign * 1e-3) for sign in (1, -1)]
    derivative = abs(loss[0] - loss[1]) / 2e-3
    assert scores("llama")["importance"].values[1, 4] != pytest.approx(derivative, rel=1e-2)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gpt_oss"])
def test_weight_times_gradient_is_that_of_torch_by_the_models_own_weights(family: str) -> None:
    model, inputs = model_and_inputs(family)
    output = model(**inputs, output_attentions=True)
    near = 1e-4 if family == "gpt_oss" else 1e-6
    for answer in (0, 3):
        chosen = output.logits[0, ROW].log_softmax(-1)[ANSWERS[answer][0]]
        slopes = torch.autograd.grad(chosen, output.attentions, retain_graph=True)
        made = experiments(family)
        found = attributed(made, (ANSWERS[answer],), NAMES, range(3), range(HEADS))
        for layer, (weights, slope) in enumerate(zip(output.attentions, slopes, strict=True)):
            product = (weights * slope)[0].detach().numpy()
            signed = found["attention-gradient"].values[layer]
            assert signed == pytest.approx(product.sum((1, 2)), rel=near, abs=1e-6)
            positive = np.maximum(product, 0).sum((1, 2))
            assert found["attention-gradient-positive"].values[layer] == pytest.approx(
                positive, rel=near, abs=1e-6
            )
            assert positive != pytest.approx(np.abs(product.sum((1, 2)))), "nothing is compared"


@pytest.mark.parametrize("family", MODELS)
def test_the_size_of_weight_times_gradient_is_importance_by_another_way(family: str) -> None:
    found = scores(family)
    signed = found["attention-gradient"].values
    assert np.abs(signed) == pytest.approx(found["importance"].values, rel=1e-4, abs=1e-6)
    assert (signed < 0).any()
    assert (signed > 0).any()


def test_the_control_is_the_median_size_for_the_other_answers_without_the_runner_up() -> None:
    made, found = experiments("llama"), scores("llama")
    each = [attributed(made, (ids,), NAMES, range(3), range(HEADS)) for ids in ANSWERS]
    for name in NAMES:
        sizes = [np.abs(one[name].values) for one in each[2:]]
        control = found[name].control
        assert control is not None
        assert control == pytest.approx(np.median(sizes, axis=0), rel=1e-9)
        assert control != pytest.approx(np.abs(each[1][name].values), rel=1e-2)
        assert each[0][name].control is None, "held against nothing"
    values = found["importance"].values
    layer, head = np.unravel_index(values.argmax(), values.shape)
    less = sum(one["importance"].values[layer, head] < values.max() for one in each[2:])
    told = found["importance"].description.apart
    assert told.startswith(f"the largest of 18 heads is L{layer} H{head} {values.max():.3g}, ")
    assert f"for the runner-up {each[1]['importance'].values[layer, head]:.3g}" in told
    assert f"({less} of 3 less)" in told


def test_where_values_of_other_groups_are_taken_weights_do_not_make_the_output() -> None:
    seen = next(iter(measured.slopes(*_given("llama"), weights=True).seen.values()))
    assert measured.makes_output(seen)
    assert HEADS != KEY_HEADS
    assert not measured.makes_output(Observed(seen.output, seen.value.roll(1, 1), seen.weights))
    assert not measured.makes_output(Observed(seen.output, seen.value, None))


def test_a_layer_whose_outputs_are_not_weights_times_values_has_no_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, honest = experiments("llama"), measured.makes_output
    told = iter([True, False, True])
    monkeypatch.setattr(measured, "makes_output", lambda seen: honest(seen) and next(told))
    found = attributed(made, ANSWERS, NAMES, range(3), range(HEADS))
    lost = np.isnan(found["attention-gradient"].values)
    assert lost[1].all()
    assert not lost[[0, 2]].any()
    assert not np.isnan(found["importance"].values).any()
    assert "L1: what its heads answer is not" in found["attention-gradient"].description.apart
    monkeypatch.setattr(measured, "makes_output", lambda seen: False)
    found = attributed(made, ANSWERS, NAMES, range(3), range(HEADS))
    assert (
        found["attention-gradient"].absent == "what its heads answer is not their weights times their values"
    )
    assert not found["importance"].absent


def _given(family: str) -> tuple[nn.Module, Any, Sequence[Any], Callable[[Any], Tensor]]:
    made = experiments(family)
    return made.model, made.inputs, made.sites, log_probabilities(made.asked, ANSWERS)


def test_other_answers_are_seeded_and_never_the_answer_nor_a_special_one() -> None:
    found = other_answers((7, 3), 12, {0, 1}, 6, seed=2)
    assert len(found) == 6
    assert (
        found == other_answers((7, 3), 12, {0, 1}, 6, seed=2) != other_answers((7, 3), 12, {0, 1}, 6, seed=3)
    )
    for row, mine in enumerate((7, 3)):
        drawn = [ids[row] for ids in found]
        assert len(set(drawn)) == 6
        assert not {mine, 0, 1} & set(drawn)
    assert other_answers((1,), 2, set(), 10, seed=0) == ((0,),)


def test_the_runner_up_is_the_next_likeliest_in_every_row() -> None:
    chances = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]]).log()
    assert runner_up(chances, (1, 2)) == (2, 0)
    assert runner_up(chances, (2, 0)) == (1, 2)


def test_what_is_foretold_is_that_what_the_head_adds_is_gone() -> None:
    made, heads = experiments("llama"), [(0, 2), (2, 5), (1, 0)]
    for by in ("importance", "attention-gradient"):
        found = measured_estimates(made, ANSWERS[0], by, heads)
        there = {(each.layer, each.head): each.change for each in found}
        for layer, head in heads:
            signed = scores("llama")["attention-gradient"].values[layer, head]
            assert there[layer, head] == pytest.approx(-signed, rel=1e-4)
        sizes = [abs(each.change) for each in found]
        assert sizes == sorted(sizes, reverse=True)


def test_an_estimate_without_meaning_is_one_line() -> None:
    with pytest.raises(InputError, match=r"--by logit has no meaning here: .*gelu, no sum, matrix or norm$"):
        measured_estimates(experiments("bert"), ANSWERS[0], "logit", [(0, 0)])
