"""What demo-reader is trained on, stage by stage: batches of fresh texts, short ones first."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from attnscope.demo.train.reading import stream, tokenizer

LENGTH = 2048  # tokens that the model reads at most
GAPS = 4  # at most, in the positions of a text
PADDING, OTHER, ANSWER, ECHO = range(4)  # what a word of a batch is


@dataclass(frozen=True)
class Stage:
    """Texts of one length."""

    length: int
    size: int  # texts in a batch
    latest: float  # share of the run after which the stage is left in any case
    echoes: float  # share of the texts that are random words said twice
    dense: float  # share of the batches in which every sentence states a fact, while there are facts left
    none: float  # share of the questions, about, whose answer no passage states
    easy: bool = False  # see `stream.reading`


STAGES = (
    Stage(64, 32, 0.36, 0.25, 1.0, 0.1, easy=True),
    Stage(128, 20, 0.56, 0.10, 0.8, 0.1),
    Stage(128, 20, 0.60, 0.10, 0.5, 0.25),
    Stage(256, 12, 0.66, 0.05, 0.3, 0.25),
    Stage(512, 6, 0.72, 0.02, 0.0, 0.25),
    Stage(1024, 3, 1.0, 0.0, 0.0, 0.25),
)


class Batches:
    """Batches of fresh texts without end, which follow from the seed and the stages that are asked for."""

    def __init__(self, seed: int, ids: dict[str, int]) -> None:
        self.generator, self.ids = random.Random(seed), ids
        self.words = tokenizer.words()

    def __call__(self, stage: Stage) -> dict[str, Tensor]:
        """One batch: `ids`, which word is asked for (`which`), and the `positions` of the words."""
        share = 1.0 if self.generator.random() < stage.dense else self.generator.uniform(0.3, 1.0)
        ids = torch.full((stage.size, stage.length), self.ids[tokenizer.PAD])
        which = torch.full_like(ids, PADDING)
        for row in range(stage.size):
            if echo := self.generator.random() < stage.echoes:
                text = stream.echo(stage.length, self.words, self.generator)
            else:
                text = stream.reading(stage.length, share, stage.none, self.generator, stage.easy)
            ids[row, : len(text.words)] = torch.tensor([self.ids[word] for word in text.words])
            which[row, 1 : len(text.words)] = OTHER
            which[row, list(text.asked)] = ECHO if echo else ANSWER
        return {"ids": ids, "which": which, "positions": self.positions(stage)}

    def positions(self, stage: Stage) -> Tensor:
        """Where each word stands, as the rotary angles are told: half of the texts have gaps.

        So words that are far apart are met in short texts too.
        """
        steps = torch.ones(stage.size, stage.length, dtype=torch.long)
        room = 0 if stage.easy else min(3 * stage.length, LENGTH - stage.length)
        for row in range(stage.size if room else 0):
            if self.generator.random() < 0.5:
                gap = self.generator.randint(0, room // GAPS)
                for _ in range(self.generator.randint(1, GAPS)):
                    steps[row, self.generator.randrange(1, stage.length)] += gap
        return steps.cumsum(-1) - 1


def digest(seed: int, ids: dict[str, int]) -> str:
    """The checksum of three batches of every stage, as a seed draws them."""
    sums, batches = hashlib.sha256(), Batches(seed, ids)
    for stage in (stage for stage in STAGES for _ in range(3)):
        for name, values in batches(stage).items():
            sums.update(f"{name} {values.tolist()}".encode())
    return sums.hexdigest()
