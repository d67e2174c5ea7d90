"""The strongest links of heads, against slow loops: of ordinary tokens, of all, of one query, of one pair."""

import itertools
from dataclasses import replace
from pathlib import Path

import made_results as made
import numpy as np
import pytest

from attnscope.analysis.heads.overview import viewed_overview
from attnscope.analysis.heads.view import aimed, among_all, links
from attnscope.results import Overview, Special
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
    found = links(rows, made_up.query_tokens, made_up.key_tokens)
    return replace(made_up, weights=rows, **found._asdict())


def slow(weights: np.ndarray, queries: list[int], keys: list[int]) -> tuple[int, int, float]:
    best = (-1, -1, float("nan"))
    for query, key in itertools.product(queries, keys):
        weight = weights[query, key]
        if not np.isnan(weight) and not weight <= best[2]:
            best = query, key, float(weight)
    return best


def assert_links(of: Overview, queries: list[int], keys: list[int]) -> None:
    for i, j in np.ndindex(2, 3):
        query, key, weight = slow(of.dense_weights[i][j], queries, keys)
        assert of.strongest[i, j].tolist() == [query, key]
        np.testing.assert_equal(of.strongest_weight[i, j], weight)


def test_links_are_those_of_ordinary_tokens() -> None:
    found = overview()
    assert found.ordinary
    assert_links(found, [1, 2, 3], [1, 2, 3])


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
    assert_links(renormalised, [0, 1, 2], [0, 1, 2])


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
