"""`attnscope compare`: two texts, layers or models, a word in many texts, a model and its fine tuning."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
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


def test_the_same_text_twice_is_alike_in_every_layer_whichever_head_is_shown(attnscope) -> None:
    document = told(attnscope, "compare", RIVER, RIVER, *ONE[3:], "-l", "-1", "--head", "11")
    assert (document["a"]["name"], document["b"]["name"], document["chosen"]) == ("L3 H11", "L3 H11", False)
    assert document["layers"] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert document["heads"] == [11]
    assert np.asarray(document["cosine"]["output"]["heads"]) == pytest.approx(1)
    assert np.asarray(document["divergence"]["jensen_shannon"]) == pytest.approx(0)


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
    says = "5 layers x 4 heads and 2 layers x 4 heads: give one --layer and one --head"
    refused(says, *asked, shallow)
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
    from attnscope.analysis.claims.comparison import word

    def certify_heads(call: AttentionCall, heads: Sequence[int]) -> tuple[Certificate, ...]:
        spoilt = 7 if call.q.shape[1] == 9 else None
        found = zip(honest(call, heads), heads, strict=True)
        return tuple(
            replace(one, verdict=Verdict.FAILED if head == spoilt else Verdict.CERTIFIED)
            for one, head in found
        )

    honest = word.certify_heads
    monkeypatch.setattr(word, "certify_heads", certify_heads)
    result = attnscope(*ONE)
    assert result.exit_code == 5
    assert "✗ FAILED: 4 of 96 heads" in result.stdout


# one word in many texts

LINES = [
    "river\tthe river bank was steep",
    "river\tthe boat is at the bank",
    "money\tthe bank has the money",
    "money\the went to the bank today",
    "money\tthe bank is new",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bank.txt"
    path.write_text("\n".join(LINES) + "\n\n")
    return path


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a\tthe bank\nthe bank is new\n", "bank.txt:2 has no label, others have"),
        ("the bank\n", "one text is not enough"),
        ("a\tthe bank\na\tthe bank is new\n", "two groups are needed"),
        ("a\tthe bank\nb\tthe bank is new\n", "no two texts have the same label"),
        ('{"text": ""}\n{}\n', "bank.txt:1: "),
    ],
)
def test_texts_that_cannot_be_compared_are_one_line(refused, file: Path, content: str, says: str) -> None:
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
    refused(
        "t.jsonl:1: no field 'field:v' in the input: there are field:label (2), field:w (2-3)",
        *asked,
        "field:v",
    )
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
