"""What is asked of the hub, no shard but those needed, and what is known of weights that are not read."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from checkpoints import tiny_bert
from hub_stand_in import COMMIT, Hub, empty_cache, served
from huggingface_hub import constants
from safetensors.torch import load_file
from sharded import SHARDS, in_shards, llama, shard_name

from attnscope.errors import DoesNotFitError, ModelUnavailableError
from attnscope.model.loading.load import load_model, plan_model
from attnscope.model.source import hub as real_hub
from attnscope.model.source.checkpoint import Checkpoint, open_checkpoint
from attnscope.model.source.find import Source, find
from attnscope.model.source.listing import ON_THE_HUB, Listing, list_files
from attnscope.process import machine

REPOSITORY = "some/llama"
INDEX = "model.safetensors.index.json"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_cache(tmp_path / "cache", monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the hub has: a Llama of seven layers in nine shards, and the same weights pickled."""
    torch.manual_seed(3)
    made = in_shards(llama(), tmp_path / "served")
    for name in ("pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json", "notes.md"):
        (made / name).write_text("{}")
    return made


@pytest.fixture
def hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with served(REPOSITORY, folder, monkeypatch) as there:
        yield there


def opened() -> Checkpoint:
    return open_checkpoint(find(REPOSITORY))


def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def shards(hub: Hub) -> list[str]:
    """The shards that were asked for, whether or not they were sent."""
    return sorted(name for name in hub.asked if name.endswith((".safetensors", ".bin")))


def test_shards_that_are_not_needed_are_never_asked_for_and_the_others_sent_once(
    hub: Hub, folder: Path
) -> None:
    model = load_model(plan_model(opened()), layers=3)
    assert shards(hub) == [shard_name(number) for number in (0, 1, 2, 3)]
    assert {times for (_, name), times in hub.sent.items() if name in shards(hub)} == {1}
    assert model.origin()["part"] == "4 of 9 shards"
    assert model.origin()["revision"] == COMMIT
    stored = load_file(folder / shard_name(3))["model.layers.2.mlp.up_proj.weight"]
    assert torch.equal(model.module.layers[2].mlp.up_proj.weight, stored)


def test_everything_but_the_configuration_is_asked_of_its_commit(hub: Hub) -> None:
    load_model(plan_model(opened()), layers=1)
    assert {name for revision, name in hub.sent if revision != COMMIT} == {"config.json"}


def test_a_part_in_the_cache_works_offline_as_far_as_it_goes(hub: Hub, monkeypatch) -> None:
    load_model(plan_model(opened()), layers=2)
    asked = hub.asked.copy()
    offline(monkeypatch)
    assert load_model(plan_model(opened()), layers=2).layers == 2
    with pytest.raises(ModelUnavailableError) as raised:
        load_model(plan_model(opened()), layers=4)
    assert str(raised.value) == (
        f"{REPOSITORY} lacks 2 of 9 weight files: {shard_name(3)} and the hub cannot be reached: "
        "HF_HUB_OFFLINE is set (-m demo is bundled)"
    )
    assert hub.asked == asked


def test_a_download_that_broke_off_is_taken_up_again(hub: Hub, monkeypatch) -> None:
    real = real_hub.hf_hub_download

    def broken(repo: str, file: str, revision: str | None) -> str:
        if file == INDEX:
            raise OSError("the line went dead")
        return real(repo, file, revision=revision)

    with monkeypatch.context() as patched:
        patched.setattr(real_hub, "hf_hub_download", broken)
        with pytest.raises(ModelUnavailableError, match="downloading some/llama failed: the line went dead"):
            opened()
    assert list(Path(constants.HF_HUB_CACHE).rglob("tokenizer.json"))
    assert load_model(plan_model(opened()), layers=1).layers == 1


def test_the_index_is_the_last_of_the_small_files_to_be_fetched(monkeypatch, tmp_path: Path) -> None:
    names = ["config.json", INDEX, "tokenizer.json", "vocab.txt", shard_name(1), "model.py"]
    wanted = real_hub._wanted(REPOSITORY, names, allow_pickle=False, remote_code=True)
    assert wanted == ["config.json", "tokenizer.json", "vocab.txt", "model.py", INDEX]


def test_shards_are_taken_from_the_commit_that_the_index_came_from(hub: Hub, monkeypatch) -> None:
    asked: list[str | None] = []
    real = real_hub.hf_hub_download

    def download(repo: str, file: str, revision: str | None) -> str:
        asked.append(revision)
        return real(repo, file, revision=revision)

    monkeypatch.setattr(real_hub, "hf_hub_download", download)
    load_model(plan_model(open_checkpoint(find(REPOSITORY, revision="main"))), layers=1)
    assert (asked[0], set(asked[1:])) == ("main", {COMMIT})


def test_what_cannot_fit_is_refused_before_it_is_fetched(tmp_path: Path, monkeypatch) -> None:
    folder = in_shards(llama().to(torch.bfloat16), tmp_path / "m")
    monkeypatch.setattr(machine, "_available", lambda: 20_000)
    with served(REPOSITORY, folder, monkeypatch) as hub:
        with pytest.raises(DoesNotFitError, match=r"in float32 \(its first 2 layers\) takes 0\.2 MB"):
            load_model(plan_model(opened()), layers=2)
        assert shards(hub) == []
        assert load_model(plan_model(opened()), layers=2, dtype="auto").module.dtype == torch.bfloat16


def here(folder: Path) -> Listing:
    return list_files(Source(str(folder), "m", folder))


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


def test_of_a_hub_model_no_weights_are_fetched(hub: Hub, folder: Path) -> None:
    told = list_files(find(REPOSITORY, weights=False))
    assert told.storage.place == ON_THE_HUB
    assert told.storage.shards == {file.name: file.stat().st_size for file in folder.glob("*.safetensors")}
    assert told.storage.size == sum(told.storage.shards.values())
    assert told.storage.precision == "float32"
    assert told.shards == json.loads((folder / INDEX).read_text())["weight_map"]
    assert set(hub.bytes) == {"config.json", INDEX, shard_name(0)}
    assert hub.bytes[shard_name(0)] <= 100_002 < (folder / shard_name(0)).stat().st_size


def test_looking_at_a_hub_model_leaves_nothing_that_looks_like_weights(hub: Hub, folder: Path) -> None:
    list_files(find(REPOSITORY, weights=False))
    cached = [file.name for file in Path(constants.HF_HUB_CACHE).rglob("*") if file.suffix == ".json"]
    assert cached == ["config.json"]
    assert real_hub.cached(REPOSITORY, None) is None
    assert find(REPOSITORY).folder.joinpath("tokenizer.json").is_file()


def test_a_cached_config_is_enough_without_the_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    find(REPOSITORY, weights=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    told = list_files(find(REPOSITORY, weights=False))
    assert told.storage is None
    assert told.why == "no weights are in the local cache, and HF_HUB_OFFLINE is set"
    with pytest.raises(ModelUnavailableError, match="not in the local cache"):
        find(REPOSITORY)
