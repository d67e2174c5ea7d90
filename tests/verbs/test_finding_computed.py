"""Heads ranked: numbers against slow loops over queries and keys, controls against counting."""

import math
from dataclasses import replace

import cases_find
import numpy as np
import pytest
import torch
from cases_find import finding
from made_calls import call_of
from scipy.stats import binom

from attnscope.analysis.controls import control_texts
from attnscope.analysis.rows import LayerRows, Lens, lens, rows_of
from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall, Term
from attnscope.errors import CertificateError
from attnscope.measures.rows import moved_norms
from attnscope.results import Pattern, Sought, Special
from attnscope.results.claims.ranking import DependsOn, Evidence, Group, beyond
from attnscope.tokens import Token, Tokens
from attnscope.verbs.find.rank import (
    Likeness,
    Target,
    beside,
    beside_controls,
    divergence,
    numbers,
    pair,
    pattern_keys,
    summary,
)
from attnscope.verbs.find.result import Case, Controls, Finding
from attnscope.vocabulary import Unit

HEADS, QUERIES, KEYS = 3, 5, 7


def random_rows(seed: int = 0, queries: int = QUERIES, keys: int = KEYS) -> np.ndarray:
    raw = np.random.default_rng(seed).exponential(size=(HEADS, queries, keys))
    return raw / raw.sum(axis=2, keepdims=True)


def text_of(*names: str) -> Tokens:
    """Every name its own id; `[...]` are special, `.` is punctuation."""
    ids = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return Tokens(
        (" ".join(names),),
        tuple(Token(ids[name], name, name, None, None, special=name.startswith("[")) for name in names),
    )


def test_the_number_of_a_pattern_is_the_mean_over_its_queries_of_the_weight_on_its_keys() -> None:
    rows = random_rows()
    meant = np.random.default_rng(1).random((QUERIES, KEYS)) < 0.3
    meant[2] = False
    target = Target.of(meant)
    expected, ranks = [], []
    for head in rows:
        sums, places = [], []
        for i in range(QUERIES):
            keys = [j for j in range(KEYS) if meant[i, j]]
            if keys:
                sums.append(sum(head[i, j] for j in keys))
                best = max(head[i, j] for j in keys)
                places.append(1 + sum(1 for j in range(KEYS) if head[i, j] > best))
        expected.append(sum(sums) / len(sums))
        ranks.append(sum(places) / len(places))
    assert 2 not in target.queries
    assert target.number(rows[:, list(target.queries)]) == pytest.approx(expected)
    assert target.rank(rows[:, list(target.queries)]) == pytest.approx(ranks)


def test_a_query_without_any_key_counts_for_nothing() -> None:
    rows = random_rows(3)
    target = Target.of(np.ones((QUERIES, KEYS), dtype=bool) & (np.arange(KEYS) < 2))
    rows[:, 0] = np.nan
    assert target.number(rows) == pytest.approx([head[1:, :2].sum() / 4 for head in rows])
    assert np.isnan(target.number(np.full_like(rows, np.nan))).all()


def test_what_other_queries_give_to_the_same_keys_is_the_mean_of_those_that_are_not_meant() -> None:
    rows = random_rows()
    visible = np.tril(np.ones((QUERIES, KEYS), dtype=bool), k=1)
    visible[2, 2] = False  # what a key gives itself
    found = pair(3, 2, KEYS).elsewhere(rows, visible, range(QUERIES))
    assert found == pytest.approx((rows[:, 1, 2] + rows[:, 4, 2]) / 2)
    two = Target((1, 4), np.arange(KEYS)[None] == np.array([[2], [0]]))
    meant = [(rows[:, 3, 2] + rows[:, 4, 2]) / 2, rows[:, :4, 0].mean(axis=1)]
    assert two.elsewhere(rows, visible, range(QUERIES)) == pytest.approx(np.mean(meant, axis=0))
    alone = pair(4, 5, KEYS).elsewhere(rows, visible, range(QUERIES))
    assert np.isnan(alone).all()  # no other query may look there


def test_a_key_that_all_queries_look_at_is_no_sign_of_one_of_them() -> None:
    """A sink that the shuffle moves away is far from all controls, as what looks from here alone is."""
    controls = 0.03 * np.random.default_rng(7).random((60, 3, 4))
    own, others = np.full((3, 4), 0.02), np.full((3, 4), 0.02)
    own[0, 1], own[1, 2], own[2, 0], others[0, 1], others[2, 0] = 0.9, 0.7, 0.5, 0.6, 0.2
    found = cases_find.beside(own, controls, elsewhere=others)
    assert found.evidence.group((0, 1)) is Group.KEY
    assert found.evidence.of_group(Group.STANDS_OUT) == ((1, 2), (2, 0))
    alone = cases_find.beside(np.where(own == 0.9, own, 0.02), controls, elsewhere=others)
    assert alone.case is Case.KEY_ONLY
    blind = cases_find.beside(own, controls)
    assert blind.evidence.of_group(Group.STANDS_OUT) == ((0, 1), (1, 2), (2, 0))


PATTERNS = {
    Pattern.PREVIOUS: lambda names, i, j: j == i - 1,
    Pattern.NEXT: lambda names, i, j: j == i + 1,
    Pattern.SELF: lambda names, i, j: j == i,
    Pattern.FIRST: lambda names, i, j: j == 0,
    Pattern.SAME: lambda names, i, j: i != j and names[i] == names[j] and names[i][0] != "[",
    Pattern.INDUCTION: lambda names, i, j: (
        0 < j <= i and names[j - 1] == names[i] and names[j][0] != "[" and names[i][0] != "["
    ),
    Pattern.PUNCTUATION: lambda names, i, j: names[j] == ".",
    Pattern.SPECIAL: lambda names, i, j: names[j][0] == "[",
}


@pytest.mark.parametrize("pattern", Pattern)
def test_the_keys_of_a_pattern_are_those_that_a_loop_finds(pattern: Pattern) -> None:
    names = ["[BOS]", "a", "b", ".", "a", "b", "b", "c", ".", "a", "[BOS]"]
    found = pattern_keys(pattern, text_of(*names), text_of(*names))
    every = range(len(names))
    expected = [[bool(PATTERNS[pattern](names, i, j)) for j in every] for i in every]
    assert found.tolist() == expected
    assert found.any()


def test_divergence_is_jensen_shannon_by_hand_and_0_from_itself() -> None:
    one, other = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]])
    assert divergence(np.stack([one, other]), one) == pytest.approx([0.0, math.log(2) / 2])
    sinking = np.array([[0.5, 0.0], [0.5, 0.0]])  # a sink takes the other half: half the row is moved
    middle = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    half = (math.log(1 / 0.75) + middle) / 2
    assert divergence(sinking[None], np.array([[1.0, 0.0]] * 2)) == pytest.approx([half])


def called(seed: int = 0, layer: int = 3, **changes: object) -> AttentionCall:
    """A causal call of 4 heads over 2 key heads."""
    random = torch.Generator().manual_seed(seed)
    q, k = torch.randn(4, 6, 5, generator=random), torch.randn(2, 6, 5, generator=random)
    v = torch.randn(2, 6, 3, generator=random)
    allowed = torch.ones(1, 6, 6, dtype=torch.bool).tril()
    term = Term("positions", torch.randn(1, 6, 6, generator=random))
    made = {"allowed": allowed, "terms": (term,), "layer": layer}
    return call_of(q, k, v, **{**made, **changes})


SIX = text_of("a", "b", "c", "d", "e", "f")
TOKENS: Lens = lens(SIX, SIX, by=Unit.TOKEN, special=Special.SHOW)


def test_the_norm_of_a_pair_is_its_weight_times_the_length_of_what_moves() -> None:
    projection = torch.randn(4, 3, 8, generator=torch.Generator().manual_seed(7))
    call = called(projection=projection)
    target = pair(4, 2, 6)
    told = beside(target, [call], (0, 2, 3), TOKENS)
    assert told["norms"] is not None
    assert told["shares"] is not None
    for place, head in enumerate((0, 2, 3)):
        moved = [
            float((call.v[head // 2, key].double() @ projection[head].double()).norm()) for key in range(6)
        ]
        row = attend(call.operands(head)).weights[0, 4].numpy()
        assert told["norms"][0, place] == pytest.approx(row[2] * moved[2], rel=1e-6)
        total = sum(row[key] * moved[key] for key in range(6))
        assert told["shares"][0, place] == pytest.approx(row[2] * moved[2] / total, rel=1e-6)
    assert moved_norms(call.v, projection).shape == (4, 6)
    assert told["even_attention"] == pytest.approx(np.full((1, 3), 1 / 5))  # query 4 may look at 5 keys
    assert beside(target, [called()], (0,), TOKENS)["norms"] is None


def test_some_rows_of_a_layer_are_those_of_its_whole_attention() -> None:
    call = called(sinks=torch.randn(4, generator=torch.Generator().manual_seed(5)))
    whole = [attend(call.operands(head)).weights[0].numpy() for head in (0, 3)]
    assert rows_of(call, (0, 3), (1, 5)) == pytest.approx(np.stack(whole)[:, [1, 5]])


def test_controls_are_counted_one_by_one() -> None:
    target, heads = pair(4, 2, 6), (0, 1, 3)
    own = numbers(target, [called(0, 3), called(1, 4)], heads, TOKENS)
    runs = [[called(seed, 3), called(seed + 50, 4)] for seed in range(2, 22)]
    went = [seed % 6 for seed in range(20)]
    changed = np.array([seed % 3 > 0 for seed in range(20)])
    away = [[each] for each in went], changed
    found, stayed, followed = beside_controls(target, own, runs, heads, TOKENS, away)
    assert followed is not None
    assert stayed is not None
    for i, j in np.ndindex(2, 3):
        rows = [attend(run[i].operands(heads[j])).weights[0, 4].numpy() for run in runs]
        values = [float(row[2]) for row in rows]
        assert found.mean[i, j] == pytest.approx(sum(values) / 20)
        assert found.below[i, j] == sum(value < own[i, j] for value in values)
        assert found.spread[i, j] == pytest.approx(np.std(values))
        assert found.low[i, j] == pytest.approx(np.quantile(values, 0.05))
        others = [(row, key) for row, key, moved in zip(rows, went, changed, strict=True) if moved]
        assert stayed[i, j] == pytest.approx(np.mean([row[2] for row, _ in others]))
        seen = [float(row[key]) for row, key in others if key <= 4]
        assert followed[i, j] == pytest.approx(sum(seen) / len(seen))
    every = [numbers(target, run, heads, TOKENS).max() for run in runs]
    assert found.best == pytest.approx(every)


def test_a_control_that_gives_no_numbers_is_no_control() -> None:
    call, heads, target = called(0, 3), (0, 1, 3), pair(4, 2, 6)
    own = numbers(target, [call], heads, TOKENS)
    broken = replace(call, k=call.k.where(torch.arange(6)[:, None] != 4, torch.nan))
    kept, bad = (LayerRows.of(each, (3, 4)) for each in (call, broken))
    beside_controls(target, own, [[call], [kept]], heads, TOKENS, None)
    for control in (broken, bad):
        with pytest.raises(CertificateError, match="a control text gives no numbers in layer 3"):
            beside_controls(target, own, [[call], [control]], heads, TOKENS, None)


def test_likeness_leaves_out_the_head_itself_and_less_is_better() -> None:
    layers, heads = [called(0, 3), called(1, 4)], (0, 1, 2)
    own = numbers(Likeness(1, 2), layers, heads, TOKENS)
    assert np.isnan(own[1, 2])
    assert np.isnan(own).sum() == 1
    given = rows_of(layers[1], (2,))[0]
    assert own[0, 1] == pytest.approx(divergence(rows_of(layers[0], (1,)), given)[0])
    controls = np.stack([own - 0.1, own + 0.1, own + 0.2])
    found = summary(own, controls, smaller=True)
    assert found.below[0, 0] == 2
    assert found.best == pytest.approx([np.nanmin(each) for each in controls])


def test_of_likeness_the_nearest_come_first_where_none_stands_out() -> None:
    near = finding(like=(2, 4))
    assert len(near.ranking) == 11
    rest = [place for place in near.ranking if near.evidence.group(place) is Group.NEITHER]
    values = [near.weights[place] for place in rest]
    assert values == sorted(values)


def test_controls_that_are_as_wide_as_the_text_change_nothing() -> None:
    random = np.random.default_rng(2)
    own, controls = random.random((2, 3)), random.random((19, 2, 3))
    plain, same, twice = (
        summary(own, controls, False, each) for each in (None, np.ones(19), np.full(19, 2.0))
    )
    assert same.spread == pytest.approx(plain.spread)
    assert same.best_excess == pytest.approx(plain.best_excess)
    assert twice.spread == pytest.approx(2 * plain.spread)
    for name in ("mean", "low", "high", "best"):
        assert getattr(twice, name) == pytest.approx(getattr(plain, name))


def test_heads_that_prefer_nothing_are_found_no_more_often_than_promised_where_words_repeat() -> None:
    random, count, questions, heads = np.random.default_rng(0), 39, 60, 6
    words = ["sea", "hill", "sea", "road", "sea", "lamp", "sea", "hill", "moon", "tree", "door", "king"]
    text = text_of("[CLS]", *words)
    keys = pattern_keys(Pattern.SAME, text, text) & np.tri(len(text), k=-1, dtype=bool)
    target, places = Target.of(keys), [[i] for i in range(len(text))]
    ids, (query, key) = np.array(text.ids), target.links.T
    claimed = {"mixed": 0, "as wide": 0}
    for seed in range(questions):
        controls = control_texts(text, count=count, seed=seed)
        # a head is one number for every pair of words: what repeats is looked at as anything else is
        drawn = (random.random((heads, len(set(ids)), len(set(ids)))) < 0.2).astype(float)
        own, *others = (drawn[:, each[query], each[key]].mean(axis=1)[None] for each in (ids, *controls.ids))
        wider = controls.wider(places, places, target.links)
        for name, given in (("mixed", None), ("as wide", wider)):
            told = summary(own, np.array(others), False, given)
            shown = Evidence(
                own, told.mean, told.spread, told.below, told.best_excess, np.full((1, heads), 0.0)
            )
            claimed[name] += any(shown.group((0, head)) is Group.STANDS_OUT for head in range(heads))
    assert claimed["as wide"] <= binom.ppf(0.999, questions, 0.05)
    assert claimed["mixed"] > binom.ppf(0.999, questions, 0.05)


def test_equal_numbers_are_not_gone_beyond() -> None:
    assert beyond(0.5, np.array([0.5, 0.5 - 1e-12, 0.4, 0.6]), smaller=False) == 1
    assert beyond(0.5, np.array([0.5, 0.5 + 1e-12, 0.4, 0.6]), smaller=True) == 1
    assert np.isnan(beyond(math.nan, np.array([0.1]), smaller=False))


@pytest.mark.parametrize("smaller", [False, True])
def test_what_a_batch_rounds_otherwise_is_equal_and_what_is_a_decade_further_off_is_not(smaller) -> None:
    epsilon, sign = float(np.finfo(np.float32).eps), -1 if smaller else 1
    for value in (0.5, 3e-4, np.array([[0.25, 0.75]])):
        near = value * np.array([1, 1 - 10 * epsilon, 1 + 10 * epsilon]).reshape(3, *np.ndim(value) * [1])
        assert (beyond(value, near, smaller) == 0).all()
        far = value * np.array([1, 1 - sign * 640 * epsilon]).reshape(2, *np.ndim(value) * [1])
        assert (beyond(value, far, smaller) == 1).all()


def found_with(weight: float, control: float, followed: float | None) -> Finding:
    plain = finding()
    one = np.full((3, 4), control)
    controls = Controls(one, one, one, one, one, np.array([control]), np.array([0.0]), "", 0, 1)
    return replace(
        plain,
        question=Sought(query=8, key=2),
        weights=np.full((3, 4), weight),
        controls=controls,
        followed=None if followed is None else np.full((3, 4), followed),
    )


@pytest.mark.parametrize(
    ("numbers", "account"),
    [
        ((0.9, 0.8, 0.1), DependsOn.POSITION),
        ((0.9, 0.1, 0.8), DependsOn.WORD),
        ((0.9, 0.1, 0.2), DependsOn.CONTEXT),
        ((0.9, 0.1, None), DependsOn.CONTEXT),
        ((0.9, 0.45, 0.9), DependsOn.POSITION),
        ((0.05, 0.0, 0.0), None),  # less than even attention has
    ],
)
def test_a_head_is_said_to_look_by_what_keeps_half_of_its_weight(
    numbers: tuple[float, float, float | None], account: DependsOn | None
) -> None:
    assert found_with(*numbers).evidence.depends_on((1, 2)) is account


def by_hand(found: Finding, controls: np.ndarray) -> set[tuple[int, int]]:
    """Heads whose excess is reached by the best head of at most 5 % of controls, one number after another."""
    shape, count = found.weights.shape, len(controls)

    def excess(value: float, others: list[float]) -> float:
        mean = sum(others) / len(others)
        spread = math.sqrt(sum((each - mean) ** 2 for each in others) / len(others))
        return (value - mean) / max(spread, 0.1)

    best = []
    for left_out in range(count):
        found_there = []
        for i, j in np.ndindex(*shape):
            others = [float(controls[n, i, j]) for n in range(count) if n != left_out]
            others.append(float(found.weights[i, j]))
            found_there.append(excess(float(controls[left_out, i, j]), others))
        best.append(max(found_there))
    assert found.controls.best_excess == pytest.approx(best)
    out = set()
    for place in np.ndindex(*shape):
        own = excess(float(found.weights[place]), controls[(slice(None), *place)].tolist())
        if (1 + sum(each >= own for each in best)) / (count + 1) <= 0.05 and own > 0:
            out.add(place)
    return out


@pytest.mark.parametrize(("seed", "raised"), [(0, {}), (1, {(1, 2): 0.9}), (2, {(0, 1): 0.9, (2, 3): 0.8})])
def test_a_head_stands_out_against_the_best_head_of_every_control(seed: int, raised: dict) -> None:
    random = np.random.default_rng(seed)
    controls, own = random.beta(1, 12, (40, 3, 4)), random.beta(1, 12, (3, 4))
    for place, value in raised.items():
        own[place] = value
    found = cases_find.beside(own, controls, even=1e-9)
    out = {place for place in np.ndindex(3, 4) if found.stands_out(place)}
    explained = {
        place for place in np.ndindex(3, 4) if found.evidence.depends_on(place) is DependsOn.POSITION
    }
    assert out == by_hand(found, controls) - explained
    assert out == set(raised)
    assert set(found.ranking[: len(raised)]) == set(raised)


def test_with_fewer_than_nineteen_controls_nothing_stands_out() -> None:
    for count, out in ((18, False), (19, True)):
        controls = np.full((count, 3, 4), 0.1) + np.random.default_rng(0).random((count, 3, 4)) / 100
        own = np.full((3, 4), 0.1)
        own[2, 1] = 0.95
        found = cases_find.beside(own, controls)
        assert found.stands_out((2, 1)) is out
        assert found.case is (Case.ONE if out else Case.TOO_SHORT)


def test_what_wanders_or_is_explained_by_position_comes_after_what_stands_out_whatever_its_weight() -> None:
    random = np.random.default_rng(3)
    controls = 0.01 + 0.01 * random.random((99, 1, 2))
    controls[:, 0, 1] = random.random(99) * 0.8
    found = cases_find.beside(np.array([[0.25, 0.75]]), controls)
    assert [found.stands_out((0, head)) for head in (0, 1)] == [True, False]
    controls = random.random((60, 3, 4)) / 50
    controls[:, 0, 0] = 0.85 + random.random(60) / 10
    own = random.random((3, 4)) / 50
    own[0, 0], own[1, 1] = 0.99, 0.6
    found = cases_find.beside(own, controls)
    assert found.ranking[0] == (1, 1)
    assert found.evidence.of_group(Group.POSITION) == ((0, 0),)


@pytest.mark.parametrize(("count", "reaching", "out"), [(38, 1, False), (39, 1, True), (39, 2, False)])
def test_the_text_itself_counts_among_those_that_reach_as_far(count: int, reaching: int, out: bool) -> None:
    controls = np.full((count, 3, 4), 0.1)
    controls[range(reaching), 0, range(reaching)] = 0.96
    own = np.full((3, 4), 0.1)
    own[2, 1] = 0.95
    found = cases_find.beside(own, controls)
    assert found.evidence.as_far((2, 1)) == reaching
    assert found.stands_out((2, 1)) is out
