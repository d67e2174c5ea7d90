"""The palette as those see it who do not tell some colours apart, and in grey, by a published simulation."""

import itertools

import numpy as np
import pytest
from colours_seen import RGB, contrast, lab, linear, seen

from attnscope.render.kit import palette
from attnscope.render.kit.palette import RAMPS, SIGNED, WEIGHT, Ground
from attnscope.render.terminal.console import theme
from attnscope.results import Verdict

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
