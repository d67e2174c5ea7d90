"""The bundled captioner, its figures measured again, and the pictures: what is said is true of the pixels."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from transformers import AutoModelForImageTextToText, AutoProcessor, VisionEncoderDecoderModel

from attnscope.demo import folder
from attnscope.demo.train import caption, loop
from attnscope.demo.train import translation_tokenizer as tokenizer
from attnscope.demo.train.corpora import pictures
from attnscope.demo.train.corpora.pictures import Scene, Shape
from attnscope.demo.train.evaluation import caption as evaluate
from attnscope.demo.train.evaluation import gaze

HERE = folder("demo-caption")
TINY = caption.Settings(steps=3, pictures=5, hidden=24, inner=16, layers=2, decoder_layers=1, heads=2)


@pytest.fixture(scope="module")
def bundle() -> evaluate.Bundle:
    return evaluate.Bundle(HERE)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((HERE / "figures.json").read_text())


def test_the_model_loads_with_no_key_missing_or_left_over_and_writes_by_plain_generate() -> None:
    model, loading = AutoModelForImageTextToText.from_pretrained(HERE, output_loading_info=True)
    assert not any(loading[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.dtype == torch.float16
    reads = AutoProcessor.from_pretrained(HERE)
    with Image.open(HERE / "example.png") as shown:
        seen = reads(images=shown, return_tensors="pt")
    rows = model.float().generate(**seen)
    assert reads.decode(rows[0], skip_special_tokens=True) == caption.example()[0].sentence


def test_the_example_is_a_held_out_picture_and_is_described_rightly(told) -> None:
    scene, drawn = caption.example()
    with Image.open(HERE / "example.png") as shown:
        np.testing.assert_array_equal(np.asarray(shown), np.asarray(drawn))
    assert pictures.is_held_out(scene)
    assert told["example"] == scene.sentence


def test_held_out_pictures_are_described_as_well_as_the_card_says(bundle, told) -> None:
    measured = evaluate.sentences(bundle, count=30)
    assert told["sentences"]["exact"] >= 0.95
    assert measured["exact"] == pytest.approx(told["sentences"]["exact"], abs=0.05)


def test_the_heads_look_where_the_card_says(bundle, told) -> None:
    seen = gaze.look(bundle.cross_weights, evaluate.held_out(77, 40))
    for row in gaze.ROWS:
        said = told["heads"][row]
        measured = seen.weight[row][said["layer"], said["head"]]
        assert measured == pytest.approx(said["weight"], abs=0.12), row
        assert seen.mean_weight[row] == pytest.approx(said["mean_weight"], abs=0.08), row


def made(weights: Any) -> gaze.Gaze:
    """Two pictures of two shapes each, seen with the weights that a function makes for a scene and a row."""
    scenes = [
        Scene((Shape("red", "square", 12, 12, 7), Shape("blue", "circle", 44, 14, 8)), ("left",)),
        Scene((Shape("black", "circle", 30, 10, 8), Shape("blue", "circle", 36, 50, 7)), ("above",)),
    ]
    at = {scene.words: scene for scene in scenes}

    def maps(_: np.ndarray, words: tuple[str, ...]) -> np.ndarray:
        rows = [weights(at[tuple(words)], row) for row in range(len(words) + 1)]
        return np.array([[rows, [np.full(65, 1 / 65)] * len(rows), [np.eye(65)[0]] * len(rows)]])

    return gaze.look(maps, [(scene, np.zeros(0)) for scene in scenes])


def on_the_shape_of_its_colour(scene: Scene, row: int) -> np.ndarray:
    """All of the weight of a colour word's row evenly on its shape; of the others on the class token."""
    for shape, place in zip(scene.shapes, scene.places(), strict=True):
        if row == place + 1:
            there = np.concatenate([[0.0], pictures.patches(shape)])
            return there / there.sum()
    return np.eye(65)[0]


def test_a_head_that_looks_at_the_shape_scores_one_and_an_even_one_scores_chance() -> None:
    seen = made(on_the_shape_of_its_colour)
    assert seen.shapes == 4
    colour, form = seen.weight["colour"], seen.weight["form"]
    assert colour.shape == (1, 3)
    np.testing.assert_allclose(colour[0], [1, seen.chance, 0], atol=1e-9)
    np.testing.assert_allclose(seen.found["colour"][0], [1, 0, 0])
    np.testing.assert_allclose(form[0], [0, seen.chance, 0], atol=1e-9)
    assert seen.best("colour") == (0, 0)
    assert seen.mean_weight["colour"] == pytest.approx((1 + seen.chance) / 3)


def test_a_batch_is_read_one_word_behind_what_is_written() -> None:
    ids = tokenizer.build(pictures.WORDS, caption.POSITIONS).get_vocab()
    batch = caption.batch(0, 2, TINY, ids)
    for number in range(5):
        scene = pictures.picture(0, 10 + number, caption.counts(2, TINY))[0]
        words = [ids[word] for word in scene.words]
        rest = batch["labels"].shape[1] - len(words) - 1
        assert batch["labels"][number].tolist() == [*words, ids["[EOS]"], *[caption.NOTHING] * rest]
        assert batch["target"][number, : len(words) + 1].tolist() == [ids["[BOS]"], *words]
        assert not (batch["target"][number] == caption.NOTHING).any()
    assert batch["pixels"].shape == (5, 3, 64, 64)
    assert -1 <= batch["pixels"].min() < batch["pixels"].max() <= 1


def test_the_processor_gives_what_was_trained_on() -> None:
    picture = pictures.picture(0, 3)[1]
    seen = caption.processor()(picture, return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(seen, caption.as_input([picture]), atol=1e-6, rtol=0)


def test_a_tiny_captioner_trains_the_same_way_twice_and_loads(tmp_path: Path) -> None:
    models = [caption.train(TINY) for _ in range(2)]
    first, again = (model.state_dict() for model, _, _ in models)
    assert all(torch.equal(first[name], again[name]) for name in first)
    model, spelling, record = models[0]
    loop.save(model.half(), spelling, TINY, record, tmp_path)
    caption.save_processor(tmp_path)
    assert (tmp_path / "processor_config.json").read_text() == (HERE / "processor_config.json").read_text()
    _, loading = VisionEncoderDecoderModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    run = json.loads((tmp_path / "training.json").read_text())
    assert run["record"]["steps"] == 3
    assert 0 < run["record"]["word_loss"] < 4
    assert run["model"]["parameters"] == model.num_parameters()
    assert run["model"]["positions"] == caption.POSITIONS


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


def test_the_bundled_model_was_trained_on_this_stream() -> None:
    run = json.loads((folder("demo-caption") / "training.json").read_text())
    settings = caption.Settings(**run["settings"])
    assert caption.digest(settings) == run["record"]["stream"]
    assert caption.digest(caption.Settings(seed=settings.seed + 1)) != run["record"]["stream"]
