"""`--kind` and `--target`: the three kinds of attention of an encoder-decoder."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoints import tiny_translator
from pasted import following
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

TEXT, TARGET = "I was watching the door", "we saw it"
HEAD = ("--layer", "1", "--head", "3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_translator(tmp_path_factory.mktemp("models") / "bart")


def shown(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("kind", "field", "rows", "columns"),
    [
        ("encoder", "encoder_attentions", 7, 7),
        ("decoder", "decoder_attentions", 5, 5),
        ("cross", "cross_attentions", 5, 7),
    ],
)
def test_the_weights_of_each_kind_are_those_of_the_untouched_model(
    attnscope, folder, kind, field, rows, columns
) -> None:
    target = () if kind == "encoder" else ("--target", TARGET)
    found = shown(attnscope("heads", TEXT, *HEAD, "-m", str(folder), "--kind", kind, *target, "--json"))
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(TEXT, return_tensors="pt")
    labels = tokenizer(text_target=TARGET, return_tensors="pt")["input_ids"]
    ids = model.prepare_decoder_input_ids_from_labels(labels=labels)
    output = model.eval()(input_ids=inputs["input_ids"], decoder_input_ids=ids, output_attentions=True)
    expected = getattr(output, field)[1][0, 3].detach().numpy()
    weights = np.array([[x or 0.0 for x in row] for row in found["weights"]])
    assert weights.shape == (rows, columns)
    np.testing.assert_allclose(weights, expected, atol=2e-6)
    assert found["certificate"]["verdict"] == "certified"


def test_without_a_kind_cross_attention_is_shown_and_said_so(attnscope, folder) -> None:
    result = attnscope("heads", TEXT, *HEAD, "-m", str(folder), "--target", TARGET)
    assert result.stdout.startswith("When the decoder reads ")
    command = following(result.stdout)
    assert command[command.index("--kind") + 1] == "cross"
    assert "showing cross (--kind chooses)" in result.stderr


def test_without_a_target_the_model_writes_it(attnscope, folder) -> None:
    result = attnscope("heads", TEXT, *HEAD, "-m", str(folder), "--kind", "cross")
    written = next(line for line in result.stderr.splitlines() if "writes: " in line).split("writes: ")[1]
    again = attnscope("heads", TEXT, *HEAD, "-m", str(folder), "--kind", "cross", "--json")
    assert shown(again)["query_texts"] == [written]


def test_every_kind_is_verified(attnscope, folder) -> None:
    found = shown(attnscope("verify", TEXT, "-m", str(folder), "--target", TARGET, "--json"))
    kinds = [layer["kind"] for layer in found["layers"]]
    assert {kind: kinds.count(kind) for kind in kinds} == {"encoder": 2, "decoder": 3, "cross": 3}
    assert found["verdict"] == "certified"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "crossed"), "no kind of attention 'crossed': encoder, decoder, cross"),
        (("--kind", "encoder", "--target", "we"), "leave one out"),
        (("--kind", "encoder", "--head", "5"), "(encoder): layers 0-1, heads 0-3"),
        (("--kind", "cross", "--layer", "3"), "(cross): layers 0-2, heads 0-5"),
        (("--target", " "), "the target text is empty"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(attnscope, folder, arguments, message) -> None:
    result = attnscope("heads", TEXT, "-m", str(folder), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") <= 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "cross"), "demo has no cross attention: it has encoder"),
        (("--target", "we"), "demo is no encoder-decoder: leave --target out"),
    ],
)
def test_a_model_of_one_stack_has_neither_other_kinds_nor_a_target(attnscope, arguments, message) -> None:
    result = attnscope("heads", TEXT, "-m", "demo", *arguments)
    assert (result.exit_code, result.stderr) == (2, f"attnscope: {message}\n")
