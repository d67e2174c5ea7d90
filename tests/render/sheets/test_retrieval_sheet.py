"""What is said of heads that fetch: named and confirmed, named alone, none, or a model that cannot answer."""

import cases_retrieval as made
import pytest
from cases_retrieval import EXAMPLES

from attnscope.render.sheets.retrieval import sheet
from attnscope.results.claims.retrieval import Case

CASES = {  # what of heads and numbers the answer has
    "one": (
        Case.NAMED,
        "L1 H2 fetches|1 of 6|100 %|0 %|11 of 12|1 of 11 other|9 (average of 3|confirms it",
    ),
    "two": (Case.NAMED, "L0 H2 and L1 H2 fetch|2 of 6 heads|confirms them"),
    "not confirmed": (Case.NAMED, "does not confirm it"),
    "beside no other": (Case.NAMED, "not as many other heads"),
    "no answer": (Case.UNANSWERED, "none of 12"),
    "none": (Case.NONE, "None of 6 heads"),
    "few": (Case.TOO_FEW, "6 answers|6 heads|7 could"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_case_has_its_numbers(name: str) -> None:
    result, (case, parts) = EXAMPLES[name](), CASES[name]
    told = sheet(result).answer
    assert result.case is case
    assert [each for each in parts.split("|") if each not in told] == []


def test_the_head_of_equal_weight_that_does_not_copy_stands_beside_the_named_one() -> None:
    assert made.retrieval().alike == ((0, 1),)
    assert made.retrieval().named == ((1, 2),)


def test_too_few_answers_name_no_head() -> None:
    assert made.retrieval(named=False).enough == 7  # a head of six that looks there in each: 6 / 2^7 < .05
