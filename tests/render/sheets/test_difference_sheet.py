"""The sheet of two runs held against each other: what one gives more, beside rounding and other heads."""

import csv
import io
import math
from dataclasses import replace

import cases_difference as made
import numpy as np
import pytest
from golden_text import IN_FULL, printed

from attnscope.analysis.claims.comparison.difference import difference as difference_of
from attnscope.render.figure import figure_of
from attnscope.render.files import as_csv
from attnscope.render.kit.numbers import number, significant, weight
from attnscope.render.sheet.blocks import Matrix, Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets.difference import sheet as difference
from attnscope.render.terminal import sheet as terminal
from attnscope.results import Difference, Verdict
from attnscope.results.claims.difference import Case


@pytest.fixture(scope="module")
def found() -> Difference:
    return made.between()


@pytest.fixture(scope="module")
def same() -> Difference:
    return difference_of(made.run(0), made.run(0), ("a.npz", "b.npz"), made.Picked())


def shown(found: Difference, width: int = 80) -> str:
    return "".join(printed(part, width) for part in terminal.screen(found, width, IN_FULL))


def test_the_answer_tells_the_head_that_changes_most_and_whether_it_is_rounding(
    found: Difference, same: Difference
) -> None:
    told, query, key = (
        difference(found).answer,
        *np.unravel_index(int(np.abs(found.signed).argmax()), found.signed.shape),
    )
    before, after = (weight(float(each[query, key])) for each in (found.before, found.after))
    names = found.a.query_tokens.names[query], found.a.key_tokens.names[key]
    for part in (found.name(found.ranking[0]), *map("“{}”".format, names), before, after, "12 of 12 heads"):
        assert part in told
    assert difference(found).control.endswith(f" {number(found.unlike, 3)} nats")
    assert (found.case, same.case) == (Case.CHANGED, Case.SAME_TO_THE_BIT)
    unknown = replace(same, largest=np.where(np.arange(12) == 3, math.nan, same.largest))
    assert unknown.case is Case.CHANGED
    alone = difference(replace(found, unlike=math.nan))
    assert alone.control.startswith("none: ")
    (heads, *_) = alone.every
    assert isinstance(heads, Ranking)
    assert heads.key() == ("divergence of both runs",)


def test_two_heads_differ_where_one_changes_and_one_pair_needs_no_count() -> None:
    two, one = (made.between(made.Picked((1,), (2,), *other)) for other in ((2, 3), (None, None)))
    assert difference(two).answer.startswith("L1 H2 and L2 H3 differ: ")
    assert difference(one).answer.startswith("L1 H2 changes: ")
    for each in (two, one):
        assert "rounding" in difference(each).answer
        assert not [note for note in difference(each).notes if "rounding" in note]


def test_heads_are_ranked_beside_rounding(found: Difference) -> None:
    (heads, *_) = difference(found).every
    assert isinstance(heads, Ranking)
    order = found.ranking[:10]
    assert heads.names == tuple(found.name(i) for i in order)
    assert heads.table["divergence"].values == [found.divergences[i] for i in order]
    times = found.largest[order[0]] / found.rounding[order[0]]
    assert heads.table["rounding"].values[0] == f"{times:,.0f} times rounding"
    assert heads.hidden == len(found.pairs) - 10
    within = replace(found, rounding=np.ones_like(found.rounding))
    assert set(difference(within).every[0].table["rounding"].values) == {"within rounding"}  # type: ignore[union-attr]
    unknown = replace(found, rounding=np.full_like(found.rounding, math.nan))
    assert any("tolerance" in each for each in difference(unknown).notes)
    assert not any("tolerance" in each for each in difference(found).notes)


def test_the_matrix_is_what_the_second_run_gives_more(found: Difference, same: Difference) -> None:
    (matrix,) = [each for each in difference(found).every if isinstance(each, Matrix)]
    np.testing.assert_array_equal(matrix.values, found.after - found.before)
    hidden = replace(found, before=np.zeros_like(found.before), after=np.eye(*found.after.shape))
    (diagonal,) = [each for each in difference(hidden).every if isinstance(each, Matrix)]
    assert np.isfinite(diagonal.values).sum() == len(found.before)
    assert not any(isinstance(each, Matrix) for each in difference(same).every), "there is nothing to see"


def test_the_queries_that_differ_most_have_the_keys_that_gain_and_lose_most(found: Difference) -> None:
    (_, rows) = [each for each in difference(found).every if isinstance(each, Ranking)]
    own = found.rows[found.shown]
    query = int(own.argmax())
    assert rows.names[0] == found.a.query_tokens.named(query)
    assert rows.table["divergence"].values == sorted(own, reverse=True)[:10]
    change = found.signed[query]
    gains, loses = (found.a.key_tokens.named(int(each)) for each in (change.argmax(), change.argmin()))
    assert rows.table["gains"].values[0].startswith(f"{gains} +")
    assert rows.table["loses"].values[0].startswith(f"{loses} −")


def test_every_head_stands_in_a_grid_with_its_control(found: Difference) -> None:
    apart, largest = [each for each in difference(found).every if isinstance(each, HeadGrid)]
    for place, (layer, head, *_) in enumerate(found.pairs):
        at = apart.layers.index(layer), apart.heads.index(head)
        assert apart.values[at] == found.divergences[place]
        assert largest.values[at] == found.largest[place]
        assert largest.companion is not None
        assert largest.companion.short(*at) == significant(float(found.rounding[place]))
    turned = replace(found, pairs=tuple((a, b, a, (b + 1) % 4) for a, b, *_ in found.pairs))
    assert not any(isinstance(each, HeadGrid) for each in difference(turned).every)


def test_the_csv_has_a_row_for_every_fact(found: Difference) -> None:
    lines = [line for line in as_csv(found).splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    facts = [row["fact"] for row in rows]
    queries, keys = found.before.shape
    assert facts.count("divergence") == facts.count("rounding") == len(found.pairs)
    assert facts.count("divergence of a row") == len(found.pairs) * queries
    weights = [row for row in rows if row["fact"] == "weight"]
    assert len(weights) == queries * keys
    assert [float(row["value"]) for row in weights] == found.signed.ravel().tolist()
    assert [float(row["b"]) for row in weights] == found.after.ravel().tolist()


def test_both_runs_and_their_verdicts_are_told(found: Difference) -> None:
    other = replace(found, b=replace(found.b, verdict=Verdict.PARTIAL))
    assert [told for _, told in difference(other).proof] == ["✓ certified: a.npz", "~ partial: b.npz"]
    assert "~ partial" in figure_of(other).texts[0].get_text()
    moved = replace(found.b.provenance, device="cuda", kernel="sdpa")
    a, b = difference(replace(found, b=replace(found.b, provenance=moved))).texts
    assert "· cpu · kernel eager" in a
    assert "· cuda · kernel sdpa" in b
    assert "cpu" not in difference(found).texts[0]


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal(found: Difference, same: Difference, width: int) -> None:
    for each in (found, same):
        assert max(map(len, shown(each, width).splitlines())) <= width
