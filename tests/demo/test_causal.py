"""The bundled demo-causal: what lies in its folder, and that its card tells the truth."""

import json
import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from attnscope.demo import folder
from attnscope.demo.train.cards import causal as card_causal
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.evaluation import causal as evaluate_causal
from attnscope.demo.train.evaluation import induction
from attnscope.demo.train.evaluation.baselines import EDGE, Continuations

PATH = folder("demo-causal")


@pytest.fixture(scope="module")
def bundle() -> evaluate_causal.Bundle:
    return evaluate_causal.Bundle(PATH)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((PATH / "figures.json").read_text())


def test_the_folder_is_at_most_four_megabytes_and_holds_what_hugging_face_expects() -> None:
    assert sum(file.stat().st_size for file in PATH.iterdir()) <= 4_000_000
    assert {file.name for file in PATH.iterdir()} == {
        "README.md", "config.json", "figures.json", "generation_config.json", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json", "training.json",
    }  # fmt: skip


def test_the_model_loads_by_the_auto_classes_with_no_key_missing_or_left_over() -> None:
    model, loading = AutoModelForCausalLM.from_pretrained(PATH, output_loading_info=True)
    assert not any(loading.values())
    config, run = model.config, json.loads((PATH / "training.json").read_text())
    assert config.model_type == "llama"
    assert config.num_hidden_layers >= 4
    assert config.num_attention_heads == 12 > config.num_key_value_heads > 1
    assert config.vocab_size == len(AutoTokenizer.from_pretrained(PATH)) == run["model"]["vocabulary"]
    assert model.num_parameters() == run["model"]["parameters"]
    assert {part.dtype for part in model.parameters()} == {torch.float32}


def test_the_tokenizer_puts_bos_first_keeps_offsets_and_gives_the_text_back() -> None:
    tokenizer = AutoTokenizer.from_pretrained(PATH)
    encoded = tokenizer("The DOOR opened.", return_offsets_mapping=True)
    assert tokenizer.convert_ids_to_tokens(encoded["input_ids"]) == ["[BOS]", "the", "door", "opened", "."]
    assert encoded["offset_mapping"] == [(0, 0), (0, 3), (4, 8), (9, 15), (15, 16)]
    assert tokenizer.decode(encoded["input_ids"], skip_special_tokens=True) == "the door opened."
    assert tokenizer.tokenize("zyzzyva") == ["z", "##y", "##z", "##z", "##y", "##v", "##a"]


def test_generation_ends_by_itself_with_the_end_token(bundle) -> None:
    given = bundle.tokenizer("I was watching the door", return_tensors="pt")
    ids = bundle.model.generate(**given)[0].tolist()
    assert ids[: given["input_ids"].shape[1]] == given["input_ids"][0].tolist()
    assert ids[-1] == bundle.tokenizer.eos_token_id == bundle.model.generation_config.eos_token_id
    assert len(ids) < corpus.LENGTH


def test_the_card_is_the_one_that_its_figures_give_and_names_no_machine(told) -> None:
    run, text = json.loads((PATH / "training.json").read_text()), (PATH / "README.md").read_text()
    assert text == card_causal.text(run, told)
    assert "/" + "work" not in text
    assert "/" + "tmp" not in text


def test_next_words_of_held_out_sentences_are_guessed_as_well_as_the_card_says(bundle, told) -> None:
    """Again on a fifth of the sentences, by another way: the losses that transformers makes."""
    texts = evaluate_causal.held_out_sentences(300)
    losses, first, places = 0.0, 0, 0
    for text in texts:
        ids = bundle.tokenizer(text, return_tensors="pt")["input_ids"]
        ids = torch.cat([ids, torch.tensor([[bundle.tokenizer.eos_token_id]])], dim=1)
        with torch.no_grad():
            output = bundle.model(ids, labels=ids)
        losses += output.loss.item() * (ids.shape[1] - 1)
        first += (output.logits[0, :-1].argmax(-1) == ids[0, 1:]).sum().item()
        places += ids.shape[1] - 1
    said = told["next_word"]["model"]
    assert losses / places == pytest.approx(said["cross_entropy"], abs=0.12)
    assert first / places == pytest.approx(said["first"], abs=0.03)


def test_the_figures_of_a_subset_are_the_same_by_the_evaluation_itself(bundle, told) -> None:
    counts = Continuations([["the", "door", "opened", "."]])
    measured = evaluate_causal.next_word(bundle, counts, 300)["model"]
    assert measured["cross_entropy"] == pytest.approx(told["next_word"]["model"]["cross_entropy"], abs=0.12)
    assert measured["perplexity"] == pytest.approx(math.exp(measured["cross_entropy"]), abs=0.01)


def test_the_model_beats_all_counting_rules(told) -> None:
    order = [told["next_word"][name] for name in ("model", "trigram", "bigram", "unigram")]
    for better, worse in pairwise(order):
        assert better["first"] > worse["first"]
        assert better["cross_entropy"] < worse["cross_entropy"]


def test_head_scores_are_measured_again(bundle, told) -> None:
    measured, said = evaluate_causal.heads(bundle), told["heads"]
    for name in ("induction", "previous", "duplicate"):
        assert measured[name]["score"] == pytest.approx(said[name]["score"], abs=0.01)
    assert measured["formed"] == said["formed"]
    flat = [value for layer in said["by_head"] for value in layer]
    assert max(flat) == pytest.approx(said["induction"]["score"], abs=0.05)
    assert [value for layer in measured["by_head"] for value in layer] == pytest.approx(flat, abs=0.01)


def test_head_11_has_the_highest_induction_score_of_layer_3_on_the_selection_set(bundle) -> None:
    scores = induction.scores(bundle.model, bundle.tokenizer, induction.SELECTION).induction
    assert int(scores[3].argmax()) == 11


def test_silencing_the_best_head_is_measured_again(bundle, told) -> None:
    scores = induction.scores(bundle.model, bundle.tokenizer, induction.SELECTION)
    with induction.without(bundle.model, [scores.best("induction")]):
        share = induction.accuracy(bundle.model, bundle.tokenizer, induction.REPORTED)[1]
    assert share == pytest.approx(told["copying"]["without_best"], abs=0.01)
    first, second = induction.accuracy(bundle.model, bundle.tokenizer, induction.REPORTED)
    assert first == pytest.approx(told["copying"]["first_half"], abs=0.01)
    assert second == pytest.approx(told["copying"]["second_half"], abs=0.01)


def test_the_examples_come_again(bundle, told) -> None:
    for text, row in told["examples"].items():
        assert bundle.next_words(text)[0][0] == row["next"][0][0]
        assert bundle.goes_on(text) == row["goes_on"]


def test_a_probability_of_the_rules_sums_to_one_and_is_what_one_finds_by_hand() -> None:
    counts = Continuations(text.split() for text in ("a b a c", "a b"))
    words = ("a", "b", "c", EDGE)
    for before, length in (((EDGE, "a"), 2), (("c", "c"), 2), (("b", "a"), 1), (("x", "y"), 0)):
        assert sum(counts.probabilities(words, before, length).values()) == pytest.approx(1)
    assert Counter(counts.after[1][("a",)]) == {"b": 2, "c": 1}
    alone = (2 + 4 * 1 / 4) / (8 + 4)  # b: 2 of 8 places, 4 kinds, the rest alike
    after_a = (2 + 2 * alone) / (3 + 2)
    assert counts.probabilities(["b"], ("x", "a"), 1)["b"] == pytest.approx(after_a)
    assert counts.probabilities(["b"], (EDGE, "a"), 2)["b"] == pytest.approx((2 + after_a) / (2 + 1))
    assert counts.best((EDGE, "a"), 2, 1) == ["b"]
