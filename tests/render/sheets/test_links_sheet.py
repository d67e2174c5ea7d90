"""What is said of the links of a text, case by case."""

from typing import Any

import pytest
from made_links import links

from attnscope.render.focus import Focus
from attnscope.render.sheets import sheet_of

CLEAREST = (
    "L2 H1 looks from “it” at “the”@5 with .75, .50 more than anything simpler explains (.25 at the same two "
    "places in other orders of the words)"
)
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "several": ({}, f"2 links stand out. The clearest: {CLEAREST}."),
    "one": ({"found": 1}, f"The one link that stands out: {CLEAREST}."),
    "undecided": (
        {"as_clear": 7},
        f"No link of this text stands out. The clearest: {CLEAREST}, but 7 of 20 texts with the words in "
        "other orders have a link as clear.",
    ),
    "too few controls": (
        {"controls": 18},
        f"18 control texts are too few to tell: 19 are needed. The clearest link: {CLEAREST}.",
    ),
    "nothing": (
        {"found": 0},
        "No link between two words stands out in any of 12 heads: none is .10 above what its place, its "
        "distance, its key or even attention would explain.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_names_the_clearest_link_and_what_explains_most_of_it(case: str) -> None:
    made, said = CASES[case]
    assert sheet_of(links(**made)).answer == said


def test_links_that_chance_would_give_stand_under_their_own_heading() -> None:
    (block,) = sheet_of(links()).every
    assert [*block.sections] == [(0, "stand out (2)"), (2, "not told from chance")]
    assert sheet_of(links(as_clear=3)).every[0].sections == ((0, "not told from chance"),)
    assert sheet_of(links(found=0)).every == ()


def test_the_next_command_asks_for_the_heads_of_the_clearest_link() -> None:
    following = sheet_of(links()).next
    assert following is not None
    assert "find" in following.command
    assert "--from it --to the@5" in following.command
    assert sheet_of(links(found=0)).next is None


def test_a_file_has_what_may_explain_each_link() -> None:
    columns = {each.name: list(each.values) for each in sheet_of(links(cross=True), Focus()).table().columns}
    assert len(columns["query"]) == 4
    assert [float(each) for each in columns["controls"]] == pytest.approx([0.25, 0.35, 0.45, 0.55])
    assert columns["distance"] == [""] * 4
