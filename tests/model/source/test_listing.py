"""What is known of weights that are not read: of files on this machine, and of a hub that has them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoints import tiny_bert
from hub_stand_in import Hub, empty_cache, served
from huggingface_hub import constants
from sharded import SHARDS, in_shards, llama, shard_name

from attnscope.errors import InputError, ModelUnavailableError
from attnscope.model.source import hub
from attnscope.model.source.find import Source, find
from attnscope.model.source.listing import HERE, ON_THE_HUB, Listing, list_files

REPOSITORY = "someone/model"
INDEX = "model.safetensors.index.json"


def here(folder: Path) -> Listing:
    return list_files(Source(str(folder), "m", folder))


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Hub, Path]]:
    empty_cache(tmp_path / "cache", monkeypatch)
    folder = in_shards(llama(), tmp_path / "there")
    with served(REPOSITORY, folder, monkeypatch) as there:
        yield there, folder


def test_files_on_this_machine_tell_their_size_and_precision(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    told = here(folder).storage
    assert (told.place, told.files, told.precision, told.shards) == (HERE, 1, "float32", {})
    assert told.size == (folder / "model.safetensors").stat().st_size


def test_shards_tell_which_of_them_are_missing(tmp_path: Path) -> None:
    folder = in_shards(llama(), tmp_path / "m")
    whole = here(folder).storage
    assert whole.size == sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    (folder / shard_name(3)).unlink()
    told = here(folder).storage
    assert (told.files, told.size, told.shards[shard_name(3)]) == (SHARDS, None, None)
    assert {**whole.shards, shard_name(3): None} == told.shards


def test_a_config_alone_is_enough_and_says_so(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    told = here(folder)
    assert (told.storage, told.why) == (None, "there are no weights beside its config.json")
    (folder / "config.json").unlink()
    with pytest.raises(ModelUnavailableError, match=r"m has no config\.json"):
        here(folder)


def test_a_corrupt_file_is_refused_in_words(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    (folder / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(ModelUnavailableError, match=r"m: model\.safetensors is truncated or corrupt"):
        here(folder)


def test_of_a_hub_model_no_weights_are_fetched(shards: tuple[Hub, Path]) -> None:
    there, folder = shards
    told = list_files(find(REPOSITORY, weights=False))
    assert told.storage.place == ON_THE_HUB
    assert told.storage.shards == {file.name: file.stat().st_size for file in folder.glob("*.safetensors")}
    assert told.storage.size == sum(told.storage.shards.values())
    assert told.storage.precision == "float32"
    assert told.shards == json.loads((folder / INDEX).read_text())["weight_map"]
    assert set(there.bytes) == {"config.json", INDEX, shard_name(0)}
    assert there.bytes[shard_name(0)] <= 100_002 < (folder / shard_name(0)).stat().st_size


def test_looking_at_a_hub_model_leaves_nothing_that_looks_like_weights(shards: tuple[Hub, Path]) -> None:
    list_files(find(REPOSITORY, weights=False))
    cached = [file.name for file in Path(constants.HF_HUB_CACHE).rglob("*") if file.suffix == ".json"]
    assert cached == ["config.json"]
    assert hub.cached(REPOSITORY, None) is None
    assert find(REPOSITORY).folder.joinpath("tokenizer.json").is_file()


def test_a_single_file_on_the_hub_tells_its_precision_from_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_cache(tmp_path / "cache", monkeypatch)
    folder = tiny_bert(tmp_path / "there")
    with served(REPOSITORY, folder, monkeypatch) as there:
        told = list_files(find(REPOSITORY, weights=False)).storage
    size = (folder / "model.safetensors").stat().st_size
    assert (told.files, told.size, told.precision, told.shards) == (1, size, "float32", {})
    assert there.bytes["model.safetensors"] < size


def test_a_cached_config_is_enough_without_the_hub(
    shards: tuple[Hub, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    find(REPOSITORY, weights=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    told = list_files(find(REPOSITORY, weights=False))
    assert told.storage is None
    assert told.why == "no weights are in the local cache, and HF_HUB_OFFLINE is set"
    with pytest.raises(ModelUnavailableError, match="not in the local cache"):
        find(REPOSITORY)


def test_a_name_that_cannot_be_one_is_refused_as_ever() -> None:
    with pytest.raises(InputError, match="empty"):
        find(" ", weights=False)
