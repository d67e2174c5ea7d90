"""What is said of many prompts: whether a figure holds, how sure that is, and which prompts go against it."""

import made_prompts
import numpy as np
import pytest

from attnscope.render.sheets import sheet_of
from attnscope.results.claims.prompts import Asked, Case


def answer(asked: Asked = Asked.FIND, **how) -> str:
    return sheet_of(made_prompts.prompts(asked, **how)).answer


def test_a_head_is_named_with_its_mean_its_controls_and_the_lines_against_it() -> None:
    told = made_prompts.prompts()
    assert told.case is Case.CANNOT_TELL  # one of four goes against it
    told = answer()
    assert told.startswith(
        "4 prompts cannot tell whether any of 2 heads looks from field:a at field:b: L1 H8 "
    )
    assert told.endswith(
        "comes nearest, .58 ±.57 in the mean, .10 in their control texts. Against it: line 5. "
        "1 line of gave.csv had no answer."
    )
    assert made_prompts.prompts(count=3).case is Case.HOLDS
    assert answer(count=3, refused=False) == (
        "L1 H8 looks from field:a at field:b in 3 of 3 prompts more than in control texts: .76 ±.13 in the "
        "mean, .10 in their control texts."
    )


def test_one_of_several_that_is_beyond_its_controls_alone_may_be_luck() -> None:
    told = made_prompts.prompts(count=2, refused=False)
    assert told.excess_surely[0] < 0 < told.excess_low[0]
    assert told.case is Case.ALONE
    assert "but as the best of 2 heads that may be luck" in answer(count=2)


def test_likeness_is_nearer_where_the_distance_is_less() -> None:
    told = made_prompts.prompts(Asked.LIKE)
    assert told.excess[0].tolist() == pytest.approx([0.3, 0.28, 0.25, -0.1])
    assert told.opposed(0) == (5,)
    assert told.ranking[0] == 0


def test_a_change_is_against_the_mean_by_its_sign_and_its_size_is_held_against_others() -> None:
    told = made_prompts.prompts(Asked.ABLATE)
    assert told.excess[0].tolist() == pytest.approx([1.15, 0.85, 1.35, 0.25])
    assert told.opposed(0) == (5,)
    words = answer(Asked.ABLATE)
    assert words.startswith(
        "Without L1 H8 the answer loses .80 ±1.21 nats in the mean of 4 prompts, and loses in 3;"
    )
    assert "the typical head of its layer moves it by .05" in words


def test_why_says_in_its_first_words_how_many_have_the_same_sign() -> None:
    assert answer(Asked.WHY).startswith(
        "L0 H2 on the key side has the same sign in 3 of 4 prompts: +3.45 ±4.02 "
    )
    assert "Without it 3.45 of the score is lost, the largest of its controls moves it by .40." in answer(
        Asked.WHY
    )


def test_methods_answers_and_layers_are_told_in_words_of_their_own() -> None:
    assert (
        "rank correlation +.55 ±.49 in the mean of 4 prompts, distance alone +.25; above it in 3 of 4"
        in answer(Asked.FLOW)
    )
    assert answer(Asked.PREDICT).startswith(
        "The likeliest answer has 70.0 % ±34.4 % in the mean of 4 prompts; "
    )
    assert answer(Asked.LAYERS).startswith(
        "From layer 0 on the model's answer comes first in most of 4 prompts: in 3"
    )


@pytest.mark.parametrize("asked", Asked)
def test_one_prompt_says_that_it_has_no_interval(asked: Asked) -> None:
    told = made_prompts.prompts(asked, count=1)
    assert np.isnan(told.low).all()
    assert "±" not in answer(asked, count=1)
    if asked is not Asked.LAYERS:
        assert "One prompt has no interval." in answer(asked, count=1)


def test_nothing_is_said_of_figures_that_no_prompt_has() -> None:
    assert sheet_of(made_prompts.of_nothing()).answer == "No figure of 4 prompts has a number."


def test_the_prompts_that_go_against_it_come_first_and_the_next_command_asks_one_of_them() -> None:
    sheet = sheet_of(made_prompts.prompts())
    prompts = sheet.every[-1]
    assert prompts.names == (
        "5 Tom fell.",
        "2 Mary gave Ann a book.",
        "3 John gave the old man a key.",
        "4 Ann sold Tom the red car.",
    )
    assert prompts.sections == ((0, "against it (1)"), (1, "with it"))
    assert sheet.next is not None
    assert "'Tom fell.'" in sheet.next.command
    assert "--layer 1 --head 8" in sheet.next.command
