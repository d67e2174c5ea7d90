"""What an ablation makes of its runs, worked by hand; heads measured by gradients of torch itself."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from families import DIM, HEADS, KEY_HEADS, LAYERS, ids
from torch import Tensor, nn
from worded import worded

from attnscope.analysis.answers import attribution as measured
from attnscope.analysis.answers import experiment, replacing
from attnscope.analysis.answers.attribution import attributed
from attnscope.analysis.answers.experiment import (
    MOST_DRAWN,
    groups_drawn,
    intervention,
    layers_drawn,
    measured_estimates,
    others_drawn,
    taken_away,
)
from attnscope.analysis.answers.question import (
    class_of_text,
    effect,
    log_chances,
    log_probabilities,
    other_answers,
    runner_up,
    text_written,
    verdict_on_pair,
    word_at,
)
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import AnswerRows, Put, Zero
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.capture.intervening.passing import Observed, answers_to
from attnscope.errors import CertificateError, InputError
from attnscope.results import HeadScores, Verdict
from attnscope.results.claims.effect import Asks, HeadEffect, Intervention, ranked
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Kind


@pytest.fixture(scope="module")
def speaking() -> nn.Module:
    model: nn.Module = worded("bert", 4, 0.2)
    return model


@pytest.fixture(scope="module")
def made(speaking: nn.Module) -> Experiments:
    question = word_at(Asks.MASK, 4, 11, None, str)
    return experiments_on(speaking, ids(), Selection(), question.asked)


def logs(*chances: float) -> Tensor:
    return torch.tensor([chances], dtype=torch.float64).log()


def test_an_effect_worked_by_hand_in_its_direction_and_of_all_tokens_of_a_text() -> None:
    told = effect(logs(0.5, 0.25, 0.25), logs(0.25, 0.25, 0.5), [0])
    assert told.before == pytest.approx(0.5)
    assert told.after == pytest.approx(0.25)
    assert told.change == pytest.approx(math.log(0.5))
    assert told.kl == pytest.approx(0.5 * math.log(2) - 0.25 * math.log(2))
    there, back = logs(0.9, 0.1), logs(0.5, 0.5)
    assert effect(there, back, [0]).kl == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2))
    assert effect(back, there, [0]).kl != pytest.approx(effect(there, back, [0]).kl)
    assert effect(there, there, [1]).kl == 0
    told = effect(logs(1.0, 0.0), logs(0.5, 0.5), [0])  # a choice that was impossible
    assert told.kl == pytest.approx(math.log(2))
    before = torch.cat([logs(0.5, 0.5), logs(0.1, 0.9)])
    after = torch.cat([logs(0.25, 0.75), logs(0.1, 0.9)])
    told = effect(before, after, [0, 1])
    assert told.before == pytest.approx(0.45)
    assert told.change == pytest.approx(math.log(0.5))


def test_where_the_answer_of_each_kind_stands() -> None:
    scores = torch.arange(2 * 5 * 3.0).reshape(2, 5, 3)
    word = word_at(Asks.NEXT, 3, 5, None, str)
    assert torch.equal(word.asked.of({"logits": scores}), scores[:, [3]])
    assert torch.equal(word.asked.of({"logits": scores[:, [3]]}), scores[:, [3]]), "only that row was made"
    both = {"prediction_logits": scores, "seq_relationship_logits": scores[:, 0, :2]}
    assert torch.equal(word.asked.of(both), scores[:, [3]])
    assert torch.equal(verdict_on_pair(None, str).asked.of(both), scores[:, :1, :2])
    assert torch.equal(class_of_text(2, str).asked.of({"logits": scores[:, 4]}), scores[:, [4]])
    written = text_written([9, 0, 2, 1], 1, "a text", str)
    assert written.ids == (0, 2, 1)
    assert torch.equal(written.asked.of({"logits": scores[:, :4]}), scores[:, :3])


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(InputError, match="wrote nothing"):
        text_written([9], 1, "", str)
    with pytest.raises(InputError, match="no classes"):
        class_of_text(None, str).asked.of({"logits": torch.zeros(1, 1)})
    with pytest.raises(InputError, match="no head that judges pairs"):
        verdict_on_pair(None, str).asked.of({"logits": torch.zeros(1, 2, 3)})
    with pytest.raises(CertificateError, match="not numbers"):
        log_chances(torch.tensor([[0.0, math.nan]]))


def test_heads_are_ranked_by_size_and_held_against_others_groups_and_layers_drawn_alike() -> None:
    heads = [HeadEffect(0.5, 0.5, d, 0.0, n, 0) for n, d in enumerate((0.1, -0.3, 0.2, -0.2))]
    assert [each.layer for each in ranked(tuple(heads))] == [1, 2, 3, 0]
    counts = {0: 4, 1: 20, 2: 2}
    drawn = others_drawn([(1, 3), (1, 5), (2, 0), (2, 1)], counts, seed=1)
    assert {layer for layer, _ in drawn} == {1}, "layer 2 has no other head"
    assert len(drawn) == len(set(drawn)) == MOST_DRAWN
    assert not {(1, 3), (1, 5)} & set(drawn)
    assert drawn == others_drawn([(1, 3), (1, 5), (2, 0), (2, 1)], counts, seed=1)
    assert drawn != others_drawn([(1, 3), (1, 5), (2, 0), (2, 1)], counts, seed=2)
    group = [(0, 1), (0, 2), (1, 0)]
    groups = groups_drawn(group, {0: 5, 1: 3}, seed=0)
    assert len(groups) == len(set(groups)) == 6, "three pairs of heads 0, 3, 4, with head 1 or 2"
    assert all([layer for layer, _ in each] == [0, 0, 1] for each in groups)
    assert not any({(0, 1), (0, 2), (1, 0)} & set(each) for each in groups)
    assert groups_drawn([(0, 0), (0, 1)], {0: 2}, seed=0) == [], "the whole layer is no other group"
    counts = {0: 2, 2: 3, 5: 2}
    assert layers_drawn([(2, 0), (2, 1), (2, 2)], counts, seed=0) == [((0, 0), (0, 1)), ((5, 0), (5, 1))]
    assert layers_drawn([(2, 0), (2, 1)], counts, seed=0) == [], "head 2 is not in it"
    both = [(layer, head) for layer in (0, 2) for head in range(counts[layer])]
    assert layers_drawn(both, counts, seed=0) == [], "no two other layers"
    assert len(layers_drawn([(0, 0)], dict.fromkeys(range(40), 1), seed=0)) == MOST_DRAWN


def test_every_head_in_turn_beside_the_others_of_its_layer(made: Experiments, speaking: nn.Module) -> None:
    answer = int(made.untouched[0, 0].argmax())
    heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    found = taken_away(made, [answer], heads, Zero(), together=False, seed=0)
    assert len(found.heads) == LAYERS * HEADS
    assert found.group is None
    assert found.floor.random == ()
    assert found.floor.runs == LAYERS
    assert 0 < found.floor.rounding < 1e-5 < max(abs(each.change) for each in found.heads)
    for each in found.heads:
        there = [abs(o.change) for o in found.heads if o.layer == each.layer and o.head != each.head]
        assert each.controls == HEADS - 1
        assert each.typical == pytest.approx(np.median(there))
        assert each.below == sum(size < abs(each.change) for size in there)
    with pytest.raises(InputError, match="no head 6 in layer 1: heads are 0-5"):
        taken_away(made, [1], [(1, 6)], Zero(), together=False, seed=0)


def test_one_head_and_its_random_others_by_hand(made: Experiments, speaking: nn.Module) -> None:
    answer = int(made.untouched[0, 0].argmax())
    found = taken_away(made, [answer], [(2, 1), (2, 4)], Zero(), together=True, seed=0)
    assert found.group is not None
    assert found.group.heads == ((2, 1), (2, 4))
    assert len(found.floor.random) == HEADS - 2
    weight = speaking.bert.encoder.layer[2].attention.output.dense.weight.data
    kept = weight.clone()
    weight[:, 8:16] = 0
    weight[:, 32:40] = 0
    with torch.no_grad():
        by_hand = speaking(**ids())["logits"][0, 4].softmax(-1)[answer]
    weight.copy_(kept)
    assert found.group.effect.after == pytest.approx(float(by_hand), rel=1e-4)
    assert found.group.controls == 6, "pairs of the other four heads"


def test_an_intervention_is_as_good_as_what_was_read_back(made: Experiments) -> None:
    taken_away(made, [3], [(0, 0)], Zero(), together=False, seed=0)
    assert intervention(made).verdict is Verdict.CERTIFIED
    for read_back, verdict in {
        (3, 0, 0, True): Verdict.CERTIFIED,
        (3, 0, 0, False): Verdict.INCONCLUSIVE,
        (3, 0, 1, True): Verdict.PARTIAL,
        (3, 1, 0, True): Verdict.FAILED,
        (0, 0, 0, True): Verdict.FAILED,  # nothing was changed at all
    }.items():
        assert Intervention.of(*read_back).verdict is verdict


def sides() -> dict[str, Tokens]:
    tokens = [Token(n, f"w{n}", f"w{n}", None, i) for i, n in enumerate(ids()["input_ids"][0].tolist())]
    return {"input_ids": Tokens(("text",), tuple(tokens))}


def test_means_are_over_the_outputs_of_control_texts_one_by_one(
    made: Experiments, speaking: nn.Module
) -> None:
    from attnscope.analysis.controls import control_texts

    told = replacing.means(speaking, ids(), made.sites, sides(), mask_id=None, count=7, seed=5)
    assert isinstance(told.what, Put)
    assert told.how.startswith("each output replaced by its mean over 7 control texts, position by position")
    rows = control_texts(sides()["input_ids"], count=7, seed=5).ids
    one_by_one = [answers_to(speaking, {"input_ids": torch.tensor(row)[None]}, made.sites)[0] for row in rows]
    for place, mean in told.what.answers.items():
        by_hand = torch.stack([each[place] for each in one_by_one]).mean(0)
        assert torch.allclose(mean.float(), by_hand, atol=1e-5), place
        assert not torch.allclose(mean.float(), made.answers[place], atol=1e-2)


def test_what_is_foretold_is_right_for_little_changes_and_ranks_large_ones(made: Experiments) -> None:
    answer = [int(made.untouched[0, 0].argmax())]
    torch.manual_seed(1)
    little = {place: each + 1e-3 * torch.randn_like(each) for place, each in made.answers.items()}
    foretold = experiment.estimated(made, answer, Put(little))
    assert len(foretold) == LAYERS * HEADS
    heads = [(each.layer, each.head) for each in foretold[:6]]
    found = taken_away(made, answer, heads, Put(little), together=False, seed=0)
    both, correlation = experiment.held_against(found.heads, foretold)
    for each in both:
        assert each.predicted == pytest.approx(each.change, rel=0.1, abs=2e-5)
    assert correlation == pytest.approx(1.0)
    # two heads are too few to have an order
    foretold = experiment.estimated(made, [3], Zero())
    found = taken_away(made, [3], [(0, 0), (0, 1)], Zero(), together=False, seed=0)
    assert experiment.held_against(found.heads, foretold)[1] is None


ROW = 4
ANSWERS = ((5,), (9,), (20,), (31,), (44,))
NAMES = ("importance", "attention-gradient", "attention-gradient-positive")
PROJECTIONS = {
    "bert": "bert.encoder.layer.{}.attention.output.dense",
    "llama": "model.layers.{}.self_attn.o_proj",
    "t5": "decoder.block.{}.layer.0.SelfAttention.o",
    "gpt_oss": "model.layers.{}.self_attn.o_proj",
}
CROSS = "decoder.block.{}.layer.1.EncDecAttention.o"
# step of a mask and how near the derivative comes: some norms are made in float32 whatever the model is in
STEPS = {"bert": (1e-5, 1e-6)}
COARSE = (1e-2, 2e-2)
ENCODER = "encoder.block.{}.layer.0.SelfAttention.o"


@cache
def model_and_inputs(family: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """In float64 where the family can, so that a difference of two runs is a derivative."""
    model = worded(family, 0, 0.2)
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
        *((family, None, path) for family, path in PROJECTIONS.items()),
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
    loss = [scaled("llama", PROJECTIONS["llama"].format(1), 3, 1 + sign * 1e-3) for sign in (1, -1)]
    derivative = abs(loss[0] - loss[1]) / 2e-3
    assert scores("llama")["importance"].values[1, 4] != pytest.approx(derivative, rel=1e-2)


@pytest.mark.parametrize("family", ["bert", "gpt_oss"])
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


def test_other_answers_are_seeded_and_never_the_answer_nor_a_special_one_and_the_runner_up_comes_next() -> (
    None
):
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
    with pytest.raises(InputError, match=r"--by logit has no meaning here: .*gelu, no sum, matrix or norm$"):
        measured_estimates(experiments("bert"), ANSWERS[0], "logit", [(0, 0)])


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_the_size_of_weight_times_gradient_is_importance_by_another_way(family: str) -> None:
    found = scores(family)
    signed = found["attention-gradient"].values
    assert np.abs(signed) == pytest.approx(found["importance"].values, rel=1e-4, abs=1e-6)
    assert (signed < 0).any()
    assert (signed > 0).any()
