"""The numbers of one query of a head, which can be held against each other."""

import re

import pytest
from cases_head import row

from attnscope.render.sheets import sheet_of


@pytest.mark.parametrize(
    ("weights", "key", "numbers"),
    [
        ([0.0031, 0.0078, 0.0062], None, [".0078", ".0062"]),
        ([0.0031, 0.98, 0.004], None, [".98", ".01"]),
        ([0.02, 0.9, 0.0], None, [".90", ".02"]),
        ([0.21, 0.6, 0.1], None, [".60", ".21", ".10"]),
        ([0.0031, 0.0078, 0.0062], 0, [".0078", ".0062", ".0031", "3", "3"]),
        ([0.0031, 0.9, 0.004], 0, [".90", ".01", "<.01", "3", "3"]),
    ],
)
def test_what_a_query_gives_is_told_in_digits_alike(
    weights: list[float], key: int | None, numbers: list[str]
) -> None:
    make, focus = row(*weights, key=key)
    told = sheet_of(make(), focus).answer.split(" gives ")[1]
    assert re.findall(r"<?\.?\d+", told) == numbers
