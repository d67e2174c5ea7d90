"""`heads --terms`, `--route`, and models of which only the returned weights can be shown."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from checkpoints import bert_config, save, vocabulary_size

from attnscope.render.kit import numbers

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
    result = attnscope(*ONE, "--terms", "--query", "[MASK]", "--key", "door", width=100)
    assert result.exit_code == 2
    assert "no token 'door'" in result.stderr
    result = attnscope(*ONE, "--terms", "--query", "[MASK]", "--key", "opened", width=100)
    head = json.loads(attnscope(*ONE, "--json").stdout)
    score, weight = head["scaled"][5][8], head["weights"][5][8]
    worked = f"q·k {numbers.cell(head['scores'][5][8], 3)} x .3536 = {numbers.cell(score, 3)}"
    assert f"5 [MASK] → 8 opened: {worked}" in " ".join(result.stdout.split())
    row = next(line for line in result.stdout.splitlines() if line.startswith(" 8 opened"))
    assert row.split()[3:5] == [numbers.cell(score, 3), numbers.weight(weight, 3)]


def test_a_whole_head_is_summed_up_by_part(attnscope, tmp_path: Path) -> None:
    made = [tmp_path / f"terms.{suffix}" for suffix in ("png", "npz")]
    files = [part for target in made for part in ("-o", str(target))]
    result = attnscope(*ONE, "--terms", "--legend", *files)
    assert result.exit_code == 0
    assert "q·k x scale" in result.stdout
    assert "121 allowed pairs of 121" in " ".join(result.stdout.split())
    assert made[0].read_bytes().startswith(b"\x89PNG")
    with np.load(made[1]) as archive:
        assert archive["times_scale"] == pytest.approx(archive["scaled"], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--terms", "--show", "q"), "--terms is about the scores of single tokens: leave --show q out"),
        (("--terms", "--words"), "leave --by, --words and --special out"),
        (("--key", "it"), "--key needs --query"),
        (("--terms", "--key", "it"), "--key needs --query"),
        (("--terms", "--route", "returned"), "--route returned has weights alone"),
        (("--show", "k", "--route", "returned"), "returns weights alone here: leave --show k out"),
        (("--block", "2", "--route", "returned"), "no block 2: what a model returns is in one piece"),
    ],
)
def test_what_does_not_go_together_is_one_clear_line(attnscope, options, told) -> None:
    result = attnscope(*ONE, *options)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_terms_need_one_head(attnscope) -> None:
    result = attnscope("heads", TEXT, "-m", "demo", "--terms")
    assert (result.exit_code, result.stderr) == (
        2,
        "attnscope: this needs one head: give one --layer and one --head\n",
    )


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


@pytest.mark.parametrize(
    "arguments",
    [("heads", TEXT, "--terms"), ("tsne", TEXT), ("heads", TEXT, "--route", "traced")],
    ids=["terms", "tsne", "traced"],
)
def test_a_sparse_model_has_no_scores_and_no_vectors(attnscope, longformer: str, arguments) -> None:
    result = attnscope(*arguments, "-m", longformer, "-l", "0", "--head", "0")
    assert result.exit_code == 2
    assert "made no dense softmax attention in layer 0" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_sparse_model_is_verified_as_far_as_that_goes(attnscope, longformer: str) -> None:
    result = attnscope("verify", TEXT, "-m", longformer, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["verdict"]) == (0, "uncertified")
    assert [len(layer["heads"]) for layer in document["layers"]] == [4, 4, 4]
    assert all(output["identical"] for output in document["outputs"])


def test_a_model_without_attention_is_called_what_it_is(attnscope, tmp_path: Path) -> None:
    config = hf.FNetConfig(
        vocab_size=vocabulary_size(), hidden_size=24, num_hidden_layers=2, intermediate_size=30
    )
    folder = str(save(hf.FNetModel(config), tmp_path))
    for command in ("heads", "verify"):
        result = attnscope(command, TEXT, "-m", folder)
        assert result.exit_code == 2
        assert "has no attention that can be read: its layers are FNetLayer (FNetFourierTransform" in (
            result.stderr
        )


def test_no_digit_is_cut_on_the_narrowest_screen(attnscope) -> None:
    def figures(width: int) -> list[str]:
        lines = attnscope(*ONE, "--terms", width=width).stdout.splitlines()
        return next(line for line in lines if line.startswith("q·k x scale ")).split()[3:]

    assert len(figures(120)) == 5
    assert figures(40) == figures(120)[:3]


def test_one_pair_is_shown_by_dimension_and_written(attnscope, tmp_path: Path) -> None:
    target = tmp_path / "pair.json"
    result = attnscope(*ONE, "--dims", "--query", "[MASK]", "--key", "opened", "-o", str(target), width=100)
    assert result.exit_code == 0
    head = json.loads(attnscope(*ONE, "--json").stdout)
    products = [q * k for q, k in zip(head["q"][5], head["k"][8], strict=True)]
    written = json.loads(target.read_text())
    assert sorted(row["product"] for row in written["products"]) == pytest.approx(sorted(products))
    assert "of 8 dimensions can" in " ".join(result.stdout.split())
    assert f"q·k {numbers.number(sum(products))}," in " ".join(result.stdout.split())
    named = attnscope(*ONE, "--dims", "--query", "[MASK]", "--key", "opened", "-v", width=100).stdout
    assert "\nL3 H11, 5 [MASK] → 8 opened by dimension · " in named
    strongest = attnscope(*ONE, "--dims", width=100)
    assert strongest.stdout == result.stdout, "the pair that is the strongest without being named"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--dims", "--terms"), "--dims is about one pair of tokens: leave --terms out"),
        (("--dims", "--words"), "leave --by, --words and --special out"),
        (("--dims", "--key", "it"), "--key needs --query"),
        (("--dims", "--query", "door"), "no token 'door'"),
        (("--dims", "--route", "returned"), "--route returned has weights alone"),
    ],
)
def test_a_pair_that_cannot_be_shown_by_dimension_is_one_line(attnscope, options, told: str) -> None:
    result = attnscope(*ONE, *options)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) <= 2
