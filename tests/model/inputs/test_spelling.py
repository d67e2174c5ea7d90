"""How a text that a model wrote is spelled: against the tokenizer's own offsets when it reads that text."""

import pytest
import torch
from small_tokenizers import BUILD

from attnscope.model.inputs.generation import Written, tokens_read
from attnscope.model.inputs.text import tokens_of
from attnscope.results.base.groups import words_of
from attnscope.tokens import Tokens

SORTS = ("bert", "gpt2", "roberta", "llama", "t5", "xlm-roberta", "byt5")
OFFSETS = tuple(sort for sort in SORTS if sort != "byt5")
TEXT = "the door closing, the door opened the 猫 door"


def read_and_written(sort: str, text: str, given: int, end: int = 0) -> tuple[Tokens, Tokens]:
    """The tokens of `text`, and the same where those after the first `given` were written one by one.

    `end` is the token after them, which is not read.
    """
    tokenizer = BUILD[sort]()
    inputs = tokenizer(text, return_tensors="pt", add_special_tokens=False)
    whole = tokens_of(tokenizer, inputs, (text,))
    prompt = Tokens((tokenizer.decode(whole.ids[:given]),), whole.items[:given]) if given else None
    written = Written((*whole.ids, end), given, False, torch.zeros(1, 2))
    return whole, tokens_read(tokenizer, written, prompt)


@pytest.mark.parametrize("given", [0, 2])
@pytest.mark.parametrize("sort", OFFSETS)
def test_each_token_has_the_text_that_the_tokenizer_reads_it_from(sort: str, given: int) -> None:
    whole, found = read_and_written(sort, TEXT, given)
    assert found.ids == whole.ids
    for token, expected in zip(found.items[given:], whole.items[given:], strict=True):
        assert token.piece == expected.piece
        if token.piece != "▁":  # a blank, to which the tokenizer gives the place of the next character
            assert token.text.strip() == expected.text.strip()
        assert found.texts[token.part][slice(*token.span)] == token.text
    assert found.written == "greedily"
    assert [token.part for token in found.items] == [0] * given + [1 if given else 0] * (len(whole) - given)


@pytest.mark.parametrize("sort", OFFSETS)
def test_its_pieces_join_into_the_same_words(sort: str) -> None:
    whole, found = read_and_written(sort, TEXT, 0)
    assert words_of(found) == words_of(whole)
    assert len(words_of(found)) < len(found)


@pytest.mark.parametrize("sort", ["gpt2", "llama"])
def test_the_bytes_of_one_character_share_it(sort: str) -> None:
    whole, found = read_and_written(sort, "the 🦆 door", 0)
    shared = [token for token in found.items if token.text.strip() == "🦆"]
    assert len(shared) == 4
    assert len({token.span for token in shared}) == 1
    assert [token.text.strip() for token in found.items] == [token.text.strip() for token in whole.items]


def test_a_text_that_breaks_off_within_a_character_keeps_all_its_tokens() -> None:
    whole, _ = read_and_written("gpt2", "the 🦆", 0)
    tokenizer = BUILD["gpt2"]()
    found = tokens_read(tokenizer, Written(whole.ids[:-1], 0, False, torch.zeros(1, 2)))
    assert found.ids == whole.ids[:-2]
    assert found.texts[0].startswith("the")
    assert all(token.text for token in found.items)


def test_the_last_token_is_in_the_text_and_has_no_place_among_those_that_were_read() -> None:
    tokenizer = BUILD["bert"]()
    ids = tokenizer("the cat opened", add_special_tokens=False)["input_ids"]
    prompt = tokens_of(tokenizer, tokenizer("the", return_tensors="pt", add_special_tokens=False), ("the",))
    found = tokens_read(tokenizer, Written(tuple(ids), 1, False, torch.zeros(1, 2)), prompt)
    assert found.names == ("the", "cat")
    assert found.texts == ("the", " cat opened")
    assert found.sentence == "the → cat opened"


def test_special_tokens_that_were_written_are_marked_and_are_no_text() -> None:
    tokenizer = BUILD["bert"]()
    ids = tokenizer("the cat")["input_ids"]  # with [CLS] and [SEP]
    found = tokens_read(tokenizer, Written((*ids, ids[1]), 1, False, torch.zeros(1, 2)))
    assert [token.special for token in found.items] == [True, False, False, True]
    assert found.names == ("[CLS]", "the", "cat", "[SEP]")
    assert found.texts == ("the cat the",)


def test_without_offsets_each_token_is_spelled_by_itself() -> None:
    whole, found = read_and_written("byt5", "door", 0)
    assert [token.text for token in found.items] == list("door") == [token.text for token in whole.items]
    assert all(token.span is None for token in found.items)
