"""The sentence of a worked example: what the first query attends to, and what a mistake would make of it."""

import numpy as np
import pytest

from attnscope.render.sheets import sheet_of
from attnscope.results.worked import Given
from attnscope.worked import example, mistaken, work_out


def of_scores(*rows: list[float], causal: bool = False) -> str:
    """The answer of an example of these scores and values that are one and the same."""
    given = {"scores": Given(np.array(rows)), "v": Given(np.ones((len(rows[0]), 1)))}
    return sheet_of(work_out(given, causal=causal)).answer


def test_the_keys_of_the_first_query_are_named_with_the_score_that_is_highest() -> None:
    assert sheet_of(example("fruit")).answer == (
        "Example fruit: fruit attends to apple .37, banana .35 and chair .28: its score with apple is the "
        "highest (0.44 after scaling), but not by much."
    )
    clear = sheet_of(example("tensors")).answer
    assert clear.endswith("its score with k0 is the highest (1.15 after scaling).")


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ([5.0, 0.0, 0.0], "q0 attends almost only to k0 (.99)."),
        ([0.1, 0.0, 0.1], "q0 attends to all 3 keys alike (about .33 each)."),
        ([2.0, 1.0, 0.0], "q0 attends to k0 .67, k1 .24 and k2 .09: its score with k0 is the highest (2)."),
        ([0.0, 1.0, 0.9], "q0 attends to k1 .44, k2 .40 and k0 .16: its score with k1 is the highest (1), "
                          "but not by much."),
        ([2.0, 1.5, 1.0, 0.5], "q0 attends to k0 .46, k1 .28 and k2 .17, and to 1 more less: its score with "
                               "k0 is the highest (2)."),
    ],
)  # fmt: skip
def test_the_sentence_is_that_of_its_case(scores: list[float], sentence: str) -> None:
    assert of_scores(scores) == sentence


def test_of_several_queries_the_first_that_has_a_choice_is_told_and_the_others_are_counted() -> None:
    rows = [5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]
    assert of_scores(*rows) == "q0 attends almost only to k0 (.99). 2 more queries below."
    assert of_scores(*rows, causal=True) == "q1 attends almost only to k1 (.99). 2 more queries below."


def test_a_mistake_is_told_by_what_it_makes_of_the_weights() -> None:
    told = {name: sheet_of(mistaken(example("fruit"), name)).answer for name in
            ("softmax-axis", "no-scale", "no-softmax")}  # fmt: skip
    assert told["softmax-axis"] == (
        "Example fruit: Wrong on purpose (softmax along the wrong axis): the weights of fruit would add up "
        "to 3.00, not 1."
    )
    assert told["no-scale"].endswith("fruit would give chair .25, not .28.")
    assert "Below it is wrong on purpose: " in told["no-softmax"]


def test_what_follows_the_smallest_example_are_numbers_of_ones_own() -> None:
    following = sheet_of(example("fruit")).next
    assert following is not None
    assert following.command.startswith("attnscope sdpa --q ")
    assert sheet_of(example("tensors")).next is None
