"""What is said of a why: by its case, and never more than the controls allow."""

from dataclasses import replace

import made_why
import pytest

from attnscope.render.focus import Focus
from attnscope.render.sheets import sheet_of
from attnscope.results import Why
from attnscope.results.claims.why import Case, Part, Removed, Side


def changed(result: Why, name: str, **fields: object) -> Why:
    """The same with one part changed."""
    parts = tuple(replace(part, **fields) if part.name == name else part for part in result.parts)
    return replace(result, parts=parts)


def part(result: Why, name: str) -> Part:
    return next(part for part in result.parts if part.name == name)


def test_a_reason_on_both_sides_is_told_with_what_the_weight_falls_to() -> None:
    result = made_why.why()
    assert result.case is Case.BOTH
    assert sheet_of(result).answer == (
        "L2 H3 looks from “it” at “the”@5 (.91) because of L0 H2 on the query side and L1 H0 on the key "
        "side: without L0 H2 the weight falls to .04, without L1 H0 to .04."
    )


@pytest.mark.parametrize(
    ("fields", "case"),
    [
        ({"controls": (0.3, -9.0, 0.1)}, Case.KEY),
        ({"controls": (0.3, -4.7, 0.1)}, Case.KEY),
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
        "two controls",
        "a small share",
        "no control",
        "it rises",
        "the weight stays",
        "a share against it",
    ],
)
def test_a_part_is_no_reason_unless_every_test_is_passed(fields: dict[str, object], case: Case) -> None:
    result = changed(made_why.why(), "L0 H2", **fields)
    assert result.case is case
    assert result.reasons_of(Side.QUERY) == ()
    assert "No part of the query side alone does that." in sheet_of(result).answer


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"controls": (0.3, -9.0, 0.1)}, "without it the score moves by −3.36, without a control by −9.00."),
        ({"controls": (0.3, -3.0, 0.1)}, "without a control by −3.00, which is too near"),
        ({"controls": (0.3, -0.1)}, "only 2 other heads of its layer can be held against it, too few"),
        ({"controls": ()}, "there is no other head of its layer to hold it against"),
        ({"removed": Removed(4.0, 4.0, 0.01, 1.0)}, "without it the score does not fall (+4.00)"),
        ({"removed": Removed(-4.0, -4.0, 0.9, 1.0)}, "without it the weight is still .90"),
    ],
)
def test_a_share_that_is_no_reason_is_told_with_its_but(fields: dict[str, object], said: str) -> None:
    result = changed(changed(made_why.why(), "L1 H0", removed=None, controls=()), "L0 H2", **fields)
    assert result.case is Case.SHARE
    assert sheet_of(result).answer.startswith("L0 H2 on the query side has 70 % of what lifts “the”@5 above")
    assert said in sheet_of(result).answer


def test_small_parts_are_no_single_reason() -> None:
    result = made_why.why(weight_left=0.9)
    result = changed(changed(result, "L0 H2", contrast=2.0), "L1 H0", contrast=2.0)
    assert result.case is Case.NONE
    assert sheet_of(result).answer.startswith("No single reason why L2 H3 looks from “it” at “the”@5 (.91)")


def test_a_part_without_which_the_weight_is_gone_is_no_reason_while_it_brings_little_itself() -> None:
    """On random weights every third circuit was such a one: a change that later parts and norms carry on."""
    result = changed(changed(made_why.why(), "L0 H2", contrast=2.0), "L1 H0", contrast=2.0)
    assert result.case is Case.NONE
    assert (
        "L0 H2 on the query side leaves least of the weight, .04, but it brings only 33 % of what lifts "
        "“the”@5 above the mean of the other 12 keys itself."
    ) in sheet_of(result).answer


def test_where_the_head_does_not_look_there_is_nothing_to_tell() -> None:
    for result in (
        made_why.why(contrast=-1.5),
        made_why.why(contrast=0.4),
        replace(made_why.why(), weight=0.05),
    ):
        assert result.case is Case.NOT_ABOVE
        assert not result.reasons_of(Side.QUERY) + result.reasons_of(Side.KEY)
        assert sheet_of(result).answer.startswith(
            "There is nothing to give a reason for: L2 H3 gives “the”@5"
        )


def test_embeddings_and_biases_have_shares_and_are_never_reasons() -> None:
    result = made_why.why()
    for name in ("token", "position", "biases"):
        assert part(result, name).contrast
        assert not result.is_reason(replace(part(result, name), contrast=100.0))


def test_the_rows_of_each_side_sum_to_the_contrast_that_its_title_tells() -> None:
    result = made_why.why()
    for block in sheet_of(result).every:
        assert sum(block.table["contrast"].values) == pytest.approx(result.contrast)
        assert "in all +6.00" in block.title


def test_the_line_of_proof_tells_the_residual_and_a_soft_cap_is_told() -> None:
    sheet = sheet_of(made_why.why(), Focus(verbose=True))
    assert any("sum to the score (off 3.1e-7 of it, 1e-5 allowed)" in told for _, told in sheet.proof)
    assert "the score is told before the model's soft cap" in sheet.notes
    assert sheet.next is not None
    assert "--layer 1 --head 0 --query the@5" in sheet.next.command


def test_the_first_screen_is_read_without_a_legend() -> None:
    """Plain columns, and a sentence that says what they are; what only some ask for is under -v."""
    first, full = (sheet_of(made_why.why(), Focus(verbose=each)) for each in (False, True))
    columns = [each.heading for each in first.every[0].table.headed]
    assert columns == ["brings", "score", "others", "weight left", "reason?"]
    assert {"rest fixed", "norm", "of the score"} <= {each.heading for each in full.every[0].table.headed}
    assert first.notes[0].startswith(
        "to read it: the score of “the”@5 lies 6.00 above the mean of the other 12 keys"
    )
    said = [each.text(row) for each in (first.every[0].table["called"],) for row in range(4)]
    assert said == ["yes", "", "no", ""], "of the parts that were taken away"
