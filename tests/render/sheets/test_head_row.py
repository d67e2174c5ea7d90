"""The sentence of one query of a head: its strongest key first, and numbers that can be held against it."""

import made_results as made
import numpy as np
import pytest

from attnscope.render.sheets.head_row import most_of


@pytest.mark.parametrize(
    ("row", "key", "told"),
    [
        ([0.0031, 0.0078, 0.0062], None, "gives “the” .0078 and every other token .0062 or less."),
        ([0.0031, 0.98, 0.004], None, "gives “the” .98 and every other token less than .01."),
        ([0.02, 0.9, 0.0], None, "gives “the” .90 and every other token .02 or less."),
        ([0.21, 0.6, 0.1], None, "gives “the” .60, then “I” .21, “saw” .10."),
        ([0.0031, 0.0078, 0.0062], 0, "every other token .0062 or less; “I” gets .0031, number 3 of 3 keys."),
        ([0.0031, 0.9, 0.004], 0, "every other token less than .01; “I” gets <.01, number 3 of 3 keys."),
    ],
)
def test_what_a_query_gives_is_told_in_digits_alike(row: list[float], key: int | None, told: str) -> None:
    head = made.head(["I", "the", "saw"], weights=np.tile(row, (3, 1)))
    assert most_of(head, 1, key).startswith("From “the”, L3 H11 gives “the” .")
    assert told in most_of(head, 1, key)
