"""`--terms`, `--route`, models of which only returned weights can be shown, heads of a stored overview."""

import json
from pathlib import Path

import made_results as made_results
import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import bert_config, save, vocabulary_size

from attnscope.render.kit import numbers
from attnscope.results import Verdict
from attnscope.results.stored.document import as_npz

TEXT = "the dog saw the cat ."
ONE = ("heads", "I was watching the [MASK] when it opened.", "-m", "demo", "-l", "3", "--head", "11")


@pytest.fixture(scope="module")
def longformer(tmp_path_factory: pytest.TempPathFactory) -> str:
    sizes = vars(bert_config())
    config = hf.LongformerConfig(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=30, max_position_embeddings=60, pad_token_id=sizes["pad_token_id"],
        attention_window=6, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(5)
    return str(save(hf.LongformerModel(config), tmp_path_factory.mktemp("longformer")))


def test_one_pair_is_worked_out_and_all_keys_of_the_query_are_listed(attnscope) -> None:
    result = attnscope(*ONE, "--terms", "--query", "[MASK]", "--key", "opened", width=100)
    head = json.loads(attnscope(*ONE, "--json").stdout)
    score, weight = head["scaled"][5][8], head["weights"][5][8]
    worked = f"q·k {numbers.cell(head['scores'][5][8], 3)} x .3536 = {numbers.cell(score, 3)}"
    assert f"5 [MASK] → 8 opened: {worked}" in " ".join(result.stdout.split())
    row = next(line for line in result.stdout.splitlines() if line.startswith(" 8 opened"))
    assert row.split()[3:5] == [numbers.cell(score, 3), numbers.weight(weight, 3)]


def test_the_route_that_is_asked_for_is_named_and_gives_the_same_weights(attnscope) -> None:
    best, traced, returned = (
        json.loads(attnscope(*ONE, "--json", *route).stdout)
        for route in ((), ("--route", "traced"), ("--route", "returned"))
    )
    assert best["provenance"]["route"] == "takeover"
    assert (traced["provenance"]["route"], traced["verdict"]) == ("traced operations", "certified")
    assert (returned["provenance"]["route"], returned["verdict"]) == ("returned weights", "uncertified")
    for other in (traced, returned):
        assert np.array(other["weights"]) == pytest.approx(np.array(best["weights"]), abs=1e-6)
    assert [returned[name] for name in ("q", "k", "v", "scores", "scaled", "output", "scale")] == [None] * 7


def test_a_sparse_model_is_shown_as_it_returns_and_said_to_be(attnscope, longformer: str) -> None:
    result = attnscope("heads", TEXT, "-m", longformer, "-l", "2", "--head", "1", width=120)
    assert result.exit_code == 0
    assert "no dense softmax attention in layer 2" in result.stderr
    assert "○ uncertified · sparse layout, no dense Q and K: what the model returned" in result.stdout
    assert "its keys are not the tokens: columns are numbered" in result.stdout
    several = attnscope("heads", TEXT, "-m", longformer, "--json")
    document = json.loads(several.stdout)
    assert (document["verdict"], document["layers"]) == ("uncertified", [0, 1, 2])


def test_a_sparse_model_has_no_scores_and_no_vectors(refused, longformer: str) -> None:
    for asked in (("heads", TEXT, "--terms"), ("tsne", TEXT), ("heads", TEXT, "--route", "traced")):
        says = "made no dense softmax attention in layer 0"
        refused(says, *asked, "-m", longformer, "-l", "0", "--head", "0")


def test_a_model_without_attention_is_called_what_it_is(refused, tmp_path: Path) -> None:
    config = hf.FNetConfig(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=2, intermediate_size=30
    )
    folder = str(save(hf.FNetModel(config), tmp_path))
    for command in ("heads", "verify"):
        says = "has no attention that can be read: its layers are FNetLayer (FNetFourierTransform"
        refused(says, command, TEXT, "-m", folder)


OPENED = "I was watching the door when it opened."
SOME = ("--layer", "1-3", "--head", "2,11")
PLACE = ("--layer", "3", "--head", "11")
LEFT = ("q", "k", "v", "scores", "scaled", "output", "key_head", "scale")


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stored(attnscope) -> Path:
    assert attnscope("heads", OPENED, "-m", "demo", *SOME, "-o", "run.npz", "-q").exit_code == 0
    return Path("run.npz")


def test_what_is_stored_of_a_head_is_what_the_command_for_that_head_tells(attnscope) -> None:
    model = "demo-causal"
    attnscope("heads", OPENED, "-m", model, "--layer", "1,2", "-o", "run.npz", "-q")
    place = ("--layer", "2", "--head", "1")
    told, own = (
        json.loads(attnscope(*command, *place, "--json", "-q").stdout)
        for command in (("show", "run.npz"), ("heads", OPENED, "-m", model))
    )
    assert [told[name] for name in LEFT] == [None] * len(LEFT)
    assert told["certificate"].pop("verdict") == "stored"
    assert own["certificate"].pop("verdict") == "certified"
    np.testing.assert_allclose(told.pop("weights"), own.pop("weights"), atol=1e-12)
    for name in ("allowed", "module", "heads", "layers", "query_tokens", "provenance", "certificate"):
        assert told[name] == own[name], name
    assert not np.all(told["allowed"])


def test_each_head_is_shown_with_what_was_proved_of_it_and_not_of_the_worst(attnscope) -> None:
    found = made_results.overview(2, 3, verdicts={(1, 2): Verdict.PARTIAL})
    Path("made_results.npz").write_bytes(as_npz(found))
    best, worst = (
        attnscope("show", "made_results.npz", "--layer", layer, "--head", head).stdout
        for layer, head in (("0", "1"), ("1", "2"))
    )
    assert "certified when stored" in best
    assert "at worst partial when stored" in worst


def test_what_is_not_there_is_one_line(attnscope, refused, stored: Path) -> None:
    for asked, says in {
        ("--layer", "3"): "give both --layer and --head",
        ("--layer", "0", "--head", "11"): "no L0 H11 here: there are layers 1-3 and heads 2, 11",
        ("--layer", "3", "--head", "-1"): "no L3 H-1 here",
        (*PLACE, "--query", "zebra"): "no token 'zebra' in the input",
        (*PLACE, "--key", "door"): "a key goes with a query",
        (*PLACE, "--show", "q"): "there are only weights of this head: leave show q out",
    }.items():
        refused(says, "show", str(stored), *asked)
    attnscope("heads", OPENED, "-m", "demo", *SOME, "-o", "run.json", "-q")
    refused("this overview holds no weights", "show", "run.json", *PLACE)
    attnscope("heads", OPENED, "-m", "demo", *PLACE, "-o", "one.npz", "-q")
    refused("this file holds none", "show", "one.npz", *PLACE)
