"""Worked examples as text: golden pages, the number of decimals, one cell spelled out, what does not fit."""

from dataclasses import replace

import numpy as np
import pytest
from cases_scale import EXAMPLES, study
from golden_text import IN_FULL, assert_golden, printed
from written_numbers import number_of

from attnscope.render.sheets.arithmetic import spelled_out, texts
from attnscope.render.sheets.scale import sheet as scale_study
from attnscope.render.terminal.sheet import screen
from attnscope.render.terminal.steps import grid
from attnscope.results import Certificate, Fault, ScaleStudy, Verdict, Worked
from attnscope.results.worked import Axis, Cell, Check, Matrix, Pair, Scoring, Step

QUERIES, KEYS = Axis("query", ("fruit", "thing")), Axis("key", ("apple", "banana", "chair"))
DIMS, VALUE_DIMS = Axis("dimension", ("sweet", "hard"), "d_k"), Axis("dimension", ("price",), "d_v")


def step(key: str, values: list[list[float]], rows: Axis, columns: Axis, formula: str = "", **more) -> Step:
    return Step(key, Matrix(key, np.array(values, np.float64), rows, columns), formula, **more)


def made() -> Worked:
    """A worked example with a mask; its numbers are made up, not computed."""
    allowed = np.array([[True, False, False], [True, True, False]])
    certificate = Certificate(
        Verdict.CERTIFIED,
        1e-16,
        2e-15,
        0.0,
        4e-15,
        "float64 on cpu",
        (Fault("mask dropped", 0.1, 0.2, 1e13),),
    )
    cell = Cell(0, 0, "products", ((0.8, 0.9), (0.5, -2.0)))
    return Worked(
        name="made",
        title="scaled dot-product attention",
        formula="softmax(Q Kᵀ / √d_k) V",
        steps=(
            step("q", [[0.8, 0.5], [1, 0]], QUERIES, DIMS, meaning="rows = queries, columns = d_k"),
            step("k", [[0.9, -2], [0.7, 0.1], [0.1, 0.9]], KEYS, DIMS),
            step("v", [[2], [1], [40]], KEYS, VALUE_DIMS),
            step("scores", [[-0.28, 0.61, 0.53], [0.9, 0.7, 1 / 3]], QUERIES, KEYS, "Q Kᵀ", cell=cell),
            step(
                "weights",
                [[1, 0, 0], [0.55, 0.45, 0]],
                QUERIES,
                KEYS,
                "softmax(scores)",
                weights=True,
                allowed=allowed,
            ),
        ),
        scoring=Scoring.SCALED_DOT,
        causal=True,
        notes=("made up",),
        proofs=(("a kernel", certificate),),
        checks=(Check.of("one way against another", 1e-7, 1e-6), Check.of("a third", 1e-5, 1e-6)),
        pairs=(Pair("fruit", "apple", 0.25, 3, 6),),
    )


def shown(result: Worked | ScaleStudy, width: int, colour: str | None = None) -> str:
    return "".join(printed(part, width, colour) for part in screen(result, width, IN_FULL))


@pytest.mark.parametrize("width", [40, 80])
def test_a_worked_example_from_top_to_bottom(width: int) -> None:
    text = shown(made(), width)
    assert max(map(len, text.splitlines())) <= width
    assert_golden(f"worked-{width}", text)


def test_a_failed_check_is_seen() -> None:
    text = " ".join(shown(made(), 80).split())
    assert text.startswith("✗ ")
    assert "✗ a third: off 1.0e-5 (tolerated 1.0e-6)" in text
    assert "✓ one way" in text
    right = shown(replace(made(), checks=made().checks[:1]), 80)
    assert "✗" not in right
    assert "Do not use" not in right


def test_weights_and_signed_numbers_are_coloured_and_masked_cells_are_blank() -> None:
    plain, coloured = shown(made(), 80), shown(made(), 80, "truecolor")
    assert "\x1b[" not in plain
    assert coloured.count("\x1b[") > 20
    row = plain.partition("weights = ")[2].splitlines()[2]
    assert row.split() == ["fruit", "1.00"]


@pytest.mark.parametrize(
    ("values", "decimals", "shown"),
    [
        ([0.76, 0.64, 0.28], 4, ["0.76", "0.64", "0.28"]),
        ([0.7600000000000001, 2], 4, ["0.76", "2.00"]),
        ([1 / 3, 2], 4, ["0.3333", "2.0000"]),
        ([1, -10, 0], 4, ["1", "−10", "0"]),
        ([-0.00001, 1], 3, ["0.000", "1.000"]),
        ([1234.5], 4, ["1234.5"]),
        ([1.5e7], 3, ["1.5e7"]),
        ([2.5e-5], 3, ["2.5e-5"]),
        ([1e8, -1e9, 0], 4, ["1e8", "−1e9", "0"]),
        ([1234567, 123456.5], 4, ["1234567", "123456.5"]),
        ([12345678.9], 4, ["1.235e7"]),
        ([-1e9, 1.25, 0], 4, ["−1e9", "1.25", "0.00"]),
        ([1e8 + 1, 0.5], 2, ["100000001", "0.5"]),
        ([1e300, 1 / 3], 4, ["1e300", "0.3333"]),
        ([1e-9, -2.345678e-9, 0], 4, ["1e-9", "−2.346e-9", "0"]),
        ([np.nan, 3], 4, ["none", "3"]),
        ([-np.inf, 0.5], 4, ["−∞", "0.5"]),
        ([10.000334, 20], 8, ["10.000334", "20.000000"]),
    ],
)
def test_numbers_get_the_decimals_that_they_need(
    values: list[float], decimals: int, shown: list[str]
) -> None:
    assert texts(np.array(values, np.float64), decimals).tolist() == shown


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Cell(0, 1, "products", ((0.8, 0.9), (-0.5, -2.0), (0.3,))), "0.8·0.9 − 0.5·(−2) + 0.3"),
        (Cell(0, 1, "quotient", ((0.76, 3**0.5),)), "0.76 / 1.7321"),
        (Cell(0, 1, "softmax", ((0.5,), (-1.0,))), "e^0.5 / (e^0.5 + e^−1)"),
        (Cell(0, 1, "tanh", ((0.5, -1.2), (-2.0, 0.25))), "0.5·tanh(−1.2) − 2·tanh(0.25)"),
        (Cell(0, 1, "products", tuple((float(i), 1.0) for i in range(7))), "0·1 + 1·1 + … (7 terms)"),
    ],
)
def test_one_cell_is_spelled_out(cell: Cell, words: str) -> None:
    shown = step("scores", [[1, 0.125, 3]], QUERIES, KEYS, "Q Kᵀ", cell=cell)
    assert spelled_out(shown, 4) == f"fruit, banana: {words} = 0.125"


def axis(word: str, count: int, symbol: str = "") -> Axis:
    return Axis(word, tuple(f"{word[0]}{i}" for i in range(count)), symbol)


def test_what_does_not_fit_is_counted() -> None:
    values = np.random.default_rng(0).normal(size=(20, 50))
    long = Step("x", Matrix("X", values, axis("token", 20, "T"), axis("dimension", 50, "d")))
    lines = [line.plain for line in grid(long, 60, 4)]
    assert max(map(len, lines)) <= 60
    shown = len(lines[1].split()) - 1
    assert lines[-1].strip() == f"… 16 more rows, {50 - shown} more columns (-o FILE.csv has all)"
    assert [number_of(cell) for cell in lines[1].split()[1:]] == pytest.approx(values[0, :shown], abs=0.006)


def test_pairs_lose_decimals_before_they_lose_columns() -> None:
    values = np.random.default_rng(0).normal(size=(13, 13)) * 10
    pairs = Step("scores", Matrix("scores", values, axis("query", 13), axis("key", 13)))
    wide, narrow = (grid(pairs, width, 4) for width in (140, 70))
    assert len(wide[1].plain.split()) == len(narrow[1].plain.split()) == 14
    assert "." in wide[1].plain
    assert "." not in narrow[1].plain.replace("...", "")
    assert len(narrow) == 14


@pytest.mark.parametrize("width", [40, 80])
def test_the_scale_study_is_a_table(width: int) -> None:
    text = shown(study(), width)
    assert max(map(len, text.splitlines())) <= width
    assert_golden(f"why-scale-{width}", text)


def test_the_scale_study_has_a_curve_for_each_measure_and_says_whether_its_check_failed() -> None:
    result, more = study(), EXAMPLES["beside additive"]()
    curves = scale_study(result).every
    assert [[line.at for line in each.lines[:2]] for each in curves] == [  # type: ignore[union-attr]
        getattr(result, measure).tolist() for measure in ("spread", "entropy", "gradient")
    ]
    assert curves[1].key() == ("q·k", "q·k/√d", "ln 16: all keys alike")  # type: ignore[union-attr]
    curves = scale_study(more).every
    assert [each.table["additive"].values for each in curves] == more.additive.tolist()  # type: ignore[union-attr]
    assert any(".40 at d = 4" in note for note in scale_study(more).notes)
    ((verdict, told),) = scale_study(result).proof
    assert (verdict, told[0]) == (Verdict.CERTIFIED, "✓")
    failed = scale_study(replace(result, checks=(Check.of("a gradient", 1.0, 1e-15),)))
    assert failed.proof[0][0] is Verdict.FAILED
