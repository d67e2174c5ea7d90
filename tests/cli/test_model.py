"""`attnscope model`: what there is to look at, on screen and as a document, and what is refused."""

import json
import re
from pathlib import Path

import pytest
import transformers as hf
from checkpoints import save, tiny_bert, tiny_translator, vocabulary_size

from attnscope import demo


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Jamba that attends in layers 1 and 3 of 5."""
    config = hf.JambaConfig(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=5, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=20, attn_layer_period=2, attn_layer_offset=1, num_experts=2,
        num_experts_per_tok=1, use_mamba_kernels=False, mamba_d_state=4, mamba_dt_rank=3,
        max_position_embeddings=50,
    )  # fmt: skip
    return save(hf.JambaModel(config), tmp_path_factory.mktemp("models") / "hybrid")


@pytest.fixture(scope="module")
def mamba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = hf.MambaConfig(vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=2, state_size=4)
    return save(hf.MambaModel(config), tmp_path_factory.mktemp("models") / "mamba")


def line(result) -> str:
    """The one line on standard error; nothing stands on standard output."""
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_the_demo_is_shown_with_its_layers_and_what_a_head_costs(attnscope) -> None:
    result = attnscope("model", "demo", width=140)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "The model demo is an encoder with 4 layers of 12 heads (BertModel, 624 thousand parameters, "
    )
    size = (demo.folder() / "model.safetensors").stat().st_size
    assert f"stored on this machine: {size / 1e6:.2f} MB, float32, 1 file" in result.stdout
    (row,) = [line.split() for line in lines if line.startswith("0-3 ")]
    assert row[:7] == ["0-3", "12", "12", "8", "8", "learned", "(64)"]
    assert "one head of layer 3, encoder, at 64 tokens: an estimate" in result.stdout


@pytest.mark.parametrize(
    ("name", "kind", "option", "file"),
    [
        ("demo-caption", "VisionEncoderDecoderModel", "--image", "example.png"),
        ("demo-speech", "WhisperForConditionalGeneration", "--audio", "example.wav"),
    ],
)
def test_where_the_example_of_a_bundled_model_lies_is_said_beside_its_outline(
    attnscope, name: str, kind: str, option: str, file: str
) -> None:
    result = attnscope("model", name, width=140)
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    assert told.startswith(f"The model {name} has attention in ")
    assert f"({kind}, " in told
    path = demo.folder(name) / file
    assert result.stderr == f"note: an example comes with {name}: {option} {path}\n"
    assert path.is_file()


def test_a_model_of_text_has_no_example_to_name(attnscope) -> None:
    assert attnscope("model", "demo", width=140).stderr == ""
    assert demo.example("demo-translate") is None


def test_without_a_name_every_bundled_model_is_named(attnscope, monkeypatch) -> None:
    monkeypatch.setenv("ATTNSCOPE_MODEL", "demo-causal")
    said = attnscope("model")
    assert said.exit_code == 0
    assert "demo-causal" in said.stdout
    assert ", ".join(demo.FOLDERS) in " ".join(said.stderr.split())
    assert len(demo.FOLDERS) == 6
    assert "demo-speech" not in attnscope("model", "demo-causal").stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_same_model_gives_the_same_bytes_and_its_speed_is_said_only_when_asked_for(
    attnscope, form
) -> None:
    once, again = (attnscope("model", "demo-causal", *form) for _ in range(2))
    assert once.stdout == again.stdout
    assert once.stderr == again.stderr == ""
    loud = attnscope("model", "demo-causal", "-v", *form)
    assert loud.stdout == once.stdout + ("" if form else "\nbundled demo-causal model · LlamaModel\n")
    assert re.search(r"for its products at \S+ .?FLOP/s, in float64 .* as measured now", loud.stderr)


def test_several_lengths_stand_in_one_table_with_what_they_grow_by(attnscope) -> None:
    lines = attnscope("model", "demo", "--length", "16,128", width=140).stdout.splitlines()
    assert "one head of layer 3, encoder, by length of text: an estimate" in lines
    (row,) = [line for line in lines if line.startswith("128*")]
    assert row.split()[:3] == ["128*", "5.33", "MB"]
    assert lines[-2].startswith("* beyond what demo was made for, it reads at most 64 tokens: ")
    assert lines[-1] == "from 16 to 128 tokens: 8 times the text, 64 times the weights"
    alone = attnscope("model", "demo", "--length", "128", width=140).stdout
    assert "one head of layer 3, encoder, at 128 tokens: an estimate" in alone
    assert "beyond what demo was made for" in alone


@pytest.mark.parametrize("width", [40, 80, 140])
def test_it_fits_on_every_screen(attnscope, width: int) -> None:
    for name in ("demo", "demo-translate", "demo --length 16,8192"):
        lines = attnscope("model", *name.split(), width=width).stdout.splitlines()
        assert max(map(len, lines)) <= width


def test_the_document_holds_every_layer_of_every_tower(attnscope, tmp_path: Path) -> None:
    folder = tiny_translator(tmp_path / "m")
    result = attnscope("model", str(folder), "--json", "--kind", "decoder", "--layer", "1", "--length", "9")
    told = json.loads(result.stdout)
    assert told["schema"] == "attnscope.outline/2"
    assert [(tower["kind"], [layer["layer"] for layer in tower["layers"]]) for tower in told["towers"]] == [
        ("encoder", [0, 1]),
        ("decoder", [0, 1, 2]),
        ("cross", [0, 1, 2]),
    ]
    assert [layer["module"] for layer in told["layers"] if layer["kind"] == "cross"] == [
        f"model.decoder.layers.{i}.encoder_attn" for i in range(3)
    ]
    assert {layer["heads"] for layer in told["layers"] if layer["kind"] == "encoder"} == {4}
    assert {layer["heads"] for layer in told["layers"] if layer["kind"] != "encoder"} == {6}
    cost = told["cost"]
    assert (cost["kind"], cost["layer"], cost["length"], cost["queries"]) == ("decoder", 1, 9, 9)
    assert cost["bytes"] == cost["weights"] + cost["operands"] + cost["kernel"] + cost["reference"]
    assert told["bytes_float32"] == 4 * told["parameters"] >= cost["weights"]


def test_no_weight_is_needed(attnscope, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    with_weights = attnscope("model", str(folder), "--json")
    (folder / "model.safetensors").unlink()
    without = attnscope("model", str(folder), "--json")
    first, second = (json.loads(each.stdout) for each in (with_weights, without))
    assert second["storage"] is None
    assert second["unlisted"] == "there are no weights beside its config.json"
    assert first["layers"] == second["layers"]
    assert first["parameters"] == second["parameters"]
    assert "there are no weights beside" in attnscope("model", str(folder)).stdout.replace("\n", " ")


def test_layers_without_attention_are_listed(attnscope, hybrid: Path) -> None:
    result = attnscope("model", str(hybrid), width=100)
    assert "no attention in layers 0, 2, 4 of layers: JambaMambaMixer" in result.stdout
    assert "\n1, 3" in result.stdout
    assert "one head of layer 3, decoder, at 50 tokens" in result.stdout


def test_heads_of_a_layer_without_attention_lists_those_that_have_it(attnscope, hybrid: Path) -> None:
    for layer in ("0", "2", "4", "5"):
        result = attnscope("heads", "the dog", "-m", str(hybrid), "--layer", layer)
        assert result.exit_code == 2
        what = f"no layer {layer} in" if layer == "5" else f"layer {layer} has no attention in"
        assert f"{what} {hybrid}: layers 1, 3, heads 0-3" in line(result)
    result = attnscope("model", str(hybrid), "--layer", "2")
    assert result.exit_code == 2
    assert "layer 2 has no attention" in line(result)
    assert "layers 1, 3" in result.stderr


def test_a_model_without_attention_is_information_here_and_an_error_for_heads(attnscope, mamba: Path) -> None:
    result = attnscope("model", str(mamba))
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert re.match(r"No attention can be read in mamba \(MambaModel, ", said)
    assert "no attention in layers 0-1 of layers: MambaBlock" in result.stdout
    told = json.loads(attnscope("model", str(mamba), "--json").stdout)
    assert (told["towers"], told["layers"], told["cost"]) == ([], [], None)
    refused = attnscope("heads", "the dog", "-m", str(mamba))
    assert refused.exit_code == 2
    assert "has no attention that can be read" in line(refused)
    with_tower = attnscope("model", str(mamba), "--kind", "encoder")
    assert with_tower.exit_code == 2
    assert "has no attention that can be read" in line(with_tower)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demo", "--length", "some"), "--length 'some': numbers of tokens, such as 512 or 128,1024,8192"),
        (("demo", "--length", "8,"), "--length '8,': numbers of tokens, such as 512 or 128,1024,8192"),
        (("demo", "--length", "8,0"), "--length 0: a text has 1 to 1,000,000,000 tokens, demo reads at most"),
        (("demo", "--layer", "4"), "no layer 4 in demo (encoder): layers 0-3"),
        (("demo", "--layer", "1-2"), "the cost is that of one layer, --layer names 2: 1-2"),
        (("demo", "--layer", "x"), "--layer 'x' is not a list"),
        (("demo", "--kind", "cross"), "demo has no cross attention: it has encoder"),
        (("demo", "--kind", "self"), "no kind of attention 'self': encoder, decoder, cross"),
        (("demo-translate", "--tower", "eye"), "demo-translate has no tower 'eye'"),
        (("",), "the name of the model is empty"),
    ],
)
def test_bad_input_is_one_line(attnscope, arguments: tuple[str, ...], message: str) -> None:
    result = attnscope("model", *arguments)
    assert result.exit_code == 2
    assert message in line(result)


def test_a_folder_without_a_config_is_no_model(attnscope, tmp_path: Path) -> None:
    result = attnscope("model", str(tmp_path))
    assert result.exit_code == 3
    assert "has no config.json" in line(result)


def test_a_config_of_no_known_type_is_refused_in_one_line(attnscope, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "no-such-model"}')
    result = attnscope("model", str(tmp_path))
    assert result.exit_code == 3
    assert "cannot read config.json" in line(result)
