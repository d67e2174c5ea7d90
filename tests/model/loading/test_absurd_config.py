"""Configs that nobody can have meant: refused in seconds, in one line, with exit code 3."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import save, tiny_bert, tiny_translator, vocabulary_size
from transformers import GPT2Config, GPT2LMHeadModel

from attnscope.errors import ModelUnavailableError
from attnscope.model.loading.load import plan_model
from attnscope.model.source.checkpoint import Checkpoint, open_checkpoint
from attnscope.model.source.find import Source

SECONDS = 10  # of the processor; it takes one or two


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_bert(folder / "bert")
    tiny_translator(folder / "t5", "t5")
    torch.manual_seed(3)
    small = {"n_layer": 3, "n_head": 4, "n_embd": 24, "n_positions": 40}
    save(GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary_size(), **small)), folder / "gpt2")
    return folder


def source(folder: Path) -> Source:
    return Source(str(folder), folder.name, folder)


def changed(models: Path, name: str, folder: Path, setting: str, value: Any) -> Checkpoint:
    """One of the models with one setting of its config changed."""
    shutil.copytree(models / name, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, setting: value}))
    return open_checkpoint(source(folder))


def refusal(checkpoint: Checkpoint) -> str:
    started = time.process_time()
    with pytest.raises(ModelUnavailableError) as raised:
        plan_model(checkpoint)
    assert time.process_time() - started < SECONDS
    assert raised.value.exit_code == 3
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("bert", "pad_token_id", 10**6),
        ("bert", "pad_token_id", -(10**6)),
        ("gpt2", "n_head", 0),
        ("gpt2", "n_head", 7),
        ("bert", "hidden_act", "nonsense"),
        ("bert", "hidden_act", {"a": 1}),
        ("bert", "vocab_size", 2**63),
        ("bert", "max_position_embeddings", -1),
        ("t5", "relative_attention_num_buckets", -5),
        ("t5", "feed_forward_proj", []),
    ],
)
def test_a_config_of_which_no_model_can_be_built_is_one_line(
    models: Path, tmp_path: Path, name: str, setting: str, value: Any
) -> None:
    message = refusal(changed(models, name, tmp_path / name, setting, value))
    assert message.startswith(f"{name}: ")
    assert "config.json" in message


@pytest.mark.parametrize(
    ("name", "setting", "value", "why"),
    [
        ("bert", "num_hidden_layers", 2**31, "num_hidden_layers is over 2,000"),
        ("bert", "num_hidden_layers", 100_000, "num_hidden_layers is over 2,000"),
        ("bert", "num_labels", 2**63, "num_labels is over 1,000,000"),
        ("gpt2", "n_layer", 10**300, "n_layer is over 2,000"),
        ("t5", "num_decoder_layers", 2**31, "num_decoder_layers is over 2,000"),
        ("bert", "num_hidden_layers", 1_999, "far more parts than its files have weights, which are 87"),
        ("gpt2", "n_layer", 1_999, "far more parts than its files have weights"),
    ],
)
def test_layers_and_labels_beyond_measure_are_refused_in_seconds(
    models: Path, tmp_path: Path, name: str, setting: str, value: Any, why: str
) -> None:
    assert why in refusal(changed(models, name, tmp_path / name, setting, value))


def test_a_number_deep_in_the_config_is_found_too(models: Path, tmp_path: Path) -> None:
    checkpoint = changed(models, "bert", tmp_path / "m", "text_config", {"depths": [2, 2, 10**9]})
    assert "depths is over 2,000" in refusal(checkpoint)


def test_without_any_weights_plain_bounds_hold(models: Path, tmp_path: Path) -> None:
    stored = changed(models, "bert", tmp_path / "m", "num_hidden_layers", 200_000)
    assert "over 2,000" in refusal(Checkpoint(stored.source, (), {}))


def test_depths_that_models_have_are_built(models: Path, tmp_path: Path) -> None:
    deep = changed(models, "gpt2", tmp_path / "m", "n_layer", 100)  # of which the file has 3
    assert len(plan_model(deep).skeleton.h) == 100
    bare = Checkpoint(deep.source, (), {})
    assert len(plan_model(bare).skeleton.h) == 100


def test_a_pruned_checkpoint_says_that_it_is(models: Path, tmp_path: Path) -> None:
    pruned = changed(models, "bert", tmp_path / "m", "pruned_heads", {"1": [0, 2]})
    assert "is pruned (layer 1: [0, 2]): " in refusal(pruned)
    for i, none in enumerate(({}, None, [])):
        plan_model(changed(models, "bert", tmp_path / f"{i}", "pruned_heads", none))


def test_counting_ends_with_the_building(models: Path, tmp_path: Path) -> None:
    hooks = torch.nn.modules.module
    refusal(changed(models, "bert", tmp_path / "m", "num_hidden_layers", 1_999))
    plan_model(open_checkpoint(source(models / "bert")))
    assert not hooks._global_parameter_registration_hooks
    assert not hooks._global_module_registration_hooks
