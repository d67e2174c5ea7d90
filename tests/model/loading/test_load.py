"""Loading: only what is needed, in the dtype that was asked for; configs that nobody can have meant."""

import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints import (
    TOKENIZER_FILES,
    bert_config,
    gguf_file,
    save,
    tiny_bert,
    tiny_translator,
    vocabulary_size,
)
from safetensors.torch import load_file, save_file
from transformers import (
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

import attnscope as at
from attnscope.capture import Selection, record
from attnscope.errors import InputError, ModelUnavailableError
from attnscope.model.loading.load import Plan, load_model, load_with_head, plan_model
from attnscope.model.loading.memory import torch_device
from attnscope.model.source.checkpoint import Checkpoint, open_checkpoint
from attnscope.model.source.find import Source
from attnscope.results import Kind, Verdict


def checkpoint(folder: Path, **options: bool) -> Checkpoint:
    return open_checkpoint(Source(str(folder), folder.name, folder), **options)


def without(folder: Path, *prefixes: str) -> Path:
    """The same folder with the weights that start so taken away."""
    file = folder / "model.safetensors"
    kept = {name: weight for name, weight in load_file(file).items() if not name.startswith(prefixes)}
    save_file(kept, file, {"format": "pt"})
    return folder


def layers_and_heads(planned: Plan) -> dict[Kind, tuple[tuple[int, ...], set[int]]]:
    return {tower.kind: (tower.layers, set(tower.heads.values())) for tower in planned.towers}


TINY = {"vocab_size": 1200, "num_hidden_layers": 5, "num_attention_heads": 4, "hidden_size": 24}


def test_weights_missing_before_the_layer_are_an_error_that_names_them(tmp_path: Path) -> None:
    folder = without(tiny_bert(tmp_path / "m"), "encoder.layer.1.attention.self.key")
    model = load_model(plan_model(checkpoint(folder)), layers=3)
    inputs = model.encode(("the door",)).inputs
    with pytest.raises(
        ModelUnavailableError, match=r"m lacks weights .*encoder\.layer\.1\.attention\.self\.key"
    ):
        record(model.module, inputs, Selection(layers=[2]))


def test_weights_of_the_wrong_shape_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    bert_config(intermediate_size=40).save_pretrained(folder)
    with pytest.raises(ModelUnavailableError, match="cannot read the weights") as raised:
        load_model(plan_model(checkpoint(folder)))
    assert "\n" not in str(raised.value)


def test_a_head_that_the_config_claims_but_the_weights_lack_is_not_loaded(tmp_path: Path) -> None:
    folder = without(tiny_bert(tmp_path / "m", BertForMaskedLM), "cls.")
    assert type(load_with_head(checkpoint(folder)).module).__name__ == "BertModel"


def test_a_pooler_without_weights_is_taken_out_not_made_up(tmp_path: Path) -> None:
    folder = without(tiny_bert(tmp_path / "m"), "pooler")
    model = load_with_head(checkpoint(folder))
    assert model.module.pooler is None
    assert model.module(**model.encode(("the door",)).inputs).pooler_output is None


@pytest.mark.parametrize(("wanted", "expected"), [("float32", torch.float32), ("auto", torch.bfloat16)])
def test_a_bfloat16_checkpoint_runs_in_float32_unless_asked_otherwise(
    wanted, expected, tmp_path: Path
) -> None:
    folder = save(BertModel(bert_config()).to(torch.bfloat16), tmp_path / "m")
    assert load_model(plan_model(checkpoint(folder)), dtype=wanted).module.dtype == expected


@pytest.mark.parametrize(
    "content", ["{", '{"model_type": "no-such-type"}', '{"model_type": "bert", "num_hidden_layers": "x"}']
)
def test_a_config_that_cannot_be_used_is_refused_in_one_line(content: str, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelUnavailableError) as raised:
        plan_model(checkpoint(folder))
    assert "\n" not in str(raised.value)


def test_two_models_put_together_have_the_heads_and_the_limit_of_their_own_halves(tmp_path: Path) -> None:
    from checkpoints import bert_config, save
    from transformers import BertLMHeadModel, BertModel, EncoderDecoderModel

    decoder = bert_config(
        num_hidden_layers=2, num_attention_heads=6, is_decoder=True, add_cross_attention=True
    )
    encoder = bert_config(num_hidden_layers=3, max_position_embeddings=20)
    both = EncoderDecoderModel(encoder=BertModel(encoder), decoder=BertLMHeadModel(decoder))
    planned = plan_model(checkpoint(save(both, tmp_path / "m")))
    decoder = (0, 1), {6}
    assert layers_and_heads(planned) == {
        Kind.ENCODER: ((0, 1, 2), {4}),
        Kind.DECODER: decoder,
        Kind.CROSS: decoder,
    }
    with pytest.raises(InputError, match="reads at most 20"):
        load_model(planned).encode(("the door " * 10,))


def test_devices_that_are_unknown_or_absent_are_refused() -> None:
    with pytest.raises(InputError, match="unknown device 'tpu'"):
        torch_device("tpu")
    with pytest.raises(InputError, match="unknown device 'cuda:x'"):
        torch_device("cuda:x")
    with pytest.raises(InputError, match=f"no device cuda:{torch.cuda.device_count()} on this machine"):
        torch_device(f"cuda:{torch.cuda.device_count()}")


def test_a_gguf_file_is_the_model_that_it_was_made_of(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    torch.manual_seed(4)
    sizes = {"hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
    config = LlamaConfig(vocab_size=261, intermediate_size=32, max_position_embeddings=40, **sizes)
    llama = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for weight in llama.parameters():
            weight.normal_(std=0.4)
    (tmp_path / "config.json").write_text("no config of its own")
    file = gguf_file(tmp_path / "tiny.gguf", llama)
    reading = at.load(str(file)).read("the the cat")
    assert tuple(reading.labels) == ("the@0", "the@1", "␣", "c", "a", "t")
    ids = torch.tensor([[reading._model.tokenizer.convert_tokens_to_ids(each) for each in _PIECES]])
    with torch.no_grad():
        llama.set_attn_implementation("eager")
        expected = llama(ids, output_attentions=True).attentions
    head = reading.head(1, 3)
    assert head.weights == pytest.approx(expected[1][0, 3].numpy(), abs=1e-6)
    assert (head.verdict, head.provenance.model) == (Verdict.CERTIFIED, str(file))
    assert head.provenance.digest == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    assert at.outline(str(file)).towers[0].context == 40
    (tmp_path / "cut.gguf").write_bytes(file.read_bytes()[:-5000])
    with pytest.raises(ModelUnavailableError) as refused:
        at.load(str(tmp_path / "cut.gguf"))
    assert "\n" not in str(refused.value)


_PIECES = ("the", "Ġthe", "Ġ", "c", "a", "t")


def test_another_tokenizer_is_read_where_a_checkpoint_has_none(tmp_path: Path) -> None:
    bare = tiny_bert(tmp_path / "bare")
    own = at.load(str(bare)).read("the door").head(1, 2)
    for name in TOKENIZER_FILES:
        (bare / name).unlink()
    with pytest.raises(ModelUnavailableError, match="--tokenizer NAME takes another's"):
        at.load(str(bare)).read("the door")
    given = at.load(str(bare), tokenizer="demo").read("the door").head(1, 2)
    assert (given.weights == own.weights).all()
    assert given.query_tokens == own.query_tokens
    with pytest.raises(ModelUnavailableError, match=r"no folder \./none"):
        at.load(str(bare), tokenizer="./none")


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
        ("gpt2", "n_head", 7),
        ("bert", "hidden_act", "nonsense"),
        ("bert", "vocab_size", 2**63),
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
        ("bert", "num_labels", 2**63, "num_labels is over 1,000,000"),
        ("gpt2", "n_layer", 10**300, "n_layer is over 2,000"),
        ("t5", "num_decoder_layers", 2**31, "num_decoder_layers is over 2,000"),
        ("bert", "num_hidden_layers", 1_999, "far more parts than its files have weights, which are 87"),
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
