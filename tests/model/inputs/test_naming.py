"""What answers are called: each name leads to one token, held against the bytes that vocabularies spell."""

import pytest
import torch
from small_tokenizers import BUILD, MERGES, _bytes
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer, PreTrainedConfig

import attnscope as at
from attnscope.model.inputs.naming import Names
from attnscope.model.inputs.numbered import Numbered

SORTS = tuple(sort for sort in BUILD if sort != "canine")
TWIN = "Ġ,"


def by_bytes() -> GPT2Tokenizer:
    """A vocabulary of all bytes, some words and a comma after a blank."""
    made = _bytes("<|endoftext|>")
    return GPT2Tokenizer(vocab={**made["vocab"], TWIN: len(made["vocab"])}, merges=[*MERGES, ("Ġ", ",")])


@pytest.mark.parametrize("sort", SORTS)
def test_every_name_leads_back_to_its_token_and_no_two_tokens_share_one(sort: str) -> None:
    tokenizer = BUILD[sort]()
    names = Names(tokenizer)
    every = [id for id in range(len(tokenizer)) if tokenizer.convert_ids_to_tokens(id) is not None]
    called = {id: names.name(id) for id in every}
    assert len(set(called.values())) == len(every)
    assert {id: names.token(name) for id, name in called.items()} == {id: id for id in every}


@pytest.mark.parametrize(
    ("piece", "name"),
    [
        ("Ġthe", "the"), ("the", "##the"), (",", ","), (TWIN, "␣,"), ("th", "th"), ("Ġ", "␣"), ("Ċ", "↵"),
        ("!", "!"), ("<|endoftext|>", "<|endoftext|>"),
    ],
)  # fmt: skip
def test_a_mark_stands_where_a_vocabulary_has_a_word_with_a_blank_and_without(piece: str, name: str) -> None:
    tokenizer = by_bytes()
    assert Names(tokenizer).name(tokenizer.convert_tokens_to_ids(piece)) == name


@pytest.mark.parametrize("sort", ["gpt2", "llama", "byt5"])
def test_a_byte_that_is_no_whole_character_is_called_by_its_number(sort: str) -> None:
    tokenizer = BUILD[sort]()
    names = Names(tokenizer)
    ids = tokenizer("🦆", add_special_tokens=False)["input_ids"][-4:]  # its four bytes
    assert [names.name(id) for id in ids] == [f"<0x{byte:02X}>" for byte in "🦆".encode()]


@pytest.mark.parametrize("word", ["the door", "xyz", "##,the", "<0x1C2>", ""])
def test_what_is_several_tokens_or_none_is_no_name(word: str) -> None:
    assert Names(by_bytes()).token(word) is None


def test_a_blank_before_a_word_is_taken_as_it_is_written() -> None:
    tokenizer = by_bytes()
    comma, after_blank = (tokenizer.convert_tokens_to_ids(piece) for piece in (",", TWIN))
    assert [Names(tokenizer).token(word) for word in (",", " ,", "␣,")] == [comma, after_blank, after_blank]


def test_numbered_tokens_are_spelled_as_their_vocabulary_has_them_where_two_are_written_alike() -> None:
    numbered = Numbered(PreTrainedConfig(), {0: "▁my", 1: "my", 2: "▁cat", 3: "s"})
    assert [numbered.name(id) for id in range(4)] == ["▁my", "my", "cat", "s"]
    assert (numbered.token("3"), numbered.token("my")) == (3, None)


def test_every_answer_that_is_shown_can_be_asked_for_and_is_as_likely() -> None:
    tokenizer = by_bytes()
    torch.manual_seed(5)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=32)
    reading = at.wrap(GPT2LMHeadModel(config).eval(), tokenizer).read("the door or the")
    guesses = reading.predict(top=len(tokenizer)).blanks[0].guesses
    assert max(guess.probability for guess in guesses) > 1.01 * min(guess.probability for guess in guesses)
    assert len({guess.name for guess in guesses}) == len(tokenizer)
    for id in (tokenizer.convert_tokens_to_ids(piece) for piece in ("Ġthe", "the", TWIN, "Ã")):
        shown = next(guess for guess in guesses if guess.id == id)
        (again,) = reading.predict(answer=shown.name).generated.tokens
        assert (again.id, again.name) == (id, shown.name)
        assert again.probability == pytest.approx(shown.probability, rel=1e-5)
