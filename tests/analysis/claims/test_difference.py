"""Two runs held against each other: divergences worked by hand, controls, and what cannot be compared."""

import json
import math
from dataclasses import replace
from pathlib import Path

import cases_difference as made
import made_results
import numpy as np
import pytest

import attnscope as at
from attnscope.analysis.claims.comparison.difference import Picked, difference, matrices_in
from attnscope.errors import InputError
from attnscope.results import Difference, Verdict


def by_hand(a: list[float], b: list[float]) -> float:
    """Jensen-Shannon divergence in nats, term by term."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        middle = (x + y) / 2
        total += sum(z / 2 * math.log(z / middle) for z in (x, y) if z > 0)
    return total


def two(a: list[list[float]], b: list[list[float]], tolerance: float = 1e-6) -> Difference:
    head = made_results.head(["one", "two"])
    runs = [
        replace(matrices_in(head, "x"), weights={(2, 5): np.array(each)}, tolerances={(2, 5): tolerance})
        for each in (a, b)
    ]
    return difference(*runs, ("a", "b"))


def test_rows_and_heads_are_apart_as_worked_by_hand() -> None:
    found = two([[0.5, 0.5], [1.0, 0.0]], [[0.9, 0.1], [0.0, 1.0]])
    rows = [by_hand([0.5, 0.5], [0.9, 0.1]), math.log(2)]
    assert found.rows[0].tolist() == pytest.approx(rows)
    assert found.divergences[0] == pytest.approx(sum(rows) / 2)
    assert found.signed.tolist() == [pytest.approx([0.4, -0.4]), [-1.0, 1.0]]
    assert (found.largest[0], found.rounding[0]) == (1.0, 2e-6)


def test_what_a_sink_takes_counts_as_one_more_key() -> None:
    found = two([[0.5, 0.1], [0.5, 0.5]], [[0.2, 0.1], [0.5, 0.5]])
    assert found.rows[0].tolist() == pytest.approx([by_hand([0.5, 0.1, 0.4], [0.2, 0.1, 0.7]), 0.0])


def test_a_query_without_a_key_is_left_out_and_one_that_only_one_run_answers_is_no_rounding() -> None:
    none = [math.nan, math.nan]
    both = two([none, [0.5, 0.5]], [none, [0.4, 0.6]])
    assert np.isnan(both.rows[0]).tolist() == [True, False]
    assert both.divergences[0] == pytest.approx(by_hand([0.5, 0.5], [0.4, 0.6]))
    assert both.largest[0] == pytest.approx(0.1)
    assert two([none, [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]).largest[0] == math.inf


def test_a_difference_below_both_tolerances_is_told_as_rounding() -> None:
    assert two([[0.5, 0.5]] * 2, [[0.5 + 1.9e-6, 0.5 - 1.9e-6]] * 2).within_rounding == 1
    assert two([[0.5, 0.5]] * 2, [[0.5 + 2.1e-6, 0.5 - 2.1e-6]] * 2).within_rounding == 0
    assert "within rounding" in two([[0.5, 0.5]] * 2, [[0.5 + 1.9e-6, 0.5 - 1.9e-6]] * 2).text()


def test_heads_are_ranked_and_the_control_is_the_median_of_neighbours() -> None:
    a, b = made.run(0), made.run(1)
    found = made.between()
    own = {
        place: np.mean(
            [by_hand(x, y) for x, y in zip(a.weights[place].tolist(), b.weights[place].tolist(), strict=True)]
        )
        for place in a.weights
    }
    order = sorted(own, key=lambda place: -own[place])
    assert [found.pairs[i][:2] for i in found.ranking] == order
    assert found.pairs[found.shown][:2] == order[0]
    neighbours = [
        np.mean(
            [
                by_hand(x, y)
                for x, y in zip(a.weights[i, j].tolist(), a.weights[i, j + 1].tolist(), strict=True)
            ]
        )
        for i in range(3)
        for j in range(3)
    ]
    assert found.unlike == pytest.approx(np.median(neighbours))


def test_a_run_beside_itself_is_the_same_to_the_bit() -> None:
    found = difference(made.run(), made.run(), ("a", "b"))
    assert (found.within_rounding, found.other_tokens) == (len(found.pairs), 0)
    assert not found.divergences.any()
    assert "each of 12 heads, to the last bit" in found.text()


def test_two_heads_of_one_run_can_be_held_against_each_other() -> None:
    run = made.run()
    found = difference(run, run, ("a", "b"), Picked((1,), (2,), 0, 3))
    assert found.pairs == ((1, 2, 0, 3),)
    assert found.signed == pytest.approx(run.weights[0, 3] - run.weights[1, 2])
    assert "L1 H2 and L0 H3" in found.text()


@pytest.mark.parametrize(
    ("picked", "why"),
    [
        (Picked(layers=(7,)), "no such head in the first run: it has layers 0-2, heads 0-3"),
        (Picked(layers=(1,), layer_b=9), "no L9 H0 in the second run"),
    ],
)
def test_heads_that_are_not_there_are_refused(picked: Picked, why: str) -> None:
    with pytest.raises(InputError, match=why):
        difference(made.run(), made.run(), ("a", "b"), picked)


def test_runs_without_a_head_in_common_or_with_other_lengths_are_refused() -> None:
    a, b = made.run(), made.run()
    other = replace(b, weights={(9, 9): b.weights[0, 0], (9, 8): b.weights[0, 1]})
    with pytest.raises(InputError, match="no head is in both runs: the first has layers 0-2"):
        difference(a, other, ("a", "b"))
    short = matrices_in(made_results.head(["one", "two"]), "x")
    with pytest.raises(InputError, match="as many tokens"):
        difference(a, short, ("a", "b"))
    with pytest.raises(InputError, match="holds no weights of heads"):
        matrices_in(made_results.verification(), "v.npz")


def test_every_form_holds_the_same(tmp_path: Path) -> None:
    found = made.between()
    for suffix in ("json", "npz"):
        again = at.open(found.save(tmp_path / f"difference.{suffix}"))
        assert isinstance(again, Difference)
        assert (again.pairs, again.shown, again.verdict) == (found.pairs, found.shown, Verdict.STORED)
        assert (again.signed == found.signed).all()
        assert (again.rows == found.rows).all()
        shown, asked = (each.text(width=100) for each in (again, found))
        assert "✓ certified: both runs" in asked
        assert "○ as stored, not checked here: both runs" in shown
    told = json.loads((tmp_path / "difference.json").read_text("utf-8"))
    assert [each["divergence"] for each in told["ranking"]] == sorted(
        found.divergences.tolist(), reverse=True
    )
    frame = found.to_pandas()
    weights = frame[frame.fact == "weight"]
    assert weights.value.tolist() == found.signed.ravel().tolist()


def test_files_are_compared_by_the_library_and_by_the_command(tmp_path: Path, monkeypatch) -> None:
    from typer.testing import CliRunner

    from attnscope.cli.app import app

    a, b = (made_results.overview(3, 4).save(tmp_path / f"{name}.npz") for name in "ab")
    assert at.difference(a, b).within_rounding == 12
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str):
        return CliRunner().invoke(app, ["compare", *arguments], env={"COLUMNS": "80", "TERM": "dumb"})

    shown = run("a.npz", "b.npz", "-o", "c.json", "-o", "c.png")
    assert shown.exit_code == 0, shown.stderr
    assert "each of 12 heads" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert json.loads((tmp_path / "c.json").read_text("utf-8"))["looked_at"] == 12
    for arguments, why in (
        (("a.npz",), "compare a stored run with another one"),
        (("a.npz", "hello"), "'a.npz' is a stored run and the other is not"),
        (("a.npz", "b.npz", "--word", "x"), "leave --word out"),
        (("a.npz", "none.npz"), "no such file"),
        (("a text", "another"), "missing option '--word': name the word"),
        (("a text", "another", "--word", "text", "--head-b", "1"), "--head-b is of stored runs"),
    ):
        refused = run(*arguments)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert why in refused.stderr
