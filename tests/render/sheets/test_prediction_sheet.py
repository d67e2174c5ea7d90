"""The sheet of a prediction: every guess with its probability, a written text, a verdict on a pair."""

from dataclasses import replace

import pytest
from cases_predict import NONE, asked, classes, masked, pair, written
from golden_text import IN_FULL, printed
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnscope.render.figure import figure_of
from attnscope.render.saving import content
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheets.prediction import sheet as prediction
from attnscope.render.terminal.sheet import screen
from attnscope.results import Generated, Guess, NextSentence, Prediction
from attnscope.results.prediction import Case


def rankings(result: Prediction) -> list[Ranking]:
    return [each for each in prediction(result).every if isinstance(each, Ranking)]


def values(result: Prediction) -> list[float]:
    return [value for each in rankings(result) for value in each.table["probability"].values]


def shown(result: Prediction, width: int = 80) -> str:
    return "".join(printed(part, width) for part in screen(result, width, IN_FULL))


def test_every_guess_has_a_bar_as_long_as_its_probability() -> None:
    result = masked()
    expected = [guess.probability for blank in result.blanks for guess in blank.guesses]
    figure = figure_of(result)
    drawn = [bar.get_width() for axes in figure.axes for bar in axes.patches if isinstance(bar, Rectangle)]
    assert drawn == pytest.approx(expected)
    texts = {each.get_text() for each in figure.findobj(Text) if isinstance(each, Text)}
    assert {guess.text for blank in result.blanks for guess in blank.guesses} <= texts
    for blank in result.blanks:
        assert f"{blank.position} {result.tokens.names[blank.position]}" in texts
    assert not any("certified" in each for each in texts), "an untouched run has nothing to certify"


@pytest.mark.parametrize(
    ("chances", "case"), [((0.5, 0.4), Case.SURE), ((0.4, 0.2), Case.LEANS), ((0.4, 0.21), Case.UNSURE)]
)
def test_how_sure_a_model_is_is_how_likely_and_how_far_ahead_its_answer_is(
    chances: tuple[float, ...], case: Case
) -> None:
    assert asked("masked", *chances).case is asked("next", *chances).case is classes(*chances).case is case


def test_the_next_question_is_which_heads_the_answer_needs() -> None:
    following = prediction(asked("masked", 0.5, 0.2)).next
    assert following is not None
    assert following.question == "which heads does “w0” need?"
    assert following.command.startswith("attnscope ablate ")
    wrote = prediction(written()).next
    assert wrote is not None
    assert "--kind cross" in wrote.command
    assert prediction(masked()).next is None, "of several places there is no one answer"
    assert prediction(written(written=False)).next is None


def test_a_place_after_which_is_asked_says_so() -> None:
    assert rankings(asked("next", 0.5))[0].title == "after 4 on"


def test_the_verdict_on_a_pair_stands_above_the_blanks() -> None:
    result = replace(masked(), next_sentence=NextSentence(0.125))
    first, *others = rankings(result)
    assert (first.names, first.table["probability"].values) == (("follows from the first",), [0.125])
    assert len(others) == 4
    ordered = pair(0.5, order=True)
    assert prediction(ordered).title == "next sentence"
    assert values(ordered) == [0.5]


def test_a_long_text_that_was_written_is_whole_and_its_least_likely_token_is_told() -> None:
    result = written()
    assert values(result) == [(i + 1) / 100 for i in range(60)]
    assert [len(each.names) for each in rankings(result)] == [24, 24, 12]
    assert "cut off" in shown(result)
    assert "cut off" not in shown(written(finished=True))
    nothing = written(0)
    assert not rankings(nothing)
    assert figure_of(nothing).axes == []


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    wide = replace(masked().blanks[0].guesses[0], text="日本語" * 12)
    long = replace(masked(), blanks=(replace(masked().blanks[0], guesses=(wide,)),))
    for each in (masked(), written(), long):
        assert max(map(len, shown(each, width).splitlines())) <= width


@pytest.mark.parametrize("suffix", [".csv", ".html", ".svg", ".png", ".json"])
def test_half_a_character_that_a_model_wrote_is_an_escape_in_every_medium(suffix: str) -> None:
    guesses = Guess(3, "half \ud83d", 0.5), Guess(4, "\ud83d\x1b[2J", 0.25)
    result = replace(masked(), task="generated", blanks=(), generated=Generated("\ud83d", guesses, 0.0, True))
    assert "\\ud83d\\x1b[2J" in shown(result)
    there = content(result, suffix)
    assert suffix == ".png" or b"\\ud83d" in there
    assert b"\x1b" not in there or suffix == ".png"


def test_the_axis_of_probabilities_ends_at_1() -> None:
    axes = figure_of(masked()).axes
    assert len(axes) == 4
    assert {each.spines["bottom"].get_bounds() for each in axes} == {(0.0, 1.0)}


@pytest.mark.parametrize("order", [True, False])
def test_a_verdict_without_a_number_is_said_to_be_none(order: bool) -> None:
    told = pair(NONE, order)
    assert "no probability" in prediction(told).answer
    assert not rankings(told), "no bar without a number"
    assert "nan" not in shown(told)
    guessed = replace(masked().blanks[0], guesses=(Guess(3, "queen", float("nan")),))
    assert prediction(replace(masked(), blanks=(guessed,))).answer.endswith("“queen” at “cat”: -.")
