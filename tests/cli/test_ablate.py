"""`attnscope ablate` as the shell sees it, on the bundled models and a tiny classifier."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import tiny_bert
from transformers import BertForSequenceClassification

from attnscope.results import load

TEXT = "I was watching the [MASK] when it opened."


def told(attnscope, *arguments: str, text: str = TEXT, model: str = "demo") -> dict:
    result = attnscope("ablate", text, "-m", model, "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def places(document: dict) -> list[tuple[int, int]]:
    return [(each["layer"], each["head"]) for each in document["heads"]]


def test_every_head_in_turn_is_what_no_head_named_means_and_files_hold_the_same(
    attnscope, tmp_path: Path
) -> None:
    files = [tmp_path / f"a.{suffix}" for suffix in ("npz", "json", "csv", "png")]
    done = attnscope(
        "ablate", TEXT, "-m", "demo", *(part for file in files for part in ("-o", str(file))), "-q"
    )
    assert done.exit_code == 0, done.stderr
    result = load(files[0])
    assert len(result.heads) == 48
    assert result.group is None
    assert result.answer.position == 5
    above = [abs(each.change) - each.typical for each in result.heads]
    assert above == sorted(above, reverse=True)
    assert {each.before for each in result.heads} == {result.answer.probability}
    for each in result.heads:
        assert each.change == pytest.approx(np.log(each.after / each.before), abs=1e-9)
        assert each.controls == 11
    assert {(each.layer, each.head) for each in result.heads[:2]} == {(3, 7), (3, 11)}, (
        "they link to the verb"
    )
    assert all(each.below >= 10 for each in result.heads[:2])
    assert 0 < result.floor.rounding < 1e-4 < abs(result.heads[1].change)
    assert result.verdict == "stored"
    assert load(files[1]).heads == result.heads
    rows = list(csv.DictReader(line for line in files[2].read_text().splitlines() if line[0] != "#"))
    assert [float(row["change"]) for row in rows] == [each.change for each in result.heads]
    assert np.load(files[0])["kl"].tolist() == [each.kl for each in result.heads]
    assert files[3].read_bytes()[:4] == b"\x89PNG"


def test_a_cut_link_matters_in_the_head_that_looks_there(attnscope) -> None:
    document = told(attnscope, "--link", "[MASK]->opened")
    assert document["link"] == [5, 8]
    assert {*places(document)[:2]} == {(3, 11), (3, 7)}
    backwards = told(attnscope, "--edge", "opened → 5", "--layer", "3", "--head", "11")
    assert backwards["link"] == [8, 5]
    assert abs(backwards["heads"][0]["change"]) < 0.1 * abs(document["heads"][0]["change"])


def test_the_verdict_on_a_pair(attnscope) -> None:
    document = told(attnscope, "--pair", "It was red.", "--head", "2", text="The door opened.")
    assert document["target"]["asks"] == "pair"
    assert document["target"]["text"] in ("follows", "does not follow")
    other = {"follows": "does not follow", "does not follow": "follows"}[document["target"]["text"]]
    turned = told(
        attnscope, "--pair", "It was red.", "--head", "2", "--answer", other, text="The door opened."
    )
    assert turned["target"]["probability"] == pytest.approx(1 - document["target"]["probability"])


def test_the_class_of_a_text(attnscope, refused, tmp_path: Path) -> None:
    torch.manual_seed(3)
    names = {"num_labels": 3, "id2label": {0: "bad", 1: "fair", 2: "good"}}
    classifier = str(tiny_bert(tmp_path / "classes", BertForSequenceClassification, **names))
    document = told(attnscope, text="the door", model=classifier)
    assert document["target"]["asks"] == "class"
    assert document["target"]["text"] in ("bad", "fair", "good")
    named = told(attnscope, "--answer", "Fair", text="the door", model=classifier)
    assert (named["target"]["text"], named["target"]["ids"]) == ("fair", [1])
    refused("no answer 'ugly': bad, fair, good", "ablate", "the door", "-m", classifier, "--answer", "ugly")
    headless = str(tiny_bert(tmp_path / "bert"))
    refused("its vector is measured, leave --answer out", "ablate", TEXT, "-m", headless, "--answer", "door")


@pytest.mark.parametrize("kind", ["multi_label_classification", "regression"])
def test_a_model_without_one_answer_is_refused_where_heads_are_measured_by_it(
    refused, tmp_path: Path, kind: str
) -> None:
    """The softmax over its scores would be a probability that it never gives."""
    folder = tiny_bert(tmp_path / "m", BertForSequenceClassification, num_labels=3, problem_type=kind)
    for verb, *options in (("ablate",), ("why", "--answer", "LABEL_1")):
        refused("it has no one answer", verb, "the door", "-m", str(folder), *options)


def test_a_failed_intervention_ends_with_its_exit_code(attnscope, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.capture.intervening import experiments

    monkeypatch.setattr(experiments, "with_changes", lambda seen, variants: seen.output.clone())
    result = attnscope("ablate", TEXT, "-m", "demo", "--layer", "3", "--head", "11", width=200)
    assert result.exit_code == 5
    assert "did not come as asked for to the next operation" in result.stdout
    assert "the certificate FAILED" in result.stderr


def test_links_of_a_token_are_cut_one_by_one_in_all_heads_of_a_layer(attnscope) -> None:
    document = told(attnscope, "--part", "attention", "--link", "[MASK]->pos:each")
    best = max(document["places"], key=lambda each: abs(each["change"]))
    assert (best["layer"], best["positions"]) == (3, [8])
    whole = told(attnscope, "--layer", "3", "--link", "[MASK]->opened")
    assert best["change"] == pytest.approx(whole["group"]["effect"]["change"], abs=1e-5)


CIRCUIT = "box dog king box dog king"  # a period of three words


def test_the_planted_circuit_comes_out_along_the_path_to_the_keys_of_the_next_layer(attnscope) -> None:
    """The previous-token head of layer 0 feeds the heads of layer 1 by their keys, and no other layer."""
    document = told(attnscope, "--via", "L1.k", text=CIRCUIT, model="demo-causal")
    best, *rest = sorted(document["heads"], key=lambda each: -abs(each["change"]))
    assert (best["layer"], best["head"]) == (0, 0)
    assert best["change"] < -10
    assert all(abs(each["change"]) < 0.01 for each in rest), "the other eleven heads of its layer"
    assert best["whole"] == pytest.approx(
        told(attnscope, "--heads", "L0H0", text=CIRCUIT, model="demo-causal")["heads"][0]["change"], abs=1e-3
    )
    others = document["path"]["others"]
    assert [{layer for layer, _ in one["heads"]} for one in others] == [{2}, {3}]
    assert all(abs(one["effect"]["change"]) < 0.01 for one in others), "read by other layers instead"
    assert {each["inputs"] for each in document["path"]["receivers"]} == {"k"}
    assert all(each in document["answer"] for each in ("the keys of layer 1", "L0 H0", "“box”"))
    assert document["intervention"]["verdict"] == "certified"
    for inputs in ("q", "v"):
        asked = ("--heads", "L0H0", "--via", f"L1.{inputs}")
        (other,) = told(attnscope, *asked, text=CIRCUIT, model="demo-causal")["heads"]
        assert abs(other["change"]) < 0.01, "next to nothing comes there by queries and values"
        assert other["whole"] < -10


def test_of_a_model_that_answers_nothing_the_vector_is_measured(attnscope, bert: Path) -> None:
    asked = ("ablate", "the door opened when it was late", "-m", str(bert), "--heads")
    assert attnscope(*asked, "L4H1").stdout.startswith(
        "Without L4 H1 the likeness of the text's vector to what it was falls from "
    )
    assert "Next: which heads does the text's vector need?" in attnscope(*asked, "L3H3").stdout


def test_a_whole_layer_is_held_against_other_whole_layers(attnscope) -> None:
    result = attnscope("ablate", TEXT, "-m", "demo", "--layer", "2", width=200)
    told = " ".join(result.stdout.split())
    assert "12 heads of layer 2" in told
    assert "3 other whole layers" in told
