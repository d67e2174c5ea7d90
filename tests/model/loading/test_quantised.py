"""Quantised checkpoints are the numbers that they stand for; what a model takes is said, or refused."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import bert_config, save, vocabulary_size
from safetensors.torch import load_file, save_file
from sharded import llama_config
from torch import Tensor
from transformers import BertModel, GPT2LMHeadModel, GptOssConfig, GptOssModel, LlamaModel

from attnscope.errors import DoesNotFitError, ModelUnavailableError
from attnscope.model.loaded import Model
from attnscope.model.loading import memory
from attnscope.model.loading.load import load_model, plan_model
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import Source
from attnscope.process import machine

FOUR_BITS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
BLOCK = 12


def told(folder: Path, **quantisation: Any) -> Path:
    """`folder` with a quantisation in its config."""
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "quantization_config": quantisation}))
    return folder


def loaded(folder: Path, **options: Any) -> Model:
    return load_model(plan_model(open_checkpoint(Source("m", "m", folder))), **options)


def problem(folder: Path) -> str:
    with pytest.raises(ModelUnavailableError) as raised:
        loaded(folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    torch.manual_seed(2)
    return save(LlamaModel(llama_config(num_hidden_layers=2)), tmp_path / "m")


def four_bit_experts(folder: Path) -> dict[str, Tensor]:
    """A tiny GPT-OSS in `folder` with experts of four bits in blocks of 32; the numbers it stands for."""
    config = GptOssConfig(
        vocab_size=vocabulary_size(), hidden_size=32, intermediate_size=64, num_hidden_layers=3, head_dim=8,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=3, num_experts_per_tok=2,
        initializer_range=0.5, dtype="bfloat16",
    )  # fmt: skip
    torch.manual_seed(4)
    save(GptOssModel(config).to(torch.bfloat16), folder)
    stored, truth = {}, {}
    for name, weight in load_file(folder / "model.safetensors").items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            stored[name], truth[name] = weight, weight.float()
            continue
        experts, columns, rows = weight.shape
        pairs = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
        exponents = torch.randint(120, 128, (experts, rows, columns // 32), dtype=torch.uint8)
        stored[f"{name}_blocks"], stored[f"{name}_scales"] = pairs, exponents
        halves = torch.stack([FOUR_BITS[(pairs % 16).long()], FOUR_BITS[(pairs // 16).long()]], -1)
        numbers = halves.flatten(-2) * 2.0 ** (exponents.float() - 127)[..., None]
        truth[name] = numbers.reshape(experts, rows, columns).transpose(1, 2)
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    told(folder, quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    return truth


def eight_bit_blocks(folder: Path) -> dict[str, Tensor]:
    """The weights of `folder` in eight-bit floats with a scale for each block; the numbers they stand for."""
    file = folder / "model.safetensors"
    stored, truth = {}, {}
    for name, weight in load_file(file).items():
        if weight.ndim == 1 or "embed" in name:
            stored[name] = weight.to(torch.bfloat16)
            truth[name] = stored[name].float()
            continue
        rows, columns = (size // BLOCK for size in weight.shape)
        blocks = weight.reshape(rows, BLOCK, columns, BLOCK)
        scales = blocks.abs().amax((1, 3)) / 448
        short = (blocks / scales[:, None, :, None]).to(torch.float8_e4m3fn)
        stored[name], stored[f"{name}_scale_inv"] = short.reshape(weight.shape), scales
        truth[name] = (short.float() * scales[:, None, :, None]).reshape(weight.shape)
    save_file(stored, file, {"format": "pt"})
    told(folder, quant_method="fp8", weight_block_size=[BLOCK, BLOCK], activation_scheme="dynamic")
    return truth


@pytest.mark.parametrize("layers", [None, 2])
def test_four_bit_experts_are_multiplied_out_to_the_very_numbers(layers: int | None, tmp_path: Path) -> None:
    truth = four_bit_experts(tmp_path / "m")
    model = loaded(tmp_path / "m", layers=layers)
    weights = model.module.state_dict()
    for name, weight in weights.items():
        assert weight.dtype == torch.float32, name
        assert torch.equal(weight, truth[name]), name
    assert sum("experts" in name for name in weights) == (layers or 3) * 4
    assert model.quantised == "mxfp4"
    assert memory.statement(model).startswith("quantised with mxfp4: run in float32, ")
    assert memory.is_notable(model)


def test_what_is_multiplied_out_needs_room(tmp_path: Path, monkeypatch) -> None:
    four_bit_experts(tmp_path / "m")
    monkeypatch.setattr(machine, "_available", lambda: 100_000)
    with pytest.raises(DoesNotFitError, match=r"m in bfloat16 .* takes .* MB, and memory has 0\.1 MB free"):
        loaded(tmp_path / "m", dtype="auto")


@pytest.mark.skipif(find_spec("accelerate") is None, reason="transformers reads fp8 with accelerate only")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eight_bit_blocks_are_multiplied_out_to_the_very_numbers(dtype: str, plain: Path) -> None:
    truth = eight_bit_blocks(plain)
    model = loaded(plain, dtype=dtype)
    for name, weight in model.module.state_dict().items():
        assert weight.dtype == getattr(torch, dtype), name
        assert torch.allclose(weight, truth[name].to(weight.dtype), rtol=1e-6, atol=0), name
    model.module(**model.encode(("the door",)).inputs)


WORD = {"quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}, "_version": 1}}}


@pytest.mark.parametrize(
    ("method", "settings", "lacking", "package"),
    [
        ("fp8", {}, "accelerate", "accelerate"),
        ("gptq", {"bits": 4}, "optimum", "optimum"),
        ("compressed-tensors", {"config_groups": {}}, "compressed-tensors", "compressed_tensors"),
        ("torchao", WORD, "torchao", "torchao"),
        ("quanto", {"weights": "int8"}, "optimum-quanto", "optimum"),
        ("auto-round", {"bits": 4}, "auto-round", "auto_round"),
        ("spqr", {"bits": 3}, "GPU", "spqr_quant"),
        ("nvfp4", {}, "not supported", "attnscope.nothing"),
    ],
)
def test_a_method_that_cannot_be_used_here_is_named_with_what_it_lacks(
    method: str, settings: dict[str, Any], lacking: str, package: str, plain: Path
) -> None:
    if find_spec(package) or (lacking == "GPU" and torch.cuda.is_available()):
        pytest.skip(f"there is {package}")
    line = problem(told(plain, quant_method=method, **settings))
    assert line.startswith(f"m is quantised with {method}")
    assert lacking in line


def test_a_method_that_transformers_does_not_know_is_refused(plain: Path) -> None:
    line = problem(told(plain, quant_method="modelopt", quant_algo="FP8"))
    assert line.startswith("m is quantised with modelopt, which transformers cannot read; it reads ")
    assert " mxfp4" in line


def test_a_quantisation_without_a_method_is_refused(plain: Path) -> None:
    assert "does not say how" in problem(told(plain, bits=4, group_size=64))


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.int8])
def test_short_numbers_without_a_word_of_what_they_stand_for_are_refused(
    kind: torch.dtype, plain: Path
) -> None:
    file = plain / "model.safetensors"
    name = "layers.1.mlp.up_proj.weight"
    save_file({**load_file(file), name: load_file(file)[name].to(kind)}, file, {"format": "pt"})
    assert f"{name} is stored as " in problem(plain)
    assert loaded(plain, layers=1).layers == 1


@pytest.mark.parametrize(
    "scale", ["weight_scale", "weight_scale_inv", "weight.absmax", "weight_zero_point", "weight:scale"]
)
def test_a_scale_that_nothing_reads_is_refused(scale: str, plain: Path) -> None:
    file = plain / "model.safetensors"
    name = f"layers.1.mlp.up_proj.{scale}"
    save_file({**load_file(file), name: torch.ones(3)}, file, {"format": "pt"})
    assert f"it has no use for {name}" in problem(plain)
    assert loaded(plain, layers=1).layers == 1


def test_other_leftovers_of_a_checkpoint_are_no_scales(plain: Path) -> None:
    file = plain / "model.safetensors"
    for name in ("layers.0.self_attn.rotary_emb.inv_freq", "layers.0.mlp.up_proj.mask", "scale"):
        save_file({**load_file(file), name: torch.ones(3)}, file, {"format": "pt"})
    assert loaded(plain).quantised is None


CPU = torch.device("cpu")


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A tiny BERT stored in bfloat16."""
    return save(BertModel(bert_config()).to(torch.bfloat16), tmp_path / "half")


def room(monkeypatch: pytest.MonkeyPatch, available: int | None, limit: int | None = None) -> None:
    monkeypatch.setattr(machine, "_available", lambda: available)
    monkeypatch.setattr(machine, "_container_limit", lambda: limit)


def test_the_size_is_that_of_the_parameters_in_the_precision_they_run_in(half: Path) -> None:
    model = loaded(half, layers=2)
    skeleton = model.module
    names = dict(skeleton.named_parameters())
    numbers = sum(weight.numel() for weight in names.values())
    assert memory.size_of(skeleton, names, torch.bfloat16) == 2 * numbers
    assert memory.taken(model) == memory.size_of(skeleton, names, torch.float32) == 4 * numbers


def test_tied_weights_count_once() -> None:
    from sharded import gpt2

    model = gpt2()
    assert isinstance(model, GPT2LMHeadModel)
    whole = memory.size_of(model, model.state_dict(), torch.float32)
    body = memory.size_of(model.transformer, model.transformer.state_dict(), torch.float32)
    assert whole == body == 4 * sum(weight.numel() for weight in model.transformer.parameters())


@pytest.mark.parametrize(
    ("available", "limit", "refused"),
    [
        (10**4, None, True),
        (10**9, None, False),
        (10**9, 10**4, True),
        (None, 10**9, False),
    ],
)
def test_converted_weights_are_refused_only_where_they_surely_do_not_fit(
    half: Path, monkeypatch, available: int | None, limit: int | None, refused: bool
) -> None:
    room(monkeypatch, available, limit)
    if not refused:
        assert loaded(half).module.dtype == torch.float32
        return
    with pytest.raises(DoesNotFitError) as raised:
        loaded(half)
    line = str(raised.value)
    assert raised.value.exit_code == 4
    assert line.startswith("m in float32 (the whole of it) takes ")
    spread = "--device-map auto spreads it over all that there is, the disk too"
    assert line.endswith(f", and memory has 0.0 MB free; --dtype auto runs it in bfloat16; {spread}")


def test_what_the_system_tells_is_read_in_bytes(tmp_path: Path, monkeypatch) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal: 900 kB\nMemAvailable:     300 kB\nHugePages_Total:  0\nSwapFree:  50 kB\n")
    monkeypatch.setattr(machine, "_MEMINFO", told)
    monkeypatch.setattr(machine, "_CONTAINER_LIMIT", tmp_path / "memory.max")
    assert memory.free(CPU) == 350 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free(CPU) == 350 * 1024
    (tmp_path / "memory.max").write_text("2048\n")
    assert memory.free(CPU) == 2048


def test_a_process_that_is_limited_has_what_it_has_not_mapped_yet(tmp_path: Path, monkeypatch) -> None:
    resource = pytest.importorskip("resource")
    page = resource.getpagesize()
    (tmp_path / "statm").write_text("3 2 1 1 0 1 0\n")
    monkeypatch.setattr(machine, "_STATM", tmp_path / "statm")
    monkeypatch.setattr(resource, "getrlimit", lambda what: (10 * page, resource.RLIM_INFINITY))
    assert memory.free(CPU) == 7 * page
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY,) * 2)
    assert memory.free(CPU) != 7 * page


def test_a_system_without_a_table_bounds_it_by_all_its_memory(tmp_path: Path, monkeypatch) -> None:
    before = memory.free(CPU)
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "none")
    assert before is None or memory.free(CPU) is not None


def test_the_statement_says_what_is_stored_and_what_is_run(half: Path, tmp_path: Path, monkeypatch) -> None:
    model = loaded(half, layers=3)
    megabytes = memory.taken(model) / 1e6
    assert memory.statement(model) == (
        f"stored in bfloat16: run in float32, {megabytes:.1f} MB for its first 3 layers; "
        "--dtype auto runs it as stored"
    )
    same = loaded(half, dtype="auto")
    assert memory.statement(same) == f"run in bfloat16, {memory.taken(same) / 1e6:.1f} MB"
    assert [memory.is_notable(each) for each in (model, same)] == [False, False]
    monkeypatch.setattr(memory, "_LARGE", memory.taken(same) - 1)
    assert [memory.is_notable(each) for each in (model, same)] == [True, False]


@pytest.mark.parametrize(
    ("size", "words"), [(14_500_000_000, "14.5 GB"), (10**8, "0.1 GB"), (250_000, "0.2 MB")]
)
def test_sizes_are_in_decimal_units(size: int, words: str) -> None:
    assert machine.gigabytes(size) == words


def test_the_most_memory_is_of_this_process_alone_and_not_of_who_started_it() -> None:
    tell = "from attnscope.process.machine import peak_memory; print(peak_memory())"
    own = "held = b'x' * 200_000_000; " + tell
    alone, large = (
        int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for code in (tell, own)
    )
    here = machine.peak_memory()
    assert here is not None
    assert 1_000_000 < alone < here, "torch is in memory here and not there"
    assert 150_000_000 < large - alone < 250_000_000
