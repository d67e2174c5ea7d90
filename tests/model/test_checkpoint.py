"""Weight files: what is missing, broken or unsafe is said in one line before torch is imported."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from checkpoints import bert_config, tiny_bert
from safetensors.torch import load_file
from transformers import BertModel

from attnscope.errors import ModelUnavailableError
from attnscope.model.checkpoint import open_checkpoint, weight_files
from attnscope.model.source import Source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "bert")


def problem(folder: Path, **options: bool) -> str:
    with pytest.raises(ModelUnavailableError) as raised:
        weight_files(folder, "this-model", **options)
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith("this-model")
    return message


def test_a_sound_folder_gives_its_one_file(folder: Path) -> None:
    assert weight_files(folder, "m") == (folder / "model.safetensors",)


def test_a_folder_without_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert "no config.json" in problem(folder)


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "no weights" in problem(folder)


@pytest.mark.parametrize("keep", [0, 5, 200, -1])
def test_a_truncated_file_is_refused(folder: Path, keep: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    assert "truncated or corrupt" in problem(folder)


def test_a_file_of_something_else_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"<html>not found</html>" * 50)
    assert "truncated or corrupt" in problem(folder)


def test_pickled_weights_are_refused_unless_allowed(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "--allow-pickle" in problem(folder)
    assert weight_files(folder, "m", allow_pickle=True) == (folder / "pytorch_model.bin",)


def test_safetensors_are_preferred_to_pickles_that_lie_beside_them(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"evil")
    assert [file.name for file in weight_files(folder, "m", allow_pickle=True)] == ["model.safetensors"]


def test_every_shard_of_an_index_must_be_there(tmp_path: Path) -> None:
    BertModel(bert_config()).save_pretrained(tmp_path, max_shard_size="20KB")
    shards = weight_files(tmp_path, "m")
    assert len(shards) > 2
    shards[1].unlink()
    assert f"lacks 1 of {len(shards)} weight files: {shards[1].name}" in problem(tmp_path)


def test_an_index_that_is_no_index_is_refused(tmp_path: Path) -> None:
    BertModel(bert_config()).save_pretrained(tmp_path, max_shard_size="20KB")
    (tmp_path / "model.safetensors.index.json").write_text("[1, 2]")
    assert "not a weight index" in problem(tmp_path)


def test_the_digest_is_what_sha256sum_prints(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    opened = open_checkpoint(Source("m", "m", folder))
    assert opened.digest.result() == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert opened.size == len(content)


def test_the_digest_changes_with_one_bit_of_the_weights(folder: Path) -> None:
    before = open_checkpoint(Source("m", "m", folder)).digest.result()
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert open_checkpoint(Source("m", "m", folder)).digest.result() != before


def test_the_digest_of_shards_depends_on_each_of_them(tmp_path: Path) -> None:
    BertModel(bert_config()).save_pretrained(tmp_path, max_shard_size="20KB")
    weight_map = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    digests = [open_checkpoint(Source("m", "m", tmp_path)).digest.result()]
    last = tmp_path / sorted(weight_map.values())[-1]
    last.write_bytes(last.read_bytes()[:-1] + b"\x01")
    digests.append(open_checkpoint(Source("m", "m", tmp_path)).digest.result())
    assert digests[0] != digests[1]
