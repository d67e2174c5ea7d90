"""The tokenizer of demo-reader: a word is a token, a name is two, and a chat has its template.

Upper case is lowered, so that "Marna" is read as "mar ##na". A word that is not known is one [UNK].
"""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from attnscope.demo.train.reading.sentences import vocabulary
from attnscope.demo.train.reading.stream import ASSISTANT, BEGIN, END, NONE, PASSAGE, SYSTEM, SYSTEMS, USER

PAD, UNK = "[PAD]", "[UNK]"
SPECIAL = (PAD, UNK, BEGIN, END, SYSTEM, USER, ASSISTANT)
FRAME = ("question", "answer", NONE, *PASSAGE)  # words that no sentence holds
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|> ' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ ' ' + eos_token }}{% endif %}{{ ' ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def words() -> list[str]:
    """All words and pieces of the texts, without the special tokens, in alphabetical order."""
    return sorted({*vocabulary(), *FRAME, *" ".join(SYSTEMS).split()})


def build(length: int) -> PreTrainedTokenizerFast:
    """A tokenizer for texts of at most `length` tokens."""
    ids = {word: number for number, word in enumerate((*SPECIAL, *words()))}
    core = Tokenizer(models.WordPiece(vocab=ids, unk_token=UNK, max_input_chars_per_word=60))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    core.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A $B", special_tokens=[(BEGIN, ids[BEGIN])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        unk_token=UNK,
        bos_token=BEGIN,
        eos_token=END,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        chat_template=TEMPLATE,
        padding_side="right",
        model_max_length=length,
        model_input_names=["input_ids", "attention_mask"],
    )
