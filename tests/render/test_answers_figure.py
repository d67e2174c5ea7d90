"""Predictions as pictures: every number that they stand for."""

from dataclasses import replace

import made_reports as reports
import made_results as made
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnscope.render.figure import figure_of
from attnscope.results import Generated, Guess, NextSentence, Prediction


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]


def bars(figure: Figure) -> list[float]:
    """The lengths of all bars over those of the tracks behind them, in the order of drawing."""
    found = []
    panels = [panel for axes in figure.axes for panel in axes.child_axes]
    for panel in panels:
        wide = [patch.get_width() for patch in panel.patches if isinstance(patch, Rectangle)]
        tracks, drawn = wide[: len(wide) // 2], wide[len(wide) // 2 :]
        found += [bar / track for bar, track in zip(drawn, tracks, strict=True)]
    return found


def masked() -> Prediction:
    return reports.masked(made.head(), [2, 5, 7, 9])


def test_every_guess_has_a_bar_as_long_as_its_probability() -> None:
    result = masked()
    figure = figure_of(result)
    expected = [guess.probability for blank in result.blanks for guess in blank.guesses]
    assert bars(figure) == pytest.approx(expected)
    shown = texts(figure)
    for blank in result.blanks:
        assert f"{blank.position} {result.tokens.names[blank.position]}" in shown
    assert {guess.text for blank in result.blanks for guess in blank.guesses} <= set(shown)


def test_the_verdict_on_a_pair_stands_above_the_blanks() -> None:
    result = replace(masked(), next_sentence=NextSentence(0.125))
    assert bars(figure_of(result))[0] == pytest.approx(0.125)
    assert "follows from the first" in texts(figure_of(result))
    ordered = replace(masked(), blanks=(), next_sentence=NextSentence(0.5, order=True))
    assert bars(figure_of(ordered)) == pytest.approx([0.5])
    assert "comes after the first" in texts(figure_of(ordered))


def test_a_long_text_that_was_written_is_whole() -> None:
    tokens = tuple(Guess(i, f"w{i}", (i + 1) / 100) for i in range(60))
    written = Generated("x", tokens, 1e-8, finished=False)
    long = replace(masked(), task="generated", blanks=(), generated=written)
    figure = figure_of(long)
    assert bars(figure) == pytest.approx([token.probability for token in tokens])
    assert any("cut off: the model had not come to an end" in text for text in texts(figure))
    assert bars(figure_of(replace(long, generated=replace(written, tokens=())))) == []
