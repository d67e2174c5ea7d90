"""Only files that the chosen layers need are loaded; stored weights without a place are refused or told."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints import bert_config, save, tiny_bert, vocabulary_size
from safetensors.torch import load_file, save_file
from sharded import SHARDS, bert, gpt2, in_shards, llama, llama_config, mixtral, nomic, shard_name
from sharded import bert as seven_layers
from transformers import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaModel,
    PreTrainedModel,
    Zamba2Config,
    Zamba2Model,
)

from attnscope.capture import Selection, record
from attnscope.errors import ModelUnavailableError
from attnscope.model.loaded import Model
from attnscope.model.loading.load import Plan, load_model, load_with_head, plan_model
from attnscope.model.loading.partial import needed
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


@pytest.mark.parametrize("made", [mixtral])
def test_without_a_shard_that_is_needed_one_line_says_which(
    made: Callable[[], PreTrainedModel], tmp_path: Path
) -> None:
    folder = in_shards(made(), tmp_path / "m")
    there = len(list(folder.glob("*.safetensors")))
    (folder / shard_name(2)).unlink()
    with pytest.raises(ModelUnavailableError, match=f"m lacks 1 of {there} weight files: {shard_name(2)}"):
        load_model(planned(folder), layers=3)
    assert load_model(planned(folder), layers=1).layers == 1


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


def test_shards_that_are_not_needed_are_not_even_opened(tmp_path: Path) -> None:
    folder = in_shards(llama(), tmp_path / "m")
    (folder / shard_name(6)).write_bytes(b"no safetensors at all")
    assert load_model(planned(folder), layers=2).layers == 2
    with pytest.raises(ModelUnavailableError, match=r"model-00006-of-00009\.safetensors is truncated"):
        load_model(planned(folder), layers=6)


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


RANK, WIDTH = 2, 24


def opened(folder: Path, **options: bool):
    return open_checkpoint(Source("m", "m", folder), **options)


def loaded(folder: Path, allow_pickle: bool = False, **options) -> Model:
    return load_model(plan_model(opened(folder, allow_pickle=allow_pickle)), **options)


def adding(folder: Path, *names: str, shape: tuple[int, ...] = (RANK, WIDTH)) -> Path:
    """The same folder whose weight file also holds weights of these names."""
    file = folder / "model.safetensors"
    more = {name: torch.randn(shape) for name in names}
    save_file({**load_file(file), **more}, file, {"format": "pt"})
    return folder


def low_rank(layers: range, prefix: str = "") -> list[str]:
    return [
        f"{prefix}encoder.layer.{layer}.attention.self.{which}.lora_{half}.weight"
        for layer in layers
        for which in ("query", "value")
        for half in "AB"
    ]


def test_low_rank_weights_beside_every_query_and_value_are_refused_by_name(tmp_path: Path) -> None:
    folder = adding(tiny_bert(tmp_path / "m"), *low_rank(range(5)))
    with pytest.raises(ModelUnavailableError) as refused:
        loaded(folder)
    assert str(refused.value) == (
        "m holds 20 weights inside attention that the model does not read: "
        "encoder.layer.0.attention.self.query.lora_A.weight, "
        "encoder.layer.0.attention.self.query.lora_B.weight, "
        "encoder.layer.0.attention.self.value.lora_A.weight and 17 more; --ignore-unread runs without them"
    )


def test_with_leave_they_are_left_out_and_listed_and_change_nothing(tmp_path: Path) -> None:
    plain = loaded(tiny_bert(tmp_path / "plain"))
    model = loaded(adding(tiny_bert(tmp_path / "m"), *low_rank(range(5))), ignore_unread=True)
    assert model.unread == tuple(sorted(low_rank(range(5))))
    assert plain.unread == ()
    assert model.origin()["unread"] == model.unread
    theirs = plain.module.state_dict()
    assert all(torch.equal(weight, theirs[name]) for name, weight in model.module.state_dict().items())


def test_layers_that_the_config_does_not_name_are_refused(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    bert_config(num_hidden_layers=3).save_pretrained(folder)
    for layers in (None, 1):
        with pytest.raises(ModelUnavailableError, match=r"20 weights inside .*layer\.3\.attention\.output"):
            loaded(folder, layers=layers)
    assert len(loaded(folder, ignore_unread=True).unread) == 32


@pytest.mark.parametrize("place", ["attention.self", "attention.output.dense"])
def test_the_whole_block_of_attention_counts_not_its_neighbours(place: str, tmp_path: Path) -> None:
    folder = adding(tiny_bert(tmp_path / "m"), f"encoder.layer.2.{place}.gate")
    with pytest.raises(ModelUnavailableError, match="1 weight inside attention that"):
        loaded(folder)
    aside = adding(tiny_bert(tmp_path / "aside"), "encoder.layer.2.intermediate.dense.lora_A.weight")
    assert loaded(aside).unread == ("encoder.layer.2.intermediate.dense.lora_A.weight",)


def test_weights_of_layers_that_are_left_out_on_purpose_are_not_unread(tmp_path: Path) -> None:
    folder = adding(tiny_bert(tmp_path / "m"), *low_rank(range(3, 5)))
    assert loaded(folder, layers=3).unread == ()
    with pytest.raises(ModelUnavailableError, match="4 weights inside attention"):
        loaded(folder, layers=4)


@pytest.mark.parametrize("head", [BertForMaskedLM, BertForPreTraining, BertForSequenceClassification])
def test_a_head_and_a_pooler_that_are_not_needed_are_no_noise(
    head: type[PreTrainedModel], tmp_path: Path
) -> None:
    folder = tiny_bert(tmp_path / "m", head)
    adding(folder, "bert.embeddings.position_ids", "cls.seq_relationship.weight", "classifier.0.weight")
    adding(folder, "bert.pooler.dense.weight", shape=(WIDTH, WIDTH))
    adding(folder, "bert.encoder.lm_head.weight")  # as of a language model that is a part of another
    assert loaded(folder).unread == ()
    assert loaded(folder, layers=2).unread == ()
    assert load_with_head(opened(folder)).unread == ()


def test_names_with_another_prefix_than_the_model_has_are_understood(tmp_path: Path) -> None:
    bare = adding(tiny_bert(tmp_path / "bare"), *low_rank(range(1)))
    with pytest.raises(ModelUnavailableError, match="4 weights"):
        load_model(plan_model(opened(bare), choose=lambda config: BertForMaskedLM))
    wrapped = adding(tiny_bert(tmp_path / "wrapped"), *low_rank(range(1), "base_model.model."))
    with pytest.raises(ModelUnavailableError, match="4 weights"):
        loaded(wrapped)


def pickled(folder: Path) -> Path:
    file = folder / "model.safetensors"
    torch.save(load_file(file), folder / "pytorch_model.bin")
    file.unlink()
    return folder


@pytest.mark.parametrize("stored", [lambda folder: folder, pickled], ids=["safetensors", "pickle"])
def test_masks_that_old_files_hold_are_no_weights_but_a_bias_of_attention_is(
    stored: Callable[[Path], Path], tmp_path: Path
) -> None:
    masked, inner = tiny_bert(tmp_path / "m"), "encoder.layer.{}.attention.self.{}"
    for layer in range(3):
        adding(masked, inner.format(layer, "bias"), shape=(1, 1, 32, 32))
        adding(masked, inner.format(layer, "masked_bias"), shape=())
        adding(masked, inner.format(layer, "rotary_emb.inv_freq"), shape=(3,))
    assert loaded(stored(masked), allow_pickle=True).unread == ()
    biased = tiny_bert(tmp_path / "biased")
    for layer, shape in enumerate([(WIDTH,), (4, 32, 32), (32, 32), ()]):
        adding(biased, inner.format(layer, "bias"), shape=shape)
    with pytest.raises(
        ModelUnavailableError, match=r"holds 4 weights inside .*layer\.2\.attention\.self\.bias"
    ):
        loaded(stored(biased), allow_pickle=True)


def test_the_masks_of_an_old_gpt2_are_no_noise(tmp_path: Path) -> None:
    config = GPT2Config(vocab_size=vocabulary_size(), n_layer=3, n_head=4, n_embd=WIDTH, n_positions=32)
    folder = save(GPT2LMHeadModel(config), tmp_path / "m")
    for prefix in ("", "transformer."):
        adding(folder, f"{prefix}h.1.attn.bias", shape=(1, 1, 32, 32))
        adding(folder, f"{prefix}h.1.attn.masked_bias", shape=())
    assert loaded(folder).unread == load_with_head(opened(folder)).unread == ()
    with pytest.raises(ModelUnavailableError, match="1 weight inside attention that"):
        loaded(adding(folder, "h.2.attn.c_attn.lora_A.weight"))


def test_shards_and_pickles_are_looked_at_as_well(tmp_path: Path) -> None:
    folder = in_shards(seven_layers(), tmp_path / "shards")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 6}))
    with pytest.raises(ModelUnavailableError, match=r"10 weights .*bert\.encoder\.layer\.6\.attention"):
        loaded(folder, layers=2)
    assert len(loaded(folder, layers=2, ignore_unread=True).unread) == 16
    odd = pickled(adding(tiny_bert(tmp_path / "odd"), *low_rank(range(1))))
    with pytest.raises(ModelUnavailableError, match="4 weights inside attention"):
        loaded(odd, allow_pickle=True)


def test_another_tower_that_the_class_does_not_have_is_told_and_not_refused(tmp_path: Path) -> None:
    names = [f"vision_tower.encoder.layer.0.attention.self.{which}.weight" for which in ("key", "query")]
    assert loaded(adding(tiny_bert(tmp_path / "m"), *names)).unread == tuple(names)


def test_what_the_library_itself_calls_needless_is_not_unread(tmp_path: Path, monkeypatch) -> None:
    name = "encoder.layer.0.attention.self.spare"
    folder = adding(tiny_bert(tmp_path / "m"), name)
    monkeypatch.setattr(BertModel, "_keys_to_ignore_on_load_unexpected", [r"self\.spare$"], raising=False)
    assert loaded(folder).unread == ()
