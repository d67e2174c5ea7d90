"""Every figure of the captioner's card, measured on pictures that were never trained on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers import AutoImageProcessor, AutoTokenizer, PreTrainedTokenizerBase, VisionEncoderDecoderModel

from attnscope.demo.train.corpora import pictures
from attnscope.demo.train.evaluation import gaze

Figures = dict[str, Any]
Picture = NDArray[np.uint8]
SHOWN, REPORTED, SELECTION = 1_000_001, 1_000_002, 1_000_003  # seeds that no training run has
AT_ONCE = 100  # pictures that go through the model together


class Bundle:
    """A model with its image processor and its tokenizer, ready to describe."""

    def __init__(self, path: Path) -> None:
        self.model = VisionEncoderDecoderModel.from_pretrained(
            path, attn_implementation="eager", dtype=torch.float32
        ).eval()
        self.processor = AutoImageProcessor.from_pretrained(path)
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path)

    @torch.no_grad()
    def captions(self, drawn: Sequence[Picture]) -> list[str]:
        """The sentence for every picture, each word the likeliest."""
        said: list[str] = []
        for start in range(0, len(drawn), AT_ONCE):
            seen = self.processor(list(drawn[start : start + AT_ONCE]), return_tensors="pt")
            rows = self.model.generate(**seen)
            said += self.tokenizer.batch_decode(rows, skip_special_tokens=True)
        return said

    @torch.no_grad()
    def cross_weights(self, drawn: Picture, words: Sequence[str]) -> NDArray[np.float32]:
        """The cross-attention while a sentence is read: `layer head row patch`, the class token first."""
        seen = self.processor(drawn, return_tensors="pt")
        ids = self.tokenizer.convert_tokens_to_ids([self.tokenizer.bos_token, *words])
        output = self.model(**seen, decoder_input_ids=torch.tensor([ids]), output_attentions=True)
        weights: NDArray[np.float32] = torch.cat(output.cross_attentions).numpy()
        return weights


def held_out(
    seed: int, count: int, counts: pictures.Counts = pictures.EVENLY
) -> list[tuple[pictures.Scene, Picture]]:
    """Pictures that were never drawn for training; the sentences about several shapes are held out too."""
    return [pictures.picture(seed, number, counts, held_out=True) for number in range(count)]


def fault(said: str, true: str) -> str:
    """What is wrong with a sentence, the gravest first: "" if nothing is."""
    if said == true:
        return ""
    words, wanted = said.split(), true.split()
    if words.count("a") != wanted.count("a"):
        return "number"
    for name, kind in (("colour", pictures.COLOURS), ("form", pictures.FORMS)):
        if [word for word in words if word in kind] != [word for word in wanted if word in kind]:
            return name
    return "relation"


def sentences(bundle: Bundle, count: int = 400) -> Figures:
    """Exact sentences, for one, two and three shapes, and of what kind the faults are."""
    result: Figures = {"each": count}
    faults = dict.fromkeys(("number", "colour", "form", "relation"), 0)
    right = 0
    for shapes, only in pictures.ONLY.items():
        drawn = held_out(REPORTED + 10 * shapes, count, only)
        said = bundle.captions([each for _, each in drawn])
        found = [fault(text, scene.sentence) for text, (scene, _) in zip(said, drawn, strict=True)]
        result[f"exact_{shapes}"] = round(found.count("") / count, 4)
        right += found.count("")
        for name in filter(None, found):
            faults[name] += 1
    return {**result, "exact": round(right / (count * len(pictures.ONLY)), 4), "faults": faults}


def heads(bundle: Bundle, count: int = 300) -> Figures:
    """How much of each row lies on its shape: of the head that is best on other pictures, and of the mean."""
    chosen, reported = (
        gaze.look(bundle.cross_weights, held_out(seed, count)) for seed in (SELECTION, REPORTED)
    )
    return {"pictures": count, "shapes": reported.shapes, **gaze.summary(chosen, reported)}


def figures(path: Path) -> Figures:
    """All figures of the model in a folder."""
    bundle = Bundle(path)
    with Image.open(path / "example.png") as shown:
        example = bundle.captions([np.asarray(shown.convert("RGB"))])[0]
    return {"sentences": sentences(bundle), "heads": heads(bundle), "example": example}
