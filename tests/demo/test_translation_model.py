"""The bundled translation model, its figures measured again, its pairs, and French forms by hand."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from attnscope.demo import folder
from attnscope.demo.train import command as train
from attnscope.demo.train import translation_tokenizer
from attnscope.demo.train.bilingual import lexicon as lex
from attnscope.demo.train.bilingual.french import Agreement
from attnscope.demo.train.bilingual.phrase import (
    NounPhrase,
    Phrase,
    again,
    join,
    noun_phrase,
    of,
    owned,
    phrase,
    pronoun,
    without,
)
from attnscope.demo.train.bilingual.verbs import is_like, verb_phrase
from attnscope.demo.train.corpora import corpus, translation
from attnscope.demo.train.corpora.translation import (
    EXAMPLES,
    Pair,
    in_full,
    pair_of,
    sentences,
    shortened,
    written,
)
from attnscope.demo.train.evaluation import alignment
from attnscope.demo.train.evaluation import translate as evaluate_translate
from attnscope.demo.train.evaluation.alignment import by_diagonal, by_offset, cross_weights
from attnscope.demo.train.evaluation.translate import Dictionary
from attnscope.demo.train.permute import order_with, permute_cross_heads
from attnscope.demo.train.translate import NOTHING, encode

HERE = folder("demo-translate")
TINY = ("--steps=3", "--documents=300", "--hidden=24", "--inner=16", "--layers=1", "--heads=2", "--threads=1")
CAT = Pair(
    ("a", "black", "cat", "slept", "."),
    ("un", "chat", "noir", "a", "dormi", "."),
    ((0,), (2,), (1,), (3,), (3,), (4,)),
    ("", "noun", "adjective", "", "", ""),
)


@pytest.fixture(scope="module")
def bundle() -> evaluate_translate.Bundle:
    return evaluate_translate.Bundle(HERE)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((HERE / "figures.json").read_text())


@pytest.mark.parametrize(("english", "french"), EXAMPLES.items())
def test_the_example_comes_out_right(bundle, english: str, french: str) -> None:
    assert bundle.translate(english) == french


def test_held_out_sentences_are_translated_as_well_as_the_card_says(bundle, told) -> None:
    pairs = translation.held_out_sentences(seed=77, count=200)
    assert evaluate_translate.exact(bundle, pairs) == pytest.approx(told["translations"]["model"], abs=0.04)


def test_new_pairs_of_adjective_and_noun_are_translated_as_well_as_the_card_says(bundle, told) -> None:
    figures = evaluate_translate.paired(bundle, count=80)
    assert figures["pairs"] == told["paired"]["pairs"]
    assert figures["model"] == pytest.approx(told["paired"]["model"], abs=0.03)


def test_the_figures_of_head_11_come_out_again_on_fewer_sentences(bundle, told) -> None:
    measured = evaluate_translate.heads(bundle, count=40)
    for words in alignment.WORDS:
        assert measured[words].keys() == told["heads"][words].keys()
        for row in alignment.ROWS:
            head, said = measured[words][f"{row}_l3_h11"], told["heads"][words][f"{row}_l3_h11"]
            assert head["found"] == pytest.approx(said["found"], abs=0.1), (words, row)
            assert head["weight"] == pytest.approx(said["weight"], abs=0.1), (words, row)
        assert measured[words]["next_best"]["layer"] == told["heads"][words]["next_best"]["layer"]


def test_head_11_is_the_best_of_layer_3_on_the_selection_set(bundle) -> None:
    items = translation.held_out_sentences(alignment.SELECTION, 60)
    report = alignment.look(bundle.model, bundle.tokenizer, items)
    assert int(report["next", "all"].found[3].argmax()) == 11


def test_the_figures_say_that_the_model_does_more_than_the_rules(told) -> None:
    words = told["translations"]
    assert words["model"] > 0.95
    assert words["model"] > words["neighbours"] > words["alone"]
    for kind in alignment.WORDS:
        heads = told["heads"][kind]
        assert heads["next_best"]["found"] > max(heads["offset_found"], heads["diagonal_found"])


def test_the_bundled_vocabulary_is_that_of_the_stream() -> None:
    known = AutoTokenizer.from_pretrained(HERE).get_vocab()
    words = {word for pair in translation.documents(0, 3000) for word in pair.english + pair.french}
    assert words <= known.keys()


def test_the_counting_rules_are_right_as_often_as_by_hand() -> None:
    assert by_offset([CAT], "all", 0) == pytest.approx(2 / 6)  # "un" and "a"
    assert by_offset([CAT], "swapped", 1) == pytest.approx(1 / 2)  # "chat": cat
    # un: 0, chat: 0.8 -> 1, noir: 1.6 -> 2, a: 2.4 -> 2, dormi: 3.2 -> 3, stop: 4
    assert by_diagonal([CAT], "all") == pytest.approx(3 / 6)


def test_found_shares_are_those_of_a_slow_loop(bundle) -> None:
    pairs = translation.held_out_sentences(seed=5, count=6)
    report = alignment.look(bundle.model, bundle.tokenizer, pairs)
    layer, head = 2, 7
    for row, behind in (("word", 1), ("next", 0)):
        hits = total = 0
        for pair in pairs:
            weights = cross_weights(bundle.model, bundle.tokenizer, pair)[layer, head].tolist()
            for index, places in enumerate(pair.sources):
                if places:
                    looking = weights[index + behind]
                    hits += max(range(len(looking)), key=looking.__getitem__) in places
                    total += 1
        assert report[row, "all"].found[layer, head].item() == pytest.approx(hits / total)


def test_exchanging_heads_changes_their_maps_and_not_the_function(bundle) -> None:
    model = AutoModelForSeq2SeqLM.from_pretrained(HERE, attn_implementation="eager").eval()
    before = cross_weights(model, bundle.tokenizer, CAT)
    permute_cross_heads(model, 3, order_with(2, 11, 12))
    after = cross_weights(model, bundle.tokenizer, CAT)
    assert torch.allclose(after[3, 11], before[3, 2], atol=1e-5)
    assert torch.allclose(after[3, 2], before[3, 11], atol=1e-5)
    assert not torch.allclose(after[3, 11], before[3, 11], atol=1e-2)
    ids = bundle.tokenizer(written(CAT.english), text_target=written(CAT.french), return_tensors="pt")
    with torch.no_grad():
        old, new = (each(input_ids=ids["input_ids"], labels=ids["labels"]) for each in (bundle.model, model))
    assert torch.allclose(old.logits, new.logits, atol=1e-4)


def test_the_dictionary_says_the_commonest_word_in_the_english_order() -> None:
    other = Pair(("the", "black", "door"), ("la", "porte", "noire"), ((0,), (2,), (1,)), ("", "noun", ""))
    words = Dictionary([CAT, CAT, other])
    assert words.translate(("a", "black", "cat", "slept", "."), neighbours=False) == "un noir chat a dormi."
    assert words.translate(("the", "black", "door"), neighbours=False) == "la noir porte"
    assert words.translate(("the", "black", "door"), neighbours=True) == "la noire porte"


def test_pairs_become_rows_whose_padding_is_never_scored() -> None:
    names = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", *sorted({*CAT.english, *CAT.french})]
    ids = {name: index for index, name in enumerate(names)}
    (one,) = encode([CAT], ids)
    french = [ids[word] for word in CAT.french]
    assert one.fields["source"].tolist() == [[*(ids[word] for word in CAT.english), 3]]
    assert one.fields["target"].tolist() == [[2, *french, 0]]
    assert one.fields["labels"].tolist() == [[*french, 3, NOTHING]]
    assert one.tokens == 6 + 8


def test_the_program_trains_a_tiny_translator_that_transformers_loads(tmp_path: Path) -> None:
    assert train.main(["translate", "--out", str(tmp_path), *TINY]) == 0
    _, loading = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    run = json.loads((tmp_path / "training.json").read_text())
    assert run["record"]["steps"] == 3
    assert run["record"]["stream"] == translation.digest(translation.documents(0, 300))
    assert run["model"]["old_head"] == -1


@pytest.fixture(scope="module")
def stream() -> list[Pair]:
    return list(translation.documents(seed=0, count=6_000))


@pytest.fixture(scope="module")
def tokenizer(stream, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    words = {word for pair in stream for word in pair.english + pair.french}
    translation_tokenizer.build(words, translation.LENGTH).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def test_the_stream_begins_as_it_did_and_another_seed_has_another() -> None:
    first, other = (translation.digest(translation.documents(seed, 300)) for seed in (0, 4))
    assert first == "fdfeafeaf2bfaa251a257d54b8bdab2ef3ca369acb472079601ba1bd40674e77"
    assert first != other


def test_no_training_document_holds_a_held_out_sentence_short_forms_written_out(stream) -> None:
    assert not any(corpus.is_held_out(text) for pair in stream for text in sentences(in_full(pair.english)))
    assert any("n't" in pair.english for pair in stream)


def test_short_forms_take_the_place_of_the_full_ones() -> None:
    words = ("i", "am", "not", "sad", "and", "they", "did", "not", "see", "that", "we", "are", "not", "here")
    pair = Pair(words, (), (), ())
    short = shortened(pair).english
    assert written(short) == "i'm not sad and they didn't see that we're not here"
    assert in_full(short) == words


def test_the_rule_about_sentences_would_be_noticed_if_it_were_broken() -> None:
    held_out = translation.held_out_sentences(seed=1, count=20)
    assert not any(translation.is_allowed(pair) for pair in held_out)
    assert len({pair.english for pair in held_out}) == 20


def test_no_training_document_holds_both_words_of_a_held_out_pair_in_either_language(stream) -> None:
    for pair in stream:
        assert not translation.has_held_out_pair(pair)
    for adjective, noun in translation.held_out_pairs():
        english = {adjective.english, noun.english}
        french = [
            {adjective.form(agreement), noun.forms(agreement.plural)[1]}
            for agreement in translation.AGREEMENTS
            if agreement.feminine == noun.feminine
        ]
        assert not any(english <= set(pair.english) for pair in stream), english
        assert not any(words <= set(pair.french) for pair in stream for words in french), french


def test_the_examples_are_in_no_document(stream) -> None:
    texts = [f" {' '.join(pair.english)} " for pair in stream]
    for example in EXAMPLES:
        words = re.sub(r"'s", " 's", example.lower().removesuffix("."))
        assert not any(f" {words} " in text for text in texts)
        pair = Pair(("and", *words.split(), "."), ("et",), ((0,),), ("",))
        assert not translation.is_allowed(pair)
    assert not any(corpus.ARTICLES.search(text) for text in texts)


def test_french_words_stand_for_english_ones_and_only_the_dative_for_none(stream) -> None:
    for pair in stream[:3000]:
        assert len(pair.french) == len(pair.sources) == len(pair.roles)
        assert all(0 <= place < len(pair.english) for places in pair.sources for place in places)
        alone = {word for word, places in zip(pair.french, pair.sources, strict=True) if not places}
        assert alone <= {"à"}
        assert pair.length < translation.LENGTH


def test_the_tokenizer_keeps_every_sentence_with_its_accents_and_elisions(stream, tokenizer) -> None:
    for pair in stream[:2000]:
        for words in (pair.english, pair.french):
            ids = tokenizer(written(words))["input_ids"]
            assert tokenizer.convert_ids_to_tokens(ids) == [*words, "[EOS]"]
            if "[UNK]" not in words:
                assert tokenizer.decode(ids, skip_special_tokens=True) == written(words)


def test_elided_words_and_the_english_genitive_are_tokens_with_their_own_characters(tokenizer) -> None:
    text = "L\u2019œuf n'a pas d'eau, the KING's dog."
    encoded = tokenizer(text, return_offsets_mapping=True)
    cut = [text[start:end] for start, end in encoded["offset_mapping"]]
    assert cut == ["L\u2019", "œuf", "n'", "a", "pas", "d'", "eau", ",", "the", "KING", "'s", "dog", ".", ""]
    assert tokenizer.decode(encoded["input_ids"], skip_special_tokens=True) == (
        "l'œuf n'a pas d'eau, the king's dog."
    )


NOUNS = {noun.english: noun for kind in lex.THINGS + lex.ANIMALS for noun in kind.nouns} | {
    noun.english: noun
    for nouns in (lex.PUBLIC, lex.INSIDE, lex.SURFACES, lex.HE, lex.SHE, lex.HE_NAMES, lex.SHE_NAMES)
    for noun in nouns
}
ADJECTIVES = {each.english: each for group in lex.ADJECTIVES.values() for each in group}
PEOPLE = {noun.english: "he" for noun in lex.HE + lex.HE_NAMES} | {
    noun.english: "she" for noun in lex.SHE + lex.SHE_NAMES
}


def named(text: str, *, plural: bool = False, both: bool = False) -> NounPhrase:
    """A noun phrase out of its lemmas: "the red italian door"."""
    article, *adjectives, noun = text.split() if " " in text else ("", text)
    chosen = [ADJECTIVES[word] for word in adjectives]
    stands = PEOPLE.get(noun, "it")
    return noun_phrase(article, NOUNS[noun], chosen, plural=plural, both=both, pronoun=stands)


def does(
    who: NounPhrase, verb: str, tense: str, what: NounPhrase | None = None, *, reflexive: bool = False, **more
) -> Phrase:
    """A clause with a subject, a verb and perhaps an object."""
    chosen = lex.REFLEXIVE[verb] if reflexive else lex.WITH_OBJECT.get(verb) or lex.VERBS[verb]
    said = join(who.said, verb_phrase(who.agreement, chosen, tense, **more))
    return join(said, what.said) if what else said


def is_(who: NounPhrase, adjective: str, tense: str = "present", **more) -> Phrase:
    return join(who.said, is_like(who.agreement, tense, ADJECTIVES[adjective], **more))


ME, WE, SHE, THEY = (pronoun(word) for word in ("i", "we", "she", "they"))
DOOR, BOOKS = named("the red door"), named("the red book", plural=True)
WHEN, IN, AND = phrase("when", "quand"), phrase("in", "dans"), phrase("and", "et")
NEAR, AT, BECAUSE = phrase("near", "près de"), phrase("at", "à"), phrase("because", "parce que")

SENTENCES = [
    # gender and the article
    (named("the door").said, "the door", "la porte"),
    (named("a man").said, "a man", "un homme"),
    (named("a apple").said, "an apple", "une pomme"),
    # elision, and none before an aspirated h or a y
    (named("the man").said, "the man", "l'homme"),
    (named("the owl").said, "the owl", "le hibou"),
    (named("the yacht").said, "the yacht", "le yacht"),
    # plurals
    (named("the owl", plural=True).said, "the owls", "les hiboux"),
    (named("the bus", plural=True).said, "the buses", "les bus"),
    (named("three white shirt", plural=True).said, "three white shirts", "trois chemises blanches"),
    # agreement and place of adjectives
    (named("the dry skirt", plural=True).said, "the dry skirts", "les jupes sèches"),
    (named("a red italian car").said, "a red italian car", "une voiture italienne rouge"),
    (named("the red black flower", both=True).said, "the red and black flower", "la fleur rouge et noire"),
    (named("a orange sock", plural=True).said, "some orange socks",
     "des chaussettes orange"),
    (named("the happy queen", plural=True).said, "the happy queens", "les reines heureuses"),
    # possessives, demonstratives, partitives
    (named("my star").said, "my star", "mon étoile"),
    (named("her son").said, "her son", "son fils"),
    (named("their dog", plural=True).said, "their dogs", "leurs chiens"),
    (named("this man").said, "this man", "cet homme"),
    (named("this bed", plural=True).said, "these beds", "ces lits"),
    (named("a water").said, "some water", "de l'eau"),
    (named("a soup").said, "some soup", "de la soupe"),
    # possession and contracted prepositions
    (of(named("the red door"), named("the house")).said, "the red door of the house",
     "la porte rouge de la maison"),
    (owned(named("the king"), named("door")).said, "the king's door",
     "la porte du roi"),
    (owned(named("mary"), noun_phrase("", NOUNS["dog"], [ADJECTIVES["lost"]], plural=True)).said,
     "mary's lost dogs", "les chiens perdus de mary"),
    (join(NEAR, named("the bridge").said), "near the bridge", "près du pont"),
    (join(NEAR, named("the house", plural=True).said), "near the houses", "près des maisons"),
    (join(AT, named("the market").said), "at the market", "au marché"),
    # tenses and persons
    (does(ME, "watch", "was", DOOR), "i was watching the red door", "je regardais la porte rouge"),
    (does(ME, "love", "present", named("the queen")), "i love the queen", "j'aime la reine"),
    (does(WE, "eat", "was", named("a apple")), "we were eating an apple", "nous mangions une pomme"),
    (does(THEY, "buy", "present", BOOKS), "they buy the red books", "ils achètent les livres rouges"),
    (does(SHE, "fall", "past"), "she fell", "elle est tombée"),
    (does(DOOR, "open", "past", reflexive=True), "the red door opened", "la porte rouge s'est ouverte"),
    (does(named("the glass", plural=True), "break", "past", reflexive=True), "the glasses broke",
     "les verres se sont cassés"),
    # negation
    (does(SHE, "sleep", "present", negated=True), "she does not sleep", "elle ne dort pas"),
    (does(ME, "open", "past", DOOR, negated=True), "i did not open the red door",
     "je n'ai pas ouvert la porte rouge"),
    (does(named("the man"), "have", "present", without(named("a white car")), negated=True),
     "the man does not have a white car", "l'homme n'a pas de voiture blanche"),
    # pronouns take the gender of what they stand for, as subjects and as objects
    (join(does(ME, "watch", "was", DOOR), WHEN, does(again(DOOR), "open", "past", reflexive=True)),
     "i was watching the red door when it opened", "je regardais la porte rouge quand elle s'est ouverte"),
    (join(does(named("the nurse"), "look for", "was", named("the lost mule", plural=True)), BECAUSE,
          is_(again(named("the lost mule", plural=True)), "tired", "past")),
     "the nurse was looking for the lost mules because they were tired",
     "l'infirmière cherchait les mules perdues parce qu'elles étaient fatiguées"),
    (join(does(named("the woman"), "buy", "past", named("a broken clock")), AND,
          verb_phrase(Agreement(True), lex.VERBS["repair"], "past", object_=named("the clock"))),
     "the woman bought a broken clock and repaired it",
     "la femme a acheté une horloge cassée et l'a réparée"),
    (does(SHE, "know", "present", object_=named("mary"), negated=True), "she does not know her",
     "elle ne la connaît pas"),
    (join(does(named("the black cat"), "sleep", "progressive"), IN, named("the green garden").said),
     "the black cat is sleeping in the green garden", "le chat noir dort dans le jardin vert"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "english", "french_"), SENTENCES, ids=[row[1] for row in SENTENCES])
def test_the_sentence_is_the_one_worked_out_by_hand(said: Phrase, english: str, french_: str) -> None:
    pair = pair_of(said)
    assert (written(pair.english), written(pair.french)) == (english, french_)


def aligned(said: Phrase) -> list[tuple[str, str]]:
    """Every French word with the English words that it stands for."""
    pair: Pair = pair_of(said)
    return [
        (word, " ".join(pair.english[place] for place in places))
        for word, places in zip(pair.french, pair.sources, strict=True)
    ]


def test_the_words_of_a_negated_reflexive_verb_stand_for_not_and_for_the_verb() -> None:
    assert aligned(does(DOOR, "open", "past", reflexive=True, negated=True))[3:] == [
        ("ne", "not"), ("s'", "did open"), ("est", "did open"), ("pas", "not"), ("ouverte", "did open"),
    ]  # fmt: skip
