"""Every bundled model: what lies in its folder, that it loads whole, and that its card is its figures'."""

import json
import random
import re
import subprocess
import sys
import zlib
from itertools import chain
from typing import Any

import pytest
import transformers as hf
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from attnscope.demo import folder
from attnscope.demo.train.cards import caption, causal, encoder, reader, speech, translate
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.english import lexicon as lex
from attnscope.demo.train.english.inflection import gerund, past, plural, third
from attnscope.demo.train.english.phrases import Speaker, links, plain
from attnscope.demo.train.english.sentences import PATTERNS
from attnscope.demo.train.english.stories import TALES
from attnscope.demo.train.evaluation import encoder as evaluate
from attnscope.demo.train.evaluation import references
from attnscope.demo.train.evaluation.baselines import Counts
from attnscope.demo.train.tokenizer import build

MODELS: dict[str, tuple[Any, Any, int]] = {  # its class, its card, most bytes
    "demo": (hf.BertForPreTraining, encoder, 5_000_000),
    "demo-causal": (hf.AutoModelForCausalLM, causal, 4_000_000),
    "demo-translate": (hf.AutoModelForSeq2SeqLM, translate, 4_000_000),
    "demo-reader": (hf.AutoModelForCausalLM, reader, 1_500_000),
    "demo-caption": (hf.AutoModelForImageTextToText, caption, 1_400_000),
    "demo-speech": (hf.AutoModelForSpeechSeq2Seq, speech, 1_400_000),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_folder_is_small_anybody_may_read_it_and_its_card_is_the_one_that_its_figures_give(name) -> None:
    _, card, most = MODELS[name]
    files = {file.name: file.stat() for file in folder(name).iterdir()}
    assert sum(each.st_size for each in files.values()) <= most
    assert all(each.st_mode & 0o444 == 0o444 for each in files.values())
    assert files.keys() >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    run, figures = ((folder(name) / f"{each}.json").read_text() for each in ("training", "figures"))
    text = (folder(name) / "README.md").read_text()
    assert text == card.CARD.text(json.loads(run), json.loads(figures))
    assert "/" + "work" not in text
    assert "/" + "tmp" not in text


@pytest.mark.parametrize("name", MODELS)
def test_the_model_loads_by_its_class_with_no_key_missing_or_left_over(name) -> None:
    model, loading = MODELS[name][0].from_pretrained(folder(name), output_loading_info=True)
    assert not any(loading[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    written = model.config.get_text_config(decoder=True).vocab_size
    assert written == len(hf.AutoTokenizer.from_pretrained(folder(name)))


SUBJECT = {"he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "they": "they", "them": "they"}
SUBJECT |= {"their": "they", "it": "it", "its": "it"}
HE, SHE = {*lex.HE, *lex.HE_NAMES}, {*lex.SHE, *lex.SHE_NAMES}
THINGS = {noun for kind in lex.THINGS + lex.ANIMALS for noun in kind.nouns} | {"animal", "street", "road"}
THINGS |= {"bridge", "field", "river"}
SEVERAL = {plural(noun) for noun in chain(HE, SHE, THINGS, lex.EITHER)}


def number_and_gender(words: list[str]) -> set[str]:
    """The pronouns that may stand for these antecedent nouns."""
    if len(words) > 1:
        return {"they"}
    tables = {"he": HE, "she": SHE, "it": THINGS, "they": SEVERAL}
    return {pronoun for pronoun, nouns in tables.items() if words[0] in nouns}


@pytest.mark.parametrize("make", [*PATTERNS, *TALES], ids=lambda make: make.__name__)
def test_every_pronoun_agrees_with_its_antecedent_in_gender_and_number(make) -> None:
    s = Speaker(random.Random(3))
    for _ in range(300):
        made = make(s)
        marked = made if isinstance(made, str) else f"{made.first} {made.second}"
        words = [plain(word) for word in marked.split()]
        for pronoun, nouns in links(marked):
            assert SUBJECT[words[pronoun]] in number_and_gender([words[noun] for noun in nouns]), marked


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(folder())


def test_upper_case_is_lowered_and_offsets_point_into_the_text(tokenizer) -> None:
    assert tokenizer.is_fast
    encoded = tokenizer("The DOOR opened.", return_offsets_mapping=True)
    assert tokenizer.tokenize("The DOOR opened.") == ["the", "door", "opened", "."]
    assert encoded["offset_mapping"] == [(0, 0), (0, 3), (4, 8), (9, 15), (15, 16), (0, 0)]


def test_a_pair_has_three_special_tokens_and_two_segments(tokenizer) -> None:
    encoded = tokenizer("The door opened.", "It rang.")
    words = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert words == ["[CLS]", "the", "door", "opened", ".", "[SEP]", "it", "rang", ".", "[SEP]"]
    assert encoded["token_type_ids"] == [0] * 6 + [1] * 4


@pytest.mark.parametrize("word", ["zyzzyva", "abc123"])
def test_an_unknown_word_is_spelled_and_never_unknown(tokenizer, word: str) -> None:
    pieces = tokenizer.tokenize(word)
    assert "".join(piece.removeprefix("##") for piece in pieces) == word
    assert tokenizer.unk_token not in pieces


def test_the_stream_is_split_as_the_tokenizer_splits_it(tokenizer) -> None:
    for document in corpus.documents(count=300):
        text = f"{document.first} {document.second}"
        assert tokenizer.tokenize(text) == text.split()


def test_ids_do_not_depend_on_the_order_of_the_words() -> None:
    first, second = build(["door", "bell"], 64), build(["bell", "door", "bell"], 64)
    assert first.get_vocab() == second.get_vocab()


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


def test_the_bigram_rule_looks_at_both_neighbours() -> None:
    texts = ["the door opened", "the door opened", "the bell rang", "the bell rang", "the bell rang"]
    counts = Counts(corpus.Document(text) for text in texts)
    assert counts.unigram(1) == ["the"]
    assert counts.bigram("the", "opened", 1) == ["door"]
    assert counts.bigram("the", "rang", 1) == ["bell"]


SHOWN = (
    "i was watching the door when it opened",
    "i am going to the supermarket",
    "i would like to buy apples",
    "and that is how i met your mother",
    "bill is going to the theatre to watch a new movie",
    "i sat on the bank of the river",
    "i put my money in the bank",
    "i have to water the plant in the yard",
    "he works in the plant with the big machines",
)
MASKED = (
    re.compile(r"\bi was watching the \S+ when it opened"),
    re.compile(r"\bi was watching the door when \S+ opened"),
    re.compile(r"\bi \S+ a person\b"),
)


def pair_forms() -> dict[str, list[set[str]]]:
    """For each form of a held-out noun, the forms of the verbs that it must not meet."""
    forms: dict[str, list[set[str]]] = {}
    for verb, noun in corpus.held_out_pairs():
        verbs = {form(verb).split()[0] for form in (str, past, third, gerund)}
        for name in (noun, plural(noun)):
            forms.setdefault(name, []).append(verbs)
    return forms


def test_the_stream_holds_nothing_of_the_articles_or_held_out_and_is_the_one_of_the_bundled_model() -> None:
    """Generates again what the bundled model was trained on, and searches all of it."""
    run, digest, forbidden = (
        json.loads((folder() / "training.json").read_text()),
        corpus.Digest(),
        pair_forms(),
    )
    assert len(corpus.held_out_pairs()) >= 30
    for document in corpus.documents(run["settings"]["seed"], run["settings"]["documents"]):
        text = f"{document.first} . {document.second}"
        present = set(text.split())
        assert not any(one in text for one in SHOWN), text
        assert not any(one.search(text) for one in MASKED), text  # whatever stands at the mask
        in_a_form = (verbs & present for noun in present & forbidden.keys() for verbs in forbidden[noun])
        assert not any(in_a_form), text
        parts = (one.strip() for one in re.split("[.?]", text) if one.strip())
        assert not any(zlib.crc32(one.encode()) % 25 == 0 for one in parts), text
        digest.add(document)
    assert digest.hex() == run["record"]["stream"]


def test_the_rules_would_catch_what_they_forbid() -> None:
    verb, noun = corpus.held_out_pairs()[0]
    assert corpus.has_held_out_pair(f"the {plural(noun)} {past(verb)} ")
    for one in ("i was watching the box when it opened .", "i saw a person .", *SHOWN):
        assert not corpus.is_allowed(corpus.Document(one)), one
