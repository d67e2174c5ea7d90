"""The sheet of heads ranked: every number beside its controls, and an answer that tells both."""

import csv
import io
from dataclasses import replace

import made_finding as made
import numpy as np
import pytest

from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheets.finding import sheet as finding
from attnscope.render.table import as_csv
from attnscope.results import Finding, Pattern


def ranking(found: Finding) -> Ranking:
    (block,) = [each for each in finding(found).every if isinstance(each, Ranking)]
    return block


def test_the_answer_tells_the_best_head_beside_its_controls_and_the_best_of_theirs() -> None:
    found = made.finding()
    told = finding(found).answer
    assert told.startswith("L2 H4 gives the most weight of 12 heads, .93, where its controls give .16")
    mean, (low, high) = found.controls.best.mean(), np.quantile(found.controls.best, (0.05, 0.95))
    assert f"{mean:.2f} ({low:.2f} to {high:.2f}), less than that in 30 of 30".replace("0.", ".") in told


def test_the_head_farthest_from_its_controls_is_told_where_it_is_another() -> None:
    found = made.finding()
    raised = found.weights.copy()
    raised[0, 1] = 0.94
    other = replace(
        found, weights=raised, controls=replace(found.controls, mean=np.where(raised == 0.94, 0.9, 0.1))
    )
    assert "farthest above its own controls is L2 H4, .93 against .10" in finding(other).answer
    assert "farthest" not in finding(found).answer


def test_of_divergences_the_least_is_best_and_the_head_itself_has_none() -> None:
    block = ranking(made.finding(like=(2, 4)))
    values = block.table["weight"].values
    assert values == sorted(values)
    assert "L2 H4" not in block.names
    told = finding(made.finding(like=(2, 4)))
    assert "nearest of 12 heads" in told.answer
    (weights,) = [each for each in told.every if isinstance(each, HeadGrid) and each.title == "divergence"]
    assert weights.scale.shades == ("dark", "light")
    assert "by" not in {each.heading for each in block.table.headed}


def test_every_bar_has_its_controls_and_the_best_of_all_controls_a_line() -> None:
    found = made.finding()
    marks = {(mark.shape, mark.tint): mark for mark in ranking(found).marks}
    places = found.ranking[:12]
    assert marks["ring", "control"].at == [found.controls.mean[place] for place in places]
    assert marks["span", "control"].at == [found.controls.low[place] for place in places]
    assert marks["span", "control"].to == [found.controls.high[place] for place in places]
    assert marks["line", "limit"].at == [found.controls.best.mean()]
    bars = [
        [value for value in mark.at if value is not None]
        for mark in ranking(found).marks
        if mark.shape == "bar"
    ]
    assert sorted(sum(bars, []), reverse=True) == [found.weights[place] for place in places]  # noqa: RUF017


@pytest.mark.parametrize(
    "found", [made.finding(), made.finding(by_norm=False), made.finding(pattern=Pattern.PREVIOUS)]
)
def test_only_columns_that_have_a_meaning_are_shown(found: Finding) -> None:
    shown = {each.heading for each in ranking(found).table.headed}
    assert ("norm" in shown) is (found.shares is not None)
    assert ("follows" in shown) is (found.followed is not None)
    assert {"weight", "rank", "control", "90 %", "beats", "diff", "by"} <= shown


def test_the_csv_has_every_head_with_its_exact_numbers() -> None:
    found = made.finding()
    lines = [line for line in as_csv(found).splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert [(int(row["layer"]), int(row["head"])) for row in rows] == [
        (found.layers[i], found.heads[j]) for i, j in found.ranking
    ]
    for name, values in {
        "weight": found.weights, "norm": found.norms, "control_mean": found.controls.mean,
        "control_low": found.controls.low, "control_high": found.controls.high,
        "control_percentile": found.controls.percentile, "difference": found.difference,
    }.items():  # fmt: skip
        assert values is not None
        assert [float(row[name]) for row in rows] == [values[place] for place in found.ranking], name
    assert [row["verdict"] for row in rows] == [found.verdicts[i][j].value for i, j in found.ranking]


def test_nothing_ranked_is_said_and_drawn() -> None:
    nothing = np.full((3, 4), np.nan)
    found = replace(made.finding(), weights=nothing, ranks=None, shares=None, norms=None, followed=None)
    found = replace(found, controls=replace(found.controls, mean=nothing))
    assert finding(found).answer == "None of 12 heads has a number."
    assert ranking(found).names == ()
    assert ranking(found).key() == ("its controls: mean, 90 %",)
    assert finding(found).next == ""
    assert found.plot().axes
