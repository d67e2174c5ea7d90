"""Whatever decides about a number is part of the key that it is kept under."""

import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from attnscope.errors import AttnscopeError
from attnscope.model.source import hub
from attnscope.model.source.find import find
from attnscope.model.source.here import folder_here
from attnscope.session.cache import witnesses
from attnscope.session.cache.memory import Memory, look_into, remember
from attnscope.session.listener import Quiet
from attnscope.session.prompts import Field
from attnscope.session.request import Chat, Inputs, ModelRequest, Writing
from attnscope.session.wanted import Wanted

MODEL, TEXT = ModelRequest("demo"), Inputs("The dog ran.")
OTHER_MODEL: dict[str, Any] = {
    "model": "demo-causal", "device": "cpu", "dtype": "float64", "revision": "abc", "allow_pickle": True,
    "attention": "sdpa", "ignore_unread": True,
}  # fmt: skip
OTHER_TEXT: dict[str, Any] = {
    "text": "The dog ran", "pair": "Why?", "target": "Le chien.", "truncate": True, "split": True,
    "words": ("The", "dog", "ran."), "target_ids": (1, 2),
    "fields": {"a": Field("x", ((0, 1),))}, "answer": "door",
}  # fmt: skip
OTHER_ATTENTION: dict[str, Any] = {"kind": "encoder", "tower": "attention", "block": 1, "route": "traced"}
PLACED = {"device_map", "max_memory"}
NOT_KEPT = {
    "trust_remote_code",
    "adapter",
    "image",
    "audio",
    "writing",
    "ids",
    "vocab",
    "chat",
    "system",
} | PLACED


def memory(model: ModelRequest = MODEL, text: Inputs = TEXT, wanted: Wanted = Wanted()) -> Memory | None:  # noqa: B008
    return remember(model, text, wanted, Quiet())


def key(*asked: Any) -> str:
    found = memory(*asked)
    assert found is not None
    return found.key("layer", 0)


@pytest.fixture(autouse=True)
def on(place: Path) -> None:
    """The cache is on, and the program's files are as they are."""


def test_every_field_of_a_request_is_part_of_the_key_or_not_kept_at_all() -> None:
    keys = [key()]
    keys += [key(replace(MODEL, **{name: other})) for name, other in OTHER_MODEL.items()]
    keys += [key(MODEL, replace(TEXT, **{name: other})) for name, other in OTHER_TEXT.items()]
    keys += [key(MODEL, TEXT, Wanted(**{name: other})) for name, other in OTHER_ATTENTION.items()]
    keys.append(key(MODEL, Inputs(ids=(5, 6))))
    assert len(set(keys)) == len(keys)
    known = {*OTHER_MODEL, *OTHER_TEXT, *OTHER_ATTENTION, *NOT_KEPT, "layer", "head"}
    assert {each.name for kind in (ModelRequest, Inputs, Wanted) for each in fields(kind)} == known
    assert key(MODEL, TEXT, Wanted("3", "1")) == keys[0]  # which is asked for stands in what is kept


def test_what_reads_other_files_runs_other_code_or_draws_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for inputs in (
        Inputs("x", image=file),
        Inputs(audio=file),
        Inputs("x", writing=Writing(3)),
        Inputs(ids=(1,), vocab=file),
        Inputs(chat=Chat(({"role": "user", "content": "x"},))),
        Inputs("x", system=""),
    ):
        assert memory(MODEL, inputs) is None
    for request in (replace(MODEL, trust_remote_code=True), replace(MODEL, adapter="none")):
        assert memory(request) is None
    assert memory() is not None


def model_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("config.json", "{}"), ("tokenizer.json", "[]"), ("model.safetensors", "x" * 40)):
        (folder / name).write_text(content)
    return folder


def test_an_adapter_beside_the_weights_or_a_folder_that_is_no_model_is_not_kept(tmp_path: Path) -> None:
    folder = model_in(tmp_path / "model")
    assert memory(ModelRequest(str(folder))) is not None
    (folder / "adapter_config.json").write_text("{}")
    assert memory(ModelRequest(str(folder))) is None
    assert memory(ModelRequest(str(tmp_path / "nowhere"))) is None


def test_any_change_of_a_models_folder_is_seen_but_for_the_content_of_weights(tmp_path: Path) -> None:
    folder = model_in(tmp_path)
    seen = [look_into(folder)]
    weights, config = folder / "model.safetensors", folder / "config.json"
    small = config.stat()
    changes = (
        lambda: (config.write_text("[]"), os.utime(config, ns=(0, small.st_mtime_ns))),
        lambda: (folder / "vocab.txt").write_text("a"),
        lambda: (folder / "modeling_own.py").write_text("a = 1"),
        lambda: (folder / "modeling_own.py").write_text("a = 2"),
        lambda: (folder / "pytorch_model.bin").write_text("z"),
        lambda: (folder / "tokenizer.json").unlink(),
        lambda: (folder / "more").mkdir(),
    )
    for change in changes:
        change()
        seen.append(look_into(folder))
        assert seen[-1] is not None
    assert len(set(seen)) == len(changes) + 1
    weights.write_text("y" * 40)  # which of them are read is not known here: see test_edits
    assert look_into(folder) == seen[-1]


@pytest.mark.parametrize(
    ("variable", "counts"),
    [
        ("OMP_NUM_THREADS", True),
        ("CUDA_VISIBLE_DEVICES", True),
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", True),
        ("TRANSFORMERS_NO_ADVISORY_WARNINGS", True),
        ("COLUMNS", False),
        ("HF_TOKEN", False),
    ],
)
def test_settings_that_libraries_compute_by_are_part_of_the_key(variable, counts, monkeypatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    before = key()
    monkeypatch.setenv(variable, "3")
    assert (key() != before) is counts


def test_libraries_processor_threads_and_devices_are_part_of_the_key(monkeypatch) -> None:
    keys = [key()]
    for name, other in (
        ("library", lambda name: ["torch-9.9"]),
        ("_processor", lambda: "another"),
        ("_cores", lambda: 77),
        ("_threads", lambda: 78),
        ("_devices", lambda: "a card"),
        ("__version__", "9.9"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(witnesses, name, other)
            keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


def test_a_library_that_was_installed_anew_is_another_one(tmp_path: Path, monkeypatch) -> None:
    home = tmp_path / "torchlike"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (tmp_path / "torchlike-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    first = witnesses.library("torchlike")
    (tmp_path / "torchlike-1.0.dist-info").rename(tmp_path / "torchlike-1.1.dist-info")
    second = witnesses.library("torchlike")
    (home / "__init__.py").write_text("# patched")
    found = [first, second, witnesses.library("torchlike")]
    (home / "lib").mkdir()
    for content in (b"1", b"2"):  # as an installer does, which makes a new file
        (home / "lib" / "new").write_bytes(content)
        (home / "lib" / "new").replace(home / "lib" / "libtorch_cpu.so")
        found.append(witnesses.library("torchlike"))
    assert first is not None
    assert "torchlike-1.0.dist-info" in first
    assert len({str(each) for each in found}) == len(found)
    assert str(witnesses.library("torchlike")) == str(found[-1])
    assert witnesses.library("nosuchlibrary") is None


def snapshot(cache: Path, name: str, commit: str, ref: str | None = "main", weights: bool = True) -> Path:
    repository = cache / f"models--{name.replace('/', '--')}"
    model_in(repository / "snapshots" / commit)
    if not weights:
        (repository / "snapshots" / commit / "model.safetensors").unlink()
    if ref is not None:
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / ref).write_text(commit)
    return repository / "snapshots" / commit


def test_where_a_model_lies_is_told_as_find_tells_it(tmp_path: Path, monkeypatch) -> None:
    cache = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    snapshot(cache, "org/one", "c1")
    snapshot(cache, "org/one", "c2", "dev")
    snapshot(cache, "org/bare", "c3", weights=False)
    snapshot(cache, "google-bert/bert-base-uncased", "c4")
    model_in(tmp_path / "org" / "near")
    (tmp_path / "file").write_text("")
    asked = [
        ("demo", None), ("org/one", None), ("org/one", "dev"), ("org/one", "c1"), ("org/one", "nosuch"),
        ("org/bare", None), ("org/near", None), ("./org/near", None), ("file", None), ("org/two", None),
        (None, None), ("bert-base-uncased", None), ("org/one", "../refs"), ("a/b/c", None),
    ]  # fmt: skip
    for name, revision in asked:
        try:
            known = find(name, revision=revision)
            expected = None if known.notice else known.folder.resolve()
        except AttnscopeError:
            expected = None
        found = folder_here(name, revision)
        assert (found and found.resolve()) == expected, (name, revision)
    monkeypatch.setenv("ATTNSCOPE_MODEL", "org/one")
    assert folder_here(None) == find(None).folder
    snapshot(cache, "bert-base-uncased", "c5")
    assert folder_here("bert-base-uncased") == find("bert-base-uncased").folder


def test_the_cache_of_the_hub_is_where_its_library_has_it() -> None:
    ask = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    told = {"HF_HOME": "~/h/$WHO", "WHO": "me", "XDG_CACHE_HOME": "/x", "HF_HUB_CACHE": "$WHO/c"}
    for names in (["HF_HOME", "WHO"], ["HF_HUB_CACHE", "WHO", "HF_HOME"]):
        plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment = plain | {name: told[name] for name in names}
        expected = subprocess.check_output([sys.executable, "-c", ask], env=environment, text=True).strip()
        with pytest.MonkeyPatch.context() as changed:
            for name in told.keys() | {"HUGGINGFACE_HUB_CACHE"}:
                changed.delenv(name, raising=False)
            for name in names:
                changed.setenv(name, told[name])
            from attnscope.model.source import here

            assert str(here._hub_cache()) == expected
