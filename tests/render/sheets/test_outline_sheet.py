"""An outline, a prediction and worked examples as text: amounts, decimals, what does not fit."""

from dataclasses import replace

import cases_outline
import numpy as np
import pytest
from cases_predict import NONE, asked, classes, masked, pair, written
from cases_scale import EXAMPLES, study
from cases_worked import queries
from golden_text import IN_FULL, assert_golden, printed
from made_outlines import decoder, layer, outline, sight
from written_numbers import number_of

from attnscope.render.figure import figure_of
from attnscope.render.kit.numbers import amount, roughly
from attnscope.render.saving import content
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.steps import spelled_out, texts
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.outline import range_words, time_words
from attnscope.render.sheets.prediction import sheet as prediction
from attnscope.render.terminal import sheet as terminal
from attnscope.render.terminal.matrix import grid
from attnscope.render.terminal.sheet import screen
from attnscope.results import (
    Certificate,
    Fault,
    Generated,
    Guess,
    Outline,
    Prediction,
    ScaleStudy,
    Verdict,
    Worked,
)
from attnscope.results.prediction import Case
from attnscope.results.steps import Axis, Cell, Check, Matrix, Step
from attnscope.verbs.sdpa.mistakes import mistaken
from attnscope.verbs.sdpa.result import Pair, Scoring
from attnscope.verbs.sdpa.scale_sheet import sheet as scale_study


def outlined(result: Outline, width: int) -> str:
    return "".join(printed(part, width) for part in terminal.screen(result, width, IN_FULL))


@pytest.mark.parametrize("width", [80, 140])
def test_an_outline_reads_like_this(width: int) -> None:
    assert_golden(f"outline.{width}", outlined(outline(), width))


def test_equal_layers_share_a_row_and_one_that_differs_in_anything_has_its_own() -> None:
    def rows(**changes: object) -> int:
        tower = replace(decoder(), layers=(layer(0), layer(1), layer(2, **changes)))
        text = outlined(replace(outline(), towers=(tower,), cost=None, gaps=()), 140)
        return sum(line.startswith(("0", "2 ")) for line in text.splitlines())

    assert rows() == 1
    for change in ({"heads": 8}, {"window": 9}, {"softcap": 1.0}, {"sinks": True}, {"scale": 1.0}):
        assert rows(**change) == 2, change


def test_ranges_of_layers() -> None:
    assert range_words([0]) == "0"
    assert range_words([2, 0, 1]) == "0-2"
    assert range_words([0, 2, 3, 4, 9]) == "0, 2-4, 9"
    assert range_words([1, 3, 5, 7]) == "1-7 by 2"
    assert range_words([1, 3]) == "1, 3"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_600, "1.00 MB"),
        (3e12, "3.00 TB"),
    ],
)
def test_amounts_have_three_digits(value: float, words: str) -> None:
    assert amount(value, "B") == words


def test_counts_and_times_are_in_words() -> None:
    assert [roughly(n) for n in (7, 624_000, 109_482_240, 6.7e11)] == [
        "7",
        "624 thousand",
        "109 million",
        "670 billion",
    ]
    assert [time_words(s) for s in (0.0035, 0.42, 17.66, 400, 9000)] == [
        "3.5 ms",
        "420 ms",
        "17.7 s",
        "7 min",
        "2.5 h",
    ]


def columns(result: Outline, name: str) -> list[str]:
    return [
        value
        for block in sheet_of(result).every
        if block.of == "layers"
        for value in block.table[name].values
    ]


def test_positions_and_special_features_are_named() -> None:
    odd = cases_outline.odd()
    assert columns(odd, "positions")[:2] == ["learned (64) + rotary 4, base 10,000", "none of its own"]
    assert columns(odd, "besides")[:2] == ["window 4, chunks of 6, cap 2.5, sinks, scale 1, 3 blocks", "-"]
    assert columns(replace(outline(), towers=(sight(),)), "besides")[-1] == "not run"
    assert (
        columns(cases_outline.EXAMPLES["a window of an encoder"](), "besides")[0] == "window 3 to either side"
    )


def rankings(result: Prediction) -> list[Ranking]:
    return [each for each in prediction(result).every if isinstance(each, Ranking)]


def values(result: Prediction) -> list[float]:
    return [value for each in rankings(result) for value in each.table["probability"].values]


def predicted(result: Prediction, width: int = 80) -> str:
    return "".join(printed(part, width) for part in screen(result, width, IN_FULL))


@pytest.mark.parametrize(
    ("chances", "case"), [((0.5, 0.4), Case.SURE), ((0.4, 0.2), Case.LEANS), ((0.4, 0.21), Case.UNSURE)]
)
def test_how_sure_a_model_is_is_how_likely_and_how_far_ahead_its_answer_is(
    chances: tuple[float, ...], case: Case
) -> None:
    assert asked("masked", *chances).case is asked("next", *chances).case is classes(*chances).case is case


def test_a_long_text_that_was_written_is_whole_and_its_least_likely_token_is_told() -> None:
    result = written()
    assert values(result) == [(i + 1) / 100 for i in range(60)]
    assert [len(each.names) for each in rankings(result)] == [24, 24, 12]
    assert "cut off" in predicted(result)
    assert "cut off" not in predicted(written(finished=True))
    nothing = written(0)
    assert not rankings(nothing)
    assert figure_of(nothing).axes == []


@pytest.mark.parametrize("suffix", [".csv", ".html", ".svg"])
def test_half_a_character_that_a_model_wrote_is_an_escape_in_every_medium(suffix: str) -> None:
    guesses = Guess(3, "half \ud83d", 0.5), Guess(4, "\ud83d\x1b[2J", 0.25)
    result = replace(masked(), task="generated", blanks=(), generated=Generated("\ud83d", guesses, 0.0, True))
    assert "\\ud83d\\x1b[2J" in predicted(result)
    there = content(result, suffix)
    assert b"\\ud83d" in there
    assert b"\x1b" not in there


@pytest.mark.parametrize("order", [True, False])
def test_a_verdict_without_a_number_is_said_to_be_none(order: bool) -> None:
    told = pair(NONE, order)
    assert "no probability" in prediction(told).answer
    assert not rankings(told), "no bar without a number"
    assert "nan" not in predicted(told)
    guessed = replace(masked().blanks[0], guesses=(Guess(3, "queen", float("nan")),))
    assert prediction(replace(masked(), blanks=(guessed,))).answer.endswith("“queen” at “cat”: -.")


def test_what_a_mistake_makes_of_each_weight_is_known_where_it_makes_any() -> None:
    result = mistaken(queries(2), "no-scale")
    raw = np.exp([[2.0, 0.0, 0.0], [0.0, 1.0, 3.0]])
    right = np.exp(np.log(raw) / 2**0.5)
    expected = raw / raw.sum(1, keepdims=True) - right / right.sum(1, keepdims=True)
    assert result.differences == pytest.approx(expected)
    assert queries(2).differences.size == 0


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
