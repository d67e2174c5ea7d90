"""One rule for how a number is written: its table of cases, and what holds of many numbers at once."""

import math

import numpy as np
import pytest
import written_numbers as cases
from written_numbers import number_of

from attnscope.render.kit import numbers
from attnscope.render.kit.numbers import alike, alike_texts, cell, chance, give_or_take, percent, signed_cell

RULES = {
    numbers.number: cases.NUMBER,
    numbers.signed: cases.SIGNED,
    numbers.significant: cases.SIGNIFICANT,
    numbers.parameter: cases.PARAMETER,
    numbers.weight: cases.WEIGHT,
    numbers.weight_cell: cases.WEIGHT_CELL,
}


@pytest.mark.parametrize(
    ("write", "value", "digits", "text"),
    [(write, *case) for write, listed in RULES.items() for case in listed],
)
def test_a_number_is_written_by_the_rule(write: object, value: float, digits: int, text: str) -> None:
    assert write(value, digits) == text  # type: ignore[operator]


@pytest.mark.parametrize("write", [numbers.number, numbers.signed])
@pytest.mark.parametrize("decimals", [0, 1, 2, 3, 4, None])
def test_what_is_not_zero_is_not_written_as_zero_and_keeps_its_sign(
    write: object, decimals: int | None
) -> None:
    drawn = np.random.default_rng(3).normal(size=150) * 10.0 ** np.random.default_rng(4).uniform(-9, 8, 150)
    for value in map(float, drawn):
        text = write(value, decimals)  # type: ignore[operator]
        assert math.copysign(1, number_of(text)) == math.copysign(1, value)
        assert number_of(text) != 0
        assert text.lstrip("+−")[0] != "0"
        assert "-" not in text.replace("e-", "")
        step = 0.0 if decimals is None else 0.5 * 10.0**-decimals
        assert abs(number_of(text) - value) <= 1.001 * max(step, 0.05 * abs(value))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100 %"), (0.434, "43 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (0.0312, "3.1 %"),
        (0.0041, "0.4 %"), (0.0003, "<0.1 %"), (0.0, "0 %"),
        (0.9981, "99.8 %"), (0.9997, ">99.9 %"), (1 - 1e-7, "100 %"), (0.9889, "99 %"), (0.9904, "99.0 %"),
        (-0.0003, "above −0.1 %"), (-0.14, "−14 %"), (-0.004, "−0.4 %"), (1.87, "187 %"), (math.nan, "-"),
    ],
)  # fmt: skip
def test_a_percentage_has_two_digits_and_is_nothing_or_all_only_where_it_is(share: float, text: str) -> None:
    assert percent(share) == text
    assert numbers.per_hundred(100 * share) == text


def test_a_probability_is_a_per_cent_and_nothing_or_all_only_where_it_is() -> None:
    given = (0.6479, 0.004, 3.14e-5, 0.0, 0.99951, 0.9994, 1.0, math.nan)
    assert [chance(each) for each in given] == [
        "64.8 %", "0.4 %", "<0.1 %", "0 %", ">99.9 %", "99.9 %", "100 %", "-",
    ]  # fmt: skip
    assert [chance(each, 2) for each in given] == [
        "64.79 %", "0.40 %", "<0.01 %", "0 %", "99.95 %", "99.94 %", "100 %", "-",
    ]  # fmt: skip


def test_what_is_given_either_way_is_written_as_the_number_it_belongs_to() -> None:
    assert numbers.signed(0.0635, 4) == "+.0635"
    assert give_or_take(0.0778, 4) == "±.0778"
    assert give_or_take(-0.02) == "±.02"
    assert give_or_take(0.0031, None) == "±.0031"
    assert give_or_take(math.nan) == ""
    assert numbers.with_error(0.06352, 0.0131) == "+.064 ±.013"
    assert numbers.with_error(-12.34, 1.26) == "−12.3 ±1.3"
    assert numbers.with_error(0.06352, math.nan) == "+.064"
    assert numbers.with_error(0.0, 0.0131) == "0 ±.013"


def test_the_cells_of_a_matrix_have_the_same_decimals() -> None:
    values = np.array([[0.284, -0.0312, 0.001], [-0.001, 1.5, 0.0]])
    assert alike_texts(values, 2).tolist() == [[".28", "−.03", ".00"], [".00", "1.50", ".00"]]
    smaller = [[".003", ".000", ".000"], [".000", ".015", ".000"]]
    assert alike_texts(values / 100, 2).tolist() == smaller


@pytest.mark.parametrize(
    ("largest", "text"),
    [
        (0.5, ".50"), (0.05, ".050"), (0.005, ".0050"), (5e-4, "5.0e-4"), (512.0, "512.00"),
        (-1234.0, "−1,234"), (2.5e6, "2.5e6"), (0.0, ".00"),
    ],
)  # fmt: skip
def test_smaller_cells_have_more_decimals_and_large_ones_none(largest: float, text: str) -> None:
    assert alike(np.array([largest, largest / 3]), 2)(largest) == text


def test_a_cell_that_rounds_to_nothing_has_no_sign() -> None:
    assert [cell(each) for each in (0.004, -0.004, 0.0, -0.006)] == [".00", ".00", ".00", "−.01"]
    assert [signed_cell(each) for each in (0.004, -0.004, 0.006, math.nan)] == [".00", ".00", "+.01", "-"]


def test_thousands_are_separated_in_counts_too() -> None:
    assert numbers.counted(1024, "head") == "1,024 heads"
    assert numbers.counted(1, "query") == "1 query"
