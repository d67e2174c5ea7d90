"""`attnscope find --pattern retrieval` as it is typed, and what is wrong with it in one line."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]
ASKED = ("find", "--pattern", "retrieval", "-q")
READER = ("-m", "demo-reader", "--lengths", "70", "--needles", "10")


def test_the_first_line_names_heads_and_what_is_left_without_them(attnscope: Run, tmp_path: Path) -> None:
    place = tmp_path / "found.json"
    said = " ".join(attnscope(*ASKED, *READER, "-o", str(tmp_path / "x.png")).stdout.split())
    assert (tmp_path / "x.png").stat().st_size > 10_000
    shown = attnscope("find", "--pattern", "retrieval", *READER, "-o", str(place))
    assert "chat template" not in shown.stderr, "no text of the user's is read"
    said = " ".join(shown.stdout.split())
    found = json.loads(place.read_text())
    assert found["schema"] == "attnscope.retrieval/2"
    assert f"({len(found['named'])} of 24 heads)" in said
    assert said.startswith("L1 H")
    assert "removal confirms them." in said
    assert "✓ certified" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--lengths", "70,5000", "-m", "demo-reader"), "--lengths 5000: demo-reader reads at most 2,048"),
        (("--lengths", "30", "-m", "demo-reader"), "--lengths 30: no room for the facts"),
        (("--lengths", "many", "-m", "demo-reader"), "--lengths 'many': numbers of tokens, 512,2048"),
        (("--needles", "1", "-m", "demo-reader"), "--needles 1: give 2 to 500"),
        (("-m", "demo"), "--pattern retrieval looks where a model writes an answer"),
        (("--from", "a", "-m", "demo-reader"), "leave --from out"),
        (("--ids", "3,4", "-m", "demo-reader"), "leave --ids out"),
        (("--facts", "nowhere.jsonl", "-m", "demo-reader"), "nowhere.jsonl"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(attnscope: Run, arguments: Sequence[str], says: str) -> None:
    shown = attnscope(*ASKED, *arguments)
    assert shown.exit_code == 2
    assert says in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_its_options_go_with_no_other_pattern(attnscope: Run) -> None:
    shown = attnscope("find", "The door opened.", "--pattern", "same", "--needles", "5", "-m", "demo")
    assert shown.exit_code == 2
    assert "--needles goes with --pattern retrieval" in shown.stderr
