"""The stream of pictures: what is said of a picture is true of its pixels; what is held out never comes."""

import json
from itertools import permutations

import numpy as np
import pytest
from scipy import ndimage

from attnscope.demo import folder
from attnscope.demo.train import caption
from attnscope.demo.train.corpora import pictures
from attnscope.demo.train.corpora.pictures import Scene, Shape


def seen(picture: np.ndarray) -> list[tuple[str, str, np.ndarray]]:
    """Colour, form and centre (x, y) of every patch of paint, by nothing but the pixels."""
    pixels = picture.astype(float)
    ground = np.median(pixels.reshape(-1, 3), axis=0)
    blots, count = ndimage.label(np.abs(pixels - ground).max(-1) > 60)
    found = []
    for number in range(1, count + 1):
        there = blots == number
        if there.sum() < 20:  # a speck of noise
            continue
        shade = np.median(pixels[there], axis=0)
        colour = min(pictures.COLOURS, key=lambda name: np.abs(shade - pictures.COLOURS[name]).sum())
        rows, columns = np.nonzero(there)
        box = (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
        filled = there.sum() / box  # 1 of a square, .79 of a circle, .5 of a triangle
        form = "square" if filled > 0.86 else "circle" if filled > 0.68 else "triangle"
        centre = np.array([np.ptp(columns) / 2 + columns.min(), np.ptp(rows) / 2 + rows.min()])
        found.append((colour, form, centre))
    return found


def true_sentences(picture: np.ndarray) -> set[str]:
    """Every sentence of the grammar that is true of the pixels."""
    said = set()
    for order in permutations(seen(picture)):
        names = [f"a {colour} {form}" for colour, form, _ in order]
        across, down = (np.array([each[2] for each in order]) - order[0][2]).T
        if len(order) == 1:
            said.add(names[0])
        elif len(order) == 2 and max(across[1], down[1]) > 0:
            wide = across[1] > abs(down[1])
            if wide or down[1] > abs(across[1]):
                said.add(f"{names[0]} {'left of' if wide else 'above'} {names[1]}")
        elif len(order) == 3 and across[1] > abs(down[1]) and down[2] > abs(across[2]):
            said.add(f"{names[0]} left of {names[1]} and above {names[2]}")
    return said


@pytest.mark.parametrize("held_out", [False, True])
def test_the_sentence_is_the_only_one_that_is_true_of_the_pixels(held_out: bool) -> None:
    for number in range(150):
        scene, picture = pictures.picture(5, number, held_out=held_out)
        assert true_sentences(picture) == {scene.sentence}, number


def test_another_sentence_is_not_true_of_the_pixels() -> None:
    (_, picture), (other, _) = (pictures.picture(5, number, (0, 1, 0)) for number in (1, 2))
    assert other.sentence not in true_sentences(picture)


def test_a_picture_depends_on_seed_and_number_alone() -> None:
    first = [pictures.picture(3, number) for number in (7, 8)]
    again = [pictures.picture(3, number) for number in (8, 7)][::-1]
    for (scene, picture), (same, copy) in zip(first, again, strict=True):
        assert scene == same
        np.testing.assert_array_equal(picture, copy)
    assert pictures.picture(4, 7)[0] != first[0][0] != first[1][0]
    assert first[0][1].shape == (64, 64, 3)


def test_no_held_out_sentence_enters_training_and_every_set_is_held_out() -> None:
    settings = caption.Settings()
    early = caption.counts(0, settings)
    assert early == caption.MOSTLY_ONE != caption.counts(settings.steps - 1, settings)
    trained = {
        pictures.scene(np.random.default_rng([0, number]), counts).sentence
        for counts in (early, pictures.EVENLY)
        for number in range(1500)
    }
    asked = [pictures.scene(np.random.default_rng([1, n]), held_out=True).sentence for n in range(600)]
    several = {sentence for sentence in asked if " a " in sentence}
    assert len(several) > 150
    assert not several & trained


def test_one_sentence_in_ten_about_two_shapes_is_held_out() -> None:
    kinds = [(colour, form) for colour in pictures.COLOURS for form in pictures.FORMS]
    pairs = [
        Scene((Shape(*one, 10, 10, 7), Shape(*other, 40, 10, 7)), (relation,))
        for one, other in permutations(kinds, 2)
        for relation in pictures.RELATIONS
    ]
    assert len(pairs) == 612
    assert 0.07 < np.mean([pictures.is_held_out(pair) for pair in pairs]) < 0.13


def test_a_scene_of_one_shape_may_be_trained_on_and_asked_for() -> None:
    alone = {pictures.scene(np.random.default_rng([2, n]), (1, 0, 0)).sentence for n in range(300)}
    assert len(alone) == 18
    assert alone == {
        pictures.scene(np.random.default_rng([2, n]), (1, 0, 0), True).sentence for n in range(300)
    }


def test_the_words_of_a_scene_and_where_they_stand() -> None:
    shapes = (
        Shape("red", "square", 10, 12, 7),
        Shape("blue", "circle", 40, 12, 7),
        Shape("black", "triangle", 12, 44, 7),
    )
    scene = Scene(shapes, ("left", "above"))
    assert scene.sentence == "a red square left of a blue circle and above a black triangle"
    assert len(scene.words) == pictures.LONGEST
    assert [scene.words[place] for place in scene.places()] == ["red", "blue", "black"]
    assert set(scene.words) <= set(pictures.WORDS)


def test_the_patches_of_a_shape_are_those_whose_pixels_it_changes() -> None:
    for number in range(40):
        chooser = np.random.default_rng([8, number])
        scene = pictures.scene(chooser, (0, 1, 0))
        one, other = scene.shapes
        quiet = np.random.default_rng(1), np.random.default_rng(1)
        both = pictures.paint(scene, quiet[0], grain=0).astype(int)
        alone = pictures.paint(Scene((one,), ()), quiet[1], grain=0).astype(int)
        changed = np.abs(both - alone).max(-1) > 40
        pixels = changed.reshape(8, 8, 8, 8).sum((1, 3)).ravel()
        assert pictures.patches(other)[pixels >= 4].all(), number
        assert not pictures.patches(other)[pixels == 0].any(), number


def test_a_larger_picture_of_a_scene_is_the_same_picture() -> None:
    chooser = np.random.default_rng([9, 0])
    scene = pictures.scene(chooser, (0, 0, 1))
    small, large = (pictures.paint(scene, np.random.default_rng(2), scale, grain=0) for scale in (1, 4))
    assert large.shape == (256, 256, 3)
    assert np.abs(large.reshape(64, 4, 64, 4, 3).mean((1, 3)) - small).mean() < 1


def test_the_bundled_model_was_trained_on_this_stream() -> None:
    run = json.loads((folder("demo-caption") / "training.json").read_text())
    settings = caption.Settings(**run["settings"])
    assert caption.digest(settings) == run["record"]["stream"]
    assert caption.digest(caption.Settings(seed=settings.seed + 1)) != run["record"]["stream"]
