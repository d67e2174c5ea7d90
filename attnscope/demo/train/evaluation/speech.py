"""Every figure of the speech model's card, measured on clips that were never trained on."""

from __future__ import annotations

import wave
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoFeatureExtractor, AutoTokenizer, WhisperForConditionalGeneration

from attnscope.demo.train.evaluation import timing
from attnscope.demo.train.sound import spelling
from attnscope.demo.train.sound.clips import ANY, Clip, Kind, clip
from attnscope.demo.train.sound.voice import RATE

Figures = dict[str, Any]
EVALUATED = 1_000_003  # the seed of every clip that is measured on, not one that is trained with
AT_ONCE = 50  # clips
LOUD = (0, 5, 10, 20, 30)  # dB above the noise
EXAMPLE = 7  # the clip that comes with the model


class Bundle:
    """A model with its tokenizer and its feature extractor, ready to write what it hears."""

    def __init__(self, path: Path) -> None:
        self.model = WhisperForConditionalGeneration.from_pretrained(
            path, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.extractor = AutoFeatureExtractor.from_pretrained(path)

    @torch.no_grad()
    def written(self, clips: Sequence[Clip]) -> list[str]:
        """What the model writes for each clip, the likeliest token after the other."""
        texts: list[str] = []
        for start in range(0, len(clips), AT_ONCE):
            heard = spelling.features(clips[start : start + AT_ONCE], self.extractor)
            rows = self.model.generate(input_features=heard)
            texts += self.tokenizer.batch_decode(rows, skip_special_tokens=True)
        return texts

    @torch.no_grad()
    def cross_weights(self, clips: Sequence[Clip]) -> Tensor:
        """The cross-attention while the true words are read. Axes: `clip layer head query position`."""
        heard, labels = spelling.features(clips, self.extractor), spelling.labels(clips)
        output = self.model(
            input_features=heard,
            decoder_input_ids=spelling.read(labels),
            output_attentions=True,
            use_cache=False,
        )
        return torch.stack(output.cross_attentions, dim=1)


def evaluated(part: str, count: int, kind: Kind = ANY, first: int = 0) -> list[Clip]:
    """Clips that no run was trained on."""
    return [clip(EVALUATED, part, number, kind) for number in range(first, first + count)]


def distance(said: Sequence[str], true: Sequence[str]) -> int:
    """How many words must be changed, left out or put in to make one of the other (Levenshtein)."""
    row = list(range(len(true) + 1))
    for i, one in enumerate(said, start=1):
        before, row[0] = row[0], i
        for j, other in enumerate(true, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (one != other))
    return row[-1]


@dataclass
class Errors:
    """Counts over clips, of words and of syllables."""

    clips: int = 0
    exact: int = 0
    words: int = 0
    wrong_words: int = 0
    syllables: int = 0
    wrong_syllables: int = 0

    def add(self, said: str, one: Clip, tokenize: Any) -> None:
        """Count one clip."""
        wrong = distance(said.split(), one.text.split())
        self.clips += 1
        self.exact += wrong == 0
        self.words += len(one.words)
        self.wrong_words += wrong
        self.syllables += len(one.times)
        self.wrong_syllables += distance(tokenize(said), spelling.pieces(one))

    def figures(self) -> Figures:
        """The shares that are wrong."""
        return {
            "clips": self.clips,
            "words": self.words,
            "word_error": round(self.wrong_words / self.words, 4),
            "syllable_error": round(self.wrong_syllables / self.syllables, 4),
            "exact": round(self.exact / self.clips, 4),
        }


def errors(bundle: Bundle, clips: Sequence[Clip]) -> Figures:
    """How much of what is said in these clips is written wrong."""
    counted = Errors()
    for said, one in zip(bundle.written(clips), clips, strict=True):
        counted.add(said, one, bundle.tokenizer.tokenize)
    return counted.figures()


def by_noise(bundle: Bundle, count: int = 150) -> Figures:
    """Word error of clips at one level of noise each."""
    return {
        str(loud): errors(bundle, evaluated("reported", count, Kind(noise=(loud, loud)), first=10_000))[
            "word_error"
        ]
        for loud in LOUD
    }


def by_length(bundle: Bundle, count: int = 100) -> Figures:
    """Word error of clips of so many syllables."""
    return {
        str(size): errors(bundle, evaluated("reported", count, Kind(size, size), first=20_000))["word_error"]
        for size in (1, 3, 5, 7, 9)
    }


def alignment(bundle: Bundle, count: int = 300) -> Figures:
    """How far from each syllable the rows look that write and read it; heads are chosen on other clips."""
    chosen, reported = evaluated("selection", count // 2), evaluated("reported", count)
    select, report = (timing.look(bundle.cross_weights, clips) for clips in (chosen, reported))
    heads = report["writes"].peak.shape[1]
    found: Figures = {
        "clips": count,
        "syllables": sum(len(one.times) for one in reported),
        "position_ms": round(1000 * spelling.LASTS),
        "diagonal_ms": round(1000 * timing.by_diagonal(reported)),
        "sounded_ms": round(1000 * timing.by_diagonal(reported, sounded=True)),
    }
    for row in timing.ROWS:
        layer, head = divmod(int(select[row].peak.argmin()), heads)
        one = report[row]
        found[row] = {
            "layer": layer,
            "head": head,
            "peak_ms": round(1000 * one.peak[layer, head].item()),
            "centre_ms": round(1000 * one.centre[layer, head].item()),
            "share": round(one.share[layer, head].item(), 3),
            "mean_peak_ms": round(1000 * one.mean_peak),
            "mean_centre_ms": round(1000 * one.mean_centre),
            "mean_share": round(one.mean_share, 3),
            "heads_peak_ms": [[round(1000 * value) for value in values] for values in one.peak.tolist()],
        }
    return found


def example(bundle: Bundle, path: Path) -> Figures:
    """What is spoken in the sound that comes with the model, and what the model writes for it."""
    with wave.open(str(path / "example.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16) / 32768
    (one,) = evaluated("example", 1, first=EXAMPLE)
    return {"spoken": one.text, "written": bundle.written([replace(one, sound=samples)])[0]}


def write_example(path: Path) -> None:
    """The sound that comes with the model, in 16 bits."""
    (one,) = evaluated("example", 1, first=EXAMPLE)
    with wave.open(str(path / "example.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((32767 * one.sound).round().astype("<i2").tobytes())


def known(bundle: Bundle) -> Figures:
    """Errors in words of the training, in other clips."""
    return errors(bundle, evaluated("reported", 600))


def new(bundle: Bundle) -> Figures:
    """Errors in clips whose longer words were never heard in training."""
    return errors(bundle, evaluated("reported", 300, Kind(new=True), first=30_000))


def figures(path: Path) -> Figures:
    """All figures of the model in a folder."""
    bundle = Bundle(path)
    return {
        "known": known(bundle),
        "new": new(bundle),
        "alignment": alignment(bundle),
        "noise": by_noise(bundle),
        "length": by_length(bundle),
        "example": example(bundle, path),
    }
