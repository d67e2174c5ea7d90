"""The demo's tokenizer, as AutoTokenizer loads it."""

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from attnscope.demo import folder
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.tokenizer import build


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(folder())


def test_known_words_are_single_tokens_and_come_back(tokenizer) -> None:
    text = "i was watching the door when it opened."
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == 2 + 9
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_upper_case_is_lowered_and_offsets_point_into_the_text(tokenizer) -> None:
    assert tokenizer.is_fast
    encoded = tokenizer("The DOOR opened.", return_offsets_mapping=True)
    assert tokenizer.tokenize("The DOOR opened.") == ["the", "door", "opened", "."]
    assert encoded["offset_mapping"] == [(0, 0), (0, 3), (4, 8), (9, 15), (15, 16), (0, 0)]


def test_a_typed_mask_is_the_mask_token(tokenizer) -> None:
    ids = tokenizer("I was watching the [MASK] when it opened.")["input_ids"]
    assert ids.count(tokenizer.mask_token_id) == 1
    assert len(ids) == 2 + 9


def test_a_pair_has_three_special_tokens_and_two_segments(tokenizer) -> None:
    encoded = tokenizer("The door opened.", "It rang.")
    words = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert words == ["[CLS]", "the", "door", "opened", ".", "[SEP]", "it", "rang", ".", "[SEP]"]
    assert encoded["token_type_ids"] == [0] * 6 + [1] * 4


@pytest.mark.parametrize("word", ["zyzzyva", "x", "7", "abc123", "qwertyuiop"])
def test_an_unknown_word_is_spelled_and_never_unknown(tokenizer, word: str) -> None:
    pieces = tokenizer.tokenize(word)
    assert "".join(piece.removeprefix("##") for piece in pieces) == word
    assert tokenizer.unk_token not in pieces


def test_what_cannot_be_spelled_is_unknown(tokenizer) -> None:
    assert tokenizer.tokenize("\u65e5") == ["[UNK]"]


def test_the_stream_is_split_as_the_tokenizer_splits_it(tokenizer) -> None:
    for document in corpus.documents(count=300):
        text = f"{document.first} {document.second}"
        assert tokenizer.tokenize(text) == text.split()


def test_ids_do_not_depend_on_the_order_of_the_words() -> None:
    first, second = build(["door", "bell"], 64), build(["bell", "door", "bell"], 64)
    assert first.get_vocab() == second.get_vocab()
