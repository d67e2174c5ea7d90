"""`attnscope compare`, held against the untouched model's own vectors and weights."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import bert_config, save, tiny_translator
from transformers import AutoModel, AutoTokenizer, BertModel, PreTrainedModel

from attnscope import demo
from attnscope.attention import AttentionCall
from attnscope.results import Certificate, Verdict

RIVER = "I sat on the bank and saw the water."
MONEY = "The bank has no money."
ONE = ("compare", RIVER, MONEY, "--word", "bank", "-m", "demo")
PLACES = 5, 2


def own(text: str, place: int) -> dict[str, np.ndarray]:
    """The demo model's own vectors `layer head dim` and weights `layer head key` of the token at `place`."""
    model = AutoModel.from_pretrained(demo.folder(), attn_implementation="eager")
    inputs = AutoTokenizer.from_pretrained(demo.folder())(text, return_tensors="pt")
    with torch.no_grad():
        given = model(**inputs, output_attentions=True, output_hidden_states=True)
        attentions = [layer.attention.self for layer in model.encoder.layer]
        made = {
            name: np.stack(
                [
                    getattr(each, name)(states)[0, place].view(each.num_attention_heads, -1).numpy()
                    for each, states in zip(attentions, given.hidden_states, strict=False)
                ]
            )
            for name in ("query", "key", "value")
        }
    made["weights"] = np.stack([layer[0, :, place].numpy() for layer in given.attentions])
    return made


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.ravel() @ b.ravel() / np.sqrt((a**2).sum() * (b**2).sum()))


@pytest.fixture(scope="module")
def sides() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    return own(RIVER, PLACES[0]), own(MONEY, PLACES[1])


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith("L") and " H" in line]


def test_the_table_holds_the_cosines_of_the_model_s_own_vectors(attnscope, sides) -> None:
    result = attnscope(*ONE)
    assert result.exit_code == 0
    a, b = sides
    for layer, row in enumerate(rows(result.stdout)[: len(a["query"])]):
        assert row[0] == f"L{layer}"
        expected = [cosine(a[name][layer], b[name][layer]) for name in ("query", "key", "value")]
        assert [float(cell) for cell in row[1:4]] == pytest.approx(expected, abs=0.0011)
    assert "✓ certified: 96 of 96 heads" in result.stdout


def test_json_is_one_document_with_cosines_by_head_and_both_rows(attnscope, sides) -> None:
    document = json.loads(attnscope(*ONE, "--json").stdout)
    assert document["schema"] == "attnscope.comparison/2"
    a, b = sides
    heads = np.asarray(document["cosine"]["key"]["heads"])
    for layer, head in np.ndindex(heads.shape):
        assert heads[layer, head] == pytest.approx(
            cosine(a["key"][layer, head], b["key"][layer, head]), abs=1e-4
        )
    for letter, weights in zip("ab", sides, strict=True):
        told = document[letter]
        assert told["weights"] == pytest.approx(weights["weights"][told["layer"], told["head"]], abs=1e-5)
        assert told["word"] == "bank"
    outputs = np.asarray(document["cosine"]["output"]["heads"])
    assert (document["a"]["layer"], document["a"]["head"]) == np.unravel_index(
        outputs.argmin(), outputs.shape
    )


def test_one_layer_and_one_head_choose_what_is_shown_and_every_layer_stays_in_the_table(attnscope) -> None:
    document = json.loads(attnscope(*ONE, "-l", "-1", "--head", "11", "--json").stdout)
    assert (document["a"]["name"], document["b"]["name"], document["chosen"]) == ("L3 H11", "L3 H11", False)
    assert document["layers"] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert document["heads"] == [11]
    part = json.loads(attnscope(*ONE, "-l", "1", "--json").stdout)
    whole = json.loads(attnscope(*ONE, "--json").stdout)
    assert part["cosine"] == whole["cosine"]
    assert part["a"]["layer"] == 1


def test_words_are_named_by_text_by_position_and_by_both(attnscope) -> None:
    by_text = attnscope(*ONE).stdout
    assert attnscope(*ONE[:3], "--word", "5", "--word-b", "2", "-m", "demo").stdout == by_text
    assert attnscope(*ONE[:3], "--word", "bank@5", "--word-b", "Bank", "-m", "demo").stdout == by_text


def test_two_words_can_be_compared_in_one_text(attnscope) -> None:
    result = attnscope("compare", RIVER, RIVER, "--word", "bank", "--word-b", "water", "-m", "demo")
    assert result.stdout.startswith("“bank” and “water” differ most in layer ")


def test_the_same_text_twice_is_alike_everywhere(attnscope) -> None:
    document = json.loads(attnscope("compare", RIVER, RIVER, *ONE[3:], "--json").stdout)
    assert np.asarray(document["cosine"]["output"]["heads"]) == pytest.approx(1)
    assert np.asarray(document["divergence"]["jensen_shannon"]) == pytest.approx(0)


def test_a_dash_reads_either_text_from_standard_input(attnscope) -> None:
    expected = attnscope(*ONE).stdout
    assert attnscope("compare", "-", *ONE[2:], stdin=RIVER).stdout == expected
    assert attnscope("compare", RIVER, "-", *ONE[3:], stdin=MONEY).stdout == expected


def test_two_layers_have_rows_and_no_cosines(attnscope, sides) -> None:
    arguments = ("compare", RIVER, "--word", "bank", "-m", "demo", "-l", "1", "--layer-b", "-1", "--json")
    document = json.loads(attnscope(*arguments).stdout)
    assert (document["between"], document["layers"], document["cosine"]) == ("layers", [[1, 3]], {})
    moved = np.abs(sides[0]["weights"][1] - sides[0]["weights"][3]).sum(-1) / 2
    assert document["divergence"]["total_variation"][0] == pytest.approx(moved, abs=1e-5)
    said = " ".join(attnscope(*arguments[:-1], "--legend").stdout.split())
    assert "no cosines" in said


def copy_of(folder: Path, model: PreTrainedModel, noise: float) -> Path:
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=noise)
    return save(model, folder)


def test_a_model_is_compared_with_its_further_training(attnscope, bert: Path, tmp_path: Path) -> None:
    other = copy_of(tmp_path / "tuned", BertModel.from_pretrained(bert), noise=0.05)
    arguments = ("compare", RIVER, "--word", "bank", "-m", str(bert), "--model-b")
    document = json.loads(attnscope(*arguments, str(other), "--json").stdout)
    assert document["between"] == "models"
    assert document["b"]["provenance"]["model"] == str(other)
    together = document["cosine"]["value"]["together"]
    assert all(0.3 < cosine < 0.9999 for cosine in together)
    same = json.loads(attnscope(*arguments, str(bert), "--json").stdout)
    assert same["cosine"]["value"]["together"] == pytest.approx([1] * 5)


def test_models_of_other_shapes_are_compared_in_one_head_that_both_have(
    attnscope, bert: Path, tmp_path: Path
) -> None:
    torch.manual_seed(2)
    other = save(BertModel(bert_config(num_hidden_layers=2)), tmp_path / "shallow")
    arguments = ("compare", RIVER, "--word", "bank", "-m", str(bert), "--model-b", str(other))
    refused = attnscope(*arguments)
    assert refused.exit_code == 2
    assert "5 layers x 4 heads and 2 layers x 4 heads: give one --layer and one --head" in refused.stderr
    document = json.loads(attnscope(*arguments, "-l", "1", "--head", "3", "--json").stdout)
    assert (document["cosine"], document["layers"], document["a"]["name"]) == ({}, [[1, 1]], "L1 H3")
    missing = attnscope(*arguments, "-l", "4", "--head", "3")
    assert (missing.exit_code, "no layer 4" in missing.stderr) == (2, True)


def test_a_word_of_the_decoder_is_looked_up_in_the_target(attnscope, tmp_path: Path) -> None:
    model = str(tiny_translator(tmp_path / "bart"))
    arguments = ("compare", RIVER, MONEY, "--target", "we saw the water", "--target-b", "the water saw us")
    document = json.loads(attnscope(*arguments, "--word", "water", "-m", model, "--json").stdout)
    assert document["a"]["query_texts"] == ["we saw the water"]
    assert (document["b"]["query_texts"], document["b"]["key_texts"]) == (["the water saw us"], [MONEY])
    assert set(document["cosine"]) == {"query", "output"}
    missing = attnscope(*arguments, "--word", "bank", "-m", model)
    assert "the target of the first text: no token 'bank'" in missing.stderr
    inside = attnscope(*arguments[:3], "--word", "bank", "-m", model, "--kind", "encoder", "--json")
    assert set(json.loads(inside.stdout)["cosine"]) == {"query", "key", "value", "output"}


def test_every_file_is_written(attnscope, tmp_path: Path) -> None:
    targets = [tmp_path / f"bank.{suffix}" for suffix in ("png", "svg", "pdf", "npz", "csv", "json")]
    assert attnscope(*ONE, *(part for each in targets for part in ("-o", str(each)))).exit_code == 0
    assert targets[0].read_bytes().startswith(b"\x89PNG")
    document = json.loads(targets[5].read_text())
    assert np.load(targets[3])["a weights"].tolist() == document["a"]["weights"]
    lines = [line for line in targets[4].read_text().splitlines() if not line.startswith("#")]
    weights = [row for row in csv.DictReader(lines) if (row["fact"], row["side"]) == ("weight", "b")]
    assert [float(row["value"]) for row in weights] == document["b"]["weights"]


def test_a_failed_certificate_of_the_second_side_ends_in_exit_code_5(attnscope, monkeypatch) -> None:
    from attnscope.analysis.claims.comparison import word

    def certify_heads(call: AttentionCall, heads: Sequence[int]) -> tuple[Certificate, ...]:
        spoilt = 7 if call.q.shape[1] == 9 else None
        found = zip(honest(call, heads), heads, strict=True)
        return tuple(
            replace(one, verdict=Verdict.FAILED if head == spoilt else Verdict.CERTIFIED)
            for one, head in found
        )

    honest = word.certify_heads
    assert attnscope(*ONE).exit_code == 0
    monkeypatch.setattr(word, "certify_heads", certify_heads)
    result = attnscope(*ONE)
    assert result.exit_code == 5
    assert "✗ FAILED: 4 of 96 heads" in result.stdout


@pytest.mark.parametrize("text", ["the bank [/b] [red]", "\x1b[31m the bank \u202e", "the 猫 bank 🙂 السلام"])
def test_any_text_is_shown_as_text(attnscope, text: str, tmp_path: Path) -> None:
    result = attnscope("compare", RIVER, text, *ONE[3:], "-o", str(tmp_path / "a.png"))
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert "\u202e" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (RIVER, "--word", "bank"),
            "compare one thing at a time: give a second text, --texts, --layer-b or --model-b",
        ),
        ((RIVER, MONEY, "--word", "bank", "-l", "0", "--layer-b", "1"), "compare one thing at a time"),
        ((RIVER, MONEY, "--word", "bank", "--model-b", "demo"), "compare one thing at a time"),
        (("-", "-", "--word", "bank"), "only one of the two texts can come from standard input"),
        ((RIVER, MONEY), "missing option '--word'"),
        (
            (RIVER, MONEY, "--word", "water"),
            "the second text: no token 'water' in the input: tokens are 0 [CLS]",
        ),
        ((RIVER, MONEY, "--word", "money"), "the first text: no token 'money'"),
        (
            (RIVER, MONEY, "--word", "the"),
            "the first text: token 'the' stands 2 times: choose one of the@4, the@8",
        ),
        ((RIVER, MONEY, "--word", "9"), "the second text: no token 9 in the input: positions 0-8"),
        ((RIVER, MONEY, "--word", "bank", "-l", "7"), "no layer 7 in demo: layers 0-3"),
        ((RIVER, MONEY, "--word", "bank", "--head", "12"), "no head 12 in demo"),
        ((RIVER, MONEY, "--word", "bank", "-l", "x"), "--layer 'x' is not a list"),
        ((RIVER, MONEY, "--word", "bank", "--target", "x"), "leave --target out"),
        ((RIVER, "", "--word", "bank"), "the text is empty"),
        ((RIVER, "--word", "bank", "--layer-b", "1"), "--layer-b needs --layer"),
        ((RIVER, "--word", "bank", "-l", "0-2", "--layer-b", "1"), "give one --layer and one --layer-b"),
        ((RIVER, "--word", "bank", "-l", "1", "--layer-b", "-3"), "both layer 1: give two layers"),
        ((RIVER, "--word", "bank", "-l", "1", "--layer-b", "9"), "no layer 9 in demo"),
        ((RIVER, "--word", "bank", "-l", "1", "--layer-b", "2", "--word-b", "on"), "leave --word-b"),
        ((RIVER, "--word", "bank", "--model-b", "no/such"), "no/such is not in the local cache"),
        ((RIVER, MONEY, "--word", "bank", "-o", "a.txt"), "cannot write 'a.txt'"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(attnscope, arguments, said: str) -> None:
    result = attnscope("compare", *arguments, "-m", "demo")
    assert result.exit_code in (2, 3)
    assert said in result.stderr
    assert result.stdout == ""


PIECES, OTHERS = "The detective was unlocking doors", "A detective is hard to see"  # cut into nine pieces
CUT = ("compare", PIECES, OTHERS, "--word", "detective", "-m", "demo")


@pytest.mark.parametrize("named", ["detective", "2-10", "pos:2-10"])
def test_of_several_tokens_the_means_are_compared_and_that_is_said(attnscope, named: str) -> None:
    asked = (*CUT[:3], "--word", named, "-m", "demo")
    document = json.loads(attnscope(*asked, "--json").stdout)
    side = document["a"]
    assert (document["by"], side["pieces"]) == ("token", list(range(2, 11)))
    for vector, name in (("v", "value"), ("q", "query")):
        rows = np.asarray(side["shown"][vector])[2:11]
        np.testing.assert_allclose(side[name], rows.mean(axis=0), atol=1e-12)
    row = np.asarray(side["shown"]["weights"])[2:11].mean(axis=0)
    np.testing.assert_allclose(side["weights"], [*row[:2], row[2:11].sum(), *row[11:]], atol=1e-12)
    said = " ".join(attnscope(*asked).stdout.split())
    assert "2-10 detective looks at" in said
    assert "tokens named together: sum over the keys, mean over the queries" in said


def test_a_word_of_several_pieces_is_compared_by_words(attnscope) -> None:
    document = json.loads(attnscope(*CUT, "--words", "--special", "renormalise", "--json").stdout)
    assert (document["by"], document["special"]) == ("word", "renormalise")
    for letter in "ab":
        side = document[letter]
        assert (side["word"], side["position"], side["pieces"]) == ("detective", 2, list(range(2, 11)))
        assert sum(side["weights"]) == pytest.approx(1)
        vectors = np.asarray(side["shown"]["v"])[2:11]
        np.testing.assert_allclose(side["value"], vectors.mean(axis=0), atol=1e-12)
        row = np.asarray(side["shown"]["weights"])[2:11].mean(axis=0)
        sums = [row[each["tokens"]].sum() for each in side["view"]["keys"]]
        np.testing.assert_allclose(side["weights"], np.array(sums) / sum(sums), atol=1e-12)
    said = " ".join(attnscope(*CUT, "--words", "--special", "hide").stdout.split())
    assert "by words · special tokens hidden" in said
    assert "special tokens, left out, get" in said


def test_a_word_that_is_not_there_lists_the_words(attnscope) -> None:
    refused = attnscope(*CUT[:3], "--word", "elephant", "-m", "demo", "--words")
    assert refused.exit_code == 2
    known = "tokens are 0 [CLS], 1 The, 2 detective, 11 was"
    assert f"no token 'elephant' in the input: {known}" in refused.stderr
    hidden = attnscope(*CUT[:3], "--word", "[CLS]", "-m", "demo", "--special", "hide")
    assert "no token '[CLS]' in the input: tokens are 1 The" in hidden.stderr
