"""`attnscope heads`, against the untouched model's own weights, also of what a model writes."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import tiny_translator
from pasted import following
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from written_numbers import number_of

from attnscope import demo

TEXT = "I was watching the [MASK] when it opened."
ONE = ("heads", TEXT, "-m", "demo", "--layer", "3", "--head", "11")


@pytest.fixture(scope="module")
def own_weights() -> np.ndarray:
    """The demo model's own attentions, layer head query key, from a run that attnscope has no part in."""
    model = AutoModel.from_pretrained(demo.folder(), attn_implementation="eager")
    inputs = AutoTokenizer.from_pretrained(demo.folder())(TEXT, return_tensors="pt")
    attentions = model(**inputs, output_attentions=True).attentions
    return np.stack([layer[0].detach().numpy() for layer in attentions])


def test_the_table_shows_the_model_s_own_weights(attnscope, own_weights) -> None:
    result = attnscope(*ONE)
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith(" 5 [MASK]"))
    shown = [number_of(cell) for cell in row.split()[2:]]
    assert shown == pytest.approx(own_weights[3, 11, 5], abs=0.0051)
    assert "certified" in result.stdout
    for width in (0, 1, 5):  # which cannot be used
        assert "certified" in attnscope(*ONE, width=width).stdout


@pytest.mark.parametrize(
    ("end", "left", "told"),
    [("", "", None), ("\r\n", "", None), ("\r\n\n\r\n", "\r\n\n", 3)],
)
def test_one_line_end_of_standard_input_is_no_text_and_the_others_are(
    attnscope, end: str, left: str, told: int | None
) -> None:
    model = ("-m", "demo-causal", "-l", "1", "--head", "2", "--json")
    piped = attnscope("heads", "-", *model, stdin=f"the door{end}")
    assert piped.stdout == attnscope("heads", f"the door{left}", *model).stdout
    assert json.loads(piped.stdout)["query_texts"] == [f"the door{left}"]
    assert (f"ends in {told} line ends" in piped.stderr, "x.jsonl" in piped.stderr) == (told is not None,) * 2


def test_files_hold_the_same_numbers_in_every_format(attnscope, tmp_path: Path, own_weights) -> None:
    targets = [tmp_path / "new" / "folder" / f"head.{suffix}" for suffix in ("npz", "csv", "json")]
    result = attnscope(*ONE, *(part for target in targets for part in ("-o", str(target))))
    assert result.exit_code == 0
    arrays = np.load(targets[0], allow_pickle=False)
    rows = csv.DictReader(
        io.StringIO("".join(line for line in targets[1].open() if not line.startswith("#")))
    )
    by_csv = np.array([float(row["weight"]) for row in rows]).reshape(11, 11)
    by_json = np.asarray(json.loads(targets[2].read_text())["weights"])
    assert np.array_equal(arrays["weights"], by_csv)
    assert np.array_equal(by_csv, by_json)
    assert by_json == pytest.approx(own_weights[3, 11], abs=1e-6)
    told = json.loads(targets[2].read_text())
    assert told["schema"] == "attnscope.head/2"
    assert told["provenance"]["requested"] == "demo"
    assert told["certificate"]["verdict"] == "certified"


def test_standard_output_is_data_and_standard_error_is_narration(attnscope, tmp_path: Path) -> None:
    result = attnscope(*ONE, "--json", "-v", "-o", str(tmp_path / "head.png"))
    json.loads(result.stdout)
    assert "wrote" in result.stderr
    assert "loaded the first 4 of" in result.stderr or "loaded" in result.stderr
    assert attnscope(*ONE, "--json", "-q", "-o", str(tmp_path / "head.png")).stderr == ""


@pytest.mark.parametrize(
    "text",
    [
        "[/b] [red]the door[/red]",
        "\x1b[31mthe door\x1b[0m \x07",
        "the 🙂 👩\u200d👩\u200d👧 door",
        "猫在门口",
        "القط",
        "e\u0301te\u0301 \u202eabc",
    ],
)
def test_any_text_is_shown_as_text(attnscope, text: str, tmp_path: Path) -> None:
    result = attnscope(
        "heads", text, "-m", "demo", "-l", "1", "--head", "2", "-o", str(tmp_path / "a.png"), width=140
    )
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert "\x07" not in result.stdout + result.stderr
    assert "\u202e" not in result.stdout + result.stderr
    assert attnscope("heads", text, "-m", "demo", "-l", "1", "--head", "2", "--json").exit_code == 0


def test_what_the_model_cannot_spell_is_said(attnscope) -> None:
    result = attnscope("heads", "the 猫 opened", "-m", "demo", "-l", "0", "--head", "0")
    assert "cannot spell '猫'" in result.stderr
    assert "[UNK]" in result.stdout


def test_what_a_model_only_returns_has_no_measures_of_more_than_weights(attnscope) -> None:
    asked = ("heads", TEXT, "-m", "demo", "--route", "returned")
    shown = attnscope(*asked, "--measure", "entropy,previous-norm,near,special-tokens", "-v")
    assert shown.stdout.startswith("As the model reports it, unchecked: ")
    assert "previous-norm, near: - (the model returns weights alone)" in " ".join(shown.stdout.split())


READ, TARGET = "I was watching the door", "we saw it"
THIRD = ("--layer", "1", "--head", "3")


@pytest.fixture(scope="module")
def bart(tmp_path_factory) -> Path:
    return tiny_translator(tmp_path_factory.mktemp("models") / "bart")


def told(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def weights(found: dict) -> np.ndarray:
    return np.array([[x or 0.0 for x in row] for row in found["weights"]])


def test_without_a_kind_cross_attention_is_shown_and_without_a_target_the_model_writes_it(
    attnscope, bart
) -> None:
    result = attnscope("heads", READ, *THIRD, "-m", str(bart))
    command = following(result.stdout)
    assert command[command.index("--kind") + 1] == "cross"
    assert "showing cross (--kind chooses)" in result.stderr
    written = next(line for line in result.stderr.splitlines() if "writes: " in line).split("writes: ")[1]
    again = attnscope("heads", READ, *THIRD, "-m", str(bart), "--kind", "cross", "--json")
    assert told(again)["query_texts"] == [written]


def test_the_weights_of_what_a_decoder_writes_are_those_of_the_whole_text_in_the_untouched_model(
    attnscope,
) -> None:
    text, new = "the old king was watching the door when the", 3
    causal = Path(demo.folder()).parent / "causal"
    model = AutoModelForCausalLM.from_pretrained(causal, attn_implementation="eager", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(causal)
    inputs = tokenizer(text, return_tensors="pt")
    ids = model.generate(input_ids=inputs["input_ids"], max_new_tokens=new, do_sample=False)
    with torch.no_grad():
        output = model.eval()(input_ids=ids[:, :-1], use_cache=False, output_attentions=True)
    asked = ("heads", text, "--layer", "2", "--head", "1", "-m", "demo-causal", "--generate", str(new))
    found, ids = told(attnscope(*asked, "--json")), ids[0].tolist()
    assert [token["id"] for token in found["query_tokens"]] == ids[:-1] == found["provenance"]["token_ids"]
    np.testing.assert_allclose(weights(found), output.attentions[2][0, 1].numpy(), atol=2e-6)
    assert found["certificate"]["verdict"] == "certified"
    assert found["query_written"] == "greedily"
    assert [token["part"] for token in found["query_tokens"]] == [0] * (len(ids) - new) + [1] * (new - 1)
    assert found["query_texts"][0] == text
    result = attnscope(*asked, width=200)
    words = tokenizer.decode(ids[-new:]).strip()
    assert f"“{text}” → “{words}”" in result.stdout
    assert "the model wrote what follows → itself, greedily" in result.stdout
    assert "its last token was not read and has no row" in result.stdout
    assert f"demo-causal goes on, greedily: {words}" in result.stderr
    assert f"of its {new} new tokens the last was not read any more and has no row" in result.stderr


def test_an_encoder_decoder_reads_what_it_writes(attnscope, bart) -> None:
    text = "I was watching the door"
    arguments = ("--layer", "1", "--head", "3", "-m", str(bart), "--kind", "cross", "--generate", "5")
    found = told(attnscope("heads", text, *arguments, "--json"))
    model = AutoModelForSeq2SeqLM.from_pretrained(bart, attn_implementation="eager")
    inputs = AutoTokenizer.from_pretrained(bart)(text, return_tensors="pt")
    ids = model.generate(input_ids=inputs["input_ids"], max_new_tokens=5, do_sample=False, num_beams=1)
    with torch.no_grad():
        output = model.eval()(
            input_ids=inputs["input_ids"], decoder_input_ids=ids[:, :-1], output_attentions=True
        )
    assert weights(found).shape == (5, 7)
    np.testing.assert_allclose(weights(found), output.cross_attentions[1][0, 3].numpy(), atol=2e-6)
    assert [token["id"] for token in found["query_tokens"]] == ids[0, :-1].tolist()


def test_the_vectors_of_a_head_are_tabulated_with_their_lengths(attnscope) -> None:
    q = np.array(json.loads(attnscope(*ONE, "--json").stdout)["q"])[3]
    lines = attnscope(*ONE, "--show", "q").stdout.splitlines()
    row = next(line for line in lines if line.startswith(" 3 watching"))
    shown = [number_of(cell) for cell in row.split()[2:]]
    assert shown == pytest.approx([np.linalg.norm(q), *q], abs=0.051)
