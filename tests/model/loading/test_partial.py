"""Partial loading: from a sharded checkpoint only the files that the chosen layers need, the same numbers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints import bert_config, save, tiny_bert, tiny_translator, vocabulary_size
from safetensors.torch import load_file, save_file
from sharded import LAYERS, SHARDS, bert, gpt2, in_shards, llama, llama_config, mixtral, nomic, shard_name
from transformers import BertModel, LlamaModel, PreTrainedModel, Zamba2Config, Zamba2Model

from attnscope.capture import Selection, record
from attnscope.errors import ModelUnavailableError
from attnscope.model.loaded import Model
from attnscope.model.loading.load import Plan, load_model, load_with_head, plan_model
from attnscope.model.loading.partial import cut, kept, needed
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import Source


def planned(folder: Path, **options: bool) -> Plan:
    return plan_model(open_checkpoint(Source("m", "m", folder), **options))


def vectors(model: Model, layer: int) -> tuple[torch.Tensor, ...]:
    inputs = model.encode(("the dog was near the big door",)).inputs
    call = record(model.module, inputs, Selection(layers=[layer])).calls[0]
    return call.q, call.k, call.v, call.output


def numbers_of(model: Model) -> list[int]:
    return [int(file.name[6:11]) for file in model.checkpoint.files]


FAMILIES = [llama, mixtral, nomic, gpt2, bert]


@pytest.mark.parametrize("made", FAMILIES)
def test_the_first_layers_load_from_their_own_shards_with_the_others_gone(
    made: Callable[[], PreTrainedModel], tmp_path: Path
) -> None:
    torch.manual_seed(5)
    folder = in_shards(made(), tmp_path / "m")
    whole = load_model(planned(folder))
    expected = vectors(whole, 2)
    there = len(list(folder.glob("*.safetensors")))
    for number in range(4, SHARDS):
        (folder / shard_name(number)).unlink(missing_ok=True)
    part = load_model(planned(folder), layers=3)
    for mine, theirs in zip(vectors(part, 2), expected, strict=True):
        assert torch.equal(mine, theirs)
    assert numbers_of(part) == [0, 1, 2, 3]
    assert part.checkpoint.share == f"4 of {there} shards"
    assert part.origin()["part"] == part.checkpoint.share


@pytest.mark.parametrize("made", FAMILIES)
def test_without_a_shard_that_is_needed_one_line_says_which(
    made: Callable[[], PreTrainedModel], tmp_path: Path
) -> None:
    folder = in_shards(made(), tmp_path / "m")
    there = len(list(folder.glob("*.safetensors")))
    (folder / shard_name(2)).unlink()
    with pytest.raises(ModelUnavailableError, match=f"m lacks 1 of {there} weight files: {shard_name(2)}"):
        load_model(planned(folder), layers=3)
    assert load_model(planned(folder), layers=1).layers == 1


def test_a_head_that_is_not_loaded_is_not_read(tmp_path: Path) -> None:
    model = llama()
    assert "lm_head.weight" not in needed(model.state_dict(), LlamaModel(model.config), None)
    part = set(needed(model.state_dict(), LlamaModel(model.config), 2))
    assert part == {
        name
        for name in model.state_dict()
        if name.startswith(("model.embed_tokens.", "model.layers.0.", "model.layers.1."))
    }


def test_scales_beside_the_weights_of_a_kept_layer_are_needed_and_those_of_other_layers_are_not() -> None:
    skeleton = LlamaModel(llama_config())
    stored = [
        f"{prefix}layers.{layer}.mlp.up_proj.{leaf}"
        for prefix in ("", "model.")
        for layer in (1, 2)
        for leaf in ("weight_scale_inv", "qweight")
    ]
    names = needed([*stored, "lm_head.weight_scale_inv", "cls.predictions.bias"], skeleton, 2)
    assert set(names) == {name for name in stored if ".1." in name}


def test_two_experts_of_a_layer_in_two_files_need_both_files(tmp_path: Path) -> None:
    folder = in_shards(mixtral(), tmp_path / "m")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    names = [name for name in index["weight_map"] if ".layers.1." in name and "experts.2." in name]
    assert names
    found = needed(index["weight_map"], planned(folder).skeleton, 2)
    assert set(names) <= set(found)


@pytest.mark.parametrize("layers", [None, 1, 5])
def test_the_weights_that_are_kept_are_those_of_the_cut_model(layers: int | None) -> None:
    config = bert_config()
    model = BertModel(config) if layers is None else cut(BertModel, layers)(config)
    expected = {name: weight.shape for name, weight in model.state_dict().items()}
    assert {name: weight.shape for name, weight in kept(BertModel(config), layers).items()} == expected


def test_pickled_shards_are_left_out_as_well(tmp_path: Path) -> None:
    folder = in_shards(bert(), tmp_path / "m")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    (folder / "model.safetensors.index.json").unlink()
    renamed = {name: shard.replace(".safetensors", ".bin") for name, shard in index["weight_map"].items()}
    for file in folder.glob("*.safetensors"):
        if int(file.name[6:11]) < 3 or int(file.name[6:11]) > LAYERS:
            torch.save(load_file(file), file.with_suffix(".bin"))
        file.unlink()
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": renamed}))
    part = load_model(planned(folder, allow_pickle=True), layers=2)
    assert set(numbers_of(part)) - {LAYERS + 1} == {0, 1, 2}
    assert not any("layer.1" in name or "layer.0" in name for name in part.missing)


def test_a_writing_model_in_shards_writes_with_its_own_settings(tmp_path: Path) -> None:
    folder = tiny_translator(tmp_path / "whole")
    whole = load_model(planned(folder))
    file = folder / "model.safetensors"
    weights = load_file(file)
    halves = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    index = {name: halves["decoder" in name] for name in weights}
    for half in halves:
        chosen = {name: weights[name] for name in weights if index[name] == half}
        save_file(chosen, folder / half, {"format": "pt"})
    file.unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    part = load_model(planned(folder))
    assert part.checkpoint.share is None
    assert part.module.generation_config.to_dict() == whole.module.generation_config.to_dict()
    assert part.module.generation_config.forced_eos_token_id == 3


def test_a_model_with_its_head_reads_the_shard_of_the_head_too(tmp_path: Path) -> None:
    folder = in_shards(llama(), tmp_path / "m")
    model = load_with_head(open_checkpoint(Source("m", "m", folder)))
    assert type(model.module).__name__ == "LlamaForCausalLM"
    assert model.checkpoint.share is None


def test_shards_that_are_not_needed_are_not_even_opened(tmp_path: Path) -> None:
    folder = in_shards(llama(), tmp_path / "m")
    (folder / shard_name(6)).write_bytes(b"no safetensors at all")
    assert load_model(planned(folder), layers=2).layers == 2
    with pytest.raises(ModelUnavailableError, match=r"model-00006-of-00009\.safetensors is truncated"):
        load_model(planned(folder), layers=6)


def test_a_single_file_of_one_layer_less_still_says_what_it_lacks(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    file = folder / "model.safetensors"
    weights = {name: weight for name, weight in load_file(file).items() if "layer.1." not in name}
    save_file(weights, file, {"format": "pt"})
    model = load_model(planned(folder), layers=3)
    with pytest.raises(ModelUnavailableError, match=r"layer\.1"):
        vectors(model, 2)


def test_only_a_norm_that_stands_alone_behind_the_layers_is_left_out() -> None:
    from torch import nn

    model = LlamaModel(llama_config())
    assert "norm.weight" not in needed(["norm.weight"], model, 2)
    assert "norm.weight" in needed(["norm.weight"], model, None)
    model.embedding_norm = nn.LayerNorm(24)  # in some models what comes first was made last
    both = {"norm.weight", "embedding_norm.weight"}
    assert set(needed(both, model, 2)) == both
    del model.norm
    assert set(needed(both, model, 2)) == {"embedding_norm.weight"}
    model.embedding_norm, model.position_norm = None, nn.Linear(24, 24)
    assert set(needed({"position_norm.weight"}, model, 2)) == {"position_norm.weight"}


def test_layers_that_share_their_weights_with_later_ones_load_without_these(tmp_path: Path) -> None:
    config = Zamba2Config(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=5, hybrid_layer_ids=[1, 2, 4],
        layers_block_type=["mamba", "hybrid", "hybrid", "mamba", "hybrid"], num_mem_blocks=2,
        mamba_d_state=4, mamba_headdim=12, n_mamba_heads=4, mamba_ngroups=1, num_attention_heads=3,
        num_key_value_heads=3, intermediate_size=30, adapter_rank=4, max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(5)
    folder = save(Zamba2Model(config), tmp_path / "m")
    part = load_model(planned(folder), layers=3)  # layer 4 has the weights of layer 1, and is not there
    assert part.layers == 3
    for mine, theirs in zip(vectors(part, 2), vectors(load_model(planned(folder)), 2), strict=True):
        assert torch.equal(mine, theirs)
