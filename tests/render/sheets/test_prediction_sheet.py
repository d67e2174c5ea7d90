"""The sheet of a prediction: every guess with its probability, a written text, a verdict on a pair."""

from dataclasses import replace

import made_reports as reports
import made_results as made
import pytest
from golden_text import IN_FULL, printed
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnscope.render.figure import figure_of
from attnscope.render.saving import content
from attnscope.render.screen import screen
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheets.prediction import sheet as prediction
from attnscope.results import Generated, Guess, NextSentence, Prediction


def masked() -> Prediction:
    return reports.masked(made.head(), [2, 5, 7, 9])


def written(tokens: int = 60, **changed: object) -> Prediction:
    guesses = tuple(Guess(i, f"w{i}", (i + 1) / 100) for i in range(tokens))
    generated = replace(Generated("x", guesses, 1e-8, finished=False), **changed)  # type: ignore[arg-type]
    return replace(masked(), task="generated", blanks=(), generated=generated)


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


def test_the_answer_tells_the_best_of_every_place() -> None:
    several, one = masked(), reports.masked(made.head(), [4])
    assert prediction(several).answer.startswith(
        "Likeliest are “princess” (.500) at 2 cat, “princess'” (.500)"
    )
    assert prediction(one).answer == "Likeliest at 4 on is “princess” (.500), then “queen” (.250)."
    after = replace(one, task="next")
    assert prediction(after).answer.startswith("Likeliest after 4 on is")
    assert rankings(after)[0].title == "after 4 on"
    many = reports.masked(made.head(), [1, 2, 3, 5, 7, 9])
    assert prediction(many).answer.endswith("at 5 the and at 2 more.")


def test_the_verdict_on_a_pair_stands_above_the_blanks() -> None:
    result = replace(masked(), next_sentence=NextSentence(0.125))
    first, *others = rankings(result)
    assert (first.names, first.table["probability"].values) == (("follows from the first",), [0.125])
    assert len(others) == 4
    assert prediction(result).answer.startswith(
        "The second text follows from the first with probability .125;"
    )
    ordered = replace(masked(), blanks=(), next_sentence=NextSentence(0.5, order=True))
    assert prediction(ordered).title == "next sentence"
    assert prediction(ordered).answer == "The second text comes after the first with probability .500."
    assert values(ordered) == [0.5]


def test_a_long_text_that_was_written_is_whole_and_its_least_likely_token_is_told() -> None:
    result = written()
    assert values(result) == [(i + 1) / 100 for i in range(60)]
    assert [len(each.names) for each in rankings(result)] == [24, 24, 12]
    assert prediction(result).answer == "Of the 60 tokens that it wrote the least likely is “w0” (.010)."
    assert "cut off: the model had not come to an end" in prediction(result).notes
    assert "cut off" not in shown(written(finished=True))
    assert "that it was given" in prediction(written(written=False)).answer
    nothing = written(0)
    assert not rankings(nothing)
    assert prediction(nothing).answer == "Nothing: the model ends at once."
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
    told = replace(masked(), blanks=(), next_sentence=NextSentence(float("nan"), order))
    assert prediction(told).answer == (
        "The model gives no probability that the second text "
        f"{'comes after' if order else 'follows from'} the first."
    )
    assert not rankings(told), "no bar without a number"
    assert "nan" not in shown(told)
    guessed = replace(masked().blanks[0], guesses=(Guess(3, "queen", float("nan")),))
    assert prediction(replace(masked(), blanks=(guessed,))).answer.endswith("is “queen” (-).")
