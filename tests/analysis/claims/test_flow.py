"""Attention through the layers against sums over paths and flows found by hand, and what they are held to."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from cases_flow import matrices
from made_calls import call_of
from scipy.stats import spearmanr

from attnscope.analysis.claims.flow import back
from attnscope.analysis.claims.flow.back import lengths, overlaps
from attnscope.analysis.claims.flow.replacing import trusted
from attnscope.analysis.claims.flow.rollout import (
    max_flow,
    mixed,
    rollout,
    shares,
    shares_of_change,
)
from attnscope.sdpa import attend

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


def test_a_layer_is_half_its_attention_and_half_its_input() -> None:
    weights = small()[0]
    for i, j in product(range(COUNT), repeat=2):
        assert mixed(weights)[i, j] == pytest.approx((weights[i, j] + (i == j)) / 2)
    sinking = np.array([[0.2, 0.2], [0.0, 1.0]])  # a sink takes the rest of the first row
    assert mixed(sinking) == pytest.approx(np.array([[1.2 / 1.4, 0.2 / 1.4], [0.0, 1.0]]))
    assert mixed(np.array([[np.nan, np.nan], [0.5, 0.5]]))[0].tolist() == [1.0, 0.0]


def test_identity_stays_identity_rows_sum_to_1_and_causality_is_kept() -> None:
    alone = [mixed(np.eye(COUNT))] * LAYERS
    assert rollout(alone) == pytest.approx(np.stack([np.eye(COUNT)] * LAYERS))
    assert max_flow(alone, 2) == pytest.approx([0, 0, 1, 0])
    random, causal = ([mixed(each) for each in small(1, ahead)] for ahead in (False, True))
    assert rollout(random).sum(axis=2) == pytest.approx(np.ones((LAYERS, COUNT)))
    assert (rollout(causal)[:, ~np.tri(COUNT, dtype=bool)] == 0).all()
    assert max_flow(causal, 1)[2:].tolist() == [0, 0]
    assert (rollout(random)[:, ~np.tri(COUNT, dtype=bool)] > 0).all()  # else the line above says nothing


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


@pytest.mark.parametrize("at_once", [1, 2**21])
@pytest.mark.parametrize("query", [0, 3, 6])
def test_one_row_followed_back_is_that_of_the_product_of_all_matrices(
    query: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back, "_AT_ONCE", at_once)  # a row at a time, or all
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
    found = back.followed_back(calls, (1, 2), query)
    assert found.raw == pytest.approx(np.array(raw))
    assert found.rollout == pytest.approx(rollout(plain)[:, query])
    assert found.by_norm == pytest.approx(rollout(normed)[:, query])


def test_only_rows_are_read_from_which_something_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    random, read = torch.Generator().manual_seed(2), []
    q, k, v = (torch.randn(2, 7, dim, generator=random) for dim in (5, 5, 3))
    calls = [call_of(q, k, v, layer=i, allowed=torch.ones(1, 7, 7, dtype=torch.bool).tril()) for i in (0, 1)]
    honest = back.rows_of

    def noted(layer, heads, rows):
        read.append((layer.layer, rows))
        return honest(layer, heads, rows)

    monkeypatch.setattr(back, "rows_of", noted)
    assert back.followed_back(calls, (0, 1), 4).by_norm is None
    assert read == [(1, [4]), (0, [0, 1, 2, 3, 4])]


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


def test_trust_is_spearmans_correlation_with_the_size_of_effects_beside_shuffles() -> None:
    random = np.random.default_rng(0)
    effects = random.normal(size=12)
    effects[[3, 7]] = np.nan
    there = ~np.isnan(effects)
    values = {"like": np.abs(effects) ** 3, "other": np.round(random.random(12), 1)}
    values["like"][~there] = 0.5
    found = {each.method: each for each in trusted(values, effects, near_to(3, 12), seed=1).methods}
    assert set(found) == {"like", "other", "distance alone"}
    assert found["like"].correlation == pytest.approx(1.0)
    assert found["like"].below > 990
    other = spearmanr(values["other"][there], np.abs(effects[there])).statistic
    assert found["other"].correlation == pytest.approx(other)
    near = spearmanr(-np.abs(np.arange(12) - 3)[there], np.abs(effects[there])).statistic
    assert found["distance alone"].correlation == pytest.approx(near)
    assert -0.75 < found["other"].low < -0.3
    assert 0.3 < found["other"].high < 0.75


def test_the_best_method_is_held_against_the_best_of_all_on_each_shuffle() -> None:
    """The same shuffles by hand, with scipy's correlation."""
    random = np.random.default_rng(5)
    effects, values = random.normal(size=9), {name: random.random(9) for name in "abc"}
    found = trusted(values, effects, near_to(4, 9), seed=3)
    orders = np.random.default_rng(3)
    sizes = np.abs(effects)
    best = [
        max(spearmanr(each, sizes[order]).statistic for each in values.values())
        for order in (orders.permutation(9) for _ in range(1000))
    ]
    own = max(spearmanr(each, sizes).statistic for each in values.values())
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
