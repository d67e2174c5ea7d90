"""`attnscope predict` as the shell sees it."""

import csv
import json
from inspect import signature
from itertools import combinations_with_replacement
from pathlib import Path

import media_models
import numpy as np
import pytest
import torch
from checkpoints import bert_config, save, tiny_bert, tiny_translator, vocabulary_size
from pasted import following
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import (
    AutoTokenizer,
    BartConfig,
    BartForQuestionAnswering,
    BartForSequenceClassification,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2ForTokenClassification,
    GPT2LMHeadModel,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessorPil,
    pipeline,
)

TEXT = "I was watching the door when [MASK] opened."


def test_the_pronoun_of_the_article_is_predicted(attnscope) -> None:
    result = attnscope("predict", TEXT, "-m", "demo", "--top", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("The model answers “it” at [MASK]: 99.8 % (second: “they”, ")
    heading = lines.index("7 [MASK]")
    assert lines[heading + 2].split()[:3] == ["it", "99.8", "%"]
    assert [line.split()[0] for line in lines[heading + 2 : heading + 5]] == ["it", "they", "she"]
    assert lines[-1].strip().startswith("attnscope ablate ")


def test_json_csv_and_npz_hold_the_same_numbers(attnscope, tmp_path: Path) -> None:
    files = [tmp_path / f"p.{suffix}" for suffix in ("json", "csv", "npz")]
    out = [part for file in files for part in ("-o", str(file))]
    result = attnscope("predict", "I [MASK] a [MASK].", "--pair", "It was red.", "-m", "demo", "--json", *out)
    document = json.loads(result.stdout)
    assert document == json.loads(files[0].read_text())
    assert document["schema"] == "attnscope.prediction/2"
    assert document["provenance"]["route"] == "untouched"
    rows = list(csv.DictReader(line for line in files[1].read_text().splitlines() if line[0] != "#"))
    guesses = [guess for blank in document["blanks"] for guess in blank["guesses"]]
    assert [float(row["probability"]) for row in rows[:-1]] == [guess["probability"] for guess in guesses]
    assert float(rows[-1]["probability"]) == document["next_sentence"]["probability"]
    arrays = np.load(files[2])
    assert arrays["probability"].shape == (2, 5)
    assert arrays["id"].ravel().tolist() == [guess["id"] for guess in guesses]


NAMES = {0: "sad", 1: "of no mood", 2: "glad"}


def logits_of(folder: Path, text: str) -> torch.Tensor:
    """What transformers itself gives."""
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")).logits[0].double()


def test_a_classifier_of_texts_names_the_class(attnscope, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m", BertForSequenceClassification, num_labels=3, id2label=NAMES)
    result = attnscope("predict", "we saw the door", "-m", str(folder), "-o", str(tmp_path / "p.json"))
    chances = logits_of(folder, "we saw the door").softmax(-1)
    order = chances.argsort(descending=True).tolist()
    rows = result.stdout.splitlines()
    begin = next(i for i, row in enumerate(rows) if row.startswith("class"))
    assert [row[: row.index("  ")] for row in rows[begin + 1 : begin + 4]] == [NAMES[i] for i in order]
    assert f"“{NAMES[order[0]]}”" in rows[0]
    told = json.loads((tmp_path / "p.json").read_text("utf-8"))
    assert told["task"] == "class"
    assert told["classes"]["exclusive"]
    guesses = told["classes"]["guesses"]
    assert [each["id"] for each in guesses] == order
    assert [each["probability"] for each in guesses] == pytest.approx(chances[order].tolist(), abs=1e-5)
    shown = attnscope("show", str(tmp_path / "p.json"))
    assert " ".join(shown.stdout.split()).startswith(" ".join(rows[0].split()[:4]))
    one = attnscope("predict", "we saw the door", "-m", str(folder), "-k", "1", "--json")
    assert [each["id"] for each in json.loads(one.stdout)["classes"]["guesses"]] == order[:1]


def test_classes_that_do_not_shut_each_other_out_are_judged_each_by_itself(attnscope, tmp_path: Path) -> None:
    settings = {"num_labels": 3, "id2label": NAMES, "problem_type": "multi_label_classification"}
    folder = tiny_bert(tmp_path / "m", BertForSequenceClassification, **settings)
    told = json.loads(attnscope("predict", "we saw the door", "-m", str(folder), "--json").stdout)
    chances = logits_of(folder, "we saw the door").sigmoid()
    assert not told["classes"]["exclusive"]
    for each in told["classes"]["guesses"]:
        assert each["probability"] == pytest.approx(float(chances[each["id"]]), abs=1e-5)
    assert "each class is judged by itself" in attnscope("predict", "we saw", "-m", str(folder)).stdout


def test_a_model_that_gives_a_number_tells_that_and_no_classes(attnscope, refused, tmp_path: Path) -> None:
    folder, file = tiny_bert(tmp_path / "m", BertForSequenceClassification, num_labels=1), tmp_path / "p.json"
    result = attnscope("predict", "we saw the door", "-m", str(folder), "-o", str(file))
    told, right = json.loads(file.read_text("utf-8")), float(logits_of(folder, "we saw the door")[0])
    assert (told["task"], told["classes"]) == ("score", None)
    assert told["score"] == pytest.approx(right, rel=1e-4)
    assert f"{abs(right):.3g}" in result.stdout.partition("\n")[0]
    several = {"num_labels": 2, "problem_type": "regression"}
    folder = tiny_bert(tmp_path / "n", BertForSequenceClassification, **several)
    says = "n answers with 2 numbers and tells no classes"
    refused(says, "predict", "we saw the door", "-m", str(folder))


HALVES = {
    "d_model": 24, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 6, "encoder_ffn_dim": 30, "decoder_ffn_dim": 30, "pad_token_id": 0,
    "eos_token_id": 3, "bos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
TAGS = {0: "O", 1: "B-PLACE", 2: "VERB"}
TAGGERS = {
    "bert": lambda folder: tiny_bert(folder, BertForTokenClassification, num_labels=3, id2label=TAGS),
    "gpt2": lambda folder: save(
        GPT2ForTokenClassification(
            GPT2Config(
                vocab_size=vocabulary_size(), n_embd=24, n_layer=2, n_head=4, n_positions=40, num_labels=3,
                id2label=TAGS, initializer_range=0.6,
            )
        ),
        folder,
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", TAGGERS)
def test_a_tagger_names_the_tag_of_every_token_as_the_pipeline_of_transformers_does(
    attnscope, tmp_path: Path, family: str
) -> None:
    text, file = "we saw the doors", tmp_path / "p.json"
    torch.manual_seed(5)
    folder = TAGGERS[family](tmp_path / "m")
    result = attnscope("predict", text, "-m", str(folder), "-o", str(file))
    told = json.loads(file.read_text("utf-8"))
    assert (told["task"], len(told["blanks"])) == ("tags", 4)
    tagger = pipeline("token-classification", str(folder), ignore_labels=[], device="cpu")
    for blank, right in zip(told["blanks"], tagger(text), strict=True):
        assert blank["position"] == right["index"]
        assert blank["guesses"][0]["text"] == right["entity"]
        assert blank["guesses"][0]["probability"] == pytest.approx(float(right["score"]), abs=1e-5)
    model = {"bert": BertForTokenClassification, "gpt2": GPT2ForTokenClassification}[family]
    with torch.no_grad():
        given = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
        right = model.from_pretrained(folder).eval()(**given).logits[0].double().softmax(-1)
    for blank in told["blanks"]:
        for each in blank["guesses"]:
            assert each["probability"] == pytest.approx(float(right[blank["position"], each["id"]]), abs=1e-5)
    best = told["blanks"][1]["guesses"][0]["text"]
    assert any(line.split()[:3] == ["2", "saw", best] for line in result.stdout.splitlines())
    assert attnscope("show", str(file)).stdout.startswith(result.stdout.partition("\n")[0])


def test_one_tag_of_a_tagger_is_asked_about_further(attnscope, tmp_path: Path) -> None:
    folder, text = str(TAGGERS["bert"](tmp_path / "m")), "we saw the doors"
    told = attnscope("ablate", text, "-m", folder, "-l", "1", "--head", "2", "--answer", "VERB")
    assert "the answer is the tag of" in told.stderr
    assert "“VERB”" in told.stdout
    named = attnscope("ablate", text, "-m", folder, "-l", "1", "--from", "saw", "--json")
    target = json.loads(named.stdout)["target"]
    assert (target["asks"], target["position"]) == ("tag", 2)
    assert " --from we" in attnscope("predict", text, "-m", folder).stdout
    (tmp_path / "t.txt").write_text("we saw it\nthe door opened\n")
    lines = attnscope("predict", "--texts", str(tmp_path / "t.txt"), "-m", folder, "--json").stdout
    one, other, last = map(json.loads, lines.splitlines())
    assert [len(each["blanks"]) for each in (one, other)] == [3, 3]
    assert last["summary"]["exit_code"] == 0


@pytest.mark.parametrize("family", ["bert", "bart"])
def test_the_answer_to_a_question_is_found_in_the_text_as_transformers_scores_its_ends(
    attnscope, refused, tmp_path: Path, family: str
) -> None:
    asks, text = "who opened it?", "we saw the old door and the king"
    torch.manual_seed(11)
    model = {
        "bert": lambda: BertForQuestionAnswering(bert_config()),
        "bart": lambda: BartForQuestionAnswering(BartConfig(vocab_size=vocabulary_size(), **HALVES)),
    }[family]()
    folder = save(model.eval(), tmp_path / "m")
    command = ("predict", asks, "--pair", text, "-m", str(folder), "-k", "7")
    result = attnscope(*command, "-o", str(tmp_path / "p.json"), "-o", str(tmp_path / "p.npz"))
    told = json.loads((tmp_path / "p.json").read_text("utf-8"))
    given = AutoTokenizer.from_pretrained(folder)(
        asks, text, return_tensors="pt", return_offsets_mapping=True
    )
    offsets, sides = given.pop("offset_mapping")[0].tolist(), given.sequence_ids()
    known = signature(model.forward).parameters
    with torch.no_grad():
        made = model(**{name: given[name] for name in given if name in known})
    start, end = (each[0].double().softmax(-1) for each in (made.start_logits, made.end_logits))
    right = {(0, 0): ("", float(start[0] * end[0]))}
    for first, last in combinations_with_replacement([i for i, side in enumerate(sides) if side == 1], 2):
        right[first, last] = text[offsets[first][0] : offsets[last][1]], float(start[first] * end[last])
    best = sorted(right, key=lambda ends: -right[ends][1])[:7]
    assert [(each["first"], each["last"]) for each in told["spans"]] == best
    for each, ends in zip(told["spans"], best, strict=True):
        assert each["text"] == right[ends][0]
        assert each["probability"] == pytest.approx(right[ends][1], abs=1e-6)
    assert (right[best[0]][0] or "no answer") in result.stdout.partition("\n\n")[0]
    assert np.load(tmp_path / "p.npz")["last"].tolist() == [last for _, last in best]
    assert attnscope("show", str(tmp_path / "p.json")).exit_code == 0
    refused("--pair", "predict", asks, "-m", str(folder))


def test_what_a_model_was_trained_to_tell_is_told_and_no_word_of_its_tied_embeddings(
    attnscope, tmp_path: Path
) -> None:
    size = {"vocab_size": vocabulary_size(), "num_labels": 3, "id2label": NAMES}
    torch.manual_seed(3)
    gpt2 = GPT2Config(**size, n_embd=24, n_layer=2, n_head=4, pad_token_id=0)
    for model in (
        GPT2ForSequenceClassification(gpt2),
        BartForSequenceClassification(BartConfig(**size, **HALVES)),
    ):
        folder = save(model.eval(), tmp_path / type(model).__name__)
        told = json.loads(attnscope("predict", "we saw the door", "-m", str(folder), "--json").stdout)
        assert told["task"] == "class"
        given = AutoTokenizer.from_pretrained(folder)("we saw the door", return_tensors="pt")
        known = signature(model.forward).parameters
        with torch.no_grad():
            right = (
                model(**{name: given[name] for name in given if name in known}).logits[0].double().softmax(-1)
            )
        for each in told["classes"]["guesses"]:
            assert each["probability"] == pytest.approx(float(right[each["id"]]), abs=1e-5)


def test_a_classifier_of_pictures_names_the_class_and_its_heads_can_be_removed(
    attnscope, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    names = {0: "tabby cat", 1: "tiger cat", 2: "lamp"}
    config = ViTConfig(**media_models._vision(), id2label=names, label2id={v: k for k, v in names.items()})
    ViTForImageClassification(config).save_pretrained(tmp_path / "m")
    ViTImageProcessorPil(size=media_models._size()).save_pretrained(tmp_path / "m")
    picture = media_models.picture_file(tmp_path)
    result = attnscope("predict", "--image", str(picture), "-m", str(tmp_path / "m"))
    assert result.exit_code == 0, result.stderr
    model = ViTForImageClassification.from_pretrained(tmp_path / "m").eval()
    with Image.open(picture) as opened, torch.no_grad():
        read = ViTImageProcessorPil(size=media_models._size())(opened, return_tensors="pt")
        chances = model(**read).logits[0].double().softmax(-1)
    best = int(chances.argmax())
    rows = result.stdout.splitlines()
    begin = next(i for i, row in enumerate(rows) if row.startswith("class"))
    assert rows[begin + 1].startswith(names[best])
    assert f"{100 * float(chances[best]):.1f} %" in rows[begin + 1]
    assert "over square.png, read as 40 x 60 pixels" in result.stdout
    following_command = following(result.stdout)
    assert following_command[1:4] == ["ablate", "--image", str(picture)]
    assert attnscope(*following_command[1:]).exit_code == 0


def test_a_model_without_a_head_is_refused(refused, tmp_path: Path) -> None:
    refused("has no head that predicts words", "predict", TEXT, "-m", str(tiny_bert(tmp_path / "m")))


def without_numbers(folder: Path, weight: str) -> str:
    """The checkpoint with one weight that is no number."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights[weight].view(-1)[0] = float("nan")
    save_file(weights, file, {"format": "pt"})
    return str(folder)


@pytest.mark.parametrize(
    ("kind", "weight", "texts"),
    [
        ("masked", "bert.encoder.layer.1.output.dense.weight", ("the [MASK] opened", "--json")),
        ("pair", "bert.encoder.layer.1.output.dense.weight", ("the door", "--pair", "it opened")),
        ("generated", "decoder.block.0.layer.0.SelfAttention.q.weight", ("the door", "--target", "we saw")),
        ("generated", "decoder.block.0.layer.0.SelfAttention.q.weight", ("the door",)),
        ("next", "transformer.h.1.mlp.c_fc.weight", ("the door",)),
    ],
)
def test_what_is_no_number_is_no_prediction(
    refused, tmp_path: Path, kind: str, weight: str, texts: tuple[str, ...]
) -> None:
    folder = tmp_path / "m"
    if kind == "generated":
        tiny_translator(folder, "t5")
    elif kind == "next":
        settings = {"n_layer": 2, "n_head": 4, "n_embd": 24, "n_positions": 40}
        save(GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary_size(), **settings)), folder)
    else:
        tiny_bert(folder, BertForMaskedLM if kind == "masked" else BertForNextSentencePrediction)
    model = without_numbers(folder, weight)
    says = f"{model} predicts nothing: its probabilities are not numbers"
    refused(says, "predict", *texts, "-m", model, "-o", "out.json", code=5)


def test_layers_tell_where_the_planted_circuit_answers(attnscope) -> None:
    """The induction heads of demo-causal stand in its second layer: nothing before it can answer."""
    text = "river king door river king"
    shown = attnscope("predict", text, "-m", "demo-causal", "--layers", "--json")
    assert shown.exit_code == 0
    found = json.loads(shown.stdout)
    assert found["schema"] == "attnscope.layers/2"
    (place,) = found["places"]
    assert place["answer"]["text"] == "door"
    assert place["leads_from"] == 1
    rows = {each["layer"]: each for each in place["layers"]}
    assert list(rows) == [-1, 0, 1, 2, 3]
    assert rows[0]["probability"] < 0.01 < 0.9 < rows[1]["probability"]
    assert rows[3]["apart"] <= found["read_back"] <= 1e-5
    own = json.loads(attnscope("predict", text, "-m", "demo-causal", "--json").stdout)
    assert rows[3]["probability"] == pytest.approx(own["blanks"][0]["guesses"][0]["probability"], abs=1e-6)
    assert rows[1]["control"] < 0.5
    assert len(found["ids"]) == found["controls"]
    without = json.loads(
        attnscope("predict", text, "-m", "demo-causal", "--layers", "--controls", "0", "--json").stdout
    )
    assert without["places"][0]["layers"][1]["control"] is None


def test_the_layers_of_a_classifier_name_classes(attnscope, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m", BertForSequenceClassification)
    shown = attnscope("predict", "the door opened", "-m", str(folder), "--layers", "--controls", "3")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("For the class ")
