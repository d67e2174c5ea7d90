"""`--words`, `--special` and the mask in any spelling, in the program as a person runs it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_tokenizers import BUILD
from transformers import AutoModel, AutoTokenizer, RobertaConfig, RobertaForMaskedLM, T5Config
from transformers import T5ForConditionalGeneration as T5

from attnscope import demo
from attnscope.render.kit import numbers

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


def test_words_are_the_model_s_own_weights_summed_and_averaged(attnscope, own_weights) -> None:
    document = json.loads(attnscope(*ONE, "--words", "--json").stdout)
    assert document["schema"] == "attnscope.view/2"
    assert [tuple(key["tokens"]) for key in document["keys"]] == WORDS
    assert document["keys"][2]["label"] == "detective"
    assert np.array(document["weights"]) == pytest.approx(by_words(own_weights), abs=1e-6)
    assert document["certificate"]["verdict"] == "certified"
    assert "scores" not in document


def test_the_table_shows_words_and_says_what_was_certified(attnscope, own_weights) -> None:
    shown = attnscope(*ONE, "--words", "-v").stdout
    row = next(line for line in shown.splitlines() if line.startswith(" 2 detective"))
    assert [float(cell) for cell in row.split()[2:]] == pytest.approx(by_words(own_weights)[2], abs=0.0051)
    together = " ".join(shown.split())
    assert "mean over those of a query" in together
    assert "the certificate is that of the weights by tokens" in together
    assert "eager float32 · by words " in together
    assert "##" not in shown


def test_the_mass_on_special_tokens_is_always_stated(attnscope, own_weights) -> None:
    masses = own_weights[:, [0, 14]].mean(axis=0)
    shares = [numbers.weight(mass) for mass in (masses.sum(), *masses)]
    told = f"special tokens get {shares[0]} of the attention: [CLS] {shares[1]}, [SEP] {shares[2]}"
    for options in (
        (),
        ("--words",),
        ("--special", "hide"),
        ("--special", "renormalize"),
    ):
        assert told in attnscope(*ONE, *options, "-v", width=140).stdout
    row = own_weights[11, [0, 14]].sum()
    shown = attnscope(*ONE, "--query", "was", "-v", width=140).stdout
    assert told not in shown
    assert f"get {numbers.weight(row)} of the attention of this query" in shown
    for options in ((), ("--words", "--special", "hide")):
        stated = json.loads(attnscope(*ONE, "--json", *options).stdout)["special_mass"]
        assert stated["total"] == pytest.approx(masses.sum(), abs=1e-6)
        assert stated["by_name"] == pytest.approx({"[CLS]": masses[0], "[SEP]": masses[1]}, abs=1e-6)


def test_hidden_special_tokens_leave_the_other_weights_as_they_are(attnscope, own_weights) -> None:
    document = json.loads(attnscope(*ONE, "--special", "hide", "--json").stdout)
    assert np.array(document["weights"]) == pytest.approx(own_weights[1:-1, 1:-1], abs=1e-6)
    shown = attnscope(*ONE, "--special", "hide", "-v").stdout
    assert "rows sum to less than 1" in shown
    assert " · special tokens hidden\n" in shown


@pytest.mark.parametrize("spelling", ["renormalise", "renormalize", "Renormalise"])
def test_renormalised_rows_sum_to_1(attnscope, own_weights, spelling: str) -> None:
    weights = np.array(json.loads(attnscope(*ONE, "--special", spelling, "--json").stdout)["weights"])
    inner = own_weights[1:-1, 1:-1]
    assert weights == pytest.approx(inner / inner.sum(axis=1, keepdims=True), abs=1e-6)
    assert weights.sum(axis=1) == pytest.approx(np.ones(13))


def test_positions_stay_those_of_the_input(attnscope, own_weights) -> None:
    by_place = attnscope(*ONE, "--words", "--special", "hide", "--query", "12").stdout
    assert "query 12 unlocking" in by_place
    assert by_place == attnscope(*ONE, "--words", "--special", "hide", "--query", "unlocking").stdout
    best = next(line for line in by_place.splitlines() if "█" in line).split()
    row = by_words(own_weights)[4, 1:-1]
    assert best[0] == str([word[0] for word in WORDS[1:-1]][int(row.argmax())])
    assert float(best[2]) == pytest.approx(row.max(), abs=0.0006)


def test_a_word_may_be_asked_for_whole(attnscope) -> None:
    assert "query 2 detective" in attnscope(*ONE, "--words", "--query", "detective").stdout
    alone = attnscope(*ONE, "--query", "detective").stdout
    assert "query 2 detective" in alone  # a span of its pieces, among other tokens as they are
    assert "weights from detective are the mean over its tokens 2-10" in alone
    refused = attnscope(*ONE, "--query", "detective", "--show", "q")
    assert refused.exit_code == 2
    assert "'2-10 detective' is 9 tokens" in refused.stderr


def test_files_hold_the_words_with_the_tokens_behind_them(attnscope, own_weights, tmp_path: Path) -> None:
    files = [tmp_path / f"w{suffix}" for suffix in (".csv", ".npz", ".png", ".svg")]
    attnscope(*ONE, "--words", *(each for file in files for each in ("-o", str(file))))
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
    assert "detective" in files[3].read_text()
    assert "##" not in files[3].read_text().split("</metadata>")[-1]


def test_an_overview_by_words_names_words_and_keeps_its_certificates(attnscope) -> None:
    arguments = ("heads", TEXT, "-m", "demo", "-l", "2-3", "--json")
    tokens = json.loads(attnscope(*arguments).stdout)
    words = json.loads(attnscope(*arguments, "--words", "--special", "renormalise").stdout)
    assert (words["by"], words["special"]) == ("word", "renormalise")
    assert [token["label"] for token in words["query_tokens"]] == TEXT.split()
    assert words["query_tokens"][1]["id"] is None, "a word of several pieces has no id"
    assert words["certificates"] == tokens["certificates"]
    assert [one["verdict"] for one in words["results"]] == [one["verdict"] for one in tokens["results"]]
    assert words["special_mass"] == tokens["special_mass"]
    entropies = [[one["entropy"] for one in document["results"]] for document in (words, tokens)]
    assert len(entropies[0]) == len(entropies[1]) == 24
    assert all(merged != own for merged, own in zip(*entropies, strict=True))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--layer", "3", "--head", "1", "--words", "--show", "q"), "--show q belongs to single tokens"),
        (("--layer", "3", "--head", "1", "--words", "--show", "scores"), "--show scores belongs to single"),
        (
            ("--layer", "3", "--head", "1", "--special", "none"),
            "--special is 'none': show, hide, renormalise",
        ),
        (("--special", "hide"), "--special renormalise, or give one --layer and one --head"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(attnscope, options: tuple[str, ...], told: str) -> None:
    refused = attnscope("heads", TEXT, "-m", "demo", *options)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert refused.stdout == ""


def test_the_report_has_words_and_says_what_was_left_out(attnscope, own_weights, tmp_path: Path) -> None:
    page = tmp_path / "a.json"
    arguments = ("report", TEXT, "-m", "demo", "--query", "was", "--words", "--special", "hide")
    result = attnscope(*arguments, "-o", str(page))
    assert result.exit_code == 0
    document = json.loads(page.read_text())
    assert document["query"] == 11
    assert np.array(document["view"]["weights"]) == pytest.approx(by_words(own_weights)[1:-1, 1:-1], abs=1e-6)
    row = next(line for line in result.stdout.splitlines() if line.lstrip().startswith("2 detective "))
    assert row.split()[2] == numbers.weight(own_weights[11, 2:11].sum(), 3)
    shares = np.array(document["contributions"])
    assert " ".join(row.split()[3:5]) == numbers.percent(shares[2:11].sum())
    left_out = f"special tokens left out: weight {numbers.weight(own_weights[11, [0, 14]].sum())}"
    assert left_out in result.stdout
    assert f"share {numbers.percent(shares[[0, 14]].sum())}" in result.stdout


def test_a_report_about_a_token_that_is_left_out_is_refused(attnscope) -> None:
    refused = attnscope("report", TEXT, "-m", "demo", "--query", "[CLS]", "--special", "hide", "--json")
    assert refused.exit_code == 2
    assert "[CLS] is a special token and left out" in refused.stderr


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


@pytest.mark.parametrize("spelling", ["[MASK]", "[mask]", "<mask>"])
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


def test_bytes_of_one_character_are_one_word(attnscope, roberta: Path) -> None:
    arguments = ("heads", "the 猫👩\u200d👧 door", "-m", str(roberta), "-l", "1", "--head", "2")
    document = json.loads(attnscope(*arguments, "--words", "--special", "renormalise", "--json").stdout)
    assert [key["label"] for key in document["keys"]] == ["the", "猫", "👩\u200d👧", "door"]
    assert len(document["key_tokens"]) > 12
    assert np.array(document["weights"]).sum(axis=1) == pytest.approx(np.ones(4))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that fills numbered gaps."""
    folder = tmp_path_factory.mktemp("t5")
    tokenizer = BUILD["t5"]()
    torch.manual_seed(3)
    sizes = {
        "d_model": 24,
        "d_kv": 6,
        "d_ff": 20,
        "num_layers": 2,
        "num_heads": 4,
        "vocab_size": len(tokenizer),
    }
    T5(T5Config(**sizes, decoder_start_token_id=0, eos_token_id=1, pad_token_id=0)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_model_of_numbered_gaps_takes_masks_and_reports_about_the_first(attnscope, t5: Path) -> None:
    arguments = ("the <mask> opened [MASK]", "-m", str(t5))
    result = attnscope("predict", *arguments, "--target", "the door", "--json")
    assert result.exit_code == 0, result.stderr
    assert "the masks of" in result.stderr
    assert "are spelled <extra_id_0>, <extra_id_1>" in result.stderr
    page = attnscope("report", *arguments, "--kind", "encoder", "-l", "1", "--head", "1", "--json")
    assert page.exit_code == 0, page.stderr
    document = json.loads(page.stdout)
    assert document["query_tokens"][document["query"]]["label"] == "<extra_id_0>"
