"""What is said of heads that fetch: named and confirmed, named alone, none, or a model that cannot answer."""

from dataclasses import replace

import made_retrieval as made

from attnscope.render.sheets.retrieval import sheet


def test_the_answer_names_the_head_its_control_and_what_is_left_without_it() -> None:
    said = sheet(made.retrieval()).answer
    assert said.startswith("L1 H2 fetches the fact asked for (1 of 6 heads): it looks first at it in 100 %")
    assert "at another fact in 0 %; the model answers 11 of 12 questions" in said
    assert "Without it it answers" not in said
    assert "1 of 11 other questions" in said
    assert said.endswith("without as many other heads 9 (mean of 3 groups): removal confirms it.")


def test_heads_that_removal_does_not_confirm_and_those_without_others_are_said_so() -> None:
    result = made.retrieval()
    assert result.confirmation is not None
    weak = replace(result, confirmation=replace(result.confirmation, found_high=0.9))
    assert sheet(weak).answer.endswith("removal does not confirm it.")
    assert "no as many other heads" not in sheet(made.retrieval(others=0)).answer
    assert "nothing to hold that against" in sheet(made.retrieval(others=0)).answer


def test_where_the_model_answers_nothing_or_no_head_stands_out_none_is_named() -> None:
    assert sheet(made.retrieval(answers=False)).answer.startswith("No head is named: the model answers none")
    assert sheet(made.retrieval(named=False)).answer.startswith("No head of 6 heads looks first at the fact")


def test_the_head_of_equal_weight_that_does_not_copy_stands_beside_the_named_one() -> None:
    assert made.retrieval().alike == ((0, 1),)
    assert made.retrieval().named == ((1, 2),)


def test_too_few_answers_name_no_head_and_that_is_said() -> None:
    whole = made.retrieval(named=False)
    few = [replace(each, right=i < 6) for i, each in enumerate(whole.needles)]
    assert whole.enough == 7  # a head of six that looks there in each: 6 / 2^7 is less than .05
    said = sheet(replace(whole, needles=tuple(few))).answer
    assert said.startswith("6 answers cannot tell which of 6 heads fetch, 7 could: ")
