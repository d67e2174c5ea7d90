"""A head on a long text as it is shown: blocks that can be made coarser, and queries with their keys."""

import csv
import io

import cases_long as made
import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.sheet.blocks import Matrix, Ranking
from attnscope.render.sheets.long import sheet as long_head
from attnscope.render.terminal.sheet import written
from attnscope.results import LongHead, Verdict
from attnscope.vocabulary import Pool, Scaling


def blocks(found: LongHead, focus: Focus = WHOLE) -> tuple[Matrix, Ranking]:
    matrix, ranking = long_head(found, focus).blocks
    assert isinstance(matrix, Matrix)
    assert isinstance(ranking, Ranking)
    return matrix, ranking


@pytest.mark.parametrize(("pool", "combine"), [(Pool.MEAN, np.nanmean), (Pool.MAX, np.nanmax)])
def test_a_cell_is_what_pool_says_of_its_pairs_and_coarser_ones_are_too(pool: Pool, combine: object) -> None:
    dense = np.where(np.tril(np.ones((23, 23), bool)), made.weights(), np.nan)
    matrix, _ = blocks(made.long_head(step=4, pool=pool))
    assert matrix.values[3, 1] == pytest.approx(combine(dense[12:16, 4:8]))  # type: ignore[operator]
    assert np.isnan(matrix.values[0, 1]), "masked"
    assert list(matrix.rows.positions) == [0, 4, 8, 12, 16, 20]
    assert matrix.coarser is not None
    wide = matrix.coarser(2, 1)
    assert list(wide.rows.positions) == [0, 8, 16]
    assert wide.values[1, 1] == pytest.approx(combine(dense[8:16, 4:8]))  # type: ignore[operator]
    assert "8 queries x 4 keys" in wide.says


def test_a_window_has_every_pair_under_the_names_of_its_tokens() -> None:
    matrix, _ = blocks(made.long_head(zoom=(5, 3, 9, 8)))
    assert matrix.values[2, 1] == pytest.approx(made.weights()[7, 4])
    assert matrix.rows.labels[0] == "5 the"
    assert "one weight" in matrix.says
    assert (
        "queries 5-13 of 23, keys 3-10 of 23" in long_head(made.long_head(zoom=(5, 3, 9, 8)), WHOLE).setting
    )


def test_the_scale_is_the_one_that_is_asked_for() -> None:
    assert blocks(made.long_head(), Focus(scale=Scaling.LOG))[0].scale.kind is Scaling.LOG
    assert blocks(made.long_head(), Focus(scale=Scaling.ONE))[0].scale.top == 1.0


@pytest.mark.parametrize(("rows", "listed"), [(3, [0, 11, 22]), (0, []), (None, list(range(23)))])
def test_queries_are_listed_evenly_with_their_strongest_keys(rows: int | None, listed: list[int]) -> None:
    found = made.long_head()
    _, ranking = blocks(found, Focus(rows=rows))
    assert [int(each.split()[0]) for each in ranking.names] == listed
    assert ranking.hidden == 23 - len(listed)
    for row, query in enumerate(listed):
        key = int(made.weights()[query].argmax())
        told = ranking.table["rank_0"].values[row].split("\u00a0")
        assert told[0] == str(key)
        assert float(told[-1]) == pytest.approx(made.weights()[query, key], abs=0.0006)


def test_one_query_has_its_keys_by_weight_and_what_the_others_hold() -> None:
    _, ranking = blocks(made.long_head(query=22))
    weights = made.weights()[22]
    order = np.argsort(-weights, kind="stable")
    order = order[weights[order] > 0][:25]
    assert ranking.table["weight"].values == pytest.approx(weights[order])
    assert [int(each.split()[0]) for each in ranking.names] == order.tolist()
    assert ranking.marks[0].at == pytest.approx(weights[order])


def test_the_first_line_names_the_head_and_what_the_query_that_is_asked_for_looks_at_most() -> None:
    found = made.long_head(query=22)
    key = int(made.weights()[22].argmax())
    named = found.key_tokens.items[key].text
    told = long_head(found).answer
    assert found.name in told
    assert told.index(named) < told.index(", then ")
    tokens = np.exp(np.nanmean(found.entropy))
    every = long_head(made.long_head()).answer
    assert f"{found.name} " in every
    assert f"about {tokens:.0f} of those" in every


@pytest.mark.parametrize("width", [40, 60, 80, 140])
@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("tokens", [23, 200])
def test_no_line_is_wider_than_the_terminal(width: int, step: int, tokens: int) -> None:
    text = written(made.long_head(step=step, tokens=tokens), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "looks at about" in " ".join(text.split())


def test_a_large_head_is_a_picture_that_says_what_a_cell_is() -> None:
    text = written(made.long_head(step=1, tokens=200), width=80)
    told = " ".join(text.split())
    assert "every cell is the mean weight of 5 queries x 3 keys, numbered by its first" in told
    assert "query ↓ 0" in text


def test_the_picture_has_every_block_and_its_verdict() -> None:
    found = made.long_head(verdict=Verdict.FAILED)
    drawn = figure_of(found)
    (mesh,) = [each for each in drawn.axes[0].collections if isinstance(each, QuadMesh)]
    np.testing.assert_allclose(np.ma.filled(mesh.get_array(), np.nan), found.cells)
    assert "FAILED" in drawn.texts[0].get_text()
    assert drawn.axes[0].child_axes[0].get_ylabel() == "attention weight"


def test_the_file_has_the_pairs_of_a_window_and_else_the_strongest_keys() -> None:
    def rows(found: LongHead) -> list[dict[str, str]]:
        lines = [each for each in as_csv(found).splitlines() if not each.startswith("#")]
        return list(csv.DictReader(io.StringIO("\n".join(lines))))

    window = rows(made.long_head(zoom=(5, 3, 9, 8)))
    there = {(int(each["query"]), int(each["key"])): float(each["weight"]) for each in window}
    expected = {(q, k): made.weights()[q, k] for q in range(5, 14) for k in range(3, 11) if k <= q}
    assert there == pytest.approx(expected)
    strongest = [each for each in rows(made.long_head()) if each["rank"] == "0"]
    assert [float(each["weight"]) for each in strongest] == pytest.approx(made.weights().max(axis=1))
