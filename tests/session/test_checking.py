"""A stored run made anew: the same numbers pass, a changed number, mask or model is found and named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import made_check
import numpy as np
import pytest
from typer.testing import CliRunner, Result

import attnscope as at
from attnscope import demo
from attnscope.cli.app import app
from attnscope.results import Check, Verdict

TEXT = "I was watching the door when it opened."
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
    """The same file with one of its arrays changed."""
    arrays = dict(np.load(path))
    change(arrays[name])
    np.savez(to, **arrays)
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
    assert (len(again.heads), again.changes, again.verdict) == (heads, (), Verdict.CERTIFIED)


@pytest.mark.parametrize("array", ["weights", "scores", "scaled", "q", "k", "v", "output"])
def test_one_number_beyond_its_tolerance_is_found_and_one_within_is_not(
    folder: Path, array: str, tmp_path: Path
) -> None:
    head = at.open(folder / "head.npz")
    proof, layers = head.certificate, 4
    allowed = proof.weight_tolerance * layers
    if array == "scores":
        allowed /= head.scale
    elif array not in ("weights", "scaled"):
        allowed = proof.output_tolerance * layers * np.abs(getattr(head, array)).max()
    for times, code in ((0.9, 0), (1.1, 5)):
        path = changed(folder / "head.npz", array, add((5, 2), times * allowed), tmp_path / "changed.npz")
        result = check(str(path))
        assert result.exit_code == code, (times, result.stdout)
    lines = [line for line in result.stdout.splitlines() if line.startswith("L3 H11")]
    assert len(lines) == 1
    assert f"{array} off by" in lines[0]
    assert result.stderr == "attnscope: of 1 heads 1 not as stored in changed.npz\n"


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
    tensors["bert.encoder.layer.1.attention.self.query.weight"][:8] *= 1.01  # head 0 of layer 1
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    result = check(str(tmp_path / "run.npz"))
    assert result.exit_code == 5
    assert "the weights of the model have changed: stored sha256:" in result.stdout.replace("\n", " ")
    named = [
        line[:5] for line in result.stdout.splitlines() if "not as stored" in line and line.startswith("L")
    ]
    assert named == ["L1 H0", "L2 H0", "L2 H3"]


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
    for name, why in (
        ("prediction.npz", "holds no weights of heads"),
        ("heads.json", "leaves the weights of its heads out: give the npz"),
        ("none.npz", "no such file"),
    ):
        result = check(str(tmp_path / name))
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert why in result.stderr


def test_heads_that_are_not_as_stored_have_a_line_each_and_others_with_v_alone() -> None:
    broken = made_check.check(broken=True)
    lines = broken.text(width=80).splitlines()
    told = [line.split("  ")[0] for line in lines if "not as stored" in line]
    assert told == ["L2 H11", "L3 H5", "✗ 2 of 3 heads are not as stored"]
    assert "torch: stored 2.4, now 2.5" in lines
    assert not any(line.startswith("L0 H1") for line in lines)
    assert "✓ 3 heads as stored, off by 4.0e-7 at most" in made_check.check().text(width=80)


def test_a_number_that_only_one_run_has_comes_back_from_a_file(tmp_path: Path) -> None:
    broken = made_check.check(broken=True)
    for suffix in ("json", "npz"):
        again = at.open(broken.save(tmp_path / f"check.{suffix}"))
        assert (again.heads, again.changes, again.verdict) == (broken.heads, broken.changes, Verdict.FAILED)
