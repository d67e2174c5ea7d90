"""The bundled demo-causal: its card tells the truth; its stream; induction scores against slow loops."""

import json
import math
import re
import zlib
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from attnscope.demo import folder
from attnscope.demo.train.corpora import corpus, next_word
from attnscope.demo.train.english.inflection import gerund, past, plural, third
from attnscope.demo.train.evaluation import causal as evaluate_causal
from attnscope.demo.train.evaluation import induction
from attnscope.demo.train.evaluation.baselines import EDGE, Continuations
from attnscope.demo.train.tokenizer import build_causal

PATH = folder("demo-causal")


@pytest.fixture(scope="module")
def bundle() -> evaluate_causal.Bundle:
    return evaluate_causal.Bundle(PATH)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((PATH / "figures.json").read_text())


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


SHOWN = re.compile(
    r"i was watching the \S+ when it opened|i was watching the door when \S+ opened|\bi \S+ a person\b"
    r"|i am going to the supermarket|i would like to buy apples|and that is how i met your mother"
    r"|bill is going to the theatre to watch a new movie|i sat on the bank of the river"
    r"|i put my money in the bank|i have to water the plant in the yard"
    r"|he works in the plant with the big machines"
)
PAIRS = [
    ({noun, plural(noun)}, {form(verb).split()[0] for form in (str, past, third, gerund)})
    for verb, noun in corpus.held_out_pairs()
]
NOUNS = set().union(*(nouns for nouns, _ in PAIRS))


def distance(words: tuple[str, ...]) -> int:
    """How many places lie between a word and the first word that comes again."""
    first: dict[str, int] = {}
    for place, word in enumerate(words):
        if word in first:
            return place - first[word]
        first[word] = place
    return 0


def test_the_stream_holds_nothing_of_the_articles_or_held_out_and_is_the_one_of_the_bundled_model() -> None:
    """Generates again what the bundled model was trained on, and searches all of it."""
    run, told = (
        json.loads((folder("demo-causal") / f"{each}.json").read_text()) for each in ("training", "figures")
    )
    settings, passages, distances = run["settings"], [], set()
    documents = list(corpus.documents(settings["seed"], settings["documents"]))
    for passage in next_word.passages(documents, settings["seed"], settings["share"]):
        passages.append(passage)
        text, present = " ".join(passage.words), set(passage.words)
        assert not SHOWN.search(text), text
        if present & NOUNS:  # in random words neither
            assert not any(nouns & present and verbs & present for nouns, verbs in PAIRS), text
        parts = (one.strip() for one in re.split("[.?]", text) if one.strip())
        assert not any(zlib.crc32(one.encode()) % 25 == 0 for one in parts), text
        assert len(passage.words) <= next_word.ROOM == 62
        if passage.is_random:
            distances.add(distance(passage.words))
    assert next_word.digest(passages) == run["record"]["stream"]
    assert len(passages) == told["stream"]["passages"]
    share = sum(passage.is_random for passage in passages) / len(passages)
    assert share == pytest.approx(told["stream"]["random_share"], abs=1e-4)
    assert distances == set(range(3, max(distances) + 1))
    assert max(distances) >= 31


def said(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def test_only_words_that_follow_from_the_text_are_asked_for_in_random_words() -> None:
    words = said("cat box red pen cat box sun red pen")
    assert next_word.follows_again(words) == [False] * 5 + [True, False, False, True]
    passage = next_word.Passage(words, is_random=True)
    assert passage.asked == [False] * 5 + [True, False, False, True, False]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_causal([f"{a}{b}{c}" for a in "pqr" for b in "aeiou" for c in "mnst"], 64)


@pytest.fixture(scope="module")
def model(tokenizer) -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=24, intermediate_size=12, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, head_dim=4, initializer_range=0.4,
    )  # fmt: skip
    config._attn_implementation = "eager"
    return LlamaForCausalLM(config).eval()


def looped(weights: torch.Tensor, size: int) -> dict[str, float]:
    """The scores of one head from their definitions, place by place. weights: `query key`."""
    second = range(size + 1, 2 * size + 1)  # the places of the second r; [BOS] is place 0
    return {
        "induction": sum(weights[at, at - size + 1].item() for at in second) / size,
        "duplicate": sum(weights[at, at - size].item() for at in second) / size,
        "previous": sum(weights[at, at - 1].item() for at in range(1, 2 * size + 1)) / (2 * size),
    }


def test_scores_are_what_a_slow_loop_finds() -> None:
    size = 3
    weights = torch.rand(3, 2, 2 * size + 1, 2 * size + 1).tril()
    found = induction.scores_of(weights, size)
    for layer in range(3):
        for head in range(2):
            for name, value in looped(weights[layer, head], size).items():
                assert found[name][layer, head].item() == pytest.approx(value, abs=1e-6)


def test_a_perfect_induction_head_scores_one_and_a_previous_token_head_scores_none() -> None:
    size = 4
    perfect, previous = torch.zeros(9, 9), torch.zeros(9, 9)
    for at in range(1, 9):
        perfect[at, at - 3 if at > size else 0] = 1
        previous[at, at - 1] = 1
    found = induction.scores_of(torch.stack([perfect, previous]), size)
    assert found["induction"].tolist() == [1, 0]
    assert found["previous"].tolist() == [1 / 8, 1]  # the first word has but one token before it
    assert found["duplicate"].tolist() == [0, 0]


def test_the_scores_of_a_model_are_the_mean_over_its_sequences_and_sizes(model, tokenizer) -> None:
    found, sums = induction.scores(model, tokenizer, seed=5, sizes=(3, 6)), torch.zeros(3, 6)
    for size in (3, 6):
        output = model(induction.repeated(tokenizer, size, induction.EACH, 5), output_attentions=True)
        for layer, weights in enumerate(output.attentions):
            for head in range(6):
                each = [looped(weights[row, head], size)["induction"] for row in range(induction.EACH)]
                sums[layer, head] += sum(each) / len(each) / 2
    torch.testing.assert_close(found.induction, sums, atol=1e-5, rtol=0)
    layer, head = found.best("induction")
    assert sums[layer, head] == sums.max()


def test_a_silenced_head_adds_nothing_and_comes_back(model, tokenizer) -> None:
    ids = induction.repeated(tokenizer, 4, 3, seed=0)
    with torch.no_grad():
        before = model(ids).logits
        with induction.without(model, [(1, 4)]):
            silenced = model(ids).logits
        after = model(ids).logits
        columns = model.model.layers[1].self_attn.o_proj.weight[:, 16:20]
        kept = columns.clone()
        columns.zero_()
        by_weights = model(ids).logits
        columns.copy_(kept)
    assert torch.equal(before, after)
    assert not torch.allclose(before, silenced, atol=1e-3)
    torch.testing.assert_close(silenced, by_weights)


def test_accuracy_counts_the_words_that_are_guessed_in_each_half(model, tokenizer) -> None:
    right = {"first": [], "second": []}
    for size in (3, 5):
        ids = induction.repeated(tokenizer, size, induction.EACH, 9)
        guesses = model(ids).logits.argmax(-1)
        for name, places in {"first": range(2, size + 1), "second": range(size + 2, 2 * size + 1)}.items():
            hits = [guesses[row, at - 1] == ids[row, at] for row in range(len(ids)) for at in places]
            right[name].append(sum(hits).item() / len(hits))
    expected = [sum(shares) / 2 for shares in right.values()]
    assert list(induction.accuracy(model, tokenizer, 9, (3, 5))) == pytest.approx(expected, abs=1e-6)
