"""The sheet of a worked example: what a mistake makes of its weights, what fails, what comes next."""

from dataclasses import replace

import numpy as np
import pytest
from cases_worked import queries, scores

from attnscope.render.sheets import sheet_of
from attnscope.results.worked import Check
from attnscope.worked import example, mistaken


def test_what_a_mistake_makes_of_each_weight_is_known_where_it_makes_any() -> None:
    result = mistaken(queries(2), "no-scale")
    raw = np.exp([[2.0, 0.0, 0.0], [0.0, 1.0, 3.0]])
    right = np.exp(np.log(raw) / 2**0.5)
    expected = raw / raw.sum(1, keepdims=True) - right / right.sum(1, keepdims=True)
    assert result.differences == pytest.approx(expected)
    assert queries(2).differences.size == 0


def test_an_example_that_failed_has_no_answer_and_asks_nothing_more() -> None:
    failed = replace(example("fruit"), checks=(Check.of("one way", 1.0, 1e-6),))
    shown = sheet_of(failed)
    assert shown.answer.startswith("✗ ")
    assert shown.next is None


def test_what_follows_an_example_is_the_one_that_it_is_compared_with_or_numbers_of_ones_own() -> None:
    following = {name: sheet_of(example(name)).next for name in ("dictionary", "fruit", "tensors")}
    assert following["dictionary"].command == "attnscope sdpa --example fruit"
    assert following["fruit"].command.startswith("attnscope sdpa --q ")
    assert following["tensors"] is sheet_of(scores([1.0, 2.0])).next is None
