"""What is said of the links of a text, case by case."""

import pytest
from cases_links import EXAMPLES, links

from attnscope.render.focus import Focus
from attnscope.render.sheets import sheet_of
from attnscope.results.claims.links import Case

CLEAREST = "L2 H1", "“it”", "“the”@5", ".75"
CASES = {  # what of numbers and heads the answer has
    "several": (Case.SEVERAL, *CLEAREST, ".25", "2 links", "any of 20"),
    "one": (Case.ONE, *CLEAREST, ".25", "any of 20"),
    "one that few texts have as well": (Case.ONE, *CLEAREST, "1 of 40"),
    "cannot tell": (Case.CANNOT_TELL, *CLEAREST, ".25", "7 of 20"),
    "few controls": (Case.FEW_CONTROLS, *CLEAREST, ".25", "18", "19"),
    "nothing": (Case.NOTHING, "12 heads", ".10"),
    "distance": (Case.SEVERAL, *CLEAREST, ".30", "distance"),
    "others": (Case.SEVERAL, *CLEAREST, ".30", "other words"),
    "even": (Case.SEVERAL, *CLEAREST, ".30", "the same"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_names_the_clearest_link_and_what_explains_most_of_it(case: str) -> None:
    found, (expected, *parts) = EXAMPLES[case](), CASES[case]
    assert found.case is expected
    assert [each for each in parts if each not in sheet_of(found).answer] == []


def test_links_that_chance_would_give_stand_under_their_own_heading() -> None:
    (block,) = sheet_of(links()).every
    first, rest = block.sections
    assert (first[0], rest[0]) == (0, 2)
    assert "2" in first[1]
    assert sheet_of(links(as_clear=3)).every[0].sections == ((0, rest[1]),)
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
