"""Blocks as data: what they hold, what they leave out, where a number lies on its scale."""

import math

import numpy as np
import pytest
from made_blocks import grid, ranking, table

from attnscope.render.kit.numbers import weight
from attnscope.render.sheet.blocks import Beside
from attnscope.render.sheet.scale import Scale, missing
from attnscope.render.sheet.table import Column, legend, only


def test_people_see_columns_with_a_heading_and_something_under_it() -> None:
    assert [each.heading for each in table().headed] == ["score", "control", "beats", "by"]


def test_a_legend_explains_the_columns_that_it_is_given_and_alike_ones_once() -> None:
    columns = table().headed
    assert legend(columns[:2]) == "score: how much it does; control: what others do"
    alike = [Column(each, [1], each, says="a chance") for each in ("before", "after")]
    assert legend([*alike, columns[-1]]) == "before, after: a chance"


def test_the_text_of_a_row_is_its_value_as_it_is_read_or_what_is_told_of_it() -> None:
    rows = table()
    assert [rows["score"].text(row) for row in range(3)] == ["+.91", "+.40", "−.05"]
    assert [rows["control"].text(row) for row in range(3)] == [".20", ".30", ""]
    assert [rows["beaten"].text(row) for row in range(3)] == ["3 of 4", "1 of 4", ""]


@pytest.mark.parametrize(
    ("value", "gone"), [(None, True), ("", True), (math.nan, True), (0.0, False), (0, False)]
)
def test_a_value_is_missing_where_there_is_none_and_zero_is_one(value: object, gone: bool) -> None:
    assert missing(value) is gone


def test_an_axis_reaches_over_all_that_is_drawn_and_nothing_else() -> None:
    low, high = ranking().extent()
    assert low < -0.05 <= 0
    assert 0.91 < high < 1.0
    assert ranking(axis=(0.0, 2.0)).extent() == (0.0, 2.0)
    assert ranking(marks=()).extent()[0] == 0.0


def test_a_key_names_the_marks_that_have_a_label() -> None:
    assert ranking().key() == ("score", "its control", "largest by chance")


@pytest.mark.parametrize(
    ("scale", "value", "share", "shades"),
    [
        (Scale(0.0, 2.0), 0.5, 0.25, ("light", "dark")),
        (Scale(0.0, 2.0, "falling"), 0.5, 0.25, ("dark", "light")),
        (Scale.around([-4.0, 1.0]), 2.0, 0.75, ("red", "blue")),
        (Scale(0.0, 2.0), 9.0, 1.0, ("light", "dark")),
        (Scale(1.0, 1.0), 1.0, 0.0, ("light", "dark")),
    ],
)
def test_a_number_has_one_place_on_its_scale(
    scale: Scale, value: float, share: float, shades: tuple[str, str]
) -> None:
    assert scale.share(value) == pytest.approx(share)
    assert scale.shades == shades


def test_the_strong_end_is_dark_and_its_ink_is_light() -> None:
    rising, falling = Scale(0.0, 1.0), Scale(0.0, 1.0, "falling")
    assert rising.paper(1.0) == falling.paper(0.0) == ("#082a5e", "#ffffff")
    assert rising.paper(0.0) == falling.paper(1.0) == ("#ebf2fa", "#000000")
    assert rising.paper(math.nan)[0] == "#ffffff"
    assert rising.style(math.nan) == ""
    assert rising.style(0.25) == falling.style(0.75) != falling.style(0.25)
    around = Scale.around([-2.0, 2.0])
    assert around.paper(0.0)[0] == "#f7f7f7"
    assert Scale.around([math.nan]).high == 1.0, "of nothing there is still a scale"


def test_a_weight_without_a_number_is_a_dash() -> None:
    assert weight(math.nan) == "-"
    assert weight(0.984) == ".98"


def test_only_the_rows_that_are_kept_have_a_value() -> None:
    assert only([1.0, 2.0, 3.0], [True, False, True]) == [1.0, None, 3.0]


def test_a_grid_beside_another_is_two_blocks() -> None:
    first, second = grid(2, 3), grid(3, 2)
    assert Beside((first, second)).blocks == (first, second)
    assert first != grid(2, 3), "grids are told apart by what they are, not by their numbers"
    assert np.isnan(first.values).sum() == 1
