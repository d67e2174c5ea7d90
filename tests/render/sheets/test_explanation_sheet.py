"""What an explanation says: one verdict by its case, and a sentence for each question behind it."""

import pytest
from cases_explain import EXAMPLES, explanation

from attnscope.render.focus import Focus
from attnscope.render.sheet.drawings import Statement, Statements
from attnscope.render.sheets import sheet_of
from attnscope.results import Explanation
from attnscope.results.claims.explanation import Asked, Case, Need

CASES = {  # what of heads and numbers the verdict has
    "circuit": (Case.CIRCUIT, "L3 H1|“it”|“cat”|.91|L0 H2|“because”|L1 H0|“on”|30 of 30|25.0 %|7.2 %"),
    "shown": (Case.SHOWN, "3 of 12|L2 H4|.93|.16|25.0 %|7.2 %"),
    "one of twelve": (Case.SHOWN, "Of 12|L1 H2|.71|.01|because of L1 H0"),
    "the one that was asked": (Case.SHOWN, "L1 H2 clearly|.71|.01"),
    "none": (Case.NONE, "L2 H4|.93|.16|30 of 30"),
    "nobody": (Case.NONE, "No head|.02|L0 H0|.08"),
    "by its place": (Case.NONE, "because of the place|L0 H1|.75|.71"),
    "few controls": (Case.CIRCUIT, "12 shuffled texts"),
}


def told(result: Explanation) -> dict[str, Statement]:
    """Its statements by their questions."""
    (block,) = (block for block in sheet_of(result).every if isinstance(block, Statements))
    return {each.question: each for each in block.statements}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_says_what_is_shown_or_by_what_the_evidence_does_not_suffice(case: str) -> None:
    made, parts = CASES[case]
    result = EXAMPLES[case]()
    verdict = sheet_of(result).answer
    assert result.case is made
    assert [each for each in parts.split("|") if each not in verdict] == []


@pytest.mark.parametrize("case", CASES)
def test_each_question_is_answered_with_figures_and_a_command_that_shows_more(case: str) -> None:
    statements = told(EXAMPLES[case]())
    assert len(statements) <= 8
    for question, each in statements.items():
        assert each.sentence.endswith((".", ")")), each.sentence
        assert each.figures, question
        assert each.command.startswith("attnscope ") or question == "what could not be asked?"


def test_every_question_has_the_command_that_asks_it() -> None:
    commands = {question: each.command.split()[1] for question, each in told(explanation()).items()}
    assert commands == {
        Asked.LOOK: "find",
        "is it the word, the place or the context?": "find",
        Asked.MATTER: "ablate",
        Asked.LINK: "ablate",
        Asked.WHY: "why",
        Asked.READ: "compose",
        Asked.WORD: "flow",
    }


def test_where_nobody_looks_nothing_is_asked_of_heads() -> None:
    assert set(told(explanation("nobody"))) == {Asked.LOOK, Asked.WORD}
    assert explanation("nobody").lead is None


def test_what_could_not_be_asked_stands_there_with_the_reason() -> None:
    left = told(explanation("shown"))["what could not be asked?"]
    assert left.sentence == "Left open: does the answer need the link itself."
    assert left.figures == "as it is"
    assert "what could not be asked?" not in told(explanation())


def test_heads_that_are_read_are_confirmed_by_what_is_left_without_them() -> None:
    confirmed = told(explanation())[Asked.READ]
    assert "L3 H1 reads L0 H2 with its queries and L1 H0 with its keys" in confirmed.sentence
    assert "L0 H2 by query .90 (random circuits .24, .34 needed), weight without it .04" in confirmed.figures
    assert explanation().reads_confirmed == ("L0 H2 by query", "L1 H0 by key")
    by_weights = told(explanation("none"))[Asked.READ]
    assert "could read L0 H2 with its queries" in by_weights.sentence
    assert explanation("none").reads_confirmed == ()


WORDS = {  # of what is said and its figures
    "most": (Need.NEEDS, "“door” needs “cat”|25.0 %|7.5 %|1.20|none of 1 other"),
    "little": (Need.HARDLY, "hardly|25.0 %|23.8 %|.05"),
    "gains": (Need.GAINS, "likelier|25.0 %|41.2 %|.50 nats gained"),
    "among many": (Need.LOSES, "less likely|20.5 %|3 of 3 others"),
    "a tenth of it": (Need.LOSES, "less likely|21.5 %|none of 2 others"),
    "as another": (Need.LOSES, "less likely|7.5 %|1 of 2 others"),
    "no answer": (None, "“it” turns more where “cat”|any of 3|1.25"),
    "no answer, as others": (None, "“it” turns less where “cat”|1 of 2"),
    "left": (None, "“cat” was not replaced"),
}


@pytest.mark.parametrize("case", WORDS)
def test_whether_the_answer_depends_on_the_word_is_told_beside_the_other_words(case: str) -> None:
    needs, parts = WORDS[case]
    result = EXAMPLES[case]()
    each = told(result)[Asked.WORD]
    assert result.need is needs
    assert [part for part in parts.split("|") if part not in f"{each.sentence} {each.figures}"] == []


def test_a_page_and_v_have_what_the_questions_show_for_themselves() -> None:
    sheet = sheet_of(explanation())
    titles = [block.title for block in sheet.more]
    assert "replaced by [MASK], one at a time" in titles
    assert any(title.startswith(Asked.WHY) for title in titles)
    shown = [
        block.title for block in sheet_of(explanation(), Focus(verbose=True)).every if hasattr(block, "names")
    ]
    assert shown == ["the heads that were asked further", "replaced by [MASK], one at a time"]
