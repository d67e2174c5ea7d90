"""Which scale is chosen for weights, how it maps them to shades, and how it says so."""

import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.render.kit.scale import SEEN, Scale, scale_of, scaling
from attnscope.vocabulary import Scaling

LENGTHS = (5, 30, 60, 200, 500)
DARK = 0.35  # a shade of Blues that is darker than 200 of 255
CHOICES = [each for each in Scaling if each is not Scaling.AUTO]


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


def _causal(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    visible = np.tril(np.ones(weights.shape, bool))
    kept = np.where(visible, weights, 0.0)
    return kept / kept.sum(axis=1, keepdims=True), visible


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["diffuse", "sink", "peaked"])
@pytest.mark.parametrize("count", LENGTHS)
def test_structure_is_seen_at_every_length(count: int, kind: str, causal: bool) -> None:
    weights = _weights(kind, count)
    visible = np.ones(weights.shape, bool)
    if causal:
        weights, visible = _causal(weights)
    shades = scale_of(weights, visible).shades(weights)[visible]
    assert np.mean(shades >= SEEN) >= 1 / 64
    assert np.mean(shades >= DARK) >= min(0.01, 1 / count)  # or one key of every row
    assert np.mean(shades < 0.7) >= 0.05  # and it is not a dark page either


@pytest.mark.parametrize("count", [200, 500])
def test_a_diffuse_head_of_a_long_text_is_white_on_the_scale_of_before(count: int) -> None:
    weights = _weights("diffuse", count)
    every = np.ones(weights.shape, bool)
    assert (scale_of(weights, every, Scaling.ONE).shades(weights) < SEEN).all()
    assert (scale_of(weights, every).shades(weights) >= DARK).mean() > 0.1


def test_strong_rows_are_on_the_scale_that_compares_and_even_ones_are_not() -> None:
    strong, even = _weights("peaked", 30), np.full((30, 31), 1 / 31)
    every = np.ones(even.shape, bool)
    assert scale_of(strong, every).kind is Scaling.ONE
    assert scale_of(even, every).kind is Scaling.MAX
    assert scale_of(_weights("sink", 200), np.ones((200, 201), bool)).kind is Scaling.LOG


def _beside_a_sink(share: float, count: int = 40) -> np.ndarray:
    """Rows that give `share` to the first key and the rest to eight keys before them alike."""
    weights = np.zeros((count, count + 1))
    weights[:, 0] = share
    for row in range(count):
        weights[row, np.arange(row + 1, row + 9) % count + 1] += (1 - share) / 8
    return weights


def test_one_strong_column_does_not_whiten_the_rest_unless_it_is_what_there_is() -> None:
    every = np.ones((40, 41), bool)
    third, most = _beside_a_sink(0.4), _beside_a_sink(0.9)
    chosen = scale_of(third, every)
    assert (scale_of(third, every, Scaling.ONE).shades(third)[:, 1:] < SEEN).all()  # what was drawn before
    assert chosen.kind is Scaling.LOG
    assert ((chosen.shades(third)[:, 1:] >= SEEN).sum(axis=1) == 8).all()
    assert scale_of(most, every).kind is Scaling.ONE


@pytest.mark.parametrize("kind", CHOICES)
def test_shades_grow_with_the_weight_and_end_at_the_top(kind: Scaling) -> None:
    weights = _weights("sink", 40)
    scale = scale_of(weights, np.ones(weights.shape, bool), kind)
    shades = scale.shades(weights)
    for row, shaded in zip(weights, shades, strict=True):
        assert (np.diff(shaded[np.argsort(row)]) >= 0).all()
    assert shades.min() >= 0
    assert shades.max() <= 1
    assert shades.max() == (pytest.approx(weights.max()) if kind is Scaling.ONE else 1)


def test_the_four_mappings_by_hand() -> None:
    weights = np.array([[0.5, 0.25, 0.0], [0.05, 0.0005, 0.01]])
    every = np.ones(weights.shape, bool)
    shades = {kind: scale_of(weights, every, kind).shades(weights) for kind in CHOICES}
    assert np.allclose(shades[Scaling.ONE], weights)
    assert np.allclose(shades[Scaling.MAX], weights / 0.5)
    assert np.allclose(shades[Scaling.ROW], weights / [[0.5], [0.05]])
    least = scale_of(weights, every, Scaling.LOG).least
    assert least == 0.01  # a tenth of what each of six pairs has of .8105 is .0135
    assert np.allclose(shades[Scaling.LOG], np.log(np.maximum(weights, least) / least) / np.log(50))
    assert shades[Scaling.LOG][0, 0] == 1
    assert shades[Scaling.LOG][0, 2] == 0


def test_some_rows_alone_have_the_shades_that_they_have_among_all() -> None:
    weights = _weights("sink", 12)
    for kind in CHOICES:
        scale = scale_of(weights, np.ones(weights.shape, bool), kind)
        assert np.array_equal(scale.shades(weights[[7, 3]], [7, 3]), scale.shades(weights)[[7, 3]])


def test_what_is_masked_has_no_say_and_no_row_is_divided_by_nothing() -> None:
    weights = np.array([[0.1, 0.9], [np.nan, np.nan]])
    visible = np.array([[True, False], [False, False]])
    for kind in CHOICES:
        shades = scale_of(weights, visible, kind).shades(weights)
        assert np.isnan(shades[1]).all()
        assert np.isfinite(shades[0]).all()
    assert scale_of(weights, visible, Scaling.MAX).top == 0.1
    empty = scale_of(np.zeros((0, 0)), np.zeros((0, 0), bool))
    assert empty.top == 1


def test_each_scale_says_what_white_and_dark_are() -> None:
    weights = np.array([[0.23, 0.0011, 0.003]])
    every = np.ones(weights.shape, bool)
    said = {kind: scale_of(weights, every, kind).legend for kind in CHOICES}
    assert said == {
        Scaling.ONE: "white 0 to dark 1",
        Scaling.MAX: "white 0 to dark .23, the largest weight",
        Scaling.ROW: "white 0 to dark the largest weight of each row",
        Scaling.LOG: "logarithmic: white .007 or less, dark .23",
    }
    labels = {Scale(kind, np.ones(1), 0.1).label for kind in CHOICES}
    assert len(labels) == 4


def test_a_scale_is_asked_for_by_its_name_and_no_other() -> None:
    assert [scaling(name) for name in ("auto", "MAX", "row", "1", "log")] == list(Scaling)
    with pytest.raises(InputError, match="no scale is called 'loud': auto, max, row, 1, log"):
        scaling("loud")
