"""`attnscope report`: one head on one page, held against the untouched model; bad input is one line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from attnscope import demo
from attnscope.render.kit import numbers

TEXT = "I was watching the door when [MASK] opened."
ONE = ("report", TEXT, "-m", "demo", "--layer", "3", "--head", "11")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict:
    from typer.testing import CliRunner

    from attnscope.cli.app import app

    return json.loads(CliRunner().invoke(app, [*ONE, "--json"]).stdout)


def test_contributions_are_those_of_the_model_s_own_weights_and_values(document) -> None:
    model = AutoModelForMaskedLM.from_pretrained(demo.folder(), attn_implementation="eager").eval()
    inputs = AutoTokenizer.from_pretrained(demo.folder())(TEXT, return_tensors="pt")
    values = []
    layer = model.bert.encoder.layer[3].attention.self
    layer.value.register_forward_hook(lambda module, given, made: values.append(made[0].detach()))
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
    weights = output.attentions[3][0, 11, 7].double()
    size = values[0].shape[-1] // 12
    value = values[0][:, 11 * size :].double()
    vector = weights @ value
    expected = weights * (value @ vector) / (vector @ vector)
    assert document["query"] == 7
    assert document["contributions"] == pytest.approx(expected.tolist(), abs=1e-5)
    assert sum(document["contributions"]) == pytest.approx(1, abs=1e-12)
    chances = torch.softmax(output.logits[0, 7].double(), -1)
    guesses = document["prediction"]["blanks"][0]["guesses"]
    assert [guess["id"] for guess in guesses] == chances.topk(5).indices.tolist()
    assert [guess["probability"] for guess in guesses] == pytest.approx(
        chances.topk(5).values.tolist(), abs=1e-6
    )


def test_the_document_holds_head_map_and_certificate(document) -> None:
    assert document["schema"] == "attnscope.report/2"
    assert document["certificate"]["verdict"] == "certified"
    assert len(document["map"]["query_places"]) == 11
    assert [one["measure"] for one in document["statistics"]][:2] == ["entropy", "confidence"]


def test_the_terminal_has_prediction_contributions_and_numbers(attnscope, document, tmp_path: Path) -> None:
    result = attnscope(*ONE, "-o", str(tmp_path / "a.png"))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    strongest = int(np.argmax(document["contributions"]))
    label = f"{strongest} {document['key_tokens'][strongest]['text']}"
    first = next(line for line in lines if line.lstrip().startswith(f"{label} "))
    assert numbers.percent(document["contributions"][strongest]) in first
    told = " ".join(result.stdout.split())
    assert told.startswith("L3 H11 looks from [MASK] most at ")
    assert "answers “it” at [MASK]: 99.8 %" in told
    assert "entropy" not in result.stdout
    whole = attnscope(*ONE, "-v", "-o", str(tmp_path / "b.png")).stdout
    for word in ("query 7 [MASK]", "certified", "entropy", "trustworthiness"):
        assert word in whole


def test_without_any_argument_it_is_the_article_s_sentence_and_head(
    attnscope, document, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(attnscope("report", "-m", "demo", "--json").stdout) == document
    assert list(tmp_path.iterdir()) == []
    assert attnscope("report", "-m", "demo", "-q").exit_code == 0
    (written,) = (str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))
    assert re.fullmatch(r"outputs/report-demo-L3-H11-i-was-watching-the-door-when-[0-9a-f]{6}\.png", written)


def test_files_of_every_kind_hold_the_same_bytes_again(attnscope, document, tmp_path: Path) -> None:
    suffixes = ("png", "svg", "pdf", "npz", "csv", "json")
    for name in ("first", "second"):
        targets = (part for suffix in suffixes for part in ("-o", str(tmp_path / f"{name}.{suffix}")))
        assert attnscope(*ONE, *targets).exit_code == 0
    for suffix in suffixes:
        assert (tmp_path / f"first.{suffix}").read_bytes() == (tmp_path / f"second.{suffix}").read_bytes()
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "first.pdf").read_bytes())) == 6
    arrays = np.load(tmp_path / "first.npz", allow_pickle=False)
    assert arrays["contributions"].tolist() == document["contributions"]
    assert json.loads(str(arrays["meta"]))["query"] == 7
    rows = [line for line in (tmp_path / "first.csv").read_text().splitlines() if not line.startswith("#")]
    shares = [float(row.rsplit(",", 1)[1]) for row in rows[1:]]
    assert shares == document["contributions"]


def test_a_query_is_chosen_by_name_or_position(attnscope) -> None:
    by_name = attnscope(*ONE, "--query", "door", "--json").stdout
    assert json.loads(by_name)["query"] == 5
    assert attnscope(*ONE, "--query", "5", "--json").stdout == by_name


def test_a_text_that_asks_for_nothing_has_no_prediction_and_says_why(attnscope) -> None:
    result = attnscope("report", "the door opened", "-m", "demo", "--json")
    assert json.loads(result.stdout)["prediction"] is None
    assert "no prediction: the text has no [MASK]" in result.stderr


def test_a_model_that_cannot_predict_is_shown_without(attnscope, bert: Path, tmp_path: Path) -> None:
    result = attnscope(
        "report", "the door", "-m", str(bert), "-l", "1", "--head", "2", "-o", str(tmp_path / "a.png")
    )
    assert result.exit_code == 0
    assert "no prediction" in result.stderr
    assert "share of output" in result.stdout
    assert "the model answers" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--head", "1,2"), ["this needs one head"]),
        (("--layer", "all"), ["this needs one head"]),
        (("--head", "12"), ["no head 12 in demo: layers 0-3, heads 0-11"]),
        (("--query", "zebra"), ["no token 'zebra' in the input", "5 door"]),
        (("--query", "11"), ["no token 11", "positions 0-10"]),
        (("--perplexity", "0"), ["perplexity is 0.0: it must be above 0"]),
        (("--metric", "hamming"), ["unknown metric 'hamming'", "cosine"]),
        (("--seed", "-1"), ["the seed is -1"]),
        (("--max-iter", "3"), ["max-iter is 3"]),
        (("--target", "la porte"), ["demo is no encoder-decoder"]),
        (("-o", "page.gif"), ["cannot write 'page.gif'", ".png, .svg, .pdf, .npz, .csv, .json"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(attnscope, arguments, parts, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = attnscope("report", TEXT, "-m", "demo", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert line.startswith("attnscope: ")
    for part in parts:
        assert part in line
    assert list(tmp_path.iterdir()) == []
