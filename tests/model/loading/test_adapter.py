"""Adapters: put in by name, hashed, said; refused where they cannot be, and never left out in silence."""

import hashlib
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import tiny_bert
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import BertForMaskedLM

from attnscope.capture import Selection, record
from attnscope.errors import AttnscopeError, ModelUnavailableError
from attnscope.model.loaded import Model
from attnscope.model.loading.load import load_model, plan_model
from attnscope.model.source import weight_files as adapters
from attnscope.model.source.checkpoint import Checkpoint, open_checkpoint
from attnscope.model.source.find import find

RANK, ALPHA, WIDTH = 2, 7.0, 24
needs_peft = pytest.mark.skipif(find_spec("peft") is None, reason="puts an adapter in: needs peft")


def adapter(
    folder: Path, base: object, layers: range = range(5), part: str = "bert.", **settings: Any
) -> dict[str, Tensor]:
    """A low-rank adapter of queries and values in `folder`, made without peft; its weights."""
    folder.mkdir(exist_ok=True)
    told = {
        "peft_type": "LORA", "base_model_name_or_path": base, "r": RANK, "lora_alpha": ALPHA,
        "target_modules": ["query", "value"], "lora_dropout": 0.0, "bias": "none", "inference_mode": True,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps({**told, **settings}))
    torch.manual_seed(41)
    weights = {}
    for layer in layers:
        for which in ("query", "value"):
            stem = f"base_model.model.{part}encoder.layer.{layer}.attention.self.{which}"
            weights[f"{stem}.lora_A.weight"] = torch.randn(RANK, WIDTH)
            weights[f"{stem}.lora_B.weight"] = torch.randn(WIDTH, RANK)
    save_file(weights, folder / "adapter_model.safetensors", {"format": "pt"})
    return weights


def merged(folder: Path, weights: dict[str, Tensor], to: Path, scale: float = ALPHA / RANK) -> Path:
    """The model in `folder` with `W + B A scale` written into its own weights by hand."""
    shutil.copytree(folder, to)
    file = to / "model.safetensors"
    stored = load_file(file)
    for name, first in weights.items():
        if ".lora_A." in name:
            own = name.removeprefix("base_model.model.").replace(".lora_A", "")
            stored[own] += scale * weights[name.replace("lora_A", "lora_B")] @ first
    save_file(stored, file, {"format": "pt"})
    return to


def opened(name: Path | str, **options: Any) -> Checkpoint:
    allowed = bool(options.get("allow_pickle"))
    return open_checkpoint(find(str(name), allow_pickle=allowed), **options)


def loaded(name: Path | str, layers: int | None = None, **options: Any) -> Model:
    return load_model(plan_model(opened(name, **options)), layers=layers)


def vectors(model: Model, layer: int) -> dict[str, Tensor]:
    inputs = model.encode(("the dog was near the big door",)).inputs
    call = record(model.module, inputs, Selection(layers=[layer])).calls[0]
    return {"q": call.q, "k": call.k, "v": call.v, "output": call.output}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> dict[str, bool]:
    return {name: torch.allclose(first[name], second[name], atol=2e-4, rtol=1e-4) for name in first}


def problem(name: Path | str, **options: Any) -> str:
    with pytest.raises(ModelUnavailableError) as refused:
        loaded(name, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def sha256(*files: Path) -> str:
    each = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return f"sha256:{each[0] if len(each) == 1 else hashlib.sha256(''.join(each).encode()).hexdigest()}"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "base", BertForMaskedLM)


@pytest.fixture
def without_peft(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "find_spec", lambda name: None)


def test_an_adapter_beside_the_weights_is_refused_without_peft(base: Path, without_peft) -> None:
    adapter(base, "somewhere")
    assert problem(base) == (
        f"the adapter in {base} needs the package peft, which is not installed: pip install peft puts it in, "
        "--adapter none runs the model without it"
    )


def test_none_is_the_model_without_its_adapter_and_says_so(base: Path, tmp_path: Path) -> None:
    plain = loaded(base)
    assert plain.origin()["adapter"] is None
    expected = vectors(plain, 2)
    adapter(base, "somewhere")
    model = loaded(base, adapter="none")
    assert model.origin()["adapter"] == "none"
    assert model.origin()["digest"] == sha256(base / "model.safetensors")
    assert all(torch.equal(value, expected[name]) for name, value in vectors(model, 2).items())
    assert not any("lora" in name for name, _ in model.module.named_parameters())


@needs_peft
@pytest.mark.parametrize("place", ["beside", "named", "alone"])
def test_an_adapter_is_put_in_as_worked_out_by_hand(place: str, base: Path, tmp_path: Path) -> None:
    folder = base if place == "beside" else tmp_path / "adapter"
    by_hand = tmp_path / "by-hand"
    shutil.copytree(base, tmp_path / "untouched")
    weights = adapter(folder, str(base))
    merged(tmp_path / "untouched", weights, by_hand)
    options = {"adapter": str(folder)} if place == "named" else {}
    model = loaded(folder if place == "alone" else base, layers=4, **options)
    told = model.origin()
    assert told["adapter"] == str(folder)
    assert told["model"] == str(base)
    assert told["requested"] == str(folder if place == "alone" else base)
    assert told["digest"] == sha256(
        base / "model.safetensors", folder / "adapter_config.json", folder / "adapter_model.safetensors"
    )
    assert model.unread == ()
    assert not model.module.training
    for layer in (0, 3):
        found, plain = vectors(model, layer), vectors(loaded(tmp_path / "untouched"), layer)
        assert set(same(found, vectors(loaded(by_hand), layer)).values()) == {True}
        assert not any(same(found, plain)[name] for name in ("q", "v", "output"))


@needs_peft
@pytest.mark.parametrize(
    ("layers", "settings", "line"),
    [
        (range(4), {}, r"lacks 4 of its weights: .*layer\.4\.attention\.self\.query\.lora_A"),
        (range(6), {}, r"holds 4 weights inside attention .*layer\.5\..*; --ignore-unread runs without them"),
        (range(5), {"r": 3}, r"size mismatch for .*query\.lora_A.*\[2, 24\]"),
        (range(5), {"peft_type": "PROMPT_TUNING"}, r"puts vectors before the text .*: they are not read"),
        (range(5), {"peft_type": "NEVER_HEARD_OF"}, r"cannot put in the adapter in .*"),
        (range(5), {"rank_pattern": {"(": 3}}, r"cannot put in the adapter in .*"),
        (
            range(5),
            {"alpha_pattern": {"bert.encoder.layer.0.attention.self.query": 30}},
            r"a setting of its own for bert\..*query, which BertModel calls otherwise",
        ),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused_in_one_line(
    layers: range, settings: dict[str, object], line: str, base: Path, tmp_path: Path
) -> None:
    adapter(tmp_path / "adapter", str(base), layers, **settings)
    told = problem(tmp_path / "adapter")
    assert str(tmp_path / "adapter") in told
    with pytest.raises(AttnscopeError, match=line):
        raise AttnscopeError(told)


@needs_peft
def test_a_pickled_adapter_needs_leave(base: Path, tmp_path: Path) -> None:
    weights = adapter(base, "somewhere")
    (base / "adapter_model.safetensors").unlink()
    torch.save(weights, base / "adapter_model.bin")
    assert "only pickled weights, which can run code: --allow-pickle loads them" in problem(base)
    model = loaded(base, allow_pickle=True)
    assert model.origin()["adapter"] == str(base)


@needs_peft
def test_an_adapter_without_weights_or_with_damaged_ones_is_one_line(base: Path) -> None:
    adapter(base, "somewhere")
    (base / "adapter_model.safetensors").write_bytes(b"nothing of the sort")
    assert "adapter_model.safetensors is truncated or corrupt" in problem(base)
    (base / "adapter_model.safetensors").unlink()
    assert problem(base) == f"the adapter in {base} has no weights: expected adapter_model.safetensors"


def test_a_folder_without_an_adapter_is_not_one(base: Path, tmp_path: Path) -> None:
    expected = "expected adapter_config.json and adapter_model.safetensors"
    assert problem(base, adapter=str(tmp_path / "no")) == f"no adapter in {tmp_path / 'no'}: {expected}"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("no json", "Expecting value"),
        ('{"r": 2}', "KeyError 'base_model_name_or_path'"),
        ('{"base_model_name_or_path": null}', "base_model_name_or_path is None"),
        ('{"base_model_name_or_path": "x", "revision": 3}', "base_model_name_or_path is 'x'"),
    ],
)
def test_an_adapter_alone_that_does_not_say_of_which_model_is_one_line(
    told: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "adapter_config.json").write_text(told)
    line = problem(tmp_path)
    assert line.startswith(f"{tmp_path} holds an adapter and no model, and adapter_config.json does not say")
    assert why in line
    assert line.endswith(f"; -m MODEL --adapter {tmp_path} does")


def test_a_model_that_cannot_be_had_is_named_beside_its_adapter(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")
    for base in ("some/model", "/no/such/folder", "a b c"):
        adapter(tmp_path, base)
        line = problem(tmp_path)
        assert line.startswith(f"{tmp_path} holds an adapter of '{base}', which is not to be had: ")
        assert line.endswith(f"; -m MODEL --adapter {tmp_path} puts it into another")


def test_an_adapter_of_an_adapter_is_refused_and_so_ends(tmp_path: Path) -> None:
    adapter(tmp_path, str(tmp_path))
    assert f"{tmp_path} holds an adapter of an adapter" in problem(tmp_path)


def test_a_folder_with_an_adapter_alone_is_its_model_when_it_is_left_out(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    adapter(folder, str(base))
    source = find(str(folder))
    assert (source.requested, source.name, source.folder) == (str(folder), str(base), base)
    assert source.notice == f"{folder} holds an adapter of {base}"
    model = loaded(folder, adapter="none")
    assert model.origin()["adapter"] == "none"
    assert model.origin()["digest"] == sha256(base / "model.safetensors")
