"""What an explanation says: one verdict by its case, and a sentence for each question behind it."""

import re
from collections.abc import Callable

import pytest
from made_explanation import KEY, explanation, replaced

from attnscope.render.focus import Focus
from attnscope.render.sheet.drawings import Statement, Statements
from attnscope.render.sheets import sheet_of
from attnscope.results import Explanation
from attnscope.results.claims.explanation import Asked, Case, Lost, Need, Replaced

ANSWER = "The answer “door” needs “cat” (25.0 % → 7.2 %, and none of 3 others costs as much)."
CASES = {
    "circuit": (
        Case.CIRCUIT,
        "L3 H1 looks from “it” at “cat” because of two earlier heads, L0 H2 (at “it” it reads “because”) and "
        "L1 H0 (at “cat” it reads “on”): without the first its weight falls from .91 to .04, without the "
        "second to .04; by 30 shuffled texts alone its looking there could be chance.",
    ),
    "shown": (
        Case.SHOWN,
        "3 of 12 heads look from “it” at “cat” far more than in 30 shuffled texts, L2 H4 most (.93 "
        "here, .16 in control texts); of 2 heads taken apart none does so because of one earlier part alone.",
    ),
    "none": (
        Case.NONE,
        "3 heads look from “it” at “cat”, but that may be chance: L2 H4 does so most clearly, and in 30 of "
        "30 shuffled texts some head looks there as clearly.",
    ),
    "nobody": (
        Case.NONE,
        "No head looks from “it” at “cat” more than a little: none gives it much more than even attention.",
    ),
}


def told(result: Explanation) -> dict[str, Statement]:
    """Its statements by their questions."""
    (block,) = (block for block in sheet_of(result).every if isinstance(block, Statements))
    return {each.question: each for each in block.statements}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_says_what_is_shown_or_by_what_the_evidence_does_not_suffice(case: str) -> None:
    made, said = CASES[case]
    result = explanation(case)
    assert result.case is made
    assert sheet_of(result).answer == f"{said} {ANSWER}"


@pytest.mark.parametrize("case", CASES)
def test_there_are_ten_sentences_at_most_each_with_figures_and_a_command_that_shows_more(case: str) -> None:
    result = explanation(case)
    statements = told(result)
    verdict = len(re.findall(r"[.?](?= [A-Z]|$)", sheet_of(result).answer))
    assert verdict + len(statements) <= 10
    for question, each in statements.items():
        assert each.sentence.endswith("."), each.sentence
        assert not re.search(r"\. [A-Z]", each.sentence), f"one sentence: {each.sentence}"
        assert each.figures, question
        assert each.command.startswith("attnscope ") or question == "what could not be asked?"


def test_every_question_has_the_command_that_asks_it() -> None:
    commands = {question: each.command.split()[1] for question, each in told(explanation()).items()}
    assert commands == {
        Asked.LOOK: "find",
        "by what: the word, the place or the context?": "find",
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
    assert confirmed.sentence == (
        "By its weights L3 H1 reads L0 H2 with its queries and L1 H0 with its keys; in this text taking "
        "that away confirms it."
    )
    assert "L0 H2 by query .90 (random circuits .24, .34 needed), weight without it .04" in confirmed.figures
    assert explanation().reads_confirmed == ("L0 H2 by query", "L1 H0 by key")
    by_weights = told(explanation("none"))[Asked.READ]
    assert by_weights.sentence.startswith("By its weights L3 H1 could read L0 H2 with its queries")
    assert by_weights.sentence.endswith(
        "none is confirmed (only the largest parts of its score were taken away)."
    )
    assert explanation("none").reads_confirmed == ()


def _lost(own: float, *others: float) -> Replaced:
    parts = (Lost((KEY,), own), *(Lost((i + 4,), other) for i, other in enumerate(others)))
    return Replaced("[MASK]", "door", 0.25, 8, tuple(sorted(parts, key=lambda part: -part.change)))


WORDS: dict[str, tuple[Callable[[], Replaced], Need | None, str]] = {
    "most": (
        lambda: _lost(1.2, 0.4),
        Need.NEEDS,
        "The answer “door” needs “cat”, and the other one costs less.",
    ),
    "little": (
        lambda: _lost(0.05, 0.01),
        Need.HARDLY,
        "The answer “door” hardly depends on “cat”, and the other one costs less.",
    ),
    "among many": (
        lambda: _lost(0.2, 0.4, 0.5, 0.6),
        Need.LOSES,
        "The answer “door” is less likely without “cat”, and 3 of 3 others cost as much.",
    ),
    "a tenth of it": (
        lambda: _lost(0.15, 0.004, 0.002),
        Need.LOSES,
        "The answer “door” is less likely without “cat”, and none of 2 others costs as much.",
    ),
    "as another": (
        lambda: _lost(1.2, 1.4, 0.1),
        Need.LOSES,
        "The answer “door” is less likely without “cat”, and 1 of 2 others costs as much.",
    ),
    "no answer": (
        lambda: replaced(answer=""),
        None,
        "The vector of “it” turns where “cat” is replaced, more than where any of 3 is.",
    ),
    "left": (
        lambda: Replaced("[MASK]", "door", 0.25, 8, (Lost((4,), 0.1),)),
        None,
        "“cat” was not replaced: it is special, or stands where the answer does.",
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_whether_the_answer_depends_on_the_word_is_told_beside_the_other_words(case: str) -> None:
    made, needs, said = WORDS[case]
    result = explanation(replaced=made())
    assert result.need is needs
    assert told(result)[Asked.WORD].sentence == said


def test_a_page_and_v_have_what_the_questions_show_for_themselves() -> None:
    sheet = sheet_of(explanation())
    titles = [block.title for block in sheet.more]
    assert "replaced by [MASK], one at a time" in titles
    assert any(title.startswith(Asked.WHY) for title in titles)
    shown = [
        block.title for block in sheet_of(explanation(), Focus(verbose=True)).every if hasattr(block, "names")
    ]
    assert shown == ["the heads that were asked further", "replaced by [MASK], one at a time"]
