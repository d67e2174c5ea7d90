"""`attnscope compare`: two texts, layers or models, a word in many texts, a model and its fine tuning."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
import resealed
import torch
from checkpoints import bert_config, save, tiny_translator
from planted import adapter
from transformers import AutoModel, AutoTokenizer, BertForMaskedLM, BertModel

from attnscope import demo
from attnscope.attention import AttentionCall
from attnscope.results import Certificate, Drift, Verdict, load

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


def told(attnscope, *arguments: str) -> dict:
    result = attnscope(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_table_holds_the_cosines_of_the_model_s_own_vectors_and_files_the_same(
    attnscope, sides, tmp_path: Path
) -> None:
    targets = [tmp_path / f"bank.{suffix}" for suffix in ("png", "npz", "csv", "json")]
    result = attnscope(*ONE, *(part for each in targets for part in ("-o", str(each))))
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("L") and " H" in line]
    a, b = sides
    for layer, row in enumerate(rows[: len(a["query"])]):
        assert row[0] == f"L{layer}"
        expected = [cosine(a[name][layer], b[name][layer]) for name in ("query", "key", "value")]
        assert [float(cell) for cell in row[1:4]] == pytest.approx(expected, abs=0.0011)
    assert "✓ certified: 96 of 96 heads" in result.stdout
    document = json.loads(targets[3].read_text())
    assert document["schema"] == "attnscope.comparison/2"
    heads = np.asarray(document["cosine"]["key"]["heads"])
    assert heads[2, 7] == pytest.approx(cosine(a["key"][2, 7], b["key"][2, 7]), abs=1e-4)
    for side, weights in ((document[letter], of["weights"]) for letter, of in zip("ab", sides, strict=True)):
        assert side["weights"] == pytest.approx(weights[side["layer"], side["head"]], abs=1e-5)
    assert targets[0].read_bytes().startswith(b"\x89PNG")
    assert np.load(targets[1])["a weights"].tolist() == document["a"]["weights"]
    lines = [line for line in targets[2].read_text().splitlines() if not line.startswith("#")]
    weights = [row for row in csv.DictReader(lines) if (row["fact"], row["side"]) == ("weight", "b")]
    assert [float(row["value"]) for row in weights] == document["b"]["weights"]
    assert attnscope("compare", RIVER, "-", *ONE[3:], stdin=MONEY).stdout == result.stdout


def test_models_of_one_shape_have_cosines_and_others_one_head_that_both_have(
    attnscope, refused, bert: Path, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    tuned = BertModel.from_pretrained(bert)
    with torch.no_grad():
        for parameter in tuned.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    asked = ("compare", RIVER, "--word", "bank", "-m", str(bert), "--model-b")
    document = told(attnscope, *asked, str(save(tuned, tmp_path / "tuned")))
    assert document["between"] == "models"
    assert all(0.3 < cosine < 0.9999 for cosine in document["cosine"]["value"]["together"])
    shallow = str(save(BertModel(bert_config(num_hidden_layers=2)), tmp_path / "shallow"))
    refused("5 layers x 4 heads and 2 layers x 4 heads: give one --layer and one --head", *asked, shallow)
    one = told(attnscope, *asked, shallow, "-l", "1", "--head", "3")
    assert (one["cosine"], one["layers"], one["a"]["name"]) == ({}, [[1, 1]], "L1 H3")
    refused("no layer 4", *asked, shallow, "-l", "4", "--head", "3")
    refused("no/such is not in the local cache", *asked, "no/such", code=3)


def test_a_word_of_the_decoder_is_looked_up_in_the_target(attnscope, refused, tmp_path: Path) -> None:
    model = str(tiny_translator(tmp_path / "bart"))
    asked = ("compare", RIVER, MONEY, "--target", "we saw the water", "--target-b", "the water saw us")
    document = told(attnscope, *asked, "--word", "water", "-m", model)
    assert document["a"]["query_texts"] == ["we saw the water"]
    assert (document["b"]["query_texts"], document["b"]["key_texts"]) == (["the water saw us"], [MONEY])
    assert set(document["cosine"]) == {"query", "output"}
    refused("the target of the first text: no token 'bank'", *asked, "--word", "bank", "-m", model)


def test_a_failed_certificate_of_the_second_side_ends_in_exit_code_5(attnscope, monkeypatch) -> None:
    from attnscope.verbs.compare import vectors

    def certify_heads(call: AttentionCall, heads: Sequence[int]) -> tuple[Certificate, ...]:
        spoilt = 7 if call.q.shape[1] == 9 else None
        found = zip(honest(call, heads), heads, strict=True)
        return tuple(
            replace(one, verdict=Verdict.FAILED if head == spoilt else Verdict.CERTIFIED)
            for one, head in found
        )

    honest = vectors.certify_heads
    monkeypatch.setattr(vectors, "certify_heads", certify_heads)
    result = attnscope(*ONE)
    assert result.exit_code == 5
    assert "✗ FAILED: 4 of 96 heads" in result.stdout


# one word in many texts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bank.txt"
    river = "river\tthe river bank was steep\nriver\tthe boat is at the bank\n"
    money = "money\tthe bank has the money\nmoney\the went to the bank today\nmoney\tthe bank is new\n"
    path.write_text(f"{river}{money}\n")
    return path


def test_texts_that_cannot_be_compared_are_one_line(refused, file: Path) -> None:
    for content, says in (
        ("a\tthe bank\nthe bank is new\n", "bank.txt:2 has no label, others have"),
        ("the bank\n", "one text is not enough"),
        ("a\tthe bank\na\tthe bank is new\n", "two groups are needed"),
        ("a\tthe bank\nb\tthe bank is new\n", "no two texts have the same label"),
        ('{"text": ""}\n{}\n', "bank.txt:1: "),
    ):
        file.write_text(content)
        refused(says, "compare", "--word", "bank", "--texts", str(file), "-m", "demo")


def test_a_word_is_found_by_its_form_in_two_texts_too(attnscope, refused) -> None:
    asked = ("--word", "bank", "-m", "demo", "--words")
    result = attnscope("compare", "the river bank was steep", "the banks of the river", *asked)
    assert result.exit_code == 0, result.stderr
    assert "the second text: no 'bank', but another form of it: 'banks'" in result.stderr
    says = "the second text: 'bank' has several forms there: banks, banking: name one"
    refused(says, "compare", "the bank", "banks and banking", *asked)


def test_a_line_of_json_has_its_label_and_names_its_spans(attnscope, refused, tmp_path: Path) -> None:
    records = [
        {"text": "the river bank was steep", "label": "river", "spans": {"w": "river bank"}},
        {"text": "he slept at a muddy bank", "label": "river", "spans": {"w": [14, 24]}},
        {"text": "the bank lent her money", "label": "money", "spans": {"w": "bank"}},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    asked = ("compare", "--texts", str(tmp_path / "t.jsonl"), "-m", "demo", "--word")
    found = told(attnscope, *asked, "field:w")
    assert [each["label"] for each in found["usages"]] == ["river", "river", "money"]
    assert [each["word"] for each in found["usages"]] == ["river bank", "muddy bank", "bank"]
    assert [each["pieces"] for each in found["usages"]] == [[2, 3], [5, 6], [2]]
    there = "there are field:label (2), field:w (2-3)"
    refused(f"t.jsonl:1: no field 'field:v' in the input: {there}", *asked, "field:v")
    (tmp_path / "t.jsonl").write_text("{}\n{}\n", "utf-8")
    refused("t.jsonl:1: it has no text under 'text'", *asked, "bank")


# a model beside its further training, over texts


def test_a_head_beyond_the_limit_ends_with_exit_code_6_and_all_is_written(attnscope, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    plain = BertForMaskedLM.from_pretrained(demo.folder())
    tuned = adapter(tmp_path / "tuned", str(demo.folder()), plain, 2, 7, 0.5)
    file = tmp_path / "texts.txt"
    file.write_text("the door opened\n\nriver\tshe opened the box \nI was watching it\n")
    targets = [tmp_path / f"drift.{suffix}" for suffix in ("json", "npz", "csv", "png")]
    outs = [part for target in targets for part in ("-o", str(target))]
    asked = ("compare", "-m", "demo", "--model-b", str(tuned), "--texts", str(file), "--json", *outs)
    result = attnscope(*asked, "--fail-above", "0.02")
    assert result.exit_code == 6
    assert result.stderr.splitlines()[-1].startswith("attnscope: L2 H7 moved by 0.")
    assert result.stderr.splitlines()[-1].endswith("more than --fail-above 0.02")
    found = json.loads(result.stdout)
    assert found["schema"].startswith("attnscope.drift/")
    assert (found["ranking"][0]["layer"], found["ranking"][0]["head"]) == (2, 7)
    assert (found["exceeding"], found["touched"]) == (["L2 H7"], ["L2 H7"])
    assert [text["line"] for text in found["texts"]] == [1, 3, 4]
    assert found["texts"][1]["text"] == "she opened the box "
    for path in targets[:2]:
        again = load(path)
        assert isinstance(again, Drift)
        assert again.name(again.ranking[0]) == "L2 H7"
        assert again.limit == 0.02
    assert sum(line.startswith("moved,") for line in targets[2].read_text().splitlines()) == 3 * 48
    assert targets[3].read_bytes().startswith(b"\x89PNG")
    assert attnscope(*asked[:-8], "--fail-above", "0.9").exit_code == 0


# a stored answer is asked again

AGAIN = {  # what is asked, and a number of its answer
    (RIVER, MONEY, "--word", "bank", "--special", "hide"): ("cosine", "output", "together", 1),
    (RIVER, "--word", "bank", "--head", "L1", "--layer-b", "3"): ("divergence", "total_variation", 0, 2),
    (RIVER, "--word", "bank", "--model-b", "demo", "--head", "2"): ("cosine", "key", "together", 1),
    ("--word", "bank", "--controls", "5", "--texts", "bank.txt"): ("cosines", 1, 0, 2),
    ("--model-b", "demo", "--layer", "2", "--texts", "bank.txt"): ("floor", 0, 0, 3),
    ("-l", "1", "a.npz", "b.npz"): ("largest", 1),
    ("c.npz", "d.npz"): ("measures", "entropy", "as_read", 0, 1),
}


@pytest.mark.parametrize("asked", AGAIN)
def test_a_stored_answer_is_asked_again_and_a_forged_number_and_another_file_are_found(
    attnscope, refused, file: Path, asked: tuple[str, ...]
) -> None:
    verb = ("heads", RIVER) if asked[2:] else ("corpus", "bank.txt", "--workers", "0")
    for name in (each for each in asked if each.endswith(".npz")):
        attnscope(*verb, "-m", "demo", "-o", name)
    attnscope("compare", *asked, "-m", "demo", "-o", "answer.json")
    assert "made by: attnscope compare" in " ".join(attnscope("show", "answer.json").stdout.split())
    assert "to the last bit" in attnscope("check", "answer.json").stdout
    plain, (*way, last) = json.loads(Path("answer.json").read_text("utf-8")), AGAIN[asked]
    reduce(getitem, way, plain)[last] += 0.01
    Path("forged.json").write_text(json.dumps(resealed.document(plain)), "utf-8")
    forged = attnscope("check", "forged.json")
    assert (forged.exit_code, "not as stored in forged.json" in forged.stderr) == (5, True)
    if (read := Path(asked[-1])).suffix:
        read.write_text("the bank", "utf-8")
        refused(f"{read} is not the file that was read", "check", "answer.json")
        read.unlink()
        refused(f"{read} is neither beside answer.json nor here", "check", "answer.json")
