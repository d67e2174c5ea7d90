"""A stored run made anew: the same numbers pass, a changed number, mask or model is found and named."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import cases_check
import media_models as media
import numpy as np
import pytest
import resealed
import torch
from torch import nn
from typer.testing import CliRunner, Result

import attnscope as at
from attnscope import demo
from attnscope.analysis.claims.comparison.checking import checked_head, checked_heads
from attnscope.capture.arithmetic import move_weights
from attnscope.cli.app import app
from attnscope.results import Check, HeadAttention, Overview, Verdict

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


@pytest.mark.parametrize("model", ["demo", "demo-causal"])
def test_sums_in_another_order_are_as_stored_and_weights_a_thousandth_off_are_not(model: str) -> None:
    elsewhere, here, off = (at.load(model).read(TEXT) for _ in range(3))
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
        ("weights", add((1, 2, 5, 2), 1e-4), "weights"),
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


@pytest.mark.parametrize(
    ("model", "given", "asked"),
    [
        ("demo-translate", {"text": "the dog sleeps"}, {"kind": "cross"}),
        ("demo-translate", {"text": "the dog sleeps"}, {"kind": "decoder"}),
        ("demo-causal", {"text": "I was watching the", "generate": 3}, {}),
        ("demo", {"text": "the dog barks", "pair": "it is loud"}, {}),
        ("demo", {"words": ["the", "dog's", "bark"]}, {"words": True}),
        ("demo", {"text": "the [MASK] barks"}, {"route": "returned"}),
    ],
)
def test_what_was_read_otherwise_than_as_one_text_is_run_again_too(
    tmp_path: Path, model: str, given: dict, asked: dict
) -> None:
    at.load(model).read(**given).overview(-1, [0, 2], **asked).save(tmp_path / "run.npz")
    result = check(str(tmp_path / "run.npz"))
    assert result.exit_code == 0, result.stdout + result.stderr


def test_what_cannot_be_run_again_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    reading = at.load("demo").read(TEXT)
    at.load("demo").read("the [MASK] barks").predict().save(tmp_path / "prediction.npz")
    reading.overview().save(tmp_path / "heads.json")
    reading.overview(1, 1, tiled=True).save(tmp_path / "tiles.npz")
    reading.long_head(1, 1).save(tmp_path / "long.npz")
    for name, why in (
        ("tiles.npz", "computed in tiles"),
        ("long.npz", "computed in tiles"),
        ("prediction.npz", "holds no weights of heads"),
        ("heads.json", "leaves the weights of its heads out: give the npz"),
        ("none.npz", "no such file"),
    ):
        result = check(str(tmp_path / name))
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert why in result.stderr


def test_heads_that_are_not_as_stored_have_a_line_each_and_others_with_v_alone() -> None:
    broken = cases_check.check(broken=True)
    lines = broken.text(width=80).splitlines()
    told = [line.split("  ")[0].split(" · ")[0] for line in lines if "not as stored" in line]
    assert told == ["L2 H11", "L3 H5", "✗ 2 of 3 heads are not as stored"]
    assert "torch: stored 2.4, now 2.5" in lines
    assert not any(line.startswith("L0 H1") for line in lines)
    assert "✓ 3 heads as stored, off by 4.0e-7 at most" in cases_check.check().text(width=80)


def test_a_number_that_only_one_run_has_comes_back_from_a_file(tmp_path: Path) -> None:
    broken = cases_check.check(broken=True)
    for suffix in ("json", "npz"):
        again = at.open(broken.save(tmp_path / f"check.{suffix}"))
        heads = tuple(replace(each, verdict=each.verdict.from_file(False)) for each in broken.heads)
        assert (again.heads, again.changes, again.verdict) == (heads, broken.changes, Verdict.FAILED)


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
        reading.over(1, 2, "3", **asked).save(path / f"{name}-head.npz")
    return path


@pytest.mark.parametrize("name", ["vit.npz", "vit-head.npz", "whisper.npz", "whisper-head.npz"])
def test_a_picture_or_a_sound_beside_the_file_is_read_again(sensed: Path, name: str, tmp_path: Path) -> None:
    result = check(str(sensed / name))
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "as stored" in result.stdout
    arrays = dict(np.load(sensed / name))
    arrays["weights"].flat[3] += 1e-3
    np.savez(sensed / f"changed-{name}", **arrays)
    assert check(str(sensed / f"changed-{name}")).exit_code == 5


def test_a_picture_that_was_moved_is_given_again_and_another_one_refused(
    sensed: Path, tmp_path: Path
) -> None:
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


def test_weights_from_another_seed_are_found_in_a_run_of_a_picture(sensed: Path, tmp_path: Path) -> None:
    media.save("vit", tmp_path / "vit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "manual_seed", lambda seed: torch.default_generator.manual_seed(seed + 1))
        media.save("vit", tmp_path / "vit")
    result = check(str(sensed / "vit.npz"), "-m", str(tmp_path / "vit"))
    assert result.exit_code == 5
    assert "4 of 4 heads" in result.stdout


def test_a_text_has_no_picture(folder: Path, sensed: Path) -> None:
    result = check(str(folder / "head.npz"), "--image", str(sensed / "square.png"))
    assert result.exit_code == 2
    assert "head.npz is of a text: leave --image and --audio out" in result.stderr
