"""A model's answer, and its change under interventions, beside controls."""

from dataclasses import dataclass, field
from enum import StrEnum
from math import isclose, log
from sys import float_info

import numpy as np
from jaxtyping import Int

from attnscope.results.base.origin import Verdict
from attnscope.results.base.presented import fits, in_chances

LITTLE = 0.1  # nats or logits: less is hardly a change


class Part(StrEnum):
    """The part of a model that is changed: head, MLP, a layer's attention, residual, position vector."""

    HEAD = "head"
    MLP = "mlp"
    ATTENTION = "attention"
    RESIDUAL = "residual"
    POSITION = "position"


class Measured(StrEnum):
    """The quantity measured of an answer: log probability, logit difference or cosine.

    The logarithm of its probability; how far its logit lies above another answer's; the cosine of the text's
    vector to what it is in the untouched run, or to the vector of a second text.
    """

    CHANCE = "log probability"
    DIFFERENCE = "logit difference"
    TURN = "cosine to itself"
    SIMILARITY = "cosine to another text"

    @property
    def unit(self) -> str:
        """The unit of a change: `nats`, `logits` or `of cosine`."""
        units = {Measured.CHANCE: "nats", Measured.DIFFERENCE: "logits"}
        return units.get(self, "of cosine")

    @property
    def little(self) -> float:
        """The size below which a change is negligible."""
        return LITTLE if self in (Measured.CHANCE, Measured.DIFFERENCE) else LITTLE / 10


@dataclass(frozen=True, eq=False)
class ControlIds:
    """Control texts as rows of token `ids`, for the model input named `input`."""

    input: str
    ids: Int[np.ndarray, "control token"]


@dataclass(frozen=True)
class Intervention:
    """The fidelity of interventions, as read back from the model.

    Of the changed attentions, `read_back` were found as intended at the model's next operation, bit for bit
    (the row of a cut link within rounding), `lost` were not, and `unseen` cannot be found, since the model
    transforms them first. `faithful` says that watching alone changed no bit of the answer's scores.
    """

    read_back: int
    lost: int
    unseen: int
    faithful: bool
    verdict: Verdict = Verdict.UNCERTIFIED

    @classmethod
    def of(cls, read_back: int, lost: int, unseen: int, faithful: bool) -> "Intervention":
        """Makes the intervention with the verdict that its counts imply."""
        verdict = Verdict.CERTIFIED if faithful else Verdict.INCONCLUSIVE
        if lost or not read_back + unseen:
            verdict = Verdict.FAILED
        elif unseen:
            verdict = Verdict.PARTIAL
        return cls(read_back, lost, unseen, faithful, verdict)


_ROUNDING = 1e-6  # of a change


class Asks(StrEnum):
    """The kind of answer: mask, next token, pair verdict, written text, class, tag, span, or vector."""

    MASK = "mask"
    NEXT = "next"
    PAIR = "pair"
    WRITTEN = "written"
    CLASS = "class"
    TAG = "tag"
    SPAN = "span"
    VECTOR = "vector"


@dataclass(frozen=True)
class Answer:
    """The answer of the unchanged model, and its probability.

    `ids` are tokens of the vocabulary (all of a written text), the number of a class or tag, or for a span
    the positions of both ends. `position` is the mask, the tagged token, or the token before the answer;
    None where the answer is about the whole text. `likeliest` is False where the answer was named and is not
    what the model would answer. A vector has no `ids`, and its `probability` is the cosine to the vector it
    is compared with.
    """

    asks: Asks
    text: str
    ids: tuple[int, ...]
    position: int | None
    probability: float
    likeliest: bool = True

    def check_parts(self) -> None:
        if self.asks is not Asks.VECTOR:
            in_chances([self.probability], "probability")


@dataclass(frozen=True)
class Effect:
    """An answer's probability `before` and `after`; `change` is that of its logarithm, after less before.

    Where the logit difference or the cosine is measured, they are this quantity and its change. `kl` is the
    Kullback-Leibler divergence of the distribution after from that before; both are in nats, summed over the
    tokens of a written text, and for a vector `kl` is 1 less the cosine to what it was. `instead` is the
    likeliest answer after, if it is another one than before; empty for a written text.
    """

    before: float
    after: float
    change: float
    kl: float
    instead: str = field(default="", kw_only=True)

    def check_parts(self) -> None:
        fits(not self.kl < 0, "'kl' is below 0")

    def check_change(self, measured: Measured) -> None:
        """Raises `Damaged` where `change` does not follow from `before` and `after`."""
        change = self.after - self.before
        if measured is Measured.CHANCE:
            in_chances((self.before, self.after), "before' or 'after")
            tiny = min(self.before, self.after) < float_info.min
            change = self.change if tiny else log(self.after) - log(self.before)
        right = change != change or isclose(change, self.change, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        fits(right, "'change' does not follow from 'before' and 'after'")


@dataclass(frozen=True)
class Beside(Effect):
    """The effect of removing part of a layer, compared with removing other parts (controls).

    `layer` is -1 for the input of the first layer. `typical` is the median size of the change by one of the
    `controls`; `below` of them make a smaller one. With path patching, `whole` is the change without
    restricting its path.
    """

    layer: int
    typical: float | None = field(default=None, kw_only=True)
    below: int = field(default=0, kw_only=True)
    controls: int = field(default=0, kw_only=True)
    whole: float | None = field(default=None, kw_only=True)

    def check_parts(self) -> None:
        super().check_parts()
        fits(0 <= self.below <= self.controls, "'below' counts more than 'controls'")

    @property
    def rank(self) -> int:
        """The rank of this change among its controls: 1 is the largest."""
        return 1 + self.controls - self.below


@dataclass(frozen=True)
class HeadEffect(Beside):
    """The effect of ablating one head (or a group), compared with other heads of the layer.

    `layer` and `head` are its numbers. `typical` is the median size of the change by `controls` heads of the
    same layer, each ablated alone (for a group, by other groups of as many); `below` of them make a smaller
    one. `predicted` is the change that the gradient foretells. With path patching, `whole` is the change
    without restricting its path.
    """

    head: int
    predicted: float | None = None

    @property
    def excess(self) -> float:
        """The size of the change beyond that of the median other head of the layer."""
        return abs(self.change) - (self.typical or 0.0)


@dataclass(frozen=True)
class PlaceEffect(Beside):
    """The effect of ablating part of a layer, at all tokens or at some.

    `layer` is -1 for the input of the first layer, `head` None where it is no head's. `positions` are empty
    for all tokens; for a link they are the keys that are cut. `typical` is the median size of the change by
    one of the `controls`, other places; `below` of them make a smaller one. `enough` is the change in the
    other text where this part is put in from this one: how much of the answer it brings back. With path
    patching, `whole` is the change without restricting its path.
    """

    head: int | None = None
    positions: tuple[int, ...] = ()
    enough: float | None = None


@dataclass(frozen=True)
class Group:
    """Several heads (layer and head) ablated at once, and the effect on the answer.

    `controls` is the number of other groups with as many heads of the same layers or, `of_layers`, of as
    many whole layers; `drawn` are these groups. `typical` is the median size of the change that they make,
    and `below` of them make a smaller one.
    """

    heads: tuple[tuple[int, int], ...]
    effect: Effect
    typical: float | None = None
    below: int = 0
    controls: int = 0
    of_layers: bool = False
    drawn: tuple[tuple[tuple[int, int], ...], ...] = ()

    def check_parts(self) -> None:
        fits(0 <= self.below <= self.controls, "'below' counts more than 'controls'")


@dataclass(frozen=True)
class Floor:
    """The noise floor: changes from rounding alone, and from random heads.

    `rounding` is the largest change of the answer's log probability by rounding: in `runs` where nothing but
    other entries of the batch was changed, and in one where every output of the first layer tested was moved
    by its own precision. `rounding_kl` is the largest divergence of these. `random` are heads of the same
    layers that were drawn with `seed`.
    """

    rounding: float
    rounding_kl: float
    runs: int
    random: tuple[HeadEffect, ...]
    seed: int


@dataclass(frozen=True)
class Predicted:
    """The `change` of the answer's log probability (or logit) that one backward pass predicts for a head."""

    layer: int
    head: int
    change: float


@dataclass(frozen=True)
class Receiver:
    """A head that receives a change in path patching.

    `layer` and `head` are its numbers. `inputs` are those of its queries, keys and values (`q`, `k`, `v`)
    that the change comes to.
    """

    layer: int
    head: int
    inputs: str = "qkv"


@dataclass(frozen=True)
class Path:
    """The path of a change in path patching: it enters the receivers, everything else stays fixed.

    `receivers` are the heads that the change enters; their outputs then act everywhere, all other heads on
    the way stay as they are. `direct` says that the change also reaches the answer past all heads. `others`
    are groups of as many other heads of the receivers' layers, with the effect of the strongest change when
    it enters them instead.
    """

    receivers: tuple[Receiver, ...]
    direct: bool
    others: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Choice:
    """A possible answer, and its probability before and after ablation."""

    text: str
    before: float
    after: float


@dataclass(frozen=True)
class Place:
    """The likeliest answers of either run at one place, by falling probability before.

    `meant` is the one that is the answer: the likeliest, or the token that stands there in a text.
    """

    choices: tuple[Choice, ...]
    meant: int

    @property
    def likeliest(self) -> int:
        """The index of the likeliest choice after ablation."""
        return max(range(len(self.choices)), key=lambda number: self.choices[number].after)


@dataclass(frozen=True, eq=False)
class Without:
    """The answer with all heads and with `heads` ablated to zero, place by place.

    `position` is the mask, or the token after which the answer comes; None where it is of the whole text.
    """

    heads: tuple[tuple[int, int], ...]
    asks: Asks
    position: int | None
    places: tuple[Place, ...]


class Method(StrEnum):
    """The replacement of a head's output: zeros, a mean, another text's, or its own with a link cut."""

    ZERO = "zero"
    MEAN = "mean"
    TEXT = "text"
    LINK = "link"


def ranked(heads: tuple[HeadEffect, ...]) -> tuple[HeadEffect, ...]:
    """The heads by their excess over the median head of their layer, largest first."""
    return tuple(sorted(heads, key=lambda each: (-each.excess, each.layer, each.head)))
