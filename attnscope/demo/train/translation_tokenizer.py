"""One tokenizer for both languages: a word is a token, and so are an elided one ("l'"), "'s" and "n't".

Upper case is lowered and accents are kept. A word that is not known is one [UNK]. Text ends with [EOS].
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

PAD, UNK, BOS, EOS = SPECIAL = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
PIECE = Regex(
    r"\b(?:[cdjlmnst]|qu)'(?=\p{L})|'(?:s|m|re)\b|n't\b|[\p{L}\p{N}]+?(?=n't\b)"
    r"|\[UNK\]|[\p{L}\p{N}]+|[^\s\p{L}\p{N}]"
)


def vocabulary(words: Iterable[str]) -> dict[str, int]:
    """Ids: the special tokens, then the words in order."""
    return {piece: index for index, piece in enumerate((*SPECIAL, *sorted(set(words) - set(SPECIAL))))}


def build(words: Iterable[str], length: int) -> PreTrainedTokenizerFast:
    """A tokenizer over these words, for texts of at most `length` tokens."""
    ids = vocabulary(words)
    core = Tokenizer(models.WordLevel(vocab=ids, unk_token=UNK))
    core.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace("\u2019", "'"), normalizers.Lowercase()]
    )
    core.pre_tokenizer = pre_tokenizers.Split(PIECE, behavior="removed", invert=True)
    core.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", pair=f"$A {EOS} $B:1 {EOS}:1", special_tokens=[(EOS, ids[EOS])]
    )
    # The word-piece decoder puts spaces between words, but not before a mark or "'s".
    core.decoder = decoders.Sequence(
        [decoders.WordPiece(prefix="##", cleanup=True), decoders.Fuse(), decoders.Replace("' ", "'")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        unk_token=UNK,
        bos_token=BOS,
        eos_token=EOS,
        model_max_length=length,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
