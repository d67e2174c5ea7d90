"""Real tokenizers of every sort, built from vocabularies of a few dozen pieces.

Each is the class that transformers gives to a family of models, with that family's own normalizer, splitting
and special tokens; only the vocabulary is small.
"""

from collections.abc import Callable
from typing import Any

from tokenizers import AddedToken, pre_tokenizers
from transformers import (
    AlbertTokenizer,
    BertTokenizer,
    ByT5Tokenizer,
    CamembertTokenizer,
    CanineTokenizer,
    DebertaTokenizer,
    DebertaV2Tokenizer,
    GPT2Tokenizer,
    LlamaTokenizer,
    MPNetTokenizer,
    PegasusTokenizer,
    RobertaTokenizer,
    T5Tokenizer,
    XLMRobertaTokenizer,
)

WORDS = ("the", "door", "opened", "cat", "clos", "un", "##ing", "##ed", "##able", ".", ",", "don", "'", "t")
CHARACTERS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,'<>_[]|我喜欢猫القطعىب日本é👩👧\u200d"
)
WHOLE = ("the", "door", "opened", "clos", "ing", "喜欢")
MERGES = [
    ("t", "h"),
    ("th", "e"),
    ("Ġ", "the"),
    ("o", "r"),
    ("o", "or"),
    ("Ġ", "d"),
    ("Ġd", "oor"),
    ("i", "n"),
]


def _word_pieces(*special: str) -> dict[str, int]:
    return {piece: i for i, piece in enumerate((*special, *WORDS, *"猫喜欢我abcdefghijklmnopqrstuvwxyz"))}


def _unigram(*special: str) -> list[tuple[str, float]]:
    """Special tokens, whole words with the mark of a word's start and without, then single characters."""
    whole = [(mark + word, -2.0 - 0.1 * len(mark)) for word in WHOLE for mark in ("▁", "")]
    return [(token, 0.0) for token in special] + [("▁", -3.0), *whole] + [(c, -5.0) for c in CHARACTERS]


def _bytes(*special: str) -> dict[str, Any]:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = dict.fromkeys([*special, *alphabet, *(a + b for a, b in MERGES)])
    return {"vocab": {piece: i for i, piece in enumerate(pieces)}, "merges": MERGES}


def _with_byte_pieces() -> dict[str, int]:
    """Characters, and a piece for each byte of any other character, as Llama 2 and Gemma have them."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = ["<unk>", "<s>", "</s>", *bytes_, *dict.fromkeys("▁" + CHARACTERS), "▁t", "▁th", "▁the"]
    return {piece: i for i, piece in enumerate(pieces)}


_LLAMA = [("▁", "t"), ("▁t", "h"), ("▁th", "e")]
_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA_MASK = AddedToken("<mask>", lstrip=True)  # swallows the blank before it
_BART = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

BUILD: dict[str, Callable[[], Any]] = {
    "bert": lambda: BertTokenizer(vocab=_word_pieces(*_BERT)),
    "mpnet": lambda: MPNetTokenizer(vocab=_word_pieces("<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>")),
    "roberta": lambda: RobertaTokenizer(**_bytes(*_BART), mask_token=_ROBERTA_MASK),
    "deberta": lambda: DebertaTokenizer(**_bytes(*_BERT)),
    "gpt2": lambda: GPT2Tokenizer(**_bytes("<|endoftext|>")),
    "albert": lambda: AlbertTokenizer(vocab=_unigram("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")),
    "deberta-v2": lambda: DebertaV2Tokenizer(vocab=_unigram("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")),
    "xlm-roberta": lambda: XLMRobertaTokenizer(vocab=_unigram("<s>", "<pad>", "</s>", "<unk>", "<mask>")),
    "camembert": lambda: CamembertTokenizer(
        vocab=_unigram("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>", "<mask>")
    ),
    "t5": lambda: T5Tokenizer(
        vocab=_unigram("<pad>", "</s>", "<unk>") + [(f"<extra_id_{i}>", 0.0) for i in (2, 1, 0)], extra_ids=3
    ),
    "pegasus": lambda: PegasusTokenizer(vocab=_unigram("<pad>", "</s>", "<mask_1>", "<mask_2>", "<unk>")),
    "llama": lambda: LlamaTokenizer(vocab=_with_byte_pieces(), merges=_LLAMA),
    "canine": CanineTokenizer,
    "byt5": lambda: ByT5Tokenizer(extra_ids=3),
}  # fmt: skip
