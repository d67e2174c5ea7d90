"""What is said of where an answer is from, and of ways to cite side by side."""

from dataclasses import replace

import cases_cite as made
from cases_cite import EXAMPLES
from cases_referee import EXAMPLES as REFEREES

from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.citation import sheet
from attnscope.render.sheets.referee import sheet as referee_sheet
from attnscope.render.terminal.sheet import written


def test_a_method_that_is_absent_says_why_and_an_answer_that_is_unlikely_is_told() -> None:
    assert "no copying heads: no head copies" in sheet(made.citation()).notes
    assert any("would hardly write this answer itself" in note for note in sheet(EXAMPLES["rare"]()).notes)


def test_a_fit_is_told_with_how_well_it_foretells_and_passages_not_taken_away_have_no_number() -> None:
    result = made.citation(subsets=16)
    assert any("R² 0.80 on subsets held out" in note for note in sheet(result).notes)
    assert result.order(0) == (0, 1, 2)
    poor = replace(result, statements=(replace(result.statements[0], r2=0.1),))
    assert any("it predicts little" in note for note in sheet(poor).notes)


def test_ways_to_cite_stand_side_by_side_with_none_apart() -> None:
    parts = {"compared": ("6 cases", "100 % ", "61 %", "0 % ", "39 %", "29 %", "none of 2"),
             "one wrongly named": ("1 of 2",), "without a source": ("none of 2",)}  # fmt: skip
    for name, held in parts.items():
        assert [each for each in held if each not in referee_sheet(REFEREES[name]()).answer] == []
    assert "No case" in referee_sheet(REFEREES["all with a source"]()).answer
    notes = referee_sheet(made.referee()).notes
    assert {"attention x gradient", "9"} <= {each.rpartition(": ")[2] for each in notes}
    assert not [each for each in notes if "--no-gradients" in each]


def test_cases_that_were_not_asked_by_gradients_say_which_ways_are_left_out() -> None:
    made_without = referee_sheet(REFEREES["without gradients"]())
    assert "and gradients is copying heads: 50 %" in made_without.answer
    left = "gradient x input, integrated gradients, attention x gradient"
    assert f"not asked (--no-gradients): {left}" in made_without.notes


def test_both_fit_a_narrow_terminal_and_have_a_picture_of_their_own() -> None:
    for result in (made.citation("from", "none"), made.citation(), made.referee()):
        assert max(map(len, written(result, width=60).splitlines())) <= 60
        assert sheet_of(result).main is not None
