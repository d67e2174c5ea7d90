"""What is said of where an answer is from, and of ways to cite side by side."""

from dataclasses import replace

import made_citation as made
import numpy as np

from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.citation import sheet
from attnscope.render.sheets.referee import sheet as referee_sheet
from attnscope.render.terminal.sheet import written
from attnscope.results.claims.citation import Case, Method


def test_one_passage_is_named_with_how_much_goes_without_it_and_what_attention_says() -> None:
    assert sheet(made.citation()).answer == (
        "“door” comes from passage 0 (“The door was red.”): without that it falls from 90.5 % to 1.7 %, "
        "without others, or half of them together, it moves by a factor of 1.3 at most. Attention alone "
        "would have found it."
    )
    other = sheet(made.citation(attention=0.15)).answer
    assert other.endswith("Attention alone would have named passage 1 (20 % of it, 15 % for passage 0).")


def test_two_passages_none_and_several_that_do_not_stand_out_are_three_answers() -> None:
    assert (
        "comes from passages 0 and 1: without either of them it falls from 90.5 % to 7.4 %"
        in sheet(made.citation("two")).answer
    )
    none = sheet(made.citation("none")).answer
    assert "comes from none of the passages: without all 3 passages it keeps 74 % of its probability" in none
    assert none.endswith("By attention alone it would be passage 0, with 30 % of it.")
    for case in ("spread", "controlled"):
        assert (
            "needs the passages (without all 3 passages it falls from 90.5 %"
            in sheet(made.citation(case)).answer
        )
    assert ", but none stands out as its source: without passage" in sheet(made.citation("spread")).answer


def test_a_passage_that_counts_most_beside_few_others_is_told_with_what_luck_can_do() -> None:
    result = made.citation("spread")
    own = replace(result.statements[0], controls=())
    said = sheet(replace(result, statements=(own,), lost=np.array([[8.0, 1.0, np.nan]]))).answer
    assert "Passage 0 counts most: without it it falls from 90.5 %" in said
    assert "That is 8.0 times as many nats; beside 1 other passage luck is ruled out from 39 times on" in said
    assert result.cases[0] is Case.SPREAD


def test_of_several_sentences_it_is_counted_where_they_are_from_and_the_first_that_has_a_source_is_told() -> (
    None
):
    said = sheet(made.citation("none", "from", "spread", "none")).answer
    assert said.startswith(
        "Of 4 sentences 1 is from a passage, 2 are from none, 1 is from the passages, none of which stands "
        "out. “door” comes from passage 0"
    )


def test_a_method_that_is_absent_says_why_and_an_answer_that_is_unlikely_is_told() -> None:
    notes = sheet(made.citation()).notes
    assert "no copying heads: no head copies" in notes
    result = made.citation()
    rare = replace(result, statements=(replace(result.statements[0], log_probability=-9.0),))
    assert any("would hardly write this answer itself" in note for note in sheet(rare).notes)
    assert "it is 55 times less probable" in sheet(rare).answer


def test_a_fit_is_told_with_how_well_it_foretells_and_passages_not_taken_away_have_no_number() -> None:
    result = made.citation(subsets=16)
    assert any("R² 0.80 on subsets held out" in note for note in sheet(result).notes)
    assert result.order(0) == (0, 1, 2)
    poor = replace(result, statements=(replace(result.statements[0], r2=0.1),))
    assert any("it foretells little" in note for note in sheet(poor).notes)


def test_ways_to_cite_stand_side_by_side_with_none_apart() -> None:
    said = referee_sheet(made.referee()).answer
    assert said == (
        "In 6 cases with a source removal puts it first in 100 % of them (61 % to 100 %), attention in 0 "
        "% of them (0 % to 39 %); a passage drawn by lot 29 %. Of 2 cases without a source removal names "
        "none; a ranking always names a passage."
    )
    assert "removal names one in 1;" in referee_sheet(made.referee(wrong=1)).answer
    assert "no case is without a source" in referee_sheet(made.referee(none=False)).answer.casefold()
    notes = referee_sheet(made.referee()).notes
    assert "nothing to say in any case: attention x gradient" in notes
    assert "1 line could not be asked: 9" in notes
    assert not [each for each in notes if "--no-gradients" in each]


def test_cases_that_were_not_asked_by_gradients_say_which_ways_are_left_out() -> None:
    whole = made.referee()
    by_attention = replace(whole.scores[1], method=Method.COPYING, top1=0.5)
    made_without = referee_sheet(replace(whole, scores=(*whole.scores[:2], by_attention)))
    assert "the best way without removal and gradients (copying heads) in 50 %" in made_without.answer
    left = "gradient x input, integrated gradients, attention x gradient"
    assert f"not asked (--no-gradients): {left}" in made_without.notes


def test_both_fit_a_narrow_terminal_and_have_a_picture_of_their_own() -> None:
    for result in (made.citation("from", "none"), made.citation(), made.referee()):
        assert max(map(len, written(result, width=60).splitlines())) <= 60
        assert sheet_of(result).main is not None


def test_of_two_passages_it_says_both_and_the_other() -> None:
    whole = made.citation()
    told = replace(whole.statements[0], controls=())
    two = replace(
        whole, passages=whole.passages[:2], lost=np.array([[4.0, 0.02]]), statements=(told,), columns=()
    )
    assert two.sources == ((0,),)
    attention = replace(whole.columns[0], values=whole.columns[0].values[:, :2])
    said = sheet(replace(two, columns=(attention,))).answer
    assert "from 90.5 % to 1.7 %, without the other it moves by a factor of" in said
    none = replace(two.statements[0], candidates=(), controls=(), without_all=0.1)
    said = sheet(replace(two, columns=(attention,), statements=(none,))).answer
    assert "none of the passages: without both passages it keeps 90 % of its probability" in said
