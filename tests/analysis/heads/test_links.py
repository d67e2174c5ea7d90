"""The strongest links of heads, against slow loops: of ordinary tokens, of all, of one query, of one pair."""

import itertools
from dataclasses import replace
from pathlib import Path

import made_results as made
import numpy as np
import pytest

from attnscope.analysis.heads.overview import viewed_overview
from attnscope.analysis.heads.view import Links, aimed, among_all, links
from attnscope.render.sheets import sheet_of
from attnscope.results import Kind, Overview, Special
from attnscope.results.heads import Case
from attnscope.results.stored.document import as_json, as_npz, load
from attnscope.vocabulary import Unit

NAMES = ["[CLS]", "the", "door", "opened", "[SEP]"]


def overview(names: list[str] = NAMES, sink: float = 0.9) -> Overview:
    """2 layers x 3 heads of which every row leaves `sink` on the first key, and some queries have no key."""
    random = np.random.default_rng(5)
    made_up = made.overview(2, 3, names)
    count = len(names)
    weights = random.dirichlet(np.ones(count), size=(2, 3, count)) * (1 - sink)
    weights[..., 0] += sink
    weights[0, 1, count - 2] = np.nan
    weights[1, 2] = np.nan
    rows = tuple(tuple(row) for row in weights)
    found = links(rows, made_up.query_tokens, made_up.key_tokens, Kind.ENCODER)
    return replace(made_up, weights=rows, **found._asdict())


def slow(weights: np.ndarray, queries: list[int], keys: list[int], own: bool) -> tuple[int, int, float]:
    best = (-1, -1, float("nan"))
    for query, key in itertools.product(queries, keys):
        weight = weights[query, key]
        if (own or query != key) and not np.isnan(weight) and not weight <= best[2]:
            best = query, key, float(weight)
    return best


def assert_links(of: Overview, queries: list[int], keys: list[int], own: bool = True) -> None:
    for i, j in np.ndindex(2, 3):
        query, key, weight = slow(of.dense_weights[i][j], queries, keys, own)
        assert of.strongest[i, j].tolist() == [query, key]
        np.testing.assert_equal(of.strongest_weight[i, j], weight)


def test_links_are_those_of_ordinary_tokens() -> None:
    found = overview()
    assert found.ordinary
    assert_links(found, [1, 2, 3], [1, 2, 3], own=False)


CAUSAL = np.array(
    [[1, 0, 0, 0, 0, 0], [0.9, 0.1, 0, 0, 0, 0], [0.5, 0.1, 0.4, 0, 0, 0], [0.6, 0.02, 0.38, 0, 0, 0],
     [0.8, 0.05, 0.05, 0, 0.1, 0], [0.6, 0.1, 0.1, 0.05, 0.05, 0.1]]
)  # fmt: skip
WORDS = ["When", "Mary", "and", "John", "went", "home"]


def strongest(weights: np.ndarray, names: list[str], kind: Kind = Kind.DECODER) -> Links:
    text = made.tokens(names)
    return links([[weights]], text, text, kind)


def test_a_token_with_more_than_half_of_the_weight_and_the_query_itself_are_passed_over() -> None:
    found = strongest(CAUSAL, WORDS)
    assert (found.strongest[0, 0].tolist(), found.strongest_weight[0, 0]) == ([3, 2], 0.38)
    assert found.heaviest[0, 0] == 0
    on_sink, on_itself = [1, 0.9, 0.5, 0.6, 0.8, 0.6], [0.1, 0.4, 0, 0.1, 0.1]  # of the first it is the same
    assert found.aside[0, 0] == pytest.approx((sum(on_sink) + sum(on_itself)) / 6)


def test_a_token_with_less_than_half_is_the_strongest_link() -> None:
    weights = CAUSAL.copy()
    weights[4], weights[5] = [0, 0.1, 0.1, 0.7, 0.1, 0], [0, 0.1, 0.1, 0.1, 0.7, 0]
    found = strongest(weights, WORDS)
    assert (found.strongest[0, 0].tolist(), found.heaviest[0, 0]) == ([1, 0], -1)


def test_few_queries_say_of_no_token_that_it_takes_from_all() -> None:
    assert strongest(CAUSAL[:4, :4], WORDS[:4]).heaviest[0, 0] == -1


def test_across_two_texts_a_token_may_look_at_the_same_place() -> None:
    square = np.full((6, 6), 0.04) + 0.76 * np.eye(6)
    assert strongest(square, WORDS, Kind.CROSS).strongest_weight[0, 0] == pytest.approx(0.8)
    assert strongest(square, WORDS, Kind.ENCODER).strongest_weight[0, 0] == pytest.approx(0.04)


@pytest.mark.parametrize("names", [WORDS, ["[CLS]", *WORDS[1:]]])
def test_a_head_names_alone_the_link_that_it_has_in_a_grid(names: list[str]) -> None:
    head = replace(made.head(names), weights=CAUSAL, allowed=CAUSAL > 0, kind=Kind.DECODER)
    assert head.strongest == tuple(strongest(CAUSAL, names).strongest[0, 0].tolist())
    assert head.case is Case.TAKEN_UP
    aside = " ".join(sheet_of(head).notes)
    assert f"{'“When”' if names == WORDS else '[CLS]'} with .73" in aside
    assert "each token itself with .12" in aside


def test_links_among_all_tokens_end_at_the_sink() -> None:
    found = among_all(overview())
    assert not found.ordinary
    assert_links(found, list(range(5)), list(range(5)))
    assert set(found.strongest[..., 1].ravel().tolist()) == {0, -1}


def test_where_every_token_is_special_all_of_them_count() -> None:
    found = overview(["[CLS]", "[SEP]"])
    assert not found.ordinary
    assert_links(found, [0, 1], [0, 1])


def test_the_largest_weight_of_one_query_goes_to_an_ordinary_key() -> None:
    found = aimed(overview(), 2)
    assert found.main.measure == "row"
    assert_links(found, [2], [1, 2, 3])
    np.testing.assert_array_equal(found.main.values, found.strongest_weight)


def test_that_of_a_special_query_or_among_all_may_go_to_any_key() -> None:
    assert_links(aimed(overview(), 0), [0], list(range(5)))
    assert_links(aimed(among_all(overview()), 2), [2], list(range(5)))


@pytest.mark.parametrize("key", [0, 3])
def test_of_one_pair_the_weight_itself_is_shown_in_every_head(key: int) -> None:
    found = aimed(overview(), 3, key, beside=["entropy"])
    assert list(found.scores) == ["pair", "entropy"]
    assert found.aim == (3, key)
    assert_links(found, [3], [key])
    expected = [[weights[3, key] for weights in row] for row in found.dense_weights]
    np.testing.assert_array_equal(found.main.values, expected)
    assert np.isnan(found.main.values).sum() == 2


def test_shares_on_special_tokens_are_those_of_each_head() -> None:
    found = overview()
    for i, j in np.ndindex(2, 3):
        rows = [row for row in found.dense_weights[i][j] if not np.isnan(row).any()]
        expected = np.mean([row[0] + row[4] for row in rows]) if rows else np.nan
        np.testing.assert_allclose(found.special_shares[i, j], expected)


def test_a_view_keeps_the_links_that_were_asked_for() -> None:
    found = overview()
    assert viewed_overview(found, by=Unit.WORD).ordinary
    assert not viewed_overview(among_all(found), by=Unit.WORD).ordinary
    renormalised = viewed_overview(found, special=Special.RENORMALISE)
    assert_links(renormalised, [0, 1, 2], [0, 1, 2], own=False)


SHOWN = {
    "ordinary": overview(),
    "all": among_all(overview()),
    "row": aimed(overview(), 2),
    "pair": aimed(overview(), 2, 3),
}


@pytest.mark.parametrize("name", SHOWN)
def test_links_and_aims_are_read_back_from_files(name: str, tmp_path: Path) -> None:
    shown = SHOWN[name]
    (tmp_path / "a.json").write_bytes(as_json(shown).encode())
    (tmp_path / "a.npz").write_bytes(as_npz(shown))
    for file in ("a.json", "a.npz"):
        again = load(tmp_path / file)
        assert isinstance(again, Overview)
        assert (again.ordinary, again.aim) == (shown.ordinary, shown.aim)
        assert list(again.scores) == list(shown.scores)
        np.testing.assert_array_equal(again.strongest, shown.strongest)
        np.testing.assert_allclose(again.special_shares, shown.special_shares)
