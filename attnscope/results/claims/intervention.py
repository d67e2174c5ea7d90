"""What is changed in a model, what of its answer is measured, and whether it was done."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Int

from attnscope.results.base.origin import Verdict

LITTLE = 0.1  # nats or logits: less is hardly a change


class Part(StrEnum):
    """Which part of a model is changed: a head, an MLP, all heads of a layer, what a layer hands on, a
    learned vector of a position.
    """

    HEAD = "head"
    MLP = "mlp"
    ATTENTION = "attention"
    RESIDUAL = "residual"
    POSITION = "position"


class Measured(StrEnum):
    """What of the answer is measured, and in what a change of it is: nats, logits, or cosine.

    The logarithm of its probability; how far its logit lies above another answer's; the cosine of the text's
    vector to what it is in the untouched run, or to the vector of a second text.
    """

    CHANCE = "log probability"
    DIFFERENCE = "logit difference"
    TURN = "cosine to itself"
    SIMILARITY = "cosine to another text"

    @property
    def unit(self) -> str:
        """`nats`, `logits`, `of cosine`."""
        units = {Measured.CHANCE: "nats", Measured.DIFFERENCE: "logits"}
        return units.get(self, "of cosine")

    @property
    def little(self) -> float:
        """A change that is smaller is hardly one."""
        return LITTLE if self in (Measured.CHANCE, Measured.DIFFERENCE) else LITTLE / 10


@dataclass(frozen=True, eq=False)
class ControlIds:
    """Control texts by the ids of their tokens, as the model reads them in its `input` of that name.

    `ids` has a row for each of them.
    """

    input: str
    ids: Int[np.ndarray, "control token"]


@dataclass(frozen=True)
class Intervention:
    """Whether what was done is what was asked for.

    Of the attentions that were changed `read_back` were found at the model's next operation as they should
    be, bit for bit (the row of a cut link within rounding), `lost` were not, and `unseen` cannot be found,
    since the model makes something else of them first. `faithful` says that watching alone changed no bit of
    the answer's scores.
    """

    read_back: int
    lost: int
    unseen: int
    faithful: bool
    verdict: Verdict = Verdict.UNCERTIFIED

    @classmethod
    def of(cls, read_back: int, lost: int, unseen: int, faithful: bool) -> "Intervention":
        """With the verdict that follows from what was seen."""
        verdict = Verdict.CERTIFIED if faithful else Verdict.INCONCLUSIVE
        if lost or not read_back + unseen:
            verdict = Verdict.FAILED
        elif unseen:
            verdict = Verdict.PARTIAL
        return cls(read_back, lost, unseen, faithful, verdict)
