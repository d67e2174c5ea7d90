"""What is asked of the hub: configuration first, then no shard but those needed, all from one commit."""

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
from attnscope.model.loading.load import load_model, load_with_head, plan_model
from attnscope.model.source import hub as real_hub
from attnscope.model.source.checkpoint import Checkpoint, open_checkpoint
from attnscope.model.source.find import find
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


def test_the_plan_needs_no_weights(hub: Hub) -> None:
    planned = plan_model(opened())
    assert planned.towers[0].layers == tuple(range(SHARDS - 2))
    assert shards(hub) == []
    assert hub.asked[INDEX] > 0


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


def test_a_later_layer_fetches_only_what_is_new(hub: Hub) -> None:
    load_model(plan_model(opened()), layers=2)
    before = hub.sent.copy()
    load_model(plan_model(opened()), layers=4)
    assert set((hub.sent - before).elements()) == {(COMMIT, shard_name(3)), (COMMIT, shard_name(4))}


def test_everything_but_the_configuration_is_asked_of_its_commit(hub: Hub) -> None:
    load_model(plan_model(opened()), layers=1)
    assert {name for revision, name in hub.sent if revision != COMMIT} == {"config.json"}


def test_a_head_that_answers_is_fetched_with_the_whole_model(hub: Hub) -> None:
    model = load_with_head(opened())
    assert type(model.module).__name__ == "LlamaForCausalLM"
    assert shards(hub) == [shard_name(number) for number in range(SHARDS)]
    assert model.origin()["part"] is None


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


def test_a_single_file_comes_with_the_rest_as_ever(tmp_path: Path, monkeypatch) -> None:
    with served("some/bert", tiny_bert(tmp_path / "bert"), monkeypatch) as hub:
        source = find("some/bert")
        assert hub.sent[COMMIT, "model.safetensors"] == 1
        assert open_checkpoint(source).share is None


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
