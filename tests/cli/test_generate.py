"""`--generate`: the model goes on with the text, and the attention of its own tokens is shown too."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import tiny_translator
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from attnscope import demo

TEXT = "the old king was watching the door when the"
CAUSAL = ("-m", "demo-causal")
HEAD = ("--layer", "2", "--head", "1")
NEW = 3


@pytest.fixture(scope="module")
def translator(tmp_path_factory) -> Path:
    return tiny_translator(tmp_path_factory.mktemp("models") / "bart")


@pytest.fixture(scope="module")
def expected() -> tuple[list[int], torch.Tensor]:
    """What transformers alone writes, and the attentions of layer 2 head 1 without a cache."""
    folder = Path(demo.folder()).parent / "causal"
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    inputs = AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
    ids = model.generate(input_ids=inputs["input_ids"], max_new_tokens=NEW, do_sample=False)
    with torch.no_grad():
        output = model.eval()(input_ids=ids[:, :-1], use_cache=False, output_attentions=True)
    return ids[0].tolist(), output.attentions[2][0, 1]


def shown(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def weights(found: dict) -> np.ndarray:
    return np.array([[x or 0.0 for x in row] for row in found["weights"]])


def test_the_weights_are_those_of_the_whole_text_in_the_untouched_model(attnscope, expected) -> None:
    ids, attention = expected
    found = shown(attnscope("heads", TEXT, *HEAD, *CAUSAL, "--generate", str(NEW), "--json"))
    assert [token["id"] for token in found["query_tokens"]] == ids[:-1] == found["provenance"]["token_ids"]
    np.testing.assert_allclose(weights(found), attention.numpy(), atol=2e-6)
    assert found["certificate"]["verdict"] == "certified"
    assert found["query_written"] == "greedily"
    assert [token["part"] for token in found["query_tokens"]] == [0] * (len(ids) - NEW) + [1] * (NEW - 1)
    assert found["query_texts"][0] == TEXT


def test_without_generate_nothing_is_written(attnscope) -> None:
    found = shown(attnscope("heads", TEXT, *HEAD, *CAUSAL, "--json"))
    assert "written" not in found
    assert found["query_texts"] == [TEXT]


def test_header_and_notices_say_what_the_model_wrote(attnscope, expected) -> None:
    result = attnscope("heads", TEXT, *HEAD, *CAUSAL, "--generate", str(NEW), width=200)
    tokenizer = AutoTokenizer.from_pretrained(Path(demo.folder()).parent / "causal")
    words = tokenizer.decode(expected[0][-NEW:]).strip()
    assert f"“{TEXT}” → “{words}”" in result.stdout
    assert "the model wrote what follows → itself, greedily" in result.stdout
    assert "its last token was not read and has no row" in result.stdout
    assert f"demo-causal goes on, greedily: {words}" in result.stderr
    assert f"of its {NEW} new tokens the last was not read any more and has no row" in result.stderr


def test_an_overview_and_words_know_the_generated_tokens(attnscope, expected) -> None:
    ids, _ = expected
    found = shown(attnscope("heads", TEXT, *CAUSAL, "--layer", "1,2", "--generate", str(NEW), "--json"))
    assert [token["id"] for token in found["key_tokens"]] == ids[:-1]
    assert {each["verdict"] for each in found["results"]} == {"certified"}
    result = attnscope("heads", TEXT, *HEAD, *CAUSAL, "--generate", str(NEW), "--words", "-v")
    assert result.exit_code == 0
    assert "words: sum over the pieces" in result.stdout
    assert "· by words\n" in result.stdout


@pytest.mark.parametrize(("kind", "columns"), [("decoder", 5), ("cross", 7)])
def test_an_encoder_decoder_reads_what_it_writes(attnscope, translator, kind, columns) -> None:
    text = "I was watching the door"
    arguments = ("--layer", "1", "--head", "3", "-m", str(translator), "--kind", kind, "--generate", "5")
    found = shown(attnscope("heads", text, *arguments, "--json"))
    model = AutoModelForSeq2SeqLM.from_pretrained(translator, attn_implementation="eager")
    inputs = AutoTokenizer.from_pretrained(translator)(text, return_tensors="pt")
    ids = model.generate(input_ids=inputs["input_ids"], max_new_tokens=5, do_sample=False, num_beams=1)
    with torch.no_grad():
        output = model.eval()(
            input_ids=inputs["input_ids"], decoder_input_ids=ids[:, :-1], output_attentions=True
        )
    attention = output.decoder_attentions if kind == "decoder" else output.cross_attentions
    assert weights(found).shape == (5, columns)
    np.testing.assert_allclose(weights(found), attention[1][0, 3].numpy(), atol=2e-6)
    assert [token["id"] for token in found["query_tokens"]] == ids[0, :-1].tolist()


def test_a_report_predicts_the_token_that_was_not_read_any_more(attnscope, expected, tmp_path) -> None:
    out = tmp_path / "report.json"
    arguments = (*HEAD, *CAUSAL, "--generate", str(NEW), "--max-iter", "300", "-o", str(out))
    result = attnscope("report", TEXT, *arguments)
    assert result.exit_code == 0, result.stderr
    found = json.loads(out.read_text())
    ids, _ = expected
    best = found["prediction"]["blanks"][0]
    assert best["position"] == len(ids) - 2
    assert best["guesses"][0]["id"] == ids[-1]


def test_the_map_has_the_generated_tokens(attnscope, expected) -> None:
    arguments = (*HEAD, *CAUSAL, "--generate", str(NEW), "--max-iter", "300", "--json")
    found = shown(attnscope("tsne", TEXT, *arguments))
    assert len(found["query_places"]) == len(expected[0]) - 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("-m", "demo", "--generate", "4"), "demo is no decoder and writes no text: leave --generate out"),
        ((*CAUSAL, "--generate", "0"), "--generate is 0: it takes at least 1 token"),
        (
            (*CAUSAL, "--generate", "56"),
            "56 tokens after 10 are too many: demo-causal reads at most 64, so that --generate 55 is",
        ),
        (
            (*CAUSAL, "--generate", "4", "--target", "we"),
            "--target is what the decoder reads, --generate has the model write it: choose one",
        ),
        (
            ("-m", "demo-translate", "--kind", "encoder", "--generate", "4"),
            "what demo-translate generates its decoder reads: --kind decoder or --kind cross",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(attnscope, arguments, line) -> None:
    result = attnscope("heads", TEXT, *HEAD, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert line in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
