"""A stored run made anew: the same numbers pass, a changed number, mask or model is found and named."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import media_models as media
import numpy as np
import pytest
import resealed
import torch
from torch import nn
from typer.testing import CliRunner, Result

import attnscope as at
from attnscope import demo
from attnscope.capture.arithmetic import move_weights
from attnscope.cli.app import app
from attnscope.results import Check, HeadAttention, Overview, Verdict
from attnscope.verbs.check.answer import checked_head, checked_heads

TEXT = "I was watching the door when it opened."
SOME = [0, 3], [0, 1, 5]
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A head and an overview of the demo model as files."""
    path = tmp_path_factory.mktemp("runs")
    reading = at.load("demo").read(TEXT)
    reading.head(3, 11).save(path / "head.npz")
    reading.overview([0, 2], [1, 5, 7]).save(path / "heads.npz")
    return path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", *arguments], env={"COLUMNS": "80", "TERM": "dumb"})


def changed(path: Path, name: str, change: Callable[[np.ndarray], None], to: Path) -> Path:
    """The same file with one of its arrays changed, by somebody who wrote its hashes anew."""
    arrays = resealed.arrays_of(path.read_bytes())
    change(arrays[name])
    to.write_bytes(resealed.archive(arrays))
    return to


def add(place: tuple[int, ...], by: float) -> Callable[[np.ndarray], None]:
    def change(values: np.ndarray) -> None:
        values[place] += by

    return change


@pytest.mark.parametrize(("name", "heads"), [("head.npz", 1), ("heads.npz", 6)])
def test_what_this_installation_wrote_it_gives_again(
    folder: Path, name: str, heads: int, tmp_path: Path
) -> None:
    result = check(str(folder / name), "-o", str(tmp_path / "check.json"))
    assert result.exit_code == 0, result.stderr
    assert "as stored" in result.stdout
    assert "not as stored" not in result.stdout
    again = at.open(tmp_path / "check.json")
    assert isinstance(again, Check)
    assert (len(again.heads), again.changes, again.verdict) == (heads, (), Verdict.STORED)


@pytest.fixture(scope="module")
def runs() -> tuple[HeadAttention, list[HeadAttention]]:
    """A head of the demo model, and the same in two runs that rounding was put into."""
    reading = at.load("demo").read(TEXT)
    anew, moved = reading.head(3, 11), []
    for run in range(2):
        move_weights(reading._model.module, run)
        moved.append(reading.head(3, 11))
    return anew, moved


@pytest.mark.parametrize("array", ["weights", "scores", "scaled", "q", "k", "v", "output"])
def test_one_number_beyond_its_tolerance_is_found_and_one_within_is_not(
    runs: tuple[HeadAttention, list[HeadAttention]], array: str
) -> None:
    anew, moved = runs
    now, proof = getattr(anew, array), anew.certificate
    own = proof.weight_tolerance / (anew.scale if array == "scores" else 1)
    if array not in ("weights", "scaled", "scores"):
        own = proof.output_tolerance * np.abs(now).max()
    carried = max(np.abs(getattr(each, array) - now).max() for each in moved)
    assert 1e-8 < carried < 1e-4
    for times, right in ((0.99, True), (1.01, False)):
        values = now.copy()
        values[5, 2] += times * (own + 4 * carried)
        found = checked_head(replace(anew, **{array: values}), anew, moved)
        assert found.as_stored is right
        assert found.stage == array
        assert found.allowed == pytest.approx(own + 4 * carried)
        assert found.rounding == pytest.approx(carried)


def test_sums_in_another_order_are_as_stored_and_weights_a_thousandth_off_are_not() -> None:
    elsewhere, here, off = (at.load("demo-causal").read(TEXT) for _ in range(3))
    for part in elsewhere._model.module.modules():
        if isinstance(part, nn.Linear):
            order = torch.randperm(part.in_features, generator=torch.Generator().manual_seed(9))
            part.forward = partial(_in_another_order, part, order)  # type: ignore[method-assign]
    anew, stored = here.overview(*SOME), elsewhere.overview(*SOME)
    moved = []
    for run in range(2):
        move_weights(here._model.module, run)
        moved.append(here.overview(*SOME))
    assert any(not np.array_equal(a, b) for a, b in zip(_weights(stored), _weights(anew), strict=True))
    found = checked_heads(stored, anew, moved)
    assert [each.name for each in found if not each.as_stored] == []
    queries = [p for name, p in off._model.module.named_parameters() if "q" in name.split(".")[-2]]
    with torch.no_grad():
        queries[0].mul_(1.001)
    wrong = [each.name for each in checked_heads(off.overview(*SOME), anew, moved) if not each.as_stored]
    assert {"L0 H0", "L0 H1", "L0 H5"} <= {*wrong}


def _in_another_order(part: nn.Linear, order: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    return nn.functional.linear(given[..., order], part.weight[:, order], part.bias)


def _weights(run: Overview) -> list[np.ndarray]:
    return [each for row in run.dense_weights for each in row]


@pytest.mark.parametrize(
    ("array", "change", "stage"),
    [
        ("weights", add((1, 2, 5, 2), np.nan), "weights"),
        ("entropy", add((1, 2), 0.01), "entropy"),
        ("strongest_weight", add((1, 2), 0.01), "strongest"),
    ],
)
def test_of_many_heads_the_one_that_was_changed_is_named(
    folder: Path, array: str, change: Callable[[np.ndarray], None], stage: str, tmp_path: Path
) -> None:
    path = changed(folder / "heads.npz", array, change, tmp_path / "changed.npz")
    result = check(str(path), "--json")
    assert result.exit_code == 5
    told = json.loads(result.stdout)
    wrong = [head for head in told["heads"] if not head["as_stored"]]
    assert [(each["layer"], each["head"], each["stage"]) for each in wrong] == [(2, 7, stage)]
    assert (told["checked"], told["not_as_stored"], told["verdict"]) == (6, 1, "failed")


def test_a_mask_that_is_not_the_stored_one_is_found(folder: Path, tmp_path: Path) -> None:
    def mask(values: np.ndarray) -> None:
        values[5, 2] = False

    path = changed(folder / "head.npz", "allowed", mask, tmp_path / "masked.npz")
    assert check(str(path)).exit_code == 5


def test_weights_of_a_model_that_changed_are_said_and_its_heads_named(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    model = tmp_path / "model"
    shutil.copytree(demo.folder(), model)
    at.load(str(model)).read(TEXT).overview([1, 2], [0, 3]).save(tmp_path / "run.npz")
    assert check(str(tmp_path / "run.npz")).exit_code == 0
    tensors = load_file(model / "model.safetensors")
    tensors["bert.encoder.layer.1.attention.self.query.weight"][:8] *= 1.001  # head 0 of layer 1
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    result = check(str(tmp_path / "run.npz"))
    assert result.exit_code == 5
    assert "the weights of the model have changed: stored sha256:" in result.stdout.replace("\n", " ")
    named = [
        line[:5] for line in result.stdout.splitlines() if "not as stored" in line and line.startswith("L")
    ]
    assert named == ["L1 H0", "L2 H0", "L2 H3"]


def test_a_tokenizer_from_elsewhere_is_read_again_and_a_change_of_it_is_said(tmp_path: Path) -> None:
    model, words = tmp_path / "model", tmp_path / "words"
    for folder in (model, words):
        shutil.copytree(demo.folder(), folder)
    for file in model.glob("tokenizer*"):
        file.unlink()
    made = at.load(str(model), tokenizer=str(words)).read(TEXT).head(1, 3)
    assert made.provenance.tokenizer == str(words)
    assert f"--tokenizer {words}" in " ".join(made.text().replace("\\", "").split())
    made.save(tmp_path / "run.npz")
    same = check(str(tmp_path / "run.npz"))
    assert (same.exit_code, "otherwise now" in same.stdout) == (0, False)
    file, piece = words / "tokenizer.json", made.query_tokens.items[2].piece
    spelled = json.loads(file.read_text("utf-8"))
    vocabulary = spelled["model"]["vocab"]
    vocabulary[f"{piece}zz"] = vocabulary.pop(piece)
    spelled["normalizer"] = {
        "type": "Sequence",
        "normalizers": [
            spelled["normalizer"],
            {"type": "Replace", "pattern": {"String": piece}, "content": f"{piece}zz"},
        ],
    }
    file.write_text(json.dumps(spelled), "utf-8")
    changed = check(str(tmp_path / "run.npz"))
    assert "the tokenizer spells these tokens otherwise now" in " ".join(changed.stdout.split())


MASKED, TWO = {"text": "I was watching the [MASK] when it opened the door."}, {"layers": -1, "heads": [0, 2]}


@pytest.mark.parametrize(
    ("model", "given", "question", "asked"),
    [
        ("demo-translate", {"text": "the dog sleeps"}, "overview", {"kind": "cross", **TWO}),
        ("demo-translate", {"text": "the dog sleeps"}, "overview", {"kind": "decoder", **TWO}),
        ("demo-causal", {"text": "I was watching the", "generate": 3}, "overview", TWO),
        ("demo", {"text": "the dog barks", "pair": "it is loud"}, "overview", TWO),
        ("demo", {"words": ["the", "dog's", "bark"]}, "overview", {"words": True, **TWO}),
        ("demo", {"text": "the [MASK] barks"}, "overview", {"route": "returned", **TWO}),
        ("demo", MASKED, "find", {"query": "it", "key": "door", "controls": 19}),
        ("demo", MASKED, "why", {"layer": 3, "head": 11, "query": "it", "key": "door"}),
        ("demo", MASKED, "explain", {"query": "it", "key": "door", "controls": 5}),
        ("demo", MASKED, "flow", {"query": "it"}),
        ("demo", MASKED, "ablate", {"layers": 1}),
        ("demo", MASKED, "grid", {"by": "word"}),
        ("demo", MASKED, "long_head", {"layer": 1, "head": 1}),
        *(("demo", MASKED, question, {}) for question in ("predict", "predict_layers", "verify")),
    ],
)
def test_every_answer_about_whatever_was_read_is_asked_again(
    tmp_path: Path, model: str, given: dict, question: str, asked: dict
) -> None:
    found = getattr(at.load(model).read(**given), question)(**asked)
    for file in (tmp_path / "run.npz", tmp_path / "run.json"):
        result = check(str(found.save(file)))
        assert result.exit_code == 0, result.stdout + result.stderr


def test_what_cannot_be_run_again_is_refused_in_one_line(tmp_path: Path) -> None:
    at.load("demo").read(TEXT).overview(1, 1, tiled=True).save(tmp_path / "tiles.npz")
    at.outline("demo").save(tmp_path / "outline.json")
    for name, why in (
        ("tiles.npz", "what a program asked for"),
        ("outline.json", "holds no weights of heads"),
        ("none.npz", "no such file"),
    ):
        result = check(str(tmp_path / name))
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert why in result.stderr


@pytest.fixture(scope="module")
def sensed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a picture and of a sound, each beside the file that was read."""
    path = tmp_path_factory.mktemp("sensed")
    for name, given in (
        ("vit", {"image": media.picture_file(path)}),
        ("whisper", {"audio": media.sound_file(path)}),
    ):
        asked = {"kind": "encoder"} if name == "whisper" else {}
        reading = at.load(str(media.save(name, path / name))).read(**given)
        reading.over([0, 1], [0, 2], "3", **asked).save(path / f"{name}.npz")
    return path


def test_a_picture_or_a_sound_is_read_again_where_it_lies_or_is_given_and_another_one_refused(
    sensed: Path, folder: Path, tmp_path: Path
) -> None:
    for name in ("vit.npz", "whisper.npz"):
        assert check(str(sensed / name)).exit_code == 0
    path = changed(sensed / "vit.npz", "weights", add((1, 0, 5, 2), 1e-3), sensed / "changed.npz")
    assert check(str(path)).exit_code == 5
    run, own = shutil.copy(sensed / "vit.npz", tmp_path), sensed / "square.png"
    other = media.picture_file(tmp_path, (0, 0), "other.png")
    sound = sensed / "tone.wav"
    for arguments, why in (
        ((), "square.png is neither beside vit.npz nor here: give the file that was read with --image"),
        (("--image", str(other)), "is not the file that was read: its sha256 is"),
        (("--audio", str(sound)), "vit.npz is of a picture: give it with --image"),
        (("--image", str(tmp_path / "none.png")), "none.png': no such file"),
    ):
        result = check(str(run), *arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
        assert why in result.stderr
    assert check(str(run), "--image", str(own)).exit_code == 0
    (tmp_path / "square.png").write_bytes(other.read_bytes())
    assert "is not the file that was read" in check(str(run)).stderr
    result = check(str(folder / "head.npz"), "--image", str(own))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "head.npz is of a text: leave --image and --audio out" in result.stderr
