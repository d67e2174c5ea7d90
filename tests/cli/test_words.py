"""`--words`, `--special`, `--head mean` and the mask in any spelling."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_tokenizers import BUILD
from transformers import AutoModel, AutoTokenizer, RobertaConfig, RobertaForMaskedLM

import attnscope as library
from attnscope import demo
from attnscope.analysis.heads.head import _least
from attnscope.results import Verdict, load

TEXT = "The detective was unlocking doors"
ONE = ("heads", TEXT, "-m", "demo", "--layer", "3", "--head", "11")
WORDS = [(0,), (1,), tuple(range(2, 11)), (11,), (12,), (13,), (14,)]  # `detective` is cut into nine


@pytest.fixture(scope="module")
def own_weights() -> np.ndarray:
    """The demo model's own weights in layer 3, head 11, from a run that attnscope has no part in."""
    model = AutoModel.from_pretrained(demo.folder(), attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(demo.folder())
    inputs = tokenizer(TEXT, return_tensors="pt")
    pieces = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())
    assert [pieces[i].startswith("##") for i in WORDS[2]] == [False] + [True] * 8
    attentions = model(**inputs, output_attentions=True).attentions
    return attentions[3][0, 11].double().detach().numpy()


def by_words(weights: np.ndarray) -> np.ndarray:
    return np.array([[weights[list(q)][:, list(k)].sum(axis=1).mean() for k in WORDS] for q in WORDS])


def test_words_are_the_model_s_own_weights_summed_and_averaged(attnscope, own_weights, tmp_path) -> None:
    files = [tmp_path / f"w{suffix}" for suffix in (".csv", ".npz", ".png")]
    asked = (*ONE, "--words", "--json", *(each for file in files for each in ("-o", str(file))))
    document = json.loads(attnscope(*asked).stdout)
    assert document["schema"] == "attnscope.view/2"
    assert [tuple(key["tokens"]) for key in document["keys"]] == WORDS
    assert document["keys"][2]["label"] == "detective"
    assert np.array(document["weights"]) == pytest.approx(by_words(own_weights), abs=1e-6)
    assert document["certificate"]["verdict"] == "certified"
    assert "scores" not in document
    lines = files[0].read_text().splitlines()
    assert any(line.startswith("# note: words: sum over the pieces") for line in lines)
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len(rows) == 7 * 7
    assert rows[2]["key_tokens"] == "2 3 4 5 6 7 8 9 10"
    assert float(rows[2]["weight"]) == pytest.approx(by_words(own_weights)[0, 2], abs=1e-6)
    with np.load(files[1]) as archive:
        assert archive["weights"] == pytest.approx(by_words(own_weights), abs=1e-6)
        assert json.loads(str(archive["meta"]))["by"] == "word"
    assert files[2].stat().st_size > 10_000
    shown = attnscope(*ONE, "--words", "-v").stdout
    row = next(line for line in shown.splitlines() if line.startswith(" 2 detective"))
    assert [float(cell) for cell in row.split()[2:]] == pytest.approx(by_words(own_weights)[2], abs=0.0051)
    assert "##" not in shown


def test_hidden_special_tokens_leave_the_other_weights_as_they_are_and_renormalised_rows_sum_to_1(
    attnscope, own_weights
) -> None:
    inner = own_weights[1:-1, 1:-1]
    hidden = json.loads(attnscope(*ONE, "--special", "hide", "--json").stdout)
    assert np.array(hidden["weights"]) == pytest.approx(inner, abs=1e-6)
    for spelling in ("renormalise", "Renormalize"):
        weights = np.array(json.loads(attnscope(*ONE, "--special", spelling, "--json").stdout)["weights"])
        assert weights == pytest.approx(inner / inner.sum(axis=1, keepdims=True), abs=1e-6)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny masked model whose mask is spelled <mask> and swallows the blank before it."""
    folder = tmp_path_factory.mktemp("roberta")
    tokenizer = BUILD["roberta"]()
    torch.manual_seed(3)
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 20}
    places = {"max_position_embeddings": 80, "pad_token_id": 1, "vocab_size": len(tokenizer)}
    RobertaForMaskedLM(RobertaConfig(**sizes, **places, initializer_range=0.6)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("spelling", ["[mask]", "<mask>"])
def test_predict_fills_a_mask_in_any_spelling(attnscope, roberta: Path, spelling: str) -> None:
    result = attnscope("predict", f"the {spelling} door", "-m", str(roberta), "--json")
    assert result.exit_code == 0, result.stderr
    inputs = AutoTokenizer.from_pretrained(roberta)("the <mask> door", return_tensors="pt")
    logits = RobertaForMaskedLM.from_pretrained(roberta).eval()(**inputs).logits[0]
    (blank,) = json.loads(result.stdout)["blanks"]
    assert blank["position"] == inputs["input_ids"][0].tolist().index(4)
    best = logits[blank["position"]].softmax(-1).topk(5)
    assert [guess["id"] for guess in blank["guesses"]] == best.indices.tolist()
    assert ("the mask of" in result.stderr) == (spelling != "<mask>")


MASKED = "I was watching the door when [MASK] opened."


@pytest.mark.parametrize(("layer", "layers"), [("2", [2]), (None, [0, 1, 2, 3, 4])])
def test_the_mean_is_that_of_all_heads_one_by_one(attnscope, bert: Path, layer, layers) -> None:
    where = () if layer is None else ("--layer", layer)
    told = attnscope("heads", MASKED, "-m", str(bert), *where, "--head", "mean", "--json")
    assert told.exit_code == 0, told.stderr
    mean = json.loads(told.stdout)
    read = library.load(str(bert)).read(MASKED)
    heads = [read.head(at, head) for at in layers for head in range(4)]
    each = np.mean([head.weights for head in heads], axis=0)
    assert np.abs(np.array(mean["weights"]) - each).max() < 1e-12
    assert (mean["layer"], mean["head"]) == (int(layer) if layer else -1, -1)
    assert mean["verdict"] == "certified"
    certificates = [head.certificate for head in heads]
    assert mean["certificate"]["weight_error"] == max(one.weight_error for one in certificates)
    assert mean["certificate"]["power"] == pytest.approx(min(one.power for one in certificates))


def test_what_is_proved_of_a_mean_is_what_is_proved_of_the_least_proved_head() -> None:
    read = library.load("demo").read(MASKED)
    good = read.head(0, 0).certificate
    poor = replace(good, verdict=Verdict.INCONCLUSIVE, weight_error=0.0)
    assert _least([good, poor, good]).verdict is Verdict.INCONCLUSIVE
    assert _least([good, poor, good]).weight_error == good.weight_error
    assert _least([good, good]).verdict is Verdict.CERTIFIED
    with pytest.raises(library.AttnscopeError, match="is over the heads of one layer"):
        read.head("1-2", "mean")


def test_the_screen_says_that_it_is_a_mean_and_a_query_may_be_named(attnscope, bert, tmp_path) -> None:
    mean, stored = ("heads", MASKED, "-m", str(bert), "--head", "mean"), str(tmp_path / "mean.npz")
    told = attnscope(*mean, "--layer", "2", "-o", stored)
    assert told.stdout.startswith("The mean of all heads of L2 ")
    asked = attnscope(*mean, "--query", "[MASK]", "--key", "the door")
    assert asked.stdout.startswith("From [MASK], the mean of all heads gives ")
    assert load(stored).name == "the mean of all heads of L2"
    assert "is the same to the last bit" in attnscope("check", stored).stdout
    assert "The mean of all heads of L2" in attnscope("show", stored).stdout
