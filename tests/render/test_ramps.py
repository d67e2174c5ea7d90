"""Colours of cells at three depths, on both backgrounds: even, apart, legible, by an independent measure."""

import itertools
from typing import Any

import made_results as made
import numpy as np
import pytest
from colours_seen import SIXTEEN, contrast, lab, seen
from golden_text import body, printed

from attnscope.render.kit.palette import MARKS, diverging, sequential
from attnscope.render.terminal.console import Background, theme

DEPTHS = ("truecolor", "256", "standard")
BACKGROUNDS: tuple[Background, ...] = ("light", "dark")
PAPERS = {"light": (255, 255, 255), "dark": (0, 0, 0)}


def lightness(names: list[str], background: Background, depth: str, terminal: str = "xterm") -> list[float]:
    """Lightness of the cells of these styles, those that look alike once."""
    styles = theme(background, depth).styles
    cells = [seen(styles[name].bgcolor, terminal) for name in names]
    return [float(lab(cell)[0]) for cell, _ in itertools.groupby(cells)]


WEIGHTS = [sequential(share) for share in np.linspace(0, 1, 65)]
POSITIVE = [diverging(share, 1.0) for share in np.linspace(0, 1, 33)]
NEGATIVE = [diverging(-share, 1.0) for share in np.linspace(0, 1, 33)]


def test_the_measure_of_lightness_is_the_known_one() -> None:
    np.testing.assert_allclose(lab((255, 0, 0)), [53.24, 80.09, 67.20], atol=0.1)
    np.testing.assert_allclose(lab((0, 0, 255)), [32.30, 79.19, -107.86], atol=0.1)
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)


@pytest.mark.parametrize("terminal", SIXTEEN)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_more_is_always_darker_on_light_and_brighter_on_dark(
    background: Background, depth: str, terminal: str
) -> None:
    for names, fewest in ((WEIGHTS, 5), (POSITIVE, 3), (NEGATIVE, 3)):
        steps = np.diff(lightness(names, background, depth, terminal))
        assert len(steps) + 1 >= fewest
        assert (steps < 0).all() if background == "light" else (steps > 0).all()


@pytest.mark.parametrize(("depth", "largest"), [("truecolor", 2.0), ("256", 21.0)])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_no_step_of_a_ramp_is_a_leap(background: Background, depth: str, largest: float) -> None:
    steps = np.abs(np.diff(lightness(WEIGHTS, background, depth)))
    assert steps.max() <= largest
    assert abs(sum(steps)) > 70


@pytest.mark.parametrize("depth", ["truecolor", "256"])
def test_on_a_light_background_every_weight_is_blue_and_never_cyan(depth: str) -> None:
    styles = theme("light", depth).styles
    for name in WEIGHTS:
        _, red, yellow = lab(seen(styles[name].bgcolor))
        assert np.hypot(red, yellow) < 6 or 245 < np.degrees(np.arctan2(yellow, red)) % 360 < 309, name


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("background", ["light", "dark", "unknown"])
def test_a_number_is_legible_on_every_cell(background: Background, depth: str) -> None:
    styles = theme(background, depth).styles
    for name in [*WEIGHTS, *POSITIVE, *NEGATIVE]:
        assert contrast(seen(styles[name].color), seen(styles[name].bgcolor)) >= 4.5, name


@pytest.mark.parametrize("terminal", ["vga", "windows", "macos"])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_of_sixteen_colours_a_number_is_legible_on_other_terminals_too(
    background: Background, terminal: str
) -> None:
    styles = theme(background, "standard").styles
    for name in [*WEIGHTS, *POSITIVE, *NEGATIVE]:
        assert contrast(seen(styles[name].color, terminal), seen(styles[name].bgcolor, terminal)) >= 3, name


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_nothing_recedes_into_the_background_and_the_most_stands_out(
    background: Background, depth: str
) -> None:
    styles, paper = theme(background, depth).styles, PAPERS[background]
    weak, strong = (contrast(seen(styles[sequential(share)].bgcolor), paper) for share in (0.0, 1.0))
    assert weak < 1.3
    assert strong > 8


@pytest.mark.parametrize("depth", ["truecolor", "256"])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_a_weight_of_0_is_told_from_a_cell_without_colour(background: Background, depth: str) -> None:
    cell = seen(theme(background, depth).styles[sequential(0.0)].bgcolor)
    assert np.linalg.norm(lab(cell) - lab(PAPERS[background])) > 5


@pytest.mark.parametrize("depth", DEPTHS)
def test_bars_and_points_are_seen_on_their_background_and_on_both_where_it_is_not_known(depth: str) -> None:
    for background, papers in {"light": ["light"], "dark": ["dark"], "unknown": ["light", "dark"]}.items():
        styles = theme(background, depth).styles  # type: ignore[arg-type]
        for name, paper in itertools.product(MARKS[background], papers):  # type: ignore[index]
            assert contrast(seen(styles[name].color), PAPERS[paper]) >= 3


def test_nan_has_no_colour_and_what_lies_beyond_the_scale_that_of_its_end() -> None:
    assert sequential(np.nan) == diverging(np.nan, 1.0) == ""
    assert sequential(2.0) == sequential(1.0) != sequential(0.9)
    assert diverging(-7.0, 3.0) == diverging(-3.0, 3.0) != diverging(3.0, 3.0)
    assert diverging(0.0, 0.0) == diverging(0.0, 3.0)


@pytest.mark.parametrize(("depth", "opening"), [("truecolor", "48;2;"), ("256", "48;5;"), ("standard", "4")])
def test_a_table_is_coloured_at_the_depth_of_its_console(depth: str, opening: str) -> None:
    head: Any = made.head()
    light, dark = (printed(body(head, 80), colour=depth, background=b) for b in BACKGROUNDS)
    assert f";{opening}" in light
    assert light != dark
    assert made.plain(light) == made.plain(dark) == printed(body(head, 80))
