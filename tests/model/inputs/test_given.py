"""Words that are given and tokens by number: for real tokenizers of every sort, and for none."""

from pathlib import Path

import pytest
from small_tokenizers import BUILD
from transformers import BertConfig, LlamaConfig

from attnscope.errors import InputError
from attnscope.model.inputs.generation import encode_numbers, encode_words
from attnscope.model.inputs.given import Numbered, Unreadable, read_vocabulary
from attnscope.model.inputs.text import encode
from attnscope.results.base.groups import joined, words_of

WORDS = ("the", "don't", "closing", "喜欢猫", "door,", "“the”")
SLOW = ("canine", "byt5")
SPLITTING = ("bert", "mpnet", "albert", "deberta-v2", "xlm-roberta", "camembert", "t5", "pegasus", "llama")
FAST = [sort for sort in BUILD if sort not in SLOW]


def given(sort: str, *texts: tuple[str, ...]):
    return encode_words(BUILD[sort](), texts, name=sort, limit=None).tokens


@pytest.mark.parametrize("sort", FAST)
def test_the_words_are_those_that_are_given_whatever_the_tokenizer_holds_for_one(sort: str) -> None:
    found = given(sort, WORDS)
    names = [token.name for token in joined(found, words_of(found)).items if not token.special]
    unknown = {"“the”", "喜欢猫"} if sort in ("bert", "mpnet") else set()
    spelled = [name for name, word in zip(names, WORDS, strict=True) if word not in unknown]
    assert spelled == [word for word in WORDS if word not in unknown]
    assert found.ids == encode(BUILD[sort](), (" ".join(WORDS),), name=sort, limit=None).tokens.ids


@pytest.mark.parametrize("sort", SPLITTING)
def test_tokens_belong_to_the_words_that_the_library_says_of_split_words(sort: str) -> None:
    told = BUILD[sort]()(list(WORDS), is_split_into_words=True)
    found = given(sort, WORDS)
    assert list(found.ids) == told["input_ids"]
    assert [token.word for token in found.items] == told.word_ids()


@pytest.mark.parametrize("sort", ["roberta", "deberta", "gpt2"])
def test_byte_level_words_are_read_with_their_blanks(sort: str) -> None:
    """The library would glue them together."""
    found = given(sort, ("the", "door", "the"))
    assert [token.piece for token in found.items if not token.special] == ["the", "Ġdoor", "Ġthe"]
    assert [token.word for token in found.items if not token.special] == [0, 1, 2]


@pytest.mark.parametrize("sort", ["bert", "gpt2", "llama"])
def test_a_word_may_hold_a_blank_and_a_pair_counts_its_own(sort: str) -> None:
    found = given(sort, ("the door", "opened"), ("un", "the cat"))
    groups = words_of(found)
    names = [token.name for token in joined(found, groups).items if not token.special]
    assert names == ["the door", "opened", "un", "the cat"]


@pytest.mark.parametrize("sort", SLOW)
def test_without_offsets_words_are_read_and_cannot_be_joined(sort: str) -> None:
    found = given(sort, ("the", "door"))
    assert found.sentence == "the door"
    with pytest.raises(InputError, match="--by word needs a tokenizer with offsets"):
        words_of(found)


@pytest.mark.parametrize(
    ("texts", "part"),
    [(((),), "there are no words"), ((("a",), ()), "there are no words"), ((("a", " "),), "words is empty")],
)
def test_words_that_are_none_are_refused(texts, part: str) -> None:
    with pytest.raises(InputError, match=part):
        given("bert", *texts)


# by number


@pytest.mark.parametrize("sort", BUILD)
def test_a_tokenizer_spells_the_numbers_that_it_would_make_itself(sort: str) -> None:
    tokenizer = BUILD[sort]()
    plain = encode(tokenizer, ("the door opened",), name=sort, limit=None)
    found = encode_numbers(tokenizer, plain.tokens.ids, name=sort, limit=None)
    assert found.inputs["input_ids"].tolist() == [list(plain.tokens.ids)]
    assert found.inputs["attention_mask"].tolist() == [[1] * len(plain.tokens)]
    assert found.tokens.ids == plain.tokens.ids
    assert [t.special for t in found.tokens.items] == [t.special for t in plain.tokens.items]
    assert [t.text.strip() for t in found.tokens.items if not t.special] == [
        t.text.strip() for t in plain.tokens.items if not t.special
    ]


def test_a_number_that_the_tokenizer_has_no_token_for_is_shown_by_number() -> None:
    found = encode_numbers(BUILD["gpt2"](), (0, 5000, 30), name="m", limit=None).tokens
    assert found.names[1] == "#5000"


def test_without_a_vocabulary_a_token_is_its_number() -> None:
    bare = Numbered(LlamaConfig(bos_token_id=1, eos_token_id=2), {})
    found = encode_numbers(bare, (1, 15, 7, 2), name="m", limit=None).tokens
    assert found.names == ("1", "15", "7", "2")
    assert [token.special for token in found.items] == [True, False, False, True]
    assert found.sentence == "15 7"


def test_a_vocabulary_says_how_pieces_are_put_together() -> None:
    word_pieces = Numbered(BertConfig(), {0: "[CLS]", 1: "clos", 2: "##ing", 3: "door", 4: "[MASK]"})
    found = encode_numbers(word_pieces, (0, 1, 2, 4, 3), name="m", limit=None)
    assert found.tokens.sentence == "closing door"
    assert found.tokens.names == ("[CLS]", "clos", "##ing", "[MASK]", "door")
    assert found.mask_id == 4
    assert [token.special for token in found.tokens.items] == [True, False, False, False, False]
    marked = Numbered(LlamaConfig(), {0: "▁the", 4: "▁do", 5: "or", 6: "Ġnext"})
    found = encode_numbers(marked, (0, 4, 5, 6), name="m", limit=None)
    assert found.tokens.sentence == " the door next"
    assert found.tokens.names == ("the", "do", "or", "next")


def test_lines_are_numbered_from_0_and_keep_their_blanks(tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    file.write_bytes("[PAD]\n the\n\u2028\n\n日".encode())
    assert read_vocabulary(file) == {0: "[PAD]", 1: " the", 2: "\u2028", 3: "", 4: "日"}


def test_what_cannot_be_read_says_so_only_when_it_is_asked() -> None:
    stands = Unreadable(InputError("no tokenizer"))
    with pytest.raises(InputError, match="no tokenizer"):
        stands.mask_token  # noqa: B018
    assert not hasattr(stands, "_private")
