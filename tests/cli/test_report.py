"""`attnscope report` and `tsne`: one head on one page, and its queries and keys on a map."""

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


def test_a_model_that_cannot_predict_is_shown_without(attnscope, bert: Path, tmp_path: Path) -> None:
    result = attnscope(
        "report", "the door", "-m", str(bert), "-l", "1", "--head", "2", "-o", str(tmp_path / "a.csv")
    )
    assert result.exit_code == 0
    assert "no prediction" in result.stderr
    assert "share of output" in result.stdout
    assert "the model answers" not in result.stdout


MAPPED = "I was watching the door when [MASK] opened."


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def told_by(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_with_nothing_given_it_maps_the_articles_head_into_outputs(attnscope, tmp_path: Path) -> None:
    result = attnscope("tsne", "-m", "demo", "-v")
    assert result.exit_code == 0
    assert "t-SNE map of L3 H11 · encoder self-attention · bundled demo model" in result.stdout.splitlines()
    assert MAPPED in result.stdout
    (written,) = (tmp_path / "outputs").iterdir()
    assert re.fullmatch(r"tsne-demo-L3-H11-i-was-watching-the-door-when-[0-9a-f]{6}\.png", written.name)


def test_several_tokens_are_a_point_at_the_mean_of_their_vectors(attnscope) -> None:
    pair = ("--query", "the door", "--compare-query", "1-3", "--key", "when [MASK]")
    result = attnscope("tsne", "-m", "demo", *pair, width=120)
    head = told_by(attnscope("heads", MAPPED, "-m", "demo", "--layer", "3", "--head", "11", "--json"))
    q, k, weights = (np.array(head[each]) for each in ("q", "k", "weights"))
    for name, rows in (("the door", [4, 5]), ("I was watching", [1, 2, 3])):
        named = (line for line in result.stdout.splitlines() if line.strip().startswith(f"{rows[0]} {name}"))
        line = next(line for line in named if " of " in line)
        one, key = q[rows].mean(0), k[[6, 7]].mean(0)
        cosine = 1 - one @ key / np.linalg.norm(one) / np.linalg.norm(key)
        assert numbers.number(cosine, 3) in line
        assert numbers.number(weights[rows][:, [6, 7]].sum(1).mean(), 3) in line
    said = " ".join(result.stdout.split())
    assert "the door is tokens 4-5: its vectors are their means" in said
    assert said.count("weights to it their sum") == 3


def test_points_are_words_and_a_query_is_named_by_its_word(attnscope, tmp_path: Path) -> None:
    asked = ("tsne", "The detective was unlocking doors.", "-m", "demo", "--words", "--special", "hide")
    files = ("-o", "x.png", "-o", "x.npz")
    result = attnscope(*asked, "--query", "unlocking", "--key", "detective", *files, "-v")
    assert result.exit_code == 0, result.stderr
    assert "points are words" in result.stdout
    assert (tmp_path / "x.png").exists()
    with np.load(tmp_path / "x.npz") as arrays:
        assert arrays["query_places"].shape == arrays["key_places"].shape == (6, 2)
        assert arrays["view weights"].shape == (6, 6)
