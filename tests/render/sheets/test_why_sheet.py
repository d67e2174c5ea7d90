"""What is said of a why: by its case, and never more than the controls allow."""

import re
from dataclasses import replace

import cases_why
import pytest
from cases_contributions import EXAMPLES, contributions
from cases_why import changed

from attnscope.render.focus import Focus
from attnscope.render.sheets import sheet_of
from attnscope.results import Why
from attnscope.results.claims.why import Case, Part, Removed, Side


def part(result: Why, name: str) -> Part:
    return next(part for part in result.parts if part.name == name)


@pytest.mark.parametrize(
    ("fields", "case"),
    [
        ({"controls": (0.3, -9.0, 0.1)}, Case.KEY),
        ({"controls": (0.3, -4.7, 0.1)}, Case.KEY),
        ({"controls": (*[0.0] * 12, -3.5)}, Case.KEY),  # more than −3.36, which lies 3 spreads beyond them
        ({"controls": (0.3, -0.1)}, Case.KEY),
        ({"contrast": 2.9}, Case.KEY),
        ({"controls": ()}, Case.KEY),
        ({"removed": Removed(4.0, 4.0, 0.01, 1.0)}, Case.KEY),
        ({"removed": Removed(-4.0, -4.0, 0.9, 1.0)}, Case.KEY),
        ({"contrast": -4.0, "removed": Removed(4.0, 4.0, 0.01, 1.0)}, Case.KEY),
    ],
    ids=[
        "a control does more",
        "within their spread",
        "one of many controls does more",
        "two controls",
        "a small share",
        "no control",
        "it rises",
        "the weight stays",
        "a share against it",
    ],
)
def test_a_part_is_no_reason_unless_every_test_is_passed(fields: dict[str, object], case: Case) -> None:
    result = changed(cases_why.why(), "L0 H2", **fields)
    assert result.case is case
    assert result.reasons_of(Side.QUERY) == ()


def test_embeddings_and_biases_have_shares_and_are_never_reasons() -> None:
    result = cases_why.why()
    for name in ("token", "position", "biases"):
        assert part(result, name).contrast
        assert not result.is_reason(replace(part(result, name), contrast=100.0))


def test_the_rows_of_each_side_sum_to_the_contrast_that_its_title_tells() -> None:
    result = cases_why.why()
    for block in sheet_of(result).every:
        assert sum(block.table["contrast"].values) == pytest.approx(result.contrast)
        assert "+6.00" in block.title


def test_the_line_of_proof_tells_the_residual_and_a_soft_cap_is_told() -> None:
    sheet = sheet_of(cases_why.why(), Focus(verbose=True))
    assert any("3.1e-7 of it, 3e-5 allowed" in told for _, told in sheet.proof)
    assert any("soft cap" in note for note in sheet.notes)
    assert sheet.next is not None
    assert "--layer 1 --head 0 --query the@5" in sheet.next.command


def test_the_first_screen_is_read_without_a_legend() -> None:
    """Plain columns, and a sentence that says what they are; what only some ask for is under -v."""
    first, full = (sheet_of(cases_why.why(), Focus(verbose=each)) for each in (False, True))
    columns = [each.heading for each in first.every[0].table.headed]
    assert columns == ["brings", "score", "others", "weight left", "reason?"]
    assert {"rest fixed", "norm", "of the score"} <= {each.heading for each in full.every[0].table.headed}
    assert "the score of “the”@5 lies 6.00 above the average of the other 12 tokens" in first.notes[0]
    said = [each.text(row) for each in (first.every[0].table["called"],) for row in range(4)]
    assert said == ["yes", "", "no", ""], "of the parts that were taken away"


made = contributions


@pytest.mark.parametrize("name", ["otherwise", "controlled", "alone"])
def test_no_part_is_marked_that_does_not_do_what_it_brings(name: str) -> None:
    assert not sheet_of(EXAMPLES[name]()).every[0].chosen
    assert sheet_of(EXAMPLES["stands"]()).every[0].chosen == {0, 5}


def test_the_sum_stands_in_the_heading_and_beside_the_models_own_logit() -> None:
    result = replace(made(), summed=1.5001, residual=4e-6)
    shown = sheet_of(result)
    assert shown.every[0].title.endswith("+1.50")
    assert re.findall(r"[+-]?\d\S*\d", shown.untouched) == ["+1.5001", "+1.5", "4.0e-6", "3e-5"]


def test_rows_of_a_long_list_are_added_up_and_sum_to_the_whole() -> None:
    parts = tuple(
        replace(made().parts[3], name=f"L{i} H0", layer=i, head=0, direct=0.1 * (i + 1)) for i in range(20)
    )
    result = replace(made(), parts=parts)
    short, whole = (sheet_of(result, Focus(verbose=full)).every[0] for full in (False, True))
    assert short.names[-1] == "8 others"
    assert len(whole.names) == 20
    for block in (short, whole):
        assert sum(block.table["direct"].values) == pytest.approx(sum(part.direct for part in parts))
