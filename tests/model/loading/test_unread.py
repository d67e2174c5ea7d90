"""Stored weights that the loaded model has no place for: refused inside attention, told elsewhere."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints import bert_config, save, tiny_bert, tiny_translator, vocabulary_size
from safetensors.torch import load_file, save_file
from sharded import bert as seven_layers
from sharded import in_shards
from transformers import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
)

from attnscope.errors import ModelUnavailableError
from attnscope.model.loaded import Model
from attnscope.model.loading.answering import load_answering
from attnscope.model.loading.load import load_model, load_with_head, plan_model
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import Source

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


def test_a_model_that_answers_is_refused_by_the_names_in_its_file(tmp_path: Path) -> None:
    folder = adding(tiny_bert(tmp_path / "m", BertForMaskedLM), *low_rank(range(1, 2), "bert."))
    for load in (
        lambda **more: load_answering(opened(folder), **more)[0],
        lambda **more: loaded(folder, **more),
    ):
        with pytest.raises(ModelUnavailableError, match=r"4 weights .*: bert\.encoder\.layer\.1\.attention"):
            load()
        assert load(ignore_unread=True).unread == tuple(low_rank(range(1, 2), "bert."))


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


def test_the_weights_of_both_halves_and_between_them_are_watched(tmp_path: Path) -> None:
    sound = tiny_translator(tmp_path / "sound")
    assert loaded(sound).unread == ()
    name = "model.decoder.layers.4.encoder_attn.q_proj.weight"
    with pytest.raises(ModelUnavailableError, match="1 weight inside"):
        loaded(adding(sound, name))


def test_what_the_library_itself_calls_needless_is_not_unread(tmp_path: Path, monkeypatch) -> None:
    name = "encoder.layer.0.attention.self.spare"
    folder = adding(tiny_bert(tmp_path / "m"), name)
    monkeypatch.setattr(BertModel, "_keys_to_ignore_on_load_unexpected", [r"self\.spare$"], raising=False)
    assert loaded(folder).unread == ()
