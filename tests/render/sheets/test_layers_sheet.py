"""What is said of the answers of layers, case by case."""

from typing import Any

import pytest
from made_layered import layered

from attnscope.render.sheets import sheet_of

OTHERS = "In texts with the words in other orders it gets"
CASES: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "from the embeddings on": (
        ("early",), {"high": 0.04},
        "At “on”, the model would answer “opened” from the embeddings on (5.0 % there, 62.0 % at the end). "
        f"{OTHERS} 0.5 % there on average.",
    ),
    "from a layer between": (
        ("middle",), {},
        "At “on”, the model would answer “opened” from L1 on (40.0 % there, 62.0 % at the end); L0 would "
        f"still say “the” (80.0 %). {OTHERS} 4.0 % there on average.",
    ),
    "an earlier lead that is lost does not count": (
        ("at last",), {"embeddings": False, "controls": 0},
        "At “on”, the model would answer “opened” from L1 on (40.0 % there, 62.0 % at the end); L0 would "
        "still say “the” (80.0 %).",
    ),
    "a lead that was lost before": (
        ("lost again",), {"controls": 0},
        "At “on”, the last layer puts “opened” first again (62.0 %); L1 would still say “the” (50.0 %).",
    ),
    "from the last alone": (
        ("late",), {"task": "next"},
        "After “on”, only the last layer puts “opened” first (62.0 %); L1 would still say “the” (50.0 %). "
        f"{OTHERS} 6.2 % there on average.",
    ),
    "some controls give as much": (
        ("late",), {"task": "class", "high": 0.62},
        "For the class, only the last layer puts “opened” first (62.0 %); L1 would still say “the” (50.0 %). "
        f"{OTHERS} 6.2 % there on average, in some as much as here.",
    ),
    "several places": (
        ("middle", "late", "early", "middle", "late", "late"), {},
        "The model would answer at “on” “opened” from L1 on; at “the”@5 “opened” from the last layer on; "
        "at “mat” “opened” from the embeddings on; at “because” “opened” from L1 on and 2 more places.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_answer_says_from_which_layer_on(case: str) -> None:
    leads, made, said = CASES[case]
    assert sheet_of(layered(*leads, **made)).answer == said


def test_without_controls_it_is_said_that_there_are_none() -> None:
    shown = sheet_of(layered("middle", controls=0))
    assert shown.control == ""
    assert "no shuffled texts were asked for" in shown.notes
    assert not any(column.name == "control" for column in shown.every[0].table.columns)


def test_every_layer_of_every_place_is_a_row_in_files() -> None:
    result = layered("middle", "late")
    columns = {each.name: list(each.values) for each in sheet_of(result).table().columns}
    assert columns["position"] == [4] * 4 + [5] * 4
    assert columns["layer"] == [-1, 0, 1, 2] * 2
    assert columns["best"] == ["the", "the", "opened", "opened", "the", "the", "the", "opened"]
