"""Colours of cells and marks: even, apart, legible to all eyes and at all depths; weights as shades."""

import itertools

import numpy as np
import pytest
from rich.color import Color

from attnscope.errors import InputError
from attnscope.render.kit import palette
from attnscope.render.kit.palette import (
    MARKS,
    RAMPS,
    SIGNED,
    WEIGHT,
    Ground,
    Scale,
    by_root,
    diverging,
    scale_of,
    scaling,
    sequential,
)
from attnscope.render.terminal.console import Background, theme
from attnscope.results import Verdict
from attnscope.vocabulary import Scaling

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


# Machado, Oliveira and Fernandes 2009, severity 1, of linear sRGB
SEEN_BY = {
    "everybody": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip
GROUNDS: tuple[Ground, ...] = ("light", "dark")


def rgb(colour: str) -> RGB:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def simulated(colour: RGB, eyes: str) -> np.ndarray:
    """CIE L*a*b* of what these eyes see."""
    raised = np.clip(np.array(SEEN_BY[eyes]) @ linear(colour), 0, 1)
    back = np.where(raised <= 0.0031308, 12.92 * raised, 1.055 * raised ** (1 / 2.4) - 0.055)
    return lab(tuple(255 * back))  # type: ignore[arg-type]


def apart(one: str, other: str, eyes: str) -> float:
    return float(np.linalg.norm(simulated(rgb(one), eyes) - simulated(rgb(other), eyes)))


def nearest(colours: list[str], eyes: str) -> float:
    return min(apart(*pair, eyes) for pair in itertools.combinations(dict.fromkeys(colours), 2))


def test_the_simulation_is_the_published_one_and_knows_colours_that_are_mistaken() -> None:
    for eyes in SEEN_BY:  # grey stays grey
        np.testing.assert_allclose(simulated((128, 128, 128), eyes), lab((128, 128, 128)), atol=0.2)
    assert apart("#c00000", "#5a6a00", "everybody") > 50
    assert apart("#c00000", "#5a6a00", "deuteranopia") < 20


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("name", [WEIGHT, SIGNED])
@pytest.mark.parametrize("ground", GROUNDS)
def test_neighbouring_shades_are_told_apart(ground: Ground, name: str, eyes: str) -> None:
    anchors = RAMPS[ground][name]
    assert min(apart(*pair, eyes) for pair in itertools.pairwise(anchors)) >= 4
    assert apart(anchors[0], anchors[-1], eyes) > 35


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("name", [WEIGHT, SIGNED])
@pytest.mark.parametrize("ground", GROUNDS)
def test_every_ramp_is_told_in_grey(ground: Ground, name: str, eyes: str) -> None:
    """More is always darker on light and brighter on dark, on both sides of 0."""
    light = np.array([simulated(rgb(each), eyes)[0] for each in RAMPS[ground][name]])
    steps = np.diff(light if ground == "dark" else -light)
    middle = len(steps) // 2 if name == SIGNED else 0
    assert (steps[middle:] > 0).all()
    assert (steps[:middle] < 0).all()


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("ground", GROUNDS)
def test_below_and_above_0_are_never_the_same_colour(ground: Ground, eyes: str) -> None:
    anchors = RAMPS[ground][SIGNED]
    middle = len(anchors) // 2
    for far in range(2, middle + 1):
        assert apart(anchors[middle - far], anchors[middle + far], eyes) > 20


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("ground", GROUNDS)
def test_queries_and_keys_verdicts_and_heads_are_told_apart(ground: Ground, eyes: str) -> None:
    assert nearest(list(palette.SIDES[ground].values()), eyes) > 50
    assert nearest(list(palette.VERDICTS[ground].values()), eyes) > 10
    bad, good = (palette.VERDICTS[ground][each] for each in (Verdict.FAILED, Verdict.CERTIFIED))
    assert apart(bad, good, eyes) > 20
    assert nearest(list(palette.HEADS), eyes) > 10
    vectors = [palette.TINTS[each] for each in ("query", "key", "unrotated key", "value", "output")]
    assert nearest(vectors, eyes) > 10


@pytest.mark.parametrize("ground", GROUNDS)
def test_words_are_legible_in_every_colour_that_words_have(ground: Ground) -> None:
    paper = palette.PAPER[ground]
    words = [*palette.SIDES[ground].values(), *palette.VERDICTS[ground].values()]
    words += [paper[name] for name in ("ink", "faint", "chosen")]
    for each in words:
        assert contrast(rgb(each), rgb(paper["ground"])) >= 4.5, each


@pytest.mark.parametrize("depth", ["truecolor", "256"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_a_verdict_of_a_terminal_is_legible_and_no_other_one(ground: Ground, depth: str) -> None:
    styles, background = theme(ground, depth).styles, (255, 255, 255) if ground == "light" else (0, 0, 0)
    colours = {each: styles[f"verdict.{each.value}"].color for each in Verdict}
    assert colours.pop(Verdict.STORED) is None
    assert all(contrast(seen(each), background) >= 4.5 for each in colours.values())
    assert len({seen(each) for each in colours.values()}) == 4


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


ASKED = [each for each in Scaling if each is not Scaling.SQRT]


def _weights(kind: str, count: int) -> np.ndarray:
    """Rows of a diffuse head, of one with a sink, and of one that looks at the token before."""
    rng = np.random.default_rng(count)
    rows, columns = np.indices((count, count + 1))
    logits = rng.normal(0.0, 1.0, rows.shape)
    if kind == "sink":
        logits[:, 0] += np.log(count) + 2.5
    if kind == "peaked":
        logits[columns == np.maximum(rows - 1, 0)] += np.log(count) + 3.0
    made = np.exp(logits)
    return made / made.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["diffuse", "sink", "peaked"])
@pytest.mark.parametrize("count", [5, 60, 500])
def test_the_same_weight_has_the_same_shade_in_every_head(count: int, kind: str) -> None:
    weights = _weights(kind, count)
    weights[0, :3] = 0.25, 0.01, 0.0
    scale = scale_of(weights, np.ones(weights.shape, bool))
    assert scale.kind is Scaling.SQRT
    np.testing.assert_allclose(scale.shades(weights)[0, :3], [0.5, 0.1, 0.0])
    np.testing.assert_allclose(scale.shades(weights) ** 2, weights)
    assert (scale.label, scale.told) == ("attention weight", "")


def test_the_mappings_by_hand() -> None:
    weights = np.array([[0.5, 0.25, 0.0], [0.05, 0.0005, 0.01]])
    every = np.ones(weights.shape, bool)
    shades = {kind: scale_of(weights, every, kind).shades(weights) for kind in Scaling}
    assert np.allclose(shades[Scaling.SQRT], [[0.70711, 0.5, 0.0], [0.22361, 0.02236, 0.1]], atol=1e-5)
    assert np.allclose(shades[Scaling.ONE], weights)
    assert np.allclose(shades[Scaling.MAX], weights / 0.5)
    assert np.allclose(shades[Scaling.ROW], weights / [[0.5], [0.05]])
    least = scale_of(weights, every, Scaling.LOG).least
    assert least == 0.01  # a tenth of what each of six pairs has of .8105 is .0135
    assert np.allclose(shades[Scaling.LOG], np.log(np.maximum(weights, least) / least) / np.log(50))
    assert shades[Scaling.LOG][0, 0] == 1
    assert shades[Scaling.LOG][0, 2] == 0


@pytest.mark.parametrize("kind", Scaling)
def test_the_weight_of_a_shade_has_that_shade(kind: Scaling) -> None:
    weights = _weights("sink", 12)
    scale = scale_of(weights, np.ones(weights.shape, bool), kind)
    for shade in (0.0, 0.2, 0.5, 1.0):
        assert scale.shade(scale.weight(shade)) == pytest.approx(shade, abs=1e-9)


def test_some_rows_alone_have_the_shades_that_they_have_among_all() -> None:
    weights = _weights("sink", 12)
    for kind in Scaling:
        scale = scale_of(weights, np.ones(weights.shape, bool), kind)
        assert np.array_equal(scale.shades(weights[[7, 3]], [7, 3]), scale.shades(weights)[[7, 3]])


def test_what_is_masked_has_no_say_and_no_row_is_divided_by_nothing() -> None:
    weights = np.array([[0.1, 0.9], [np.nan, np.nan]])
    visible = np.array([[True, False], [False, False]])
    for kind in Scaling:
        shades = scale_of(weights, visible, kind).shades(weights)
        assert np.isnan(shades[1]).all()
        assert np.isfinite(shades[0]).all()
    assert scale_of(weights, visible, Scaling.MAX).top == 0.1
    empty = scale_of(np.zeros((0, 0)), np.zeros((0, 0), bool))
    assert empty.top == 1


def test_each_scale_that_is_asked_for_says_which_it_is() -> None:
    weights = np.array([[0.23, 0.0011, 0.003]])
    every = np.ones(weights.shape, bool)
    said = {kind: scale_of(weights, every, kind).told for kind in ASKED}
    assert said == {
        Scaling.ONE: "in proportion, 0 to 1",
        Scaling.MAX: "in proportion, 0 to .23, the largest weight",
        Scaling.ROW: "in proportion, 0 to the largest weight of each row",
        Scaling.LOG: "logarithmic, .007 or less to .23, the largest weight",
    }
    assert by_root().legend == "the square root of the weight, 0 to 1"
    labels = {Scale(kind, np.ones(1), 0.1).label for kind in Scaling}
    assert len(labels) == 5


def test_a_scale_is_asked_for_by_its_name_and_no_other() -> None:
    assert [scaling(name) for name in ("sqrt", "1", "MAX", "row", "log")] == list(Scaling)
    for name in ("loud", "auto"):
        with pytest.raises(InputError, match=f"no scale is called '{name}': sqrt, 1, max, row, log"):
            scaling(name)
