"""Text in, inputs and tokens out: mask spelling, lengths, pairs, what cannot be spelled."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, BertConfig, PreTrainedTokenizerFast

from attnscope import demo
from attnscope.errors import InputError
from attnscope.model.inputs.text import encode, limit_of


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(demo.folder())


@pytest.fixture(scope="module")
def maskless():
    """A word-level tokenizer of another family: no special tokens around the text, no mask."""
    words = Tokenizer(models.WordLevel({"the": 0, "door": 1, "opened": 2, "?": 3}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?")


def test_labels_are_cut_from_the_text_with_its_own_capitals(tokenizer) -> None:
    tokens = encode(tokenizer, ("The Door opened.",), name="demo", limit=64).tokens
    assert tokens.labels == ("[CLS]", "The", "Door", "opened", ".", "[SEP]")
    assert tokens.items[2].span == (4, 8)
    assert tokens.items[0].special
    assert not tokens.items[2].special


@pytest.mark.parametrize("spelling", ["[mask]", "<mask>", "[Mask]", "<MASK>"])
def test_any_spelling_of_the_mask_becomes_the_model_s_own(tokenizer, spelling: str) -> None:
    encoded = encode(tokenizer, (f"the {spelling} opened",), name="demo", limit=64)
    assert encoded.tokens.ids[2] == tokenizer.mask_token_id
    assert encoded.notices == ("the mask of demo is spelled [MASK]",)


def test_the_mask_as_the_model_spells_it_needs_no_notice(tokenizer) -> None:
    encoded = encode(tokenizer, ("the [MASK] opened",), name="demo", limit=64)
    assert encoded.tokens.names[2] == "[MASK]"
    assert encoded.notices == ()


def test_a_mask_for_a_model_that_has_none_is_refused(maskless) -> None:
    with pytest.raises(InputError, match="lm has no mask token"):
        encode(maskless, ("the [MASK] opened",), name="lm", limit=None)


def test_a_pair_knows_which_text_each_token_is_from(tokenizer) -> None:
    encoded = encode(tokenizer, ("the dog", "it opened"), name="demo", limit=64)
    assert [token.part for token in encoded.tokens.items if not token.special] == [0, 0, 1, 1]
    assert encoded.inputs["token_type_ids"][0].tolist() == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("texts", [("",), ("   \n",), ("the dog", " ")])
def test_an_empty_text_is_refused(tokenizer, texts) -> None:
    with pytest.raises(InputError, match="empty"):
        encode(tokenizer, texts, name="demo", limit=64)


def test_a_text_without_a_single_token_is_refused(maskless) -> None:
    maskless_inputs = "\u2009"  # a thin space: not empty to a program, nothing to this tokenizer
    with pytest.raises(InputError):
        encode(maskless, (maskless_inputs,), name="lm", limit=None)


def test_a_text_that_is_too_long_names_count_and_limit_and_can_be_cut(tokenizer) -> None:
    text = "the dog saw the door . " * 5
    with pytest.raises(InputError, match="the text has 32 tokens, demo reads at most 9: --truncate cuts it"):
        encode(tokenizer, (text,), name="demo", limit=9)
    cut = encode(tokenizer, (text,), name="demo", limit=9, truncate=True)
    assert len(cut.tokens) == cut.inputs["input_ids"].shape[1] == 9
    assert cut.notices == ("the text has 32 tokens: cut to the 9 that demo reads",)


def test_exactly_as_long_as_the_model_reads_is_not_too_long(tokenizer) -> None:
    assert len(encode(tokenizer, ("the dog saw it",), name="demo", limit=6).tokens) == 6


def test_what_cannot_be_spelled_is_marked_and_said(tokenizer) -> None:
    encoded = encode(tokenizer, ("the 猫 opened",), name="demo", limit=64)
    assert encoded.tokens.names[2] == "[UNK]"
    assert encoded.tokens.items[2].unknown
    assert encoded.notices == ("demo cannot spell '猫': read as [UNK]",)


def test_the_limit_is_the_smaller_of_positions_and_tokenizer(tokenizer) -> None:
    assert limit_of(tokenizer, BertConfig(max_position_embeddings=17)) == 17
    assert limit_of(tokenizer, BertConfig(max_position_embeddings=10**6)) == tokenizer.model_max_length
