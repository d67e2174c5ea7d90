"""Runs of other seeds become rows of the card of the bundled model, whose own figures stay as they are."""

import copy
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from attnscope.demo import folder
from attnscope.demo.train.cards import seeds, spread

MODELS = ("caption", "reader", "speech")
SEED = 41  # no run has it


def scaled(value: Any) -> Any:
    """Every share of a run's figures, made smaller by a tenth."""
    if isinstance(value, dict):
        return {name: scaled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [scaled(each) for each in value]
    return round(0.9 * value, 4) if isinstance(value, float) else value


def run_of(model: str, seed: int, where: Path) -> Path:
    """A folder as the training program leaves it, of another seed and with lower figures than the bundled."""
    run, figures = seeds.read(folder(f"demo-{model}"))
    run["settings"]["seed"] = seed
    figures.pop("other_seeds", None)
    (path := where / f"{model}-{seed}").mkdir()
    (path / "training.json").write_text(json.dumps(run))
    (path / "figures.json").write_text(json.dumps(scaled(figures)))
    return path


def bundled(model: str, where: Path) -> Path:
    """A copy of the bundled model's folder without its weights."""
    (path := where / "bundled").mkdir()
    for name in ("training.json", "figures.json", "README.md"):
        shutil.copy(folder(f"demo-{model}") / name, path)
    return path


def table(card: str) -> dict[int, list[str]]:
    """The rows of a card's table of runs by their seeds."""
    rows = re.search(r"^\| seed \|.*\n\|[-|]+\n((?:\|.*\n)+)", card, re.MULTILINE)
    assert rows
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in rows[1].splitlines()]
    return {int(row[0]): row[1:] for row in cells}


@pytest.mark.parametrize("model", MODELS)
def test_a_finished_run_becomes_a_row_and_all_else_of_the_card_stays(model: str, tmp_path: Path) -> None:
    here, before = bundled(model, tmp_path), table((folder(f"demo-{model}") / "README.md").read_text())
    seeds.add(model, [run_of(model, SEED, tmp_path)], here)
    after = table((here / "README.md").read_text())
    assert [*after] == [*before, SEED]
    assert {seed: after[seed] for seed in before} == before
    assert after[SEED] != next(iter(before.values()))
    assert after[SEED][0] == next(iter(before.values()))[0]  # steps
    run, figures = seeds.read(here)
    own_run, own = seeds.read(folder(f"demo-{model}"))
    assert run == own_run
    assert {**figures, "other_seeds": None} == {**own, "other_seeds": None}


@pytest.mark.parametrize(
    ("model", "cell", "share"),
    [("caption", 1, ("sentences", "exact")), ("speech", 1, ("known", "word_error"))],
)
def test_the_row_holds_what_was_measured_of_that_run(
    model: str, cell: int, share: tuple[str, str], tmp_path: Path
) -> None:
    here, path = bundled(model, tmp_path), run_of(model, SEED, tmp_path)
    seeds.add(model, [path], here)
    part, name = share
    measured = json.loads((path / "figures.json").read_text())[part][name]
    said = table((here / "README.md").read_text())[SEED][cell]
    assert float(said.rstrip("%")) / 100 == pytest.approx(measured, abs=5e-4)


def test_a_reader_is_told_by_its_worst_trained_length_and_not_by_the_longest(tmp_path: Path) -> None:
    here, path = bundled("reader", tmp_path), run_of("reader", SEED, tmp_path)
    figures = json.loads((path / "figures.json").read_text())
    for length, all_right in {
        "64": 0.9,
        "128": 0.8,
        "256": 0.91,
        "512": 0.92,
        "1024": 0.93,
        "2048": 0.2,
    }.items():
        figures["new_names"][length]["all"] = all_right
    (path / "figures.json").write_text(json.dumps(figures))
    seeds.add("reader", [path], here)
    row = table((here / "README.md").read_text())[SEED]
    assert (row[1], row[3]) == ("80.0%", "20.0%")


def test_runs_stand_in_the_order_of_their_seeds_and_one_that_is_added_again_is_replaced(
    tmp_path: Path,
) -> None:
    here = bundled("caption", tmp_path)
    first, second = (run_of("caption", seed, tmp_path) for seed in (SEED, SEED - 1))
    seeds.add("caption", [first, second], here)
    told = table((here / "README.md").read_text())
    assert [*told][-2:] == [SEED - 1, SEED]
    figures = json.loads((second / "figures.json").read_text())
    figures["sentences"]["exact"] = 0.123
    (second / "figures.json").write_text(json.dumps(figures))
    seeds.add("caption", [second], here)
    again = table((here / "README.md").read_text())
    assert again[SEED - 1][1] == "12.3%"
    assert {**again, SEED - 1: None} == {**told, SEED - 1: None}
    most = max((row[1] for row in again.values()), key=lambda told: float(told.rstrip("%")))
    assert f"12.3% and {most}" in (here / "README.md").read_text().replace("\n", " ")


def test_the_bundled_seed_and_other_settings_are_refused_and_change_nothing(tmp_path: Path) -> None:
    own = seeds.read(folder("demo-speech"))
    other = copy.deepcopy(own)
    other[0]["settings"] |= {"seed": SEED, "steps": 7}
    with pytest.raises(ValueError, match=rf"^seed {SEED} was run with other settings: steps$"):
        seeds.added(own, [other], "speech")
    with pytest.raises(ValueError, match=r"^seed 0 is that of the bundled run$"):
        seeds.added(own, [own], "speech")


def test_a_folder_without_figures_is_one_line_and_leaves_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = bundled("caption", tmp_path)
    monkeypatch.setattr(seeds, "folder", lambda name: here)
    before = (here / "README.md").read_text()
    unfinished = run_of("caption", SEED, tmp_path)
    (unfinished / "figures.json").unlink()
    assert seeds.main(["caption", str(unfinished)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert (here / "README.md").read_text() == before
    whole = run_of("caption", SEED + 1, tmp_path)
    assert seeds.main(["caption", str(whole)]) == 0
    assert SEED + 1 in table((here / "README.md").read_text())


def test_how_far_runs_lie_apart_is_said() -> None:
    assert (
        spread.said([0.5], "right") == "One run was made, with one seed: how much runs differ is not known."
    )
    assert spread.said([0.9, 0.8, 0.95], "right").startswith("Three runs were made. ")
    assert spread.said([0.9, 0.8, 0.95], "right").endswith("right: from run to run between 80.0% and 95.0%.")
    assert spread.said([0.0062, 0.0061], "wrong").endswith("wrong: 0.6% in every run.")
    assert spread.said([0.0062, 0.0061], "wrong", digits=2).endswith("between 0.61% and 0.62%.")
