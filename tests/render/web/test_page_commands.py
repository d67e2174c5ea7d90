"""Pages that commands write: all heads, queries and keys of one, and the command that was typed."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.render.web import page as pages

TEXT = "The door opened."


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), env={"HF_HUB_OFFLINE": "1", "COLUMNS": "100"})
    return result.exit_code, result.stderr


def document(file: Path) -> dict:
    return json.loads(
        re.search(r'id="document">(.*?)</script>', file.read_text(encoding="utf-8"), re.DOTALL)[1]
    )


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
    for block in document(folder / "all.html")["readings"][0]["blocks"]:
        packed = re.search(rf'id="{block}">([^<]*)', first)[1]
        assert f">{packed}<" in again


def test_a_query_that_is_asked_for_is_what_opens(tmp_path) -> None:
    asked = ("--layer", "1", "--head", "9", "--query", "door", "--show", "weights")
    code, said = run("heads", TEXT, "-m", "demo", *asked, "-o", f"{tmp_path}/x.html", "-q")
    assert code == 0, said
    opening = document(tmp_path / "x.html")["open"]
    assert (opening["layer"], opening["head"], opening["query"], opening["view"]) == (1, 9, 2, "sentence")


def test_a_page_that_is_too_large_is_not_written(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "HARD_BYTES", 20_000)
    code, said = run("show", f"{folder}/all.npz", "-o", f"{tmp_path}/large.html")
    assert code == 2
    assert "leave layers or heads out (--layer, --head)" in said
    assert list(tmp_path.iterdir()) == []


def test_a_result_without_a_page_says_so_before_any_work() -> None:
    code, said = run("verify", TEXT, "-m", "demo", "-o", "x.html")
    assert code == 2
    assert "the name must end in" in said
