"""[MASK] in any spelling, for real tokenizers of every sort."""

import pytest
from small_tokenizers import BUILD

from attnscope.errors import InputError
from attnscope.model.inputs.text import encode

OWN = {
    "bert": "[MASK]",
    "mpnet": "<mask>",
    "roberta": "<mask>",
    "deberta": "[MASK]",
    "albert": "[MASK]",
    "deberta-v2": "[MASK]",
    "xlm-roberta": "<mask>",
    "camembert": "<mask>",
    "pegasus": "<mask_2>",
    "t5": "<extra_id_0>",
    "byt5": "<extra_id_0>",
    "canine": "\ue003",
}
SPELLINGS = ("[MASK]", "[mask]", "<mask>", "<MASK>")


@pytest.fixture(scope="module")
def tokenizers():
    return {sort: BUILD[sort]() for sort in ("gpt2", "llama", *OWN)}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("sort", OWN)
def test_every_spelling_is_read_as_the_model_s_own_mask(tokenizers, sort: str, spelling: str) -> None:
    tokenizer = tokenizers[sort]
    encoded = encode(tokenizer, (f"the {spelling} door",), name="it", limit=None)
    own = tokenizer(f"the {OWN[sort]} door")["input_ids"]
    assert list(encoded.tokens.ids) == own, "the same as when the user knows the model's own way"
    mask = tokenizer.convert_tokens_to_ids(OWN[sort])
    assert encoded.mask_id == mask
    assert own.count(mask) == 1
    assert bool(encoded.notices) == (spelling != OWN[sort])
    assert all("of it is spelled" in notice for notice in encoded.notices)


@pytest.mark.parametrize("sort", [sort for sort in OWN if sort not in ("t5", "byt5")])
def test_a_mask_that_swallows_the_blank_before_it_is_named_without(tokenizers, sort: str) -> None:
    tokens = encode(tokenizers[sort], ("the [mask] door",), name="it", limit=None).tokens
    position = tokens.ids.index(tokenizers[sort].mask_token_id)
    assert tokens.names[position] in (OWN[sort], "\\ue003")
    assert tokens.position(str(position)) == position


@pytest.mark.parametrize("sort", ["t5", "byt5"])
def test_a_model_that_fills_numbered_gaps_gets_one_for_each_mask(tokenizers, sort: str) -> None:
    tokenizer = tokenizers[sort]
    encoded = encode(tokenizer, ("the [MASK] opened <mask>", "a [mask]"), name="it", limit=None)
    gaps = tokenizer.convert_tokens_to_ids([f"<extra_id_{i}>" for i in range(3)])
    assert [id for id in encoded.tokens.ids if id in gaps] == gaps
    assert encoded.notices == ("the masks of it are spelled <extra_id_0>, <extra_id_1>, <extra_id_2>",)


def test_a_gap_that_the_user_numbered_keeps_its_number(tokenizers) -> None:
    encoded = encode(tokenizers["t5"], ("the [MASK] opened <extra_id_0> and [MASK]",), name="t5", limit=None)
    assert [name for name in encoded.tokens.names if "extra" in name] == [
        "<extra_id_1>",
        "<extra_id_0>",
        "<extra_id_2>",
    ]


def test_gaps_as_the_model_spells_them_need_no_notice(tokenizers) -> None:
    encoded = encode(tokenizers["t5"], ("the <extra_id_0> opened",), name="t5", limit=None)
    assert encoded.notices == ()
    assert encoded.mask_id == tokenizers["t5"].convert_tokens_to_ids("<extra_id_0>")


def test_more_masks_than_a_model_has_gaps_are_refused_in_one_line(tokenizers) -> None:
    with pytest.raises(InputError, match="the text has 4 masks: t5 ends before <extra_id_3>"):
        encode(tokenizers["t5"], ("[MASK] a [MASK] b [MASK] c [MASK]",), name="t5", limit=None)


@pytest.mark.parametrize("sort", ["gpt2", "llama"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_model_without_any_refuses(tokenizers, sort: str, spelling: str) -> None:
    with pytest.raises(InputError, match=f"^{sort} has no mask token"):
        encode(tokenizers[sort], (f"the {spelling} door",), name=sort, limit=None)


def test_a_gap_is_mere_text_to_a_model_without_gaps(tokenizers) -> None:
    encoded = encode(tokenizers["gpt2"], ("the <extra_id_0> door",), name="gpt2", limit=None)
    assert encoded.mask_id is None
    assert len(encoded.tokens) > 10


def test_a_mask_that_the_tokenizer_cuts_to_pieces_is_refused() -> None:
    broken = BUILD["roberta"]()
    broken.mask_token = "[none]"  # as in a checkpoint whose vocabulary and special tokens do not fit
    with pytest.raises(InputError, match="reads 0 of the 1 masks of the text as its mask token"):
        encode(broken, ("the [MASK] door",), name="it", limit=None)


def test_a_text_without_a_mask_has_none(tokenizers) -> None:
    for sort in OWN:
        assert encode(tokenizers[sort], ("the door",), name="it", limit=None).mask_id is None
