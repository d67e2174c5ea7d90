"""Ways back against sums over paths, flows found by hand and plain loops over embeddings."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import families
import numpy as np
import pytest
import torch
import transformers as hf
from cases_flow import matrices
from made_calls import call_of
from scipy.stats import spearmanr
from torch import Tensor, nn
from worded import worded

import attnscope as at
from attnscope.analysis.inputs import attributing
from attnscope.analysis.inputs.entrance import Entrance
from attnscope.analysis.inputs.replacing import trusted
from attnscope.arithmetic import attend
from attnscope.results import Flow
from attnscope.results.claims.attributed import GRADIENT, INTEGRATED, WEIGHED
from attnscope.verbs.flow.rollout import (
    followed_back,
    lengths,
    max_flow,
    mixed,
    overlaps,
    rollout,
    shares,
    shares_of_change,
)

COUNT, LAYERS = 4, 3


def small(seed: int = 0, causal: bool = False) -> list[np.ndarray]:
    found = matrices(COUNT, LAYERS, seed)
    if not causal:
        return found
    lower = [np.tril(each) for each in found]
    return [each / each.sum(axis=1, keepdims=True) for each in lower]


def test_rollout_is_the_sum_over_all_paths_of_their_products() -> None:
    mixing = [mixed(each) for each in small()]
    found = rollout(mixing)
    for last in range(LAYERS):
        for query, key in product(range(COUNT), repeat=2):
            total = 0.0
            for between in product(range(COUNT), repeat=last):
                path = (key, *between, query)  # from the input up
                total += np.prod([mixing[i][path[i + 1], path[i]] for i in range(last + 1)])
            assert found[last, query, key] == pytest.approx(total)


def test_identity_stays_identity_rows_sum_to_1_and_causality_is_kept() -> None:
    alone = [mixed(np.eye(COUNT))] * LAYERS
    assert rollout(alone) == pytest.approx(np.stack([np.eye(COUNT)] * LAYERS))
    assert max_flow(alone, 2) == pytest.approx([0, 0, 1, 0])
    random, causal = ([mixed(each) for each in small(1, ahead)] for ahead in (False, True))
    assert rollout(random).sum(axis=2) == pytest.approx(np.ones((LAYERS, COUNT)))
    assert (rollout(causal)[:, ~np.tri(COUNT, dtype=bool)] == 0).all()
    assert max_flow(causal, 1)[2:].tolist() == [0, 0]
    assert (rollout(random)[:, ~np.tri(COUNT, dtype=bool)] > 0).all()  # else the line above says nothing


def test_a_layer_is_half_its_attention_and_half_its_input() -> None:
    weights = small()[0]
    for i, j in product(range(COUNT), repeat=2):
        assert mixed(weights)[i, j] == pytest.approx((weights[i, j] + (i == j)) / 2)
    sinking = np.array([[0.2, 0.2], [0.0, 1.0]])  # a sink takes the rest of the first row
    assert mixed(sinking) == pytest.approx(np.array([[1.2 / 1.4, 0.2 / 1.4], [0.0, 1.0]]))
    assert mixed(np.array([[np.nan, np.nan], [0.5, 0.5]]))[0].tolist() == [1.0, 0.0]


def augmented(mixing: list[np.ndarray], query: int, key: int) -> float:
    """The largest flow by Ford and Fulkerson: one path with room left after the other, until none is left."""
    room = {}
    for layer, each in enumerate(mixing):
        for i, j in product(range(COUNT), repeat=2):
            room[(layer + 1, i), (layer, j)] = float(each[i, j])
            room[(layer, j), (layer + 1, i)] = 0.0
    start, end, total = (len(mixing), query), (0, key), 0.0
    while True:
        paths, seen = [[start]], {start}
        found = None
        while paths and found is None:
            path = paths.pop(0)
            for (one, other), left in room.items():
                if one == path[-1] and left > 1e-12 and other not in seen:
                    seen.add(other)
                    paths.append([*path, other])
                    if other == end:
                        found = paths[-1]
        if found is None:
            return total
        steps = list(pairwise(found))
        least = min(room[step] for step in steps)
        for one, other in steps:
            room[one, other] -= least
            room[other, one] += least
        total += least


@pytest.mark.parametrize("causal", [False, True])
def test_the_largest_flow_is_that_of_augmenting_paths_and_within_capacity(causal: bool) -> None:
    mixing = [mixed(each**3 / (each**3).sum(axis=1, keepdims=True)) for each in small(2, causal)]
    query = COUNT - 1
    found = max_flow(mixing, query)
    assert found == pytest.approx([augmented(mixing, query, key) for key in range(COUNT)], abs=1e-7)
    assert (found <= 1 + 1e-9).all()  # what leaves the query
    assert (found <= mixing[0].sum(axis=0) + 1e-9).all()  # what arrives at an input token
    assert (found >= rollout(mixing)[-1, query] - 1e-7).all()  # rollout is one flow among all
    assert np.ptp(found) > 0.1


def test_what_heads_move_together_is_the_length_of_their_sum() -> None:
    random = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(heads, 6, dim, generator=random) for heads, dim in ((4, 5), (2, 5), (2, 3)))
    projection = torch.randn(4, 3, 7, generator=random)
    call = call_of(q, k, v, projection=projection)
    weights = torch.cat([attend(call.operands(head)).weights for head in (0, 1, 3)])
    values = torch.stack([v[head // 2].double() @ projection[head].double() for head in (0, 1, 3)])
    whole = torch.einsum("hqk,hkd->hqkd", weights, values)  # what is never made elsewhere
    products = overlaps(call, (0, 1, 3))
    assert products is not None
    found = lengths(weights, products)
    assert torch.allclose(found, whole.sum(0).norm(dim=-1))
    assert not torch.allclose(found, whole.norm(dim=-1).sum(0))  # heads pull against each other
    assert shares(found.numpy()).sum(axis=1) == pytest.approx(np.ones(6))
    assert overlaps(call_of(q, k, v), (0,)) is None
    assert followed_back([call_of(q, k, v, layer=0)], (0, 1), 4).by_norm is None


@pytest.mark.parametrize(("query", "at_once"), [(0, 2**21), (3, 1), (6, 2**21)])
def test_one_row_followed_back_is_that_of_the_product_of_all_matrices(
    query: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnscope.verbs.flow.rollout._AT_ONCE", at_once)  # a row at a time, or all
    random, causal = torch.Generator().manual_seed(1), torch.ones(1, 7, 7, dtype=torch.bool).tril()
    calls, plain, normed, raw = [], [], [], []
    for number in range(3):
        q, k, v = (torch.randn(heads, 7, dim, generator=random) for heads, dim in ((4, 5), (2, 5), (2, 3)))
        projection = torch.randn(4, 3, 9, generator=random)
        allowed = None if number == 1 else causal
        calls.append(call_of(q, k, v, layer=number, projection=projection, allowed=allowed))
        weights = torch.cat([attend(calls[-1].operands(head)).weights for head in (1, 2)])
        values = torch.stack([v[head // 2].double() @ projection[head].double() for head in (1, 2)])
        moved = torch.einsum("hqk,hkd->qkd", weights, values).norm(dim=-1)
        raw.append(weights.mean(0)[query].numpy())
        plain.append(mixed(weights.mean(0).numpy()))
        normed.append(mixed(shares(moved.numpy())))
    found = followed_back(calls, (1, 2), query)
    assert found.raw == pytest.approx(np.array(raw))
    assert found.rollout == pytest.approx(rollout(plain)[:, query])
    assert found.by_norm == pytest.approx(rollout(normed)[:, query])


def near_to(query: int, count: int) -> np.ndarray:
    return -np.abs(np.arange(count) - float(query))


def test_what_was_replaced_together_counts_as_one_with_the_sum_of_its_shares() -> None:
    effects = np.array([0.5, 0.5, np.nan, 0.1, 0.1, 0.3, 0.2, 0.2])
    values = {"one": np.array([0.1, 0.3, 0.9, 0.05, 0.01, 0.2, 0.05, 0.1])}
    groups = ((0, 1), (3, 4), (5,), (6, 7))
    one, near = trusted(values, effects, near_to(2, 8), groups=groups).methods
    assert one.correlation == pytest.approx(spearmanr([0.4, 0.06, 0.2, 0.15], [0.5, 0.1, 0.3, 0.2]).statistic)
    assert near.correlation == pytest.approx(
        spearmanr([-1.5, -1.5, -3.0, -4.5], [0.5, 0.1, 0.3, 0.2]).statistic
    )


def test_the_best_method_is_held_against_the_best_of_all_on_each_shuffle() -> None:
    """The same shuffles by hand, with a correlation of ranks."""

    def ranked(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.corrcoef(one.argsort().argsort(), other.argsort().argsort())[0, 1])

    random = np.random.default_rng(5)
    effects, values = random.normal(size=9), {name: random.random(9) for name in "abc"}
    found = trusted(values, effects, near_to(4, 9), seed=3)
    orders = np.random.default_rng(3)
    sizes = np.abs(effects)
    best = [
        max(ranked(each, sizes[order]) for each in values.values())
        for order in (orders.permutation(9) for _ in range(1000))
    ]
    own = max(ranked(each, sizes) for each in values.values())
    assert found.best_of_shuffled == pytest.approx(np.quantile(best, 0.95))
    assert found.as_far == sum(each >= own - 1e-9 for each in best)
    assert found.best_of_shuffled > max(each.high for each in found.methods[:3]), "of three the best is more"
    assert trusted({"a": values["a"]}, effects, near_to(4, 9), seed=3).best_of_shuffled == pytest.approx(
        found.methods[0].high
    )


def test_too_few_tokens_and_equal_numbers_have_no_correlation() -> None:
    few = np.array([0.1, 0.4, np.nan, 0.2, np.nan])
    assert np.isnan(trusted({"one": np.arange(5.0)}, few, near_to(2, 5)).methods[0].correlation)
    many = np.array([0.1, 0.4, 0.3, 0.2, np.nan])
    assert np.isnan(trusted({"flat": np.ones(5)}, many, near_to(4, 5)).methods[0].correlation)
    assert trusted({"one": np.arange(5.0)}, many, near_to(4, 5)).methods[0].correlation == pytest.approx(0.2)


def test_changes_become_shares_and_a_token_that_nothing_turns_keeps_itself() -> None:
    found = shares_of_change(np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [2.0, 2.0, 4.0]]))
    assert found.tolist() == [[0.25, 0.75, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]


IDS, TARGET, QUERY = [3, 20, 31, 42, 13, 5, 7], [0, 4, 9, 6, 17, 8], 4


@cache
def asked(family: str) -> tuple[Flow, Callable[[Tensor], Tensor], Tensor, Any]:
    """The flow; the logits at the query of other embeddings; these embeddings as they are; the model."""
    target = family == "t5"
    layers = {"num_hidden_layers": 1} if family == "llama" else {}  # one layer is steep enough
    model = worded(family, 1, 0.12, **layers)
    read = at.wrap(model).read(ids=IDS, **({"target_ids": TARGET} if target else {}))
    found = read.flow(QUERY, **({"kind": "decoder"} if target else {}))
    ids = torch.tensor([TARGET if target else IDS])
    there = model.get_input_embeddings()(ids).detach()

    def logits(embedded: Tensor) -> Tensor:
        if target:
            given = torch.tensor([IDS] * len(embedded))
            return model(input_ids=given, decoder_inputs_embeds=embedded, use_cache=False).logits[:, QUERY]
        return model(inputs_embeds=embedded).logits[:, QUERY]

    return found, logits, there, model


def of(found: Flow, method: str) -> np.ndarray:
    each = next(each for each in found.attributed if each.method == method)
    assert each.values is not None, each.absent
    return each.values


def test_every_column_is_scored_against_what_replacing_does_by_its_size() -> None:
    found = asked("bert")[0]
    assert found.ablated is not None
    effects = found.ablated.effects
    there = ~np.isnan(effects)
    scored = {each.method: each.correlation for each in found.ablated.trust}
    for method in (GRADIENT, INTEGRATED, WEIGHED):
        expected = spearmanr(np.abs(of(found, method)[there]), np.abs(effects[there])).statistic
        assert scored[method] == pytest.approx(expected, abs=1e-9)
    assert (of(found, GRADIENT)[there] < 0).any(), "else signs say nothing"


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_gradient_times_input_is_that_of_a_plain_backward_pass(family: str) -> None:
    found, logits, there, _ = asked(family)
    leaf = there.clone().requires_grad_()
    scores = logits(leaf).log_softmax(-1)[0]
    assert found.ablated is not None
    assert found.ablated.answer_ids[0] == int(scores.argmax())
    (slope,) = torch.autograd.grad(scores.max(), leaf)
    np.testing.assert_allclose(of(found, GRADIENT), (slope * there)[0].sum(-1), rtol=1e-4, atol=1e-6)
    assert np.abs(of(found, GRADIENT)).max() > 1e-3, "else nothing is compared"


def test_integrated_gradients_are_a_fine_sum_along_the_way_from_empty_embeddings() -> None:
    found, logits, there, _ = asked("bert")
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
    found, logits, there, _ = asked("llama")
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
    found = asked.__wrapped__("llama")[0]
    told = next(each for each in found.attributed if each.method == INTEGRATED)
    assert told.values is None
    assert "with 16 steps" in told.absent
    assert INTEGRATED not in found.methods
    assert f"no integrated gradients: {told.absent}" in found.text(width=300)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_attention_times_gradient_is_chefers_rule_on_the_models_own_weights(family: str) -> None:
    found, _, _, model = asked(family)
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
    model: nn.Module = worded("llama", 2, 0.06, num_hidden_layers=1)
    with torch.no_grad():
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


def test_a_text_too_long_to_keep_has_no_such_columns_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.verbs.flow import answer as flowing

    monkeypatch.setattr(flowing, "MOST_HELD", len(IDS) - 1)
    found = asked.__wrapped__("gpt2")[0]
    assert {each.method for each in found.attributed} == {GRADIENT, INTEGRATED, WEIGHED}
    assert all("up to 6 positions" in each.absent for each in found.attributed)


def test_a_token_that_follows_gets_nothing_in_a_causal_model() -> None:
    found = asked("gpt2")[0]
    for method in (GRADIENT, WEIGHED):
        assert (of(found, method)[QUERY + 1 :] == 0).all()
    assert np.isnan(of(found, INTEGRATED)[QUERY + 1 :]).all(), "it was not replaced"
