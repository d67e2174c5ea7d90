"""What answers and a text that a model wrote are called: each name leads to one token."""

import pytest
import torch
from small_tokenizers import BUILD, MERGES, _bytes
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer, PreTrainedConfig

import attnscope as at
from attnscope.model.inputs.generation import Written, tokens_read
from attnscope.model.inputs.given import Numbered
from attnscope.model.inputs.naming import Names
from attnscope.model.inputs.text import tokens_of
from attnscope.results.base.groups import words_of
from attnscope.tokens import Tokens

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


SPELLED = ("bert", "gpt2", "roberta", "llama", "t5", "xlm-roberta", "byt5")
OFFSETS = tuple(sort for sort in SPELLED if sort != "byt5")
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
