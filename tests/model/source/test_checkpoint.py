"""Weight files: what is missing, broken or unsafe is said in one line before torch is imported."""

import hashlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from checkpoints import bert_config, tiny_bert
from safetensors.torch import load_file, save_file
from transformers import BertModel

from attnscope.errors import ModelUnavailableError
from attnscope.model.source import checkpoint, digests
from attnscope.model.source.checkpoint import Checkpoint, open_checkpoint
from attnscope.model.source.find import Source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "bert")


def opened(folder: Path, **options: bool) -> Checkpoint:
    return open_checkpoint(Source("m", "this-model", folder), **options)


def sharded(folder: Path) -> Path:
    """A tiny BERT in seven shards or more."""
    BertModel(bert_config()).save_pretrained(folder, max_shard_size="20KB")
    return folder


def held_by(folder: Path, shard: int) -> set[str]:
    """The weights in one shard, by its number, as the index says."""
    weight_map = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    chosen = sorted(set(weight_map.values()))[shard]
    return {weight for weight, file in weight_map.items() if file == chosen}


def problem(folder: Path, **options: bool) -> str:
    with pytest.raises(ModelUnavailableError) as raised:
        opened(folder, **options)
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith("this-model")
    return message


def test_a_folder_without_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert "no config.json" in problem(folder)


def test_folders_with_models_in_one_that_has_none_are_named(folder: Path) -> None:
    around = folder.parent
    for name in ("checkpoint-1000", "checkpoint-500", "1_Pooling", "runs"):
        (around / name).mkdir()
    for name in ("checkpoint-1000", "checkpoint-500"):
        (around / name / "config.json").write_text((folder / "config.json").read_text())
    (around / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 24}')
    (around / "z-adapter").mkdir()
    (around / "z-adapter" / "adapter_config.json").write_text("{}")
    told = problem(around)
    assert "bert, z-adapter, ..., checkpoint-1000" in told or "bert, z-adapter, checkpoint-500" in told
    assert told.endswith("name one, such as -m m/checkpoint-1000")
    assert "Pooling" not in told
    assert "runs" not in told


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "no weights" in problem(folder)


@pytest.mark.parametrize("keep", [0, 5, 200, -1])
def test_a_truncated_file_is_refused(folder: Path, keep: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    assert "truncated or corrupt" in problem(folder)


def test_pickled_weights_are_refused_unless_allowed(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "--allow-pickle" in problem(folder)
    assert opened(folder, allow_pickle=True).files == (folder / "pytorch_model.bin",)


def test_safetensors_are_preferred_to_pickles_that_lie_beside_them(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"evil")
    assert [file.name for file in opened(folder, allow_pickle=True).files] == ["model.safetensors"]


def test_a_corrupt_shard_is_refused_where_it_is_read_and_only_there(tmp_path: Path) -> None:
    whole = opened(sharded(tmp_path))
    whole.files[1].write_bytes(b"<html>not found</html>" * 50)
    assert opened(tmp_path).part(held_by(tmp_path, 2)).files == (whole.files[2],)
    with pytest.raises(ModelUnavailableError, match=f"{whole.files[1].name} is truncated or corrupt"):
        opened(tmp_path).part(held_by(tmp_path, 1))


def test_what_is_read_from_a_part_is_what_is_in_its_files(tmp_path: Path) -> None:
    part = opened(sharded(tmp_path)).part(held_by(tmp_path, 2))
    with part.readable() as folder:
        listed = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
        assert {weight: Path(file) for weight, file in listed.items()} == dict.fromkeys(
            load_file(part.files[0]), part.files[0]
        )
    assert not folder.exists()


@pytest.mark.parametrize(
    "content",
    ["[1, 2]", '{"weight_map": {}}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "../b"}}'],
)
def test_an_index_that_is_no_index_is_refused(content: str, tmp_path: Path) -> None:
    (sharded(tmp_path) / "model.safetensors.index.json").write_text(content)
    assert "not a weight index" in problem(tmp_path)


@pytest.mark.parametrize("adapted", [False, True])
def test_large_weights_without_a_commit_are_told_apart_by_their_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch, adapted: bool
) -> None:
    """An answer has no hash of more than 4 GiB; whatever is kept of a run must not be taken for another's."""
    monkeypatch.setattr(checkpoint, "_HASH_AT_MOST", 0)
    file = folder / ("adapter.safetensors" if adapted else "model.safetensors")
    file.write_bytes(file.read_bytes() if file.exists() else b"0123")

    def told_apart(revision: str | None) -> str:
        whole = opened(folder)
        adapter = SimpleNamespace(files=(file,)) if adapted else None
        of = replace(whole, source=replace(whole.source, revision=revision), adapter=cast(Any, adapter))
        assert of.digest.result() is None
        return of.told_apart

    before = told_apart(None), told_apart("abc")
    assert (before[1] == "abc") is not adapted  # a commit says nothing of what is put into it
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert told_apart(None) != before[0]
    assert (told_apart("abc") != before[1]) is adapted


def test_the_digest_of_a_part_depends_on_each_file_that_is_read_and_on_no_other(tmp_path: Path) -> None:
    whole = opened(sharded(tmp_path))
    wanted = held_by(tmp_path, 1) | held_by(tmp_path, 2)

    def digest() -> str | None:
        return opened(tmp_path).part(wanted).digest.result()

    before = digest()
    each = [hashlib.sha256(whole.files[shard].read_bytes()).hexdigest() for shard in (1, 2)]
    assert before == f"sha256:{hashlib.sha256(''.join(each).encode()).hexdigest()}"
    for shard, changes in ((0, False), (3, False), (1, True), (2, True)):
        content = whole.files[shard].read_bytes()
        whole.files[shard].write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert (digest() != before) is changes, shard
        whole.files[shard].write_bytes(content)


def test_the_precision_of_a_corrupt_file_is_an_error_in_one_line(tmp_path: Path) -> None:
    whole = opened(sharded(tmp_path))
    whole.files[1].write_bytes(b"\xff\x00\x00\x00\x00\x00\x00\x00{not a table" * 20)
    with pytest.raises(ModelUnavailableError, match=f"{whole.files[1].name} is truncated or corrupt"):
        _ = opened(tmp_path).precision


def test_the_precision_is_what_most_bytes_are_stored_in(tmp_path: Path) -> None:
    weights = {
        "a": torch.zeros(40, 3, dtype=torch.bfloat16),
        "b": torch.zeros(50),
        "c": torch.zeros(999).int(),
    }
    (tmp_path / "config.json").write_text("{}")
    save_file(weights, tmp_path / "model.safetensors")
    assert opened(tmp_path).precision == "bfloat16"
    save_file({**weights, "b": torch.zeros(61)}, tmp_path / "model.safetensors")
    assert opened(tmp_path).precision == "float32"
    save_file({"c": weights["c"]}, tmp_path / "model.safetensors")
    assert opened(tmp_path).precision is None


@pytest.mark.parametrize("told", [True, False])
def test_the_files_are_hashed_before_they_are_read_where_a_change_meanwhile_is_not_told(
    told: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else beside it: what is printed of the weights is of those that were read."""
    monkeypatch.setattr(digests, "LARGE", 0)
    monkeypatch.setattr(digests, "SETTLED", -1e9)  # a clock may leap between two dates
    monkeypatch.setattr(digests, "_kind", lambda handle: "ext4" if told else "tmpfs")
    going_on, hashed = threading.Event(), checkpoint.digest

    def later(files: tuple[Path, ...]) -> str | None:
        going_on.wait(0.3)
        return hashed(files)

    monkeypatch.setattr(checkpoint, "digest", later)
    found = opened(folder)
    found.complete()
    assert found.digest.done() is not told
    going_on.set()
    assert found.digest.result() == hashed(found.files)


def test_bytes_of_all_weights_are_known_wherever_the_shards_are(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    index = folder / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    tensors = sum(each.numel() * 4 for each in BertModel.from_pretrained(folder).state_dict().values())
    for file in folder.glob("*.safetensors"):
        file.unlink()
    assert opened(folder).whole == content["metadata"]["total_size"] == pytest.approx(tensors, rel=0.1)
    index.write_text(json.dumps({"weight_map": content["weight_map"]}))
    shards = len(set(content["weight_map"].values()))
    assert opened(folder).whole == shards * 5 * 10**9, "as many as fit in"
    BertModel(bert_config()).save_pretrained(tmp_path / "single")
    single = tmp_path / "single" / "model.safetensors"
    assert opened(tmp_path / "single").whole == single.stat().st_size
