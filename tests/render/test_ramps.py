"""Colours of cells at three depths, on both backgrounds: even, apart, legible, by an independent measure."""

import itertools
from typing import Any

import made_results as made
import numpy as np
import pytest
from golden_text import body, printed
from rich.color import Color

from attnscope.render.kit.palette import BAR, BAR_BACK, diverging, sequential
from attnscope.render.terminal.ramps import Background, theme

DEPTHS = ("truecolor", "256", "standard")
BACKGROUNDS: tuple[Background, ...] = ("light", "dark")
PAPERS = {"light": (255, 255, 255), "dark": (0, 0, 0)}
# black to bright white, as four kinds of terminal show them
SIXTEEN = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "vga": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
    "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "windows": "0c0c0c c50f1f 13a10e c19c00 0037da 881798 3a96dd cccccc "
    "767676 e74856 16c60c f9f1a5 3b78ff b4009e 61d6d6 f2f2f2",
    "macos": "000000 990000 00a600 999900 0000b2 b200b2 00a6b2 bfbfbf "
    "666666 e50000 00d900 e5e500 0000ff e500e5 00e5e5 e5e5e5",
}
RGB = tuple[int, int, int]


def seen(colour: Color | None, terminal: str = "xterm") -> RGB:
    """What the eye gets: xterm's formula for 256 colours, each terminal's own sixteen."""
    assert colour is not None
    if colour.triplet is not None:
        return tuple(colour.triplet)
    number = colour.number
    assert number is not None
    if number < 16:
        red, green, blue = bytes.fromhex(SIXTEEN[terminal].split()[number])
        return red, green, blue
    if number >= 232:
        return (8 + 10 * (number - 232),) * 3
    steps = ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
    red, green, blue = (55 + 40 * step if step else 0 for step in steps)
    return red, green, blue


def linear(colour: RGB) -> np.ndarray:
    parts = np.array(colour) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour: RGB) -> np.ndarray:
    """CIE 1976 L*a*b* under D65, from sRGB."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    whole = np.array(matrix) @ linear(colour) / np.array([0.9505, 1.0, 1.089])
    root = np.where(whole > (6 / 29) ** 3, np.cbrt(whole), whole / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(one: RGB, other: RGB) -> float:
    """WCAG 2: from 1 to 21; 4.5 is enough for small text, 3 for large."""
    low, high = sorted(float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


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
def test_bars_are_seen_on_their_background_and_on_both_where_it_is_not_known(depth: str) -> None:
    for background, papers in {"light": ["light"], "dark": ["dark"], "unknown": ["light", "dark"]}.items():
        styles = theme(background, depth).styles  # type: ignore[arg-type]
        for name, paper in itertools.product((BAR, BAR_BACK), papers):
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
