"""The demo's WordPiece: the words of the grammar, and single characters for everything else that is typed."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CAUSAL_SPECIAL = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
CHARACTERS = (
    string.ascii_lowercase + string.digits + string.punctuation + "\u2019\u2018\u201c\u201d\u2013\u2014\u2026"
)


def vocabulary(words: Iterable[str], special: Sequence[str] = SPECIAL) -> dict[str, int]:
    """Ids: the special tokens, single characters, continuing characters, then the words in order."""
    pieces = [*special, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
    known = set(pieces)
    return {piece: index for index, piece in enumerate(pieces + sorted(set(words) - known))}


def pieces_of(ids: dict[str, int]) -> Tokenizer:
    """Lower-cases and splits as BERT does; no special tokens yet."""
    core = Tokenizer(models.WordPiece(vocab=ids, unk_token="[UNK]", max_input_chars_per_word=60))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    return core


def build(words: Iterable[str], length: int) -> PreTrainedTokenizerFast:
    """A lower-casing BERT tokenizer over these words, for inputs of at most `length` tokens."""
    ids = vocabulary(words)
    core = pieces_of(ids)
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def build_causal(words: Iterable[str], length: int) -> PreTrainedTokenizerFast:
    """The same words for a model that reads from left to right: [BOS] begins, [EOS] is only predicted."""
    ids = vocabulary(words, CAUSAL_SPECIAL)
    core = pieces_of(ids)
    core.post_processor = processors.TemplateProcessing(
        single="[BOS] $A", pair="[BOS] $A $B", special_tokens=[("[BOS]", ids["[BOS]"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        bos_token="[BOS]",
        eos_token="[EOS]",
        padding_side="right",
        model_max_length=length,
        model_input_names=["input_ids", "attention_mask"],
    )
