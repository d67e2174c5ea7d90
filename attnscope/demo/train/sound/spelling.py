"""From clips to what the model reads: log-mel pictures of the sound, and one token for each syllable.

The syllable that begins a word is a token of its own, "ma", and differs from "##ma" within a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import Tensor
from transformers import PreTrainedTokenizerFast, WhisperFeatureExtractor

from attnscope.demo.train.sound.clips import MOST, SECONDS, Clip
from attnscope.demo.train.sound.voice import RATE, SYLLABLES

PAD, UNK, BOS, EOS = SPECIAL = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
IDS = {
    piece: index
    for index, piece in enumerate((*SPECIAL, *SYLLABLES, *(f"##{syllable}" for syllable in SYLLABLES)))
}
NOTHING = -100  # a label that is not scored
LENGTH = MOST + 1  # tokens that are written at most: the syllables and [EOS]
HOP, BANDS = 320, 40  # samples between two columns of the log-mel picture, its rows
POSITIONS = SECONDS * RATE // HOP // 2  # two columns are one position of the encoder
LASTS = 2 * HOP / RATE  # seconds of a position


def extractor() -> WhisperFeatureExtractor:
    """The log-mel picture of a clip of at most SECONDS seconds, padded to that length with silence."""
    return WhisperFeatureExtractor(
        feature_size=BANDS, sampling_rate=RATE, hop_length=HOP, chunk_length=SECONDS, n_fft=400
    )


def features(clips: Sequence[Clip], reader: WhisperFeatureExtractor) -> Tensor:
    """Axes: `clip band column`."""
    made = reader([one.sound for one in clips], sampling_rate=RATE, return_tensors="np")
    return torch.from_numpy(np.asarray(made["input_features"], dtype=np.float32))


def pieces(clip: Clip) -> list[str]:
    """The tokens of what a clip says."""
    return [name if place == 0 else f"##{name}" for word in clip.words for place, name in enumerate(word)]


def labels(clips: Sequence[Clip]) -> Tensor:
    """What is to be written, padded with NOTHING. Axes: `clip token`."""
    made = torch.full((len(clips), LENGTH), NOTHING)
    for row, one in enumerate(clips):
        ids = [IDS[piece] for piece in (*pieces(one), EOS)]
        made[row, : len(ids)] = torch.tensor(ids)
    return made


def read(labels: Tensor) -> Tensor:
    """What the decoder reads to write these labels: [BOS], then each but the last."""
    before = labels[:, :-1].masked_fill(labels[:, :-1] == NOTHING, IDS[PAD])
    return torch.cat([torch.full_like(labels[:, :1], IDS[BOS]), before], dim=1)


def tokenizer() -> PreTrainedTokenizerFast:
    """Words at spaces, then the syllables of each, the longest first."""
    core = Tokenizer(models.WordPiece(vocab=IDS, unk_token=UNK, continuing_subword_prefix="##"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(single=f"$A {EOS}", special_tokens=[(EOS, IDS[EOS])])
    core.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        unk_token=UNK,
        bos_token=BOS,
        eos_token=EOS,
        model_max_length=LENGTH + 1,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
