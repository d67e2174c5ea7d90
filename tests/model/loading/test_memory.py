"""What a model takes: said where its weights are changed, refused where there is surely no room."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from checkpoints import bert_config, save, tiny_bert
from transformers import BertModel, GPT2LMHeadModel

from attnscope.errors import DoesNotFitError
from attnscope.model.loaded import Model
from attnscope.model.loading import memory
from attnscope.model.loading.load import load_model, plan_model
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import Source
from attnscope.process import machine

CPU = torch.device("cpu")


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A tiny BERT stored in bfloat16."""
    return save(BertModel(bert_config()).to(torch.bfloat16), tmp_path / "half")


def loaded(folder: Path, **options) -> Model:
    return load_model(plan_model(open_checkpoint(Source("m", "m", folder))), **options)


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
        (None, None, False),
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


def test_weights_that_run_as_they_are_stored_need_no_room(half: Path, tmp_path: Path, monkeypatch) -> None:
    room(monkeypatch, 10)
    assert loaded(half, dtype="auto").module.dtype == torch.bfloat16
    assert loaded(half, dtype="bfloat16").module.dtype == torch.bfloat16
    assert loaded(tiny_bert(tmp_path / "m")).module.dtype == torch.float32


def test_fewer_layers_need_less_room(half: Path, monkeypatch) -> None:
    whole, part = (memory.taken(loaded(half, layers=layers)) for layers in (5, 1))
    room(monkeypatch, (whole + part) // 2)
    assert loaded(half, layers=1).layers == 1
    with pytest.raises(DoesNotFitError, match="its first 5 layers"):
        loaded(half, layers=5)


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
