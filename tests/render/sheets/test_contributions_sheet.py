"""What is said of the parts of an answer: the sum, and never that a part does what it was not seen to do."""

from dataclasses import replace

import made_contributions
import pytest

from attnscope.render.focus import Focus
from attnscope.render.sheets import sheet_of
from attnscope.results.claims.contributions import Case

made = made_contributions.contributions


def test_the_first_line_says_how_far_the_answer_lies_above_the_other_and_what_brings_most() -> None:
    result = made()
    assert result.case is Case.STANDS
    assert sheet_of(result).answer == (
        "At “it” the logit of “it” lies 1.50 above that of “they”. Of all heads and MLPs, L0 H2 brings most "
        "of it directly, +1.50, and taking it away changes the difference by −1.20, more than taking away "
        "any other head of layer 0 does (at most ±.30)."
    )


@pytest.mark.parametrize(
    ("fields", "case", "said"),
    [
        ({"change": 0.4}, Case.OTHERWISE, "changes the difference by +.40, which is not what that foretells"),
        ({"control": -1.3}, Case.CONTROLLED, "another head of layer 0 changes it as much or more (±1.3)"),
        ({"control": 1.2}, Case.CONTROLLED, "another head of layer 0 changes it as much or more (±1.2)"),
    ],
)
def test_a_part_that_does_not_do_what_it_brings_is_told_so(
    fields: dict[str, float], case: Case, said: str
) -> None:
    result = made(**fields)
    assert result.case is case
    assert said in sheet_of(result).answer
    assert not sheet_of(result).every[0].chosen


def test_without_controls_nothing_stands() -> None:
    parts = tuple(replace(part, controls=()) for part in made().parts)
    result = replace(made(), parts=parts)
    assert result.case is Case.ALONE
    assert "there is no other head in its layer to hold that against" in sheet_of(result).answer
    none = replace(made(), parts=tuple(replace(part, removed=None, controls=()) for part in parts))
    assert none.case is Case.NONE
    assert "No head and no MLP that can be told apart brings anything to it." in sheet_of(none).answer


def test_a_part_that_brings_against_the_answer_is_told_so() -> None:
    result = replace(made(), logit=-0.5, summed=-0.5)
    told = sheet_of(result).answer
    assert "lies .50 below that of “they”" in told
    assert "does most directly, the other way: +1.50" in told


def test_the_sum_stands_in_the_heading_and_beside_the_models_own_logit() -> None:
    result = replace(made(), summed=1.5001, residual=4e-6)
    shown = sheet_of(result)
    assert shown.every[0].title == "what each part brings directly, in all +1.50"
    assert shown.untouched == (
        "the parts sum to +1.5001, the logit difference of the untouched model is +1.5 (off 4.0e-6 of the "
        "larger logit, 1e-5 allowed)"
    )


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


def test_a_bare_logit_is_said_to_say_little_and_a_bent_head_what_it_leaves() -> None:
    alone, held = sheet_of(made(alone=True)), sheet_of(made())
    assert alone.answer.startswith("At “it” the logit of “it” is 1.50. ")
    assert any("a logit alone does not make an answer likely" in each for each in alone.notes)
    assert not any("a logit alone" in each for each in held.notes)
    assert any("−.20 is left over, of no part alone" in each for each in held.notes)
    linear = replace(made(), parts=tuple(part for part in made().parts if part.name != "left over"))
    assert not any("left over" in each for each in sheet_of(linear).notes)


def test_what_stands_in_the_place_of_a_part_is_said() -> None:
    assert "its mean over the other tokens, at the place of the answer alone" in sheet_of(made()).control
    assert "what it is in the other text" in sheet_of(made(patched=True)).control
