"""Pages that commands write: all heads, queries and keys of one, and the command that was typed."""

import re
from pathlib import Path

import numpy as np
import pytest
from pages_read import document, weights_in
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.render.web import page as pages
from attnscope.session.reading import Reading

TEXT = "The door opened."


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), env={"HF_HUB_OFFLINE": "1", "COLUMNS": "100"})
    return result.exit_code, result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A page of all heads, of all heads in small, and the stored run, of one text."""
    folder = tmp_path_factory.mktemp("pages")
    code, said = run("heads", TEXT, "-m", "demo", "-o", f"{folder}/all.html", "-o", f"{folder}/all.npz", "-q")
    assert code == 0, said
    code, said = run("heads", TEXT, "-m", "demo", "--grid", "-o", f"{folder}/grid.html", "-q")
    assert code == 0, said
    return folder


@pytest.mark.parametrize("name", ["all", "grid"])
def test_all_heads_are_there_and_the_strongest_with_its_queries_and_keys(folder, name) -> None:
    (reading,) = document(folder / f"{name}.html")["readings"]
    assert (len(reading["layers"]), len(reading["heads"]), len(reading["blocks"])) == (4, 12, 4)
    (full,) = reading["full"].values()
    assert full["q"]
    assert full["k"]


def test_the_command_is_the_one_that_was_typed_but_for_where_it_went(folder) -> None:
    assert (
        document(folder / "grid.html")["command"] == f"attnscope heads '{TEXT}' -m demo --grid -o page.html"
    )


def test_a_stored_run_has_the_same_weights_in_its_page(folder, tmp_path) -> None:
    code, said = run("show", f"{folder}/all.npz", "-o", f"{tmp_path}/again.html", "-q")
    assert code == 0, said
    first, again = (
        each.read_text(encoding="utf-8") for each in (folder / "all.html", tmp_path / "again.html")
    )
    (reading,) = document(folder / "all.html")["readings"]
    for block in (*reading["blocks"], reading["small"]["block"]):
        packed = re.search(rf'id="{block}">([^<]*)', first)[1]
        assert f">{packed}<" in again


def test_a_query_that_is_asked_for_is_what_opens(tmp_path) -> None:
    asked = ("--layer", "1", "--head", "9", "--query", "door", "--show", "weights")
    code, said = run("heads", TEXT, "-m", "demo", *asked, "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    opening = document(tmp_path / "x.html")["open"]
    assert (opening["layer"], opening["head"], opening["query"], opening["view"]) == (1, 9, 2, "matrix")


def test_a_page_that_is_too_large_is_not_written(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "HARD_BYTES", 20_000)
    code, said = run("show", f"{folder}/all.npz", "-o", f"{tmp_path}/large.html")
    assert code == 2
    assert "have room (--layer, --head), or shorten the text" in said
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_page_is_refused_before_any_work() -> None:
    code, said = run("verify", TEXT, "-m", "demo", "-o", "x.htm")
    assert code == 2
    assert "the name must end in" in said
    assert ".html" in said


def test_what_has_no_interactive_page_has_one_of_its_blocks(tmp_path) -> None:
    code, said = run("verify", TEXT, "-m", "demo", "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    page = (tmp_path / "x.html").read_text("utf-8")
    assert "All 48 encoder heads of demo come out" in page
    assert "✓ certified: 48 of 48 heads" in page
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert cells.count("12 of 12") == 4, "a row of the table for every layer"


def test_the_heads_that_find_ranks_are_in_its_page_with_the_weights_of_its_numbers(tmp_path) -> None:
    asked = ("--from", "opened", "--to", "door", "--controls", "2")
    code, said = run(
        "find", TEXT, "-m", "demo", *asked, "-o", f"{tmp_path}/x.html", "-o", f"{tmp_path}/x.npz", "-q"
    )
    assert code == 0, said
    opening = document(tmp_path / "x.html")["open"]
    with np.load(tmp_path / "x.npz") as stored:
        found = stored["weights"]
    shown = weights_in(tmp_path / "x.html")[:, :, opening["query"], opening["key"]]
    np.testing.assert_allclose(shown, found, atol=3.2e-5)
    assert np.abs(shown.T.reshape(shown.shape) - found).max() > 0.01


def test_the_heads_that_ablate_takes_away_are_in_its_page(folder, tmp_path) -> None:
    asked = ("--layer", "1", "--each", "--answer", ".")
    code, said = run("ablate", "The door [MASK].", "-m", "demo", *asked, "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    code, said = run(
        "heads", "The door [MASK].", "-m", "demo", "--layer", "1", "-o", f"{tmp_path}/y.html", "-q"
    )
    assert code == 0, said
    assert document(tmp_path / "x.html")["readings"][0]["layers"] == [1]
    np.testing.assert_array_equal(weights_in(tmp_path / "x.html"), weights_in(tmp_path / "y.html"))


def test_two_stored_runs_have_all_the_heads_of_both_in_one_page(folder, tmp_path) -> None:
    code, said = run("compare", *[f"{folder}/all.npz"] * 2, "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    told = document(tmp_path / "x.html")
    assert [(len(each["layers"]), len(each["heads"])) for each in told["readings"]] == [(4, 12)] * 2
    assert len(told["both"]["pairs"]) == 48


def test_a_grid_with_a_page_reads_and_recomputes_each_head_once_and_is_the_same_grid(
    folder, tmp_path, monkeypatch
) -> None:
    counted = []
    once = Reading.attention
    monkeypatch.setattr(Reading, "attention", lambda *a, **k: counted.append(1) or once(*a, **k))
    code, said = run(
        "heads", TEXT, "-m", "demo", "--grid", "-o", f"{tmp_path}/x.html", "-o", f"{tmp_path}/x.npz", "-q"
    )
    assert code == 0, said
    assert len(counted) == 1
    code, said = run("heads", TEXT, "-m", "demo", "--grid", "-o", f"{tmp_path}/y.npz", "-q")
    assert code == 0, said
    with np.load(tmp_path / "x.npz") as first, np.load(tmp_path / "y.npz") as second:
        np.testing.assert_array_equal(first["weights"], second["weights"])
    assert weights_in(tmp_path / "x.html").shape == (4, 12, 6, 6)
