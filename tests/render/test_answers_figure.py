"""Predictions and verifications as pictures: every number that they stand for, and what is not certified."""

from dataclasses import replace

import made_reports as reports
import made_results as made
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnscope.render.figure import figure_of
from attnscope.render.verification.plot import POWERS, towers_of
from attnscope.results import Generated, Guess, Kind, NextSentence, Prediction, Verdict


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


def test_a_cell_is_as_dark_as_the_power_of_its_faintest_fault() -> None:
    result = made.verification(3, 5, {(1, 2): Verdict.INCONCLUSIVE})
    figure = figure_of(result)
    drawn = next(one for one in figure.axes[0].collections if isinstance(one, QuadMesh)).get_array()
    powers = [[one.power for one in layer.certificates] for layer in result.layers]
    assert drawn is not None
    np.testing.assert_allclose(drawn.reshape(3, 5), np.clip(np.log10(powers), 0, POWERS))


def test_heads_that_are_not_certified_are_outlined_and_the_verdict_is_in_the_heading() -> None:
    plain, failed = made.verification(3, 5), made.verification(3, 5, {(0, 1): Verdict.FAILED})
    assert "✗" not in texts(figure_of(plain))
    assert "✓ certified" in " ".join(texts(figure_of(plain)))
    shown = texts(figure_of(failed))
    assert shown.count("✗") == 1
    assert any("verification · ✗ FAILED" in text for text in shown)
    assert any(text.startswith("worst head: L0 H1") for text in shown)


def test_each_attention_has_its_grid_and_of_blocks_the_worst_counts() -> None:
    result = made.verification(2, 3)
    cross = tuple(replace(layer, kind=Kind.CROSS, tower="decoder") for layer in result.layers)
    worse = made.verification(2, 3, {(1, 1): Verdict.FAILED}).layers
    blocks = tuple(replace(layer, block=1) for layer in worse)
    towers = towers_of(replace(result, layers=(*result.layers, *blocks, *cross)))
    assert [(tower.title, tower.layers) for tower in towers] == [("encoder", (0, 1)), ("cross", (0, 1))]
    assert towers[0].heads[1][1].verdict is Verdict.FAILED
    assert towers[0].heads[1][0].verdict is Verdict.CERTIFIED
    assert len(figure_of(replace(result, layers=(*result.layers, *cross))).axes[0].child_axes) == 0
