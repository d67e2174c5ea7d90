"""Text in, inputs and tokens out: masks in any spelling, lengths, pairs, what cannot be spelled."""

import pytest
import torch
import transformers as hf
from checkpoints import bert_config
from small_tokenizers import BUILD
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizer, PreTrainedTokenizerFast

from attnscope import demo
from attnscope.errors import InputError
from attnscope.model.inputs.text import encode, limit_of
from attnscope.model.loaded import Model


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(demo.folder())


@pytest.fixture(scope="module")
def maskless():
    """A word-level tokenizer of another family: no special tokens around the text, no mask."""
    words = Tokenizer(models.WordLevel({"the": 0, "door": 1, "opened": 2, "?": 3}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?")


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
    def model(places: int) -> torch.nn.Module:
        with torch.device("meta"):
            return hf.BertModel(bert_config(max_position_embeddings=places))

    assert limit_of(tokenizer, model(17)) == 17
    assert limit_of(tokenizer, model(10**6)) == tokenizer.model_max_length


BEHIND_PADDING = {  # families that count places from behind that of padding, with what they need besides
    "Roberta": {},
    "Longformer": {"attention_window": 4},
    "Xmod": {"languages": ["en_XX"], "default_language": "en_XX"}, "MPNet": {"pad_token_id": 1},
    "Esm": {"position_embedding_type": "absolute", "token_dropout": False},
}  # fmt: skip


@pytest.mark.parametrize("family", BEHIND_PADDING)
def test_a_family_that_counts_places_behind_padding_reads_as_many_tokens_as_it_runs_on(
    tokenizer, family: str
) -> None:
    settings = bert_config(max_position_embeddings=31, pad_token_id=5, num_hidden_layers=1).to_dict()
    config = getattr(hf, f"{family}Config")(**{**settings, **BEHIND_PADDING[family]})
    with torch.no_grad():
        module = getattr(hf, f"{family}Model")(config).eval()
        model = Model(None, module, tokenizer, None)
        exactly = 30 - config.pad_token_id
        whole = model.encode(("the " * (exactly - 2),), truncate=True)
        assert (len(whole.tokens), whole.notices) == (exactly, ())
        module(**whole.inputs)
        with pytest.raises(InputError, match=rf"{exactly + 1} tokens, .* reads at most {exactly}: "):
            model.encode(("the " * (exactly - 1),))
        cut = model.encode(("the " * (exactly - 1),), truncate=True)
        assert torch.equal(cut.inputs["input_ids"], whole.inputs["input_ids"])
        assert f"cut to the {exactly} that" in cut.notices[0]
        with pytest.raises((IndexError, RuntimeError)):  # its table has no place for one more
            module(cut.inputs["input_ids"][:, [0, 1, *range(1, exactly)]])


def test_a_table_with_a_row_for_padding_from_which_nothing_counts_has_a_place_in_every_row(tokenizer) -> None:
    few = dict.fromkeys(("l_layers", "x_layers", "r_layers"), 1)
    config = hf.LxmertConfig(
        vocab_size=9, hidden_size=24, num_attention_heads=4, max_position_embeddings=31, **few
    )
    with torch.device("meta"):
        assert limit_of(tokenizer, hf.LxmertModel(config)) == 31


# pieces that stand for no character of the text

PREPENDING = ("albert", "deberta-v2", "xlm-roberta", "camembert", "t5", "pegasus", "llama")


@pytest.mark.parametrize("sort", PREPENDING)
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("猫 the", "猫"),
        ("“the” the", "“"),
    ],
)
def test_a_bare_mark_of_a_word_s_start_is_a_blank_and_not_its_neighbour(
    sort: str, text: str, first: str
) -> None:
    tokens = encode(BUILD[sort](), (text,), name=sort, limit=None).tokens
    bare = next(i for i, token in enumerate(tokens.items) if token.piece == "▁")
    assert tokens.names[bare] == "␣"
    assert tokens.items[bare].text == ""
    assert tokens.items[bare].span == (0, 0)
    stands = [i for i, name in enumerate(tokens.names) if name == first]
    pieces = [tokens.items[i].piece for i in stands]
    assert "▁" not in pieces
    if len(stands) == 1:  # else it is spelled in bytes, which share it
        assert tokens.position(first) == stands[0]
    assert tokens.position("▁") == bare or tokens.names.count("␣") > 1


@pytest.mark.parametrize("sort", ["roberta", "deberta", "gpt2"])
def test_a_byte_level_blank_is_a_visible_blank_also_where_offsets_are_trimmed(sort: str) -> None:
    tokens = encode(BUILD[sort](), ("the  door\nthe",), name=sort, limit=None).tokens
    blanks = [token.name for token in tokens.items if token.piece in ("Ġ", "Ċ")]
    assert blanks == ["␣", "↵"]


# special tokens that were typed


@pytest.mark.parametrize(
    ("sort", "typed"),
    [("bert", "[SEP]"), ("roberta", "</s>"), ("gpt2", "<|endoftext|>"), ("t5", "</s>"), ("llama", "</s>"),
     ("deberta-v2", "[CLS]"), ("camembert", "</s>"), ("byt5", "</s>")],
)  # fmt: skip
def test_a_special_token_that_was_typed_is_special(sort: str, typed: str) -> None:
    tokens = encode(BUILD[sort](), (f"the {typed} door",), name=sort, limit=None).tokens
    special = [token for token in tokens.items if token.special and token.piece == typed]
    assert special
    assert any(token in special for token in tokens.items[1:-1])
    if tokens.items[1].span is not None:
        assert (4, 4 + len(typed)) in [token.span for token in special]


class Letters(PreTrainedTokenizer):
    """A tokenizer in plain Python, which knows no offsets: words of a list, others unknown."""

    WORDS = ("<unk>", "the", "door", "</s>")

    @property
    def vocab_size(self) -> int:
        return len(self.WORDS)

    def get_vocab(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.WORDS)}

    def _tokenize(self, text: str) -> list[str]:
        return ["▁" + word if word not in self.WORDS else word for word in text.split()]

    def _convert_token_to_id(self, token: str) -> int:
        return self.get_vocab().get(token, 0)

    def _convert_id_to_token(self, index: int) -> str:
        return self.WORDS[index]


def test_what_a_tokenizer_without_offsets_cannot_spell_is_named_by_what_it_cut_out() -> None:
    tokenizer = Letters(unk_token="<unk>", eos_token="</s>")
    encoded = encode(tokenizer, ("the 猫 door 我",), name="slow", limit=None)
    assert encoded.notices == ("slow cannot spell '猫', '我': read as <unk>",)
    assert encoded.tokens.names == ("the", "<unk>", "door", "<unk>")
    assert encode(tokenizer, ("the door",), name="slow", limit=None).notices == ()


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
SPELLINGS = ("[mask]", "<mask>", "<MASK>")


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
