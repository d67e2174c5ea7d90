"""`attnscope predict` as the shell sees it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from checkpoints import save, tiny_bert, tiny_translator, vocabulary_size
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM, BertForNextSentencePrediction, GPT2Config, GPT2LMHeadModel

TEXT = "I was watching the door when [MASK] opened."


def test_the_pronoun_of_the_article_is_predicted(attnscope) -> None:
    result = attnscope("predict", TEXT, "-m", "demo", "--top", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("The model answers “it” at [MASK]: 99.8 % (next: “they”, ")
    heading = lines.index("7 [MASK]")
    assert lines[heading + 2].split()[:3] == ["it", "99.8", "%"]
    assert [line.split()[0] for line in lines[heading + 2 : heading + 5]] == ["it", "they", "she"]
    assert lines[-1].strip().startswith("attnscope ablate ")


def test_json_csv_and_npz_hold_the_same_numbers(attnscope, tmp_path: Path) -> None:
    files = [tmp_path / f"p.{suffix}" for suffix in ("json", "csv", "npz")]
    out = [part for file in files for part in ("-o", str(file))]
    result = attnscope("predict", "I [MASK] a [MASK].", "--pair", "It was red.", "-m", "demo", "--json", *out)
    document = json.loads(result.stdout)
    assert document == json.loads(files[0].read_text())
    assert document["schema"] == "attnscope.prediction/2"
    assert document["provenance"]["route"] == "untouched"
    rows = list(csv.DictReader(line for line in files[1].read_text().splitlines() if line[0] != "#"))
    guesses = [guess for blank in document["blanks"] for guess in blank["guesses"]]
    assert [float(row["probability"]) for row in rows[:-1]] == [guess["probability"] for guess in guesses]
    assert float(rows[-1]["probability"]) == document["next_sentence"]["probability"]
    arrays = np.load(files[2])
    assert arrays["probability"].shape == (2, 5)
    assert arrays["id"].ravel().tolist() == [guess["id"] for guess in guesses]


def test_what_an_encoder_decoder_wrote_is_shown_with_its_check(attnscope, tmp_path: Path) -> None:
    folder = tiny_translator(tmp_path / "m")
    result = attnscope("predict", "the door", "-m", str(folder))
    assert "as it was written, with a cache, no probability differs by more than" in result.stdout


def test_a_text_that_was_given_is_not_called_the_models_own(attnscope, tmp_path: Path) -> None:
    folder = str(tiny_translator(tmp_path / "m"))
    given = attnscope("predict", "the door", "-m", folder, "--target", "we saw it")
    assert given.stdout.startswith("The model was given “we saw it”")
    assert attnscope("predict", "the door", "-m", folder).stdout.startswith("The model wr")
    for target, written in ((("--target", "we saw it"), False), ((), True)):
        told = json.loads(attnscope("predict", "the door", "-m", folder, *target, "--json").stdout)
        assert told["generated"]["written"] is written


def test_a_second_text_that_is_not_judged_is_said_to_be_only_read(attnscope, tmp_path: Path) -> None:
    folder = str(tiny_translator(tmp_path / "m"))
    notice = "has no next-sentence head: it reads the two texts as one input"
    pair = attnscope("predict", "the door", "--pair", "it opened", "-m", folder, "--target", "we")
    assert notice in pair.stderr
    assert notice not in attnscope("predict", "the door", "-m", folder, "--target", "we").stderr
    assert notice not in attnscope("predict", "the [MASK]", "--pair", "it opened", "-m", "demo").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("the door opened",), "no [MASK] to fill"),
        (("the [MASK]", "--top", "0"), "greater than or equal to 1"),
        (("the [MASK]", "--target", "we"), "no encoder-decoder"),
        ((" ",), "the text is empty"),
        (("the [MASK]", "-o", "p.gif"), "cannot write 'p.gif'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(attnscope, arguments, message) -> None:
    result = attnscope("predict", *arguments, "-m", "demo")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_model_without_a_head_is_refused(attnscope, tmp_path: Path) -> None:
    result = attnscope("predict", TEXT, "-m", str(tiny_bert(tmp_path / "m")))
    assert result.exit_code == 2
    assert "has no head that predicts words" in result.stderr
    assert result.stderr.count("\n") == 1


def without_numbers(folder: Path, weight: str) -> str:
    """The checkpoint with one weight that is no number."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights[weight].view(-1)[0] = float("nan")
    save_file(weights, file, {"format": "pt"})
    return str(folder)


@pytest.mark.parametrize("json_asked", [(), ("--json",)])
@pytest.mark.parametrize(
    ("kind", "weight", "texts"),
    [
        ("masked", "bert.encoder.layer.1.output.dense.weight", ("the [MASK] opened",)),
        ("pair", "bert.encoder.layer.1.output.dense.weight", ("the door", "--pair", "it opened")),
        ("generated", "decoder.block.0.layer.0.SelfAttention.q.weight", ("the door", "--target", "we saw")),
        ("generated", "decoder.block.0.layer.0.SelfAttention.q.weight", ("the door",)),
        ("next", "transformer.h.1.mlp.c_fc.weight", ("the door",)),
    ],
)
def test_what_is_no_number_is_no_prediction(
    attnscope, tmp_path: Path, kind: str, weight: str, texts: tuple[str, ...], json_asked: tuple[str, ...]
) -> None:
    folder = tmp_path / "m"
    if kind == "generated":
        tiny_translator(folder, "t5")
    elif kind == "next":
        settings = {"n_layer": 2, "n_head": 4, "n_embd": 24, "n_positions": 40}
        save(GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary_size(), **settings)), folder)
    else:
        tiny_bert(folder, BertForMaskedLM if kind == "masked" else BertForNextSentencePrediction)
    model = without_numbers(folder, weight)
    target = tmp_path / "out.json"
    result = attnscope("predict", *texts, "-m", model, "-o", str(target), *json_asked)
    assert result.exit_code == 5
    assert result.stdout == ""
    line = result.stderr.splitlines()[-1]
    assert line.startswith(f"attnscope: {model} predicts nothing: its probabilities are not numbers")
    assert not target.exists()


def test_a_report_goes_without_a_prediction_that_is_no_number(attnscope, tmp_path: Path) -> None:
    model = without_numbers(tiny_bert(tmp_path / "m", BertForMaskedLM), "cls.predictions.bias")
    result = attnscope("report", "the [MASK] opened", "-m", model, "-l", "1", "--head", "2")
    assert result.exit_code == 0, result.stderr  # the head itself is sound
    assert "no prediction: " in result.stderr
    assert "not numbers" in result.stderr
