"""The bundled model: what lies in its folder, and that its card tells the truth."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModel, AutoTokenizer, BertForPreTraining

from attnscope import demo
from attnscope.demo import folder
from attnscope.demo.train.cards import encoder as card
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.english.phrases import links
from attnscope.demo.train.evaluation import encoder as evaluate
from attnscope.demo.train.evaluation import references
from attnscope.demo.train.evaluation.baselines import Counts


@pytest.fixture(scope="module")
def bundle() -> evaluate.Bundle:
    return evaluate.Bundle(folder())


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((folder() / "figures.json").read_text())


def close(measured: Any, said: Any) -> None:
    """Figures agree up to what another processor's rounding may change."""
    if isinstance(said, dict):
        assert measured.keys() == said.keys()
        for key in said:
            close(measured[key], said[key])
    else:
        assert measured == pytest.approx(said, abs=0.01)


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "torch", "transformers", "numpy", "rich"
    code = f"import sys, attnscope.demo; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_folder_is_at_most_five_megabytes_and_holds_what_hugging_face_expects() -> None:
    assert sum(file.stat().st_size for file in folder().iterdir()) <= 5_000_000
    names = {file.name for file in folder().iterdir()}
    assert names >= {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "README.md",
    }


@pytest.mark.parametrize("kind", [AutoModel, BertForPreTraining])
def test_the_model_loads_with_no_key_missing(kind: Any) -> None:
    model, loading = kind.from_pretrained(folder(), output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["mismatched_keys"]
    assert model.config.num_hidden_layers >= 4
    assert model.config.num_attention_heads >= 12
    assert model.config.max_position_embeddings == corpus.LENGTH
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(folder()))


def test_the_card_is_the_one_that_its_figures_give() -> None:
    run, figures = (json.loads((folder() / name).read_text()) for name in ("training.json", "figures.json"))
    assert (folder() / "README.md").read_text() == card.text(run, figures)


def test_the_card_names_no_machine(told) -> None:
    text = (folder() / "README.md").read_text()
    assert "/" + "work" not in text
    assert "/" + "tmp" not in text


def test_next_sentence_figures_are_measured_again(bundle, told) -> None:
    close(evaluate.next_sentence(bundle), told["next_sentence"])


def test_reference_figures_are_measured_again(bundle, told) -> None:
    close(evaluate.reference(bundle), told["reference"])


def test_held_out_pair_figures_are_measured_again(bundle, told) -> None:
    close(evaluate.held_out_pairs(bundle), told["held_out_pairs"])


def test_the_articles_sentences_behave_as_the_card_says(bundle, told) -> None:
    for text, words in told["examples"]["blanks"].items():
        assert [word for word, _ in bundle.top(text)][:1] == [words[0][0]]
    for first, second, follows in told["examples"]["pairs"]:
        assert bundle.follows([(first, second)]).item() == pytest.approx(follows, abs=0.01)
    close(evaluate.examples(bundle)["l3_h11"][0]["to_door"], told["examples"]["l3_h11"][0]["to_door"])


def test_the_supermarket_is_followed_by_apples_rather_than_by_how_one_met(bundle) -> None:
    apples, mother = bundle.follows(list(evaluate.PAIRS)).tolist()
    assert apples > mother


def test_the_model_beats_both_counting_rules_and_chance(told) -> None:
    words, following = told["masked_words"], told["next_sentence"]
    assert words["model"]["first"] > words["bigram"]["first"] > words["unigram"]["first"]
    assert following["accuracy_random"] > 0.75
    assert following["accuracy_hard"] > 0.55
    assert told["held_out_pairs"]["other_nouns_beaten"] > 0.6


def test_head_11_is_the_best_of_layer_3_on_the_selection_set_and_beats_the_fixed_offset(bundle, told) -> None:
    items = references.references(references.SELECTION, 400)
    found = [
        references.look(bundle.model, bundle.tokenizer, items, masked).found[3] for masked in (True, False)
    ]
    assert int((found[0] + found[1]).argmax()) == 11
    reference = told["reference"]
    assert reference["mask_best"]["found"] > reference["fixed_offset_found"]


def test_reported_sentences_are_held_out_differ_from_the_selection_and_vary_in_distance() -> None:
    chosen, reported = (
        references.references(references.SELECTION, 400),
        references.references(references.REPORTED, 200),
    )
    texts = {item.text for item in reported}
    shared = texts & {item.text for item in chosen}
    assert len(texts) == 200
    assert not shared
    assert all(corpus.is_held_out(corpus.sentences(text)[0]) for text in texts)
    assert len({item.pronoun - item.antecedent[-1] for item in reported}) >= 6


def test_a_masked_reference_has_its_mask_at_the_pronoun(bundle) -> None:
    for item in references.references(7, 20):
        ids = bundle.tokenizer(item.masked)["input_ids"]
        assert ids[item.pronoun] == bundle.tokenizer.mask_token_id
        assert len(ids) == len(item.text.split()) + 2


def test_links_are_read_from_the_marks() -> None:
    assert links("the door_1 and the bell_2 rang when it~2 was old") == [(7, (4,))]
    assert links("bill_1 and mary_1 left their~1 house") == [(4, (0, 2))]


def test_the_bigram_rule_looks_at_both_neighbours() -> None:
    texts = ["the door opened", "the door opened", "the bell rang", "the bell rang", "the bell rang"]
    counts = Counts(corpus.Document(text) for text in texts)
    assert counts.unigram(1) == ["the"]
    assert counts.bigram("the", "opened", 1) == ["door"]
    assert counts.bigram("the", "rang", 1) == ["bell"]


def test_an_ordinary_sentence_is_spelled_like_the_stream() -> None:
    assert corpus.spaced("I was, now, at the [MASK].") == "i was , now , at the [MASK] ."


def test_folder_is_the_encoder_inside_the_package() -> None:
    assert folder() == Path(demo.__file__).parent / "encoder"
