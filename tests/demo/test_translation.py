"""The pairs of the translation model: what they are, what its tokenizer makes of them, what is kept out."""

import re

import pytest
from transformers import AutoTokenizer

from attnscope.demo.train import translation_tokenizer
from attnscope.demo.train.bilingual.sentences import PATTERNS
from attnscope.demo.train.corpora import corpus, translation
from attnscope.demo.train.corpora.translation import EXAMPLES, Pair, in_full, sentences, shortened, written


@pytest.fixture(scope="module")
def stream() -> list[Pair]:
    return list(translation.documents(seed=0, count=6_000))


@pytest.fixture(scope="module")
def tokenizer(stream, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    words = {word for pair in stream for word in pair.english + pair.french}
    translation_tokenizer.build(words, translation.LENGTH).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def test_the_stream_is_the_same_again_for_the_same_seed_and_another_for_another() -> None:
    first, again, other = (translation.digest(translation.documents(seed, 300)) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_every_pattern_makes_sentences() -> None:
    from random import Random

    from attnscope.demo.train.english.phrases import Speaker

    for pattern in PATTERNS:
        said = {pattern(Speaker(Random(seed))).english for seed in range(40)}
        assert len(said) > 30, pattern.__name__


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


def test_both_words_of_a_held_out_pair_are_learned_apart(stream) -> None:
    known = {word for pair in stream for word in pair.english}
    assert len(translation.held_out_pairs()) > 150
    for adjective, noun in translation.held_out_pairs():
        assert adjective.english in known
        assert noun.english in known


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


def test_every_english_word_is_said_in_french(stream) -> None:
    for pair in stream[:3000]:
        assert {place for places in pair.sources for place in places} == set(range(len(pair.english)))


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


def test_short_forms_are_tokens_with_their_own_characters(tokenizer) -> None:
    text = "I'm tired but it didn't open, they’re not"
    encoded = tokenizer(text, return_offsets_mapping=True)
    words = ["i", "'m", "tired", "but", "it", "did", "n't", "open", ",", "they", "'re", "not", "[EOS]"]
    assert tokenizer.convert_ids_to_tokens(encoded["input_ids"]) == words
    cut = [text[start:end] for start, end in encoded["offset_mapping"]]
    assert cut == ["I", "'m", "tired", "but", "it", "did", "n't", "open", ",", "they", "’re", "not", ""]


def test_a_decomposed_accent_is_the_same_letter(tokenizer) -> None:
    assert tokenizer("e\u0301tait")["input_ids"] == tokenizer("était")["input_ids"]
    assert tokenizer("etait")["input_ids"] != tokenizer("était")["input_ids"]


def test_an_unknown_word_is_one_unknown_token_that_decodes_to_nothing(tokenizer) -> None:
    ids = tokenizer("the zebra's door")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["the", "[UNK]", "'s", "door", "[EOS]"]


def test_source_and_target_go_through_the_same_tokenizer(tokenizer) -> None:
    both = tokenizer("the door", text_target="la porte")
    assert tokenizer.convert_ids_to_tokens(both["labels"]) == ["la", "porte", "[EOS]"]
    assert tokenizer.convert_ids_to_tokens(both["input_ids"]) == ["the", "door", "[EOS]"]
    assert "token_type_ids" not in both


def test_words_are_written_as_ordinary_text() -> None:
    assert written(("l'", "homme", "n'", "a", "pas", "d'", "eau", ",", "il", "dort", ".")) == (
        "l'homme n'a pas d'eau, il dort."
    )
    assert written(("the", "king", "'s", "door", ".")) == "the king's door."


def test_two_documents_joined_keep_their_alignment() -> None:
    one = Pair(("a", "b"), ("x",), ((1,),), ("noun",))
    two = Pair(("c",), ("y", "z"), ((0,), ()), ("", ""))
    assert one + two == Pair(("a", "b", "c"), ("x", "y", "z"), ((1,), (2,), ()), ("noun", "", ""))
