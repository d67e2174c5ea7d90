"""Loading: only what is needed, nothing made up, in the dtype that was asked for."""

import hashlib
from pathlib import Path

import pytest
import torch
from checkpoints import TOKENIZER_FILES, bert_config, gguf_file, save, tiny_bert, tiny_translator
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
)

import attnscope as at
from attnscope import demo
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


@pytest.mark.parametrize(
    "model",
    [
        lambda: BertModel(bert_config()),
        lambda: GPT2Model(GPT2Config(vocab_size=2000, n_layer=5, n_head=4, n_embd=24, n_positions=32)),
        lambda: LlamaModel(
            LlamaConfig(**{**TINY, "vocab_size": 2000}, num_key_value_heads=2, intermediate_size=36)
        ),
    ],
    ids=["bert", "gpt2", "llama"],
)
def test_a_cut_model_hands_its_kernel_the_very_same_vectors(model, tmp_path: Path) -> None:
    folder = save(model(), tmp_path / "m")
    whole, part = (
        load_model(plan_model(checkpoint(folder))),
        load_model(plan_model(checkpoint(folder)), layers=3),
    )
    inputs = part.encode(("the dog was near the big door",)).inputs
    first, second = (record(each.module, inputs, Selection(layers=[2])).calls[0] for each in (whole, part))
    for name in ("q", "k", "v", "output"):
        assert torch.equal(getattr(first, name), getattr(second, name)), name
    later = [name for name, _ in part.module.named_parameters() if ".3." in name or ".4." in name]
    assert part.layers == 3
    assert not later


def test_the_config_keeps_its_depth_when_the_model_is_cut(tmp_path: Path) -> None:
    model = load_model(plan_model(checkpoint(tiny_bert(tmp_path / "m"))), layers=2)
    assert model.module.config.num_hidden_layers == 5
    assert len(model.module.encoder.layer) == 2


def test_the_plan_knows_layers_and_heads_before_any_weight_is_read(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    planned = plan_model(checkpoint(folder))
    assert layers_and_heads(planned) == {Kind.ENCODER: ((0, 1, 2, 3, 4), {4})}
    assert not planned.writes
    assert {parameter.device.type for parameter in planned.skeleton.parameters()} == {"meta"}


def test_weights_missing_before_the_layer_are_an_error_that_names_them(tmp_path: Path) -> None:
    folder = without(tiny_bert(tmp_path / "m"), "encoder.layer.1.attention.self.key")
    model = load_model(plan_model(checkpoint(folder)), layers=3)
    inputs = model.encode(("the door",)).inputs
    with pytest.raises(
        ModelUnavailableError, match=r"m lacks weights .*encoder\.layer\.1\.attention\.self\.key"
    ):
        record(model.module, inputs, Selection(layers=[2]))


def test_weights_missing_after_the_layer_are_not_needed(tmp_path: Path) -> None:
    folder = without(tiny_bert(tmp_path / "m"), "encoder.layer.4", "pooler")
    model = load_model(plan_model(checkpoint(folder)), layers=3)
    assert record(model.module, model.encode(("the door",)).inputs, Selection(layers=[2])).calls


def test_missing_embeddings_are_an_error(tmp_path: Path) -> None:
    folder = without(tiny_bert(tmp_path / "m"), "embeddings.word_embeddings")
    model = load_model(plan_model(checkpoint(folder)), layers=1)
    with pytest.raises(ModelUnavailableError, match="word_embeddings"):
        record(model.module, model.encode(("the door",)).inputs, Selection(layers=[0]))


def test_weights_of_the_wrong_shape_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    bert_config(intermediate_size=40).save_pretrained(folder)
    with pytest.raises(ModelUnavailableError, match="cannot read the weights") as raised:
        load_model(plan_model(checkpoint(folder)))
    assert "\n" not in str(raised.value)


def test_a_head_is_loaded_when_its_weights_are_there(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m", BertForMaskedLM)
    assert type(load_with_head(checkpoint(folder)).module).__name__ == "BertForMaskedLM"


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


def test_pickled_weights_load_when_they_are_allowed(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    model = load_model(plan_model(checkpoint(folder, allow_pickle=True)))
    assert torch.equal(
        model.module.encoder.layer[4].output.dense.weight, weights["encoder.layer.4.output.dense.weight"]
    )


def test_the_loaded_weights_are_those_of_the_files(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    ours, theirs = load_model(plan_model(checkpoint(folder))).module, AutoModel.from_pretrained(folder)
    for (name, mine), (_, reference) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert torch.equal(mine, reference), name


def test_a_folder_without_tokenizer_says_so(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ModelUnavailableError, match="cannot read the tokenizer"):
        load_model(plan_model(checkpoint(folder)))


@pytest.mark.parametrize(
    "content", ["{", '{"model_type": "no-such-type"}', '{"model_type": "bert", "num_hidden_layers": "x"}']
)
def test_a_config_that_cannot_be_used_is_refused_in_one_line(content: str, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelUnavailableError) as raised:
        plan_model(checkpoint(folder))
    assert "\n" not in str(raised.value)


def test_the_two_halves_of_an_encoder_decoder_have_their_own_layers_and_heads(tmp_path: Path) -> None:
    planned = plan_model(checkpoint(tiny_translator(tmp_path / "m", "bart")))
    assert planned.writes
    decoder = (0, 1, 2), {6}
    assert layers_and_heads(planned) == {
        Kind.ENCODER: ((0, 1), {4}),
        Kind.DECODER: decoder,
        Kind.CROSS: decoder,
    }


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


def test_the_encoder_alone_of_an_encoder_decoder_is_an_encoder(tmp_path: Path) -> None:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(vocab_size=1200, d_model=24, d_kv=5, d_ff=30, num_layers=3, num_heads=4)
    planned = plan_model(checkpoint(save(T5EncoderModel(config), tmp_path / "m")))
    assert (layers_and_heads(planned), planned.writes) == ({Kind.ENCODER: ((0, 1, 2), {4})}, False)


def test_devices_that_are_unknown_or_absent_are_refused() -> None:
    with pytest.raises(InputError, match="unknown device 'tpu'"):
        torch_device("tpu")
    with pytest.raises(InputError, match="unknown device 'cuda:x'"):
        torch_device("cuda:x")
    with pytest.raises(InputError, match=f"no device cuda:{torch.cuda.device_count()} on this machine"):
        torch_device(f"cuda:{torch.cuda.device_count()}")


def test_the_tokenizer_is_the_folder_s_own(tmp_path: Path) -> None:
    model = load_model(plan_model(checkpoint(tiny_bert(tmp_path / "m"))))
    text = "The dog opened the window."
    expected = AutoTokenizer.from_pretrained(demo.folder())(text)["input_ids"]
    assert list(model.encode((text,)).tokens.ids) == expected


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
