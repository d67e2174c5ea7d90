"""Ways back by gradients against plain loops over embeddings, on four families."""

from collections.abc import Callable
from types import SimpleNamespace

import families
import numpy as np
import pytest
import torch
import transformers as hf
from torch import Tensor, nn

import attnscope as at
from attnscope.analysis.claims.flow import attributing
from attnscope.analysis.claims.flow.entrance import Entrance
from attnscope.results import Flow
from attnscope.results.claims.flow import GRADIENT, INTEGRATED, WEIGHED

IDS, TARGET, QUERY = [3, 20, 31, 42, 13, 5, 7], [0, 4, 9, 6, 17, 8], 4
MADE: dict[str, Callable[[], nn.Module]] = {
    "bert": lambda: hf.BertForMaskedLM(families.CONFIGS["bert"]()),
    "gpt2": lambda: hf.GPT2LMHeadModel(families.CONFIGS["gpt2"]()),
    "llama": lambda: hf.LlamaForCausalLM(families.CONFIGS["llama"]()),
    "t5": lambda: hf.T5ForConditionalGeneration(families.CONFIGS["t5"]()),
}


def made(family: str) -> nn.Module:
    """With weights that say something, and so few layers of them that steps converge."""
    torch.manual_seed(1)
    model = MADE[family]().eval()
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.12)
    model.set_attn_implementation("eager")
    return model


def asked(family: str, model: nn.Module) -> tuple[Flow, Callable[[Tensor], Tensor], Tensor]:
    """The flow; the logits at the query of other embeddings; these embeddings as they are."""
    target = family == "t5"
    read = at.wrap(model).read(ids=IDS, **({"target_ids": TARGET} if target else {}))
    found = read.flow(QUERY, **({"kind": "decoder"} if target else {}))
    ids = torch.tensor([TARGET if target else IDS])
    there = model.get_input_embeddings()(ids).detach()

    def logits(embedded: Tensor) -> Tensor:
        if target:
            given = torch.tensor([IDS] * len(embedded))
            return model(input_ids=given, decoder_inputs_embeds=embedded, use_cache=False).logits[:, QUERY]
        return model(inputs_embeds=embedded).logits[:, QUERY]

    return found, logits, there


def of(found: Flow, method: str) -> np.ndarray:
    each = next(each for each in found.attributed if each.method == method)
    assert each.values is not None, each.absent
    return each.values


@pytest.mark.parametrize("family", MADE)
def test_gradient_times_input_is_that_of_a_plain_backward_pass(family: str) -> None:
    found, logits, there = asked(family, made(family))
    leaf = there.clone().requires_grad_()
    scores = logits(leaf).log_softmax(-1)[0]
    assert found.ablated is not None
    assert found.ablated.answer_ids[0] == int(scores.argmax())
    (slope,) = torch.autograd.grad(scores.max(), leaf)
    np.testing.assert_allclose(of(found, GRADIENT), (slope * there)[0].sum(-1), rtol=1e-4, atol=1e-6)
    assert np.abs(of(found, GRADIENT)).max() > 1e-3, "else nothing is compared"


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_integrated_gradients_are_a_fine_sum_along_the_way_from_empty_embeddings(family: str) -> None:
    found, logits, there = asked(family, made(family))
    answer = found.ablated.answer_ids[0]
    replaced = np.flatnonzero(~np.isnan(found.ablated.effects))
    blank = there.clone()
    blank[0, replaced] = 0.0
    steps, total = 2000, torch.zeros_like(there)
    for first in range(0, steps, 100):
        along = ((torch.arange(first, first + 100) + 0.5) / steps)[:, None, None]
        leaf = (blank + along**4 * (there - blank)).requires_grad_()  # close where it may be steep
        (slope,) = torch.autograd.grad(logits(leaf).log_softmax(-1)[:, answer].sum(), leaf)
        total += (slope * 4 * along**3).sum(0) / steps
    expected = (total * (there - blank))[0].sum(-1).numpy()
    values = of(found, INTEGRATED)
    with torch.no_grad():
        one, other = (logits(each).log_softmax(-1)[0, answer] for each in (there, blank))
    costs = float(one - other)
    told = next(each for each in found.attributed if each.method == INTEGRATED)
    assert told.each_off <= max(0.01, 0.01 * abs(costs))
    np.testing.assert_allclose(values[replaced], expected[replaced], atol=told.each_off + 1e-3)
    assert np.isnan(np.delete(values, replaced)).all()
    assert values[replaced].sum() == pytest.approx(costs, abs=max(0.01, 0.01 * abs(costs)))
    assert np.abs(values[replaced]).max() > 0.1, "else nothing is compared"


def test_integrated_gradients_find_the_steep_piece_where_a_norm_leaves_nothing() -> None:
    """From empty embeddings an RMS norm makes nearly a jump, which evenly spaced points step over."""
    found, logits, there = asked("llama", made("llama"))
    told = next(each for each in found.attributed if each.method == INTEGRATED)
    replaced = np.flatnonzero(~np.isnan(found.ablated.effects))
    blank = there.clone()
    blank[0, replaced] = 0.0
    one, other = (logits(each).log_softmax(-1)[0, found.ablated.answer_ids[0]] for each in (there, blank))
    costs = float((one - other).detach())
    assert told.whole == pytest.approx(costs, abs=1e-4)
    assert abs(told.off) <= max(0.01, 0.01 * abs(costs))
    assert np.nansum(told.values) == pytest.approx(told.whole + told.off, abs=1e-6)
    even, steps = torch.zeros_like(there), told.steps
    for place in (torch.arange(steps) + 0.5) / steps:
        leaf = (blank + place * (there - blank)).requires_grad_()
        score = logits(leaf).log_softmax(-1)[0, found.ablated.answer_ids[0]]
        even += torch.autograd.grad(score, leaf)[0] / steps
    assert abs(float((even * (there - blank)).sum()) - costs) > 3 * max(0.01, 0.01 * abs(costs))


def test_two_tokens_that_are_off_against_one_another_are_seen_though_their_sum_holds() -> None:
    """F = a + b; on a part of the way `a` is given what `b` should have, which no sum shows."""
    way = torch.ones(1, 2, 1, dtype=torch.float64)
    entrance = Entrance({}, "ids", way, torch.zeros_like(way), 2, (0, 1), nn.Identity())

    def wrong(share: np.ndarray) -> np.ndarray:
        return 3 * np.exp(-(((share - 0.4) / 0.06) ** 2))

    def slopes(_model: object, _entrance: object, _measured: object, values: list[Tensor]) -> Tensor:
        extra = torch.from_numpy(wrong(np.array([float(value.mean()) for value in values])))
        return torch.stack([1 + extra, 1 - extra], dim=1)[:, :, None]

    def values_of(_model: object, _entrance: object, _measured: object, values: list[Tensor]) -> list[float]:
        return [float(value.sum()) for value in values]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attributing, "_slopes", slopes)
        patch.setattr(attributing, "_values", values_of)
        found = attributing._integrated(nn.Identity(), entrance, SimpleNamespace(little=0.01))
    assert abs(found.off) < 1e-9
    assert found.steps > 16, "where the sum alone is asked, two pieces suffice"
    extra = wrong((np.arange(100_000) + 0.5) / 100_000).mean()
    np.testing.assert_allclose(found.values, [1 + extra, 1 - extra], atol=found.each_off)
    assert found.each_off <= 0.02


def test_where_steps_do_not_suffice_the_column_is_absent_and_says_how_far_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attributing, "PIECES", 1)
    found, _, _ = asked("llama", made("llama"))
    told = next(each for each in found.attributed if each.method == INTEGRATED)
    assert told.values is None
    assert "with 16 steps" in told.absent
    assert INTEGRATED not in found.methods
    assert f"no integrated gradients: {told.absent}" in found.text(width=300)


@pytest.mark.parametrize("family", MADE)
def test_attention_times_gradient_is_chefers_rule_on_the_models_own_weights(family: str) -> None:
    model = made(family)
    found, _, _ = asked(family, model)
    given = {"input_ids": torch.tensor([IDS])}
    if family == "t5":
        given |= {"decoder_input_ids": torch.tensor([TARGET])}
    output = model(**given, output_attentions=True, use_cache=False)
    every = output.decoder_attentions if family == "t5" else output.attentions
    score = output.logits[0, QUERY, found.ablated.answer_ids[0]]
    slopes = torch.autograd.grad(score, every)
    reached = torch.eye(every[0].shape[-1])
    for weights, slope in zip(every, slopes, strict=True):
        reached = reached + (weights * slope)[0].clamp(min=0).mean(0) @ reached
    expected = reached[QUERY] / reached[QUERY].sum()
    np.testing.assert_allclose(of(found, WEIGHED), expected.detach(), rtol=1e-3, atol=1e-6)
    assert (expected > 1e-4).sum() > 2, "else nothing is compared"


def without_reading(last: int) -> nn.Module:
    """A Llama of one layer whose weights read nothing of the last dimensions of a vector.

    In a second layer what others have written at that token would be read, divided by its length.
    """
    torch.manual_seed(2)
    config = families.CONFIGS["llama"]()
    config.num_hidden_layers = 1
    model = hf.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.06)
        for layer in model.model.layers:
            own, ahead = layer.self_attn, layer.mlp
            for linear in (own.q_proj, own.k_proj, own.v_proj, ahead.gate_proj, ahead.up_proj):
                linear.weight[:, -last:] = 0.0
    return model


def test_a_token_that_no_weight_reads_gets_nothing_from_any_of_them_and_others_do() -> None:
    model, planted, last = without_reading(8), 2, 8
    with torch.no_grad():
        model.model.embed_tokens.weight[IDS[planted], :-last] = 0.0
        assert model.model.embed_tokens.weight[IDS[planted]].norm() > 0.1
    found = at.wrap(model).read(ids=IDS).flow(QUERY)
    assert abs(found.ablated.effects[planted]) < 1e-6, "replacing it really does nothing"
    for method in (GRADIENT, INTEGRATED):
        values = of(found, method)
        others = np.delete(np.abs(values), planted)
        assert abs(values[planted]) < 1e-6
        assert np.nanmin(others[: QUERY - 1]) > 1e-5, method


def test_a_token_that_follows_gets_nothing_in_a_causal_model() -> None:
    found, _, _ = asked("gpt2", made("gpt2"))
    for method in (GRADIENT, WEIGHED):
        assert (of(found, method)[QUERY + 1 :] == 0).all()
    assert np.isnan(of(found, INTEGRATED)[QUERY + 1 :]).all(), "it was not replaced"


def test_without_an_answer_a_vector_has_no_slope_along_itself_and_the_sum_along_the_way_holds() -> None:
    torch.manual_seed(3)
    model = hf.BertModel(families.CONFIGS["bert"]()).eval()
    found = at.wrap(model).read(ids=IDS).flow(QUERY)
    absent = {each.method: each.absent for each in found.attributed if each.values is None}
    assert set(absent) == {GRADIENT, WEIGHED}
    assert "no slope" in absent[GRADIENT]
    told = {each.method: each for each in found.attributed}
    replaced = np.flatnonzero(~np.isnan(found.ablated.effects))
    embedded = model.get_input_embeddings()(torch.tensor([IDS])).detach()
    blank = embedded.clone()
    blank[0, replaced] = 0.0
    with torch.no_grad():
        one, other = (model(inputs_embeds=each).last_hidden_state[0, QUERY] for each in (embedded, blank))
    turned = float(1 - torch.cosine_similarity(one, other, dim=0))
    assert told[INTEGRATED].whole == pytest.approx(turned, abs=1e-5)
    assert np.nansum(told[INTEGRATED].values) == pytest.approx(turned, abs=max(1e-4, 0.01 * turned))


def test_every_column_is_scored_against_what_replacing_does_by_its_size() -> None:
    from scipy.stats import spearmanr

    found, _, _ = asked("bert", made("bert"))
    effects = found.ablated.effects
    there = ~np.isnan(effects)
    scored = {each.method: each.correlation for each in found.ablated.trust}
    for method in (GRADIENT, INTEGRATED, WEIGHED):
        expected = spearmanr(np.abs(of(found, method)[there]), np.abs(effects[there])).statistic
        assert scored[method] == pytest.approx(expected, abs=1e-9)
    assert (of(found, GRADIENT)[there] < 0).any(), "else signs say nothing"


def test_a_text_too_long_to_keep_has_no_such_columns_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.session.questions.claims import gradients

    monkeypatch.setattr(gradients, "MOST", len(IDS) - 1)
    found, _, _ = asked("gpt2", made("gpt2"))
    assert {each.method for each in found.attributed} == {GRADIENT, INTEGRATED, WEIGHED}
    assert all("up to 6 positions" in each.absent for each in found.attributed)
