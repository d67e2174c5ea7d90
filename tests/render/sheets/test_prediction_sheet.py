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
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheets.prediction import sheet as prediction
from attnscope.render.terminal.sheet import screen
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


def asked(task: str, *chances: float) -> Prediction:
    """One place, and words of these probabilities."""
    one = reports.masked(made.head(), [4])
    guesses = tuple(Guess(i, f"w{i}", chance) for i, chance in enumerate(chances))
    return replace(one, task=task, blanks=(replace(one.blanks[0], guesses=guesses),))


@pytest.mark.parametrize(
    ("task", "chances", "words"),
    [
        ("masked", (0.998, 0.002), "The model answers “w0” at “on”: 99.8 % (next: “w1”, 0.2 %)."),
        ("masked", (0.5, 0.4), "The model answers “w0” at “on”: 50.0 % (next: “w1”, 40.0 %)."),
        ("masked", (0.4, 0.2), "The model leans to “w0” at “on”: 40.0 % (next: “w1”, 20.0 %)."),
        (
            "masked",
            (0.083, 0.073, 2e-5),
            "The model is unsure of “on”: “w0” 8.3 %, just ahead of “w1” 7.3 %. The 3 likeliest "
            "words share 15.6 %.",
        ),
        ("next", (0.6, 2e-5), "After “on” the model goes on with “w0”: 60.0 % (next: “w1”, 1 in 50,000)."),
        ("next", (0.4, 0.1), "After “on” the model leans to “w0”: 40.0 % (next: “w1”, 10.0 %)."),
        (
            "next",
            (0.015, 0.012),
            "After “on” the model is unsure: “w0” 1.5 %, just ahead of “w1” 1.2 %. The 2 "
            "likeliest tokens share "
            "2.7 %.",
        ),
        ("masked", (0.3,), "The model leans to “w0” at “on”: 30.0 %."),
    ],
)
def test_the_answer_says_how_sure_the_model_is(task: str, chances: tuple[float, ...], words: str) -> None:
    assert prediction(asked(task, *chances)).answer == words


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


def test_the_answer_tells_the_best_of_every_place() -> None:
    assert prediction(masked()).answer.startswith(
        "The likeliest of each: “princess” 50.0 % at “cat”, “princess'” 50.0 %"
    )
    many = reports.masked(made.head(), [1, 2, 3, 5, 7, 9])
    assert prediction(many).answer.endswith("at “the”@5 and 2 more.")
    assert rankings(asked("next", 0.5))[0].title == "after 4 on"


def test_the_verdict_on_a_pair_stands_above_the_blanks() -> None:
    result = replace(masked(), next_sentence=NextSentence(0.125))
    first, *others = rankings(result)
    assert (first.names, first.table["probability"].values) == (("follows from the first",), [0.125])
    assert len(others) == 4
    assert prediction(result).answer.startswith(
        "The second text follows from the first with 12.5 %. The likeliest"
    )
    ordered = replace(masked(), blanks=(), next_sentence=NextSentence(0.5, order=True))
    assert prediction(ordered).title == "next sentence"
    assert prediction(ordered).answer == "The second text comes after the first with 50.0 %."
    assert values(ordered) == [0.5]


def test_a_long_text_that_was_written_is_whole_and_its_least_likely_token_is_told() -> None:
    result = written()
    assert values(result) == [(i + 1) / 100 for i in range(60)]
    assert [len(each.names) for each in rankings(result)] == [24, 24, 12]
    assert prediction(result).answer == (
        "The model wrote “x”: of its 60 tokens the least likely is “w0”: 1.0 %."
    )
    assert "cut off: the model had not come to an end" in prediction(result).notes
    assert "cut off" not in shown(written(finished=True))
    assert "The answer “x”, which was given, has" in prediction(written(written=False)).answer
    nothing = written(0)
    assert not rankings(nothing)
    assert prediction(nothing).answer == "The model writes nothing: it ends at once."
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
    assert prediction(replace(masked(), blanks=(guessed,))).answer.endswith("“queen” at “cat”: -.")
