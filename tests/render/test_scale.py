"""How weights are mapped to shades, by default and where another scale is asked for, and how it is said."""

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.render.kit.scale import TICKS, Scale, by_root, scale_of, scaling
from attnscope.vocabulary import Scaling

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


def test_on_another_scale_it_has_not() -> None:
    strong, even = _weights("peaked", 30), _weights("diffuse", 30)
    every = np.ones(even.shape, bool)
    strong[0, 1] = even[0, 1] = 0.01
    for kind in (Scaling.MAX, Scaling.ROW, Scaling.LOG):
        one, other = (float(scale_of(each, every, kind).shades(each)[0, 1]) for each in (strong, even))
        assert abs(one - other) > 0.02, kind


@pytest.mark.parametrize("kind", Scaling)
def test_shades_grow_with_the_weight_and_end_at_the_top(kind: Scaling) -> None:
    weights = _weights("sink", 40)
    scale = scale_of(weights, np.ones(weights.shape, bool), kind)
    shades = scale.shades(weights)
    for row, shaded in zip(weights, shades, strict=True):
        assert (np.diff(shaded[np.argsort(row)]) >= 0).all()
    assert shades.min() >= 0
    largest = {Scaling.ONE: weights.max(), Scaling.SQRT: weights.max() ** 0.5}
    assert shades.max() == pytest.approx(largest.get(kind, 1.0))


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


def test_the_colour_bar_has_the_same_ticks_for_every_head_and_in_per_cent_a_hundred_times_as_much() -> None:
    assert by_root().ticks == [(0.0, "0"), (0.01, ".01"), (0.1, ".1"), (0.5, ".5"), (1.0, "1")]
    assert [place for place, _ in scale_of(_weights("sink", 9), np.ones((9, 10), bool)).ticks] == list(TICKS)
    assert [text for _, text in by_root(3, 100.0).ticks] == ["0", "1", "10", "50", "100"]
    assert by_root(3, 100.0).shade(25.0) == 0.5


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
