"""Result of `predict --layers`: the logit lens, the answer of each layer as if it were the last."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Int

from attnscope.results.base.origin import Provenance
from attnscope.results.base.presented import Presented, fits, in_chances, in_tokens
from attnscope.results.prediction import Guess
from attnscope.tokens import Tokens

_ROUNDING = 1e-4  # tolerance of a probability
TASKS = ("masked", "next", "class")


class Case(StrEnum):
    """Which conclusion the logit lens allows: where the model's own answer first leads for good."""

    FROM = "from a layer on"
    LAST = "the last layer"
    SEVERAL = "several places"


@dataclass(frozen=True)
class LayerAnswer:
    """Logit-lens answer of one layer: its state replaces that of the last layer.

    `layer` is -1 for the embeddings, before the first. `best` is the likeliest answer of the layer.
    `probability` and `rank` (1 for the likeliest) are those of the model's own answer. `apart` is the total
    variation distance from the model's own distribution, 0 to 1. `control` is the mean of `probability` over
    the control texts, `control_high` its 95 % quantile over them; NaN without controls.
    """

    layer: int
    best: Guess
    probability: float
    rank: int
    apart: float
    control: float = float("nan")
    control_high: float = float("nan")

    def check_parts(self) -> None:
        in_chances([self.probability], "probability")
        beyond = self.probability - self.best.probability
        fits(not beyond > _ROUNDING, "'best' is not the likeliest")
        fits(self.rank >= 1, "'rank' counts from 1")


@dataclass(frozen=True)
class LayeredPlace:
    """One predicted `position` (None for a class), the unchanged model's `answer` there, and its layers."""

    position: int | None
    answer: Guess
    layers: tuple[LayerAnswer, ...]

    for_readers = ("leads_from",)

    @property
    def leads_from(self) -> int:
        """First layer from which every layer ranks the model's own answer first."""
        behind = [i for i, each in enumerate(self.layers) if each.rank > 1]
        first = behind[-1] + 1 if behind else 0
        return self.layers[min(first, len(self.layers) - 1)].layer

    @property
    def leads_late(self) -> bool:
        """True where only the last layer ranks the model's own answer first."""
        return self.leads_from == self.layers[-1].layer


@dataclass(frozen=True, eq=False, repr=False)
class LayeredPrediction(Presented):
    """Logit-lens answers of all layers at every predicted place. `task` is `masked`, `next` or `class`.

    `read_back` is the proof: the last layer's state, put back while the layers read other numbers, gives the
    model's own answer up to this total variation distance. The controls are the text with its words in other
    orders, as token `ids` drawn with `seed`; `how` says what changed places, or why there are none.
    """

    task: str
    tokens: Tokens
    places: tuple[LayeredPlace, ...]
    read_back: float
    provenance: Provenance
    how: str = ""
    seed: int = 0
    ids: Int[np.ndarray, "control place"] = field(default_factory=lambda: np.zeros((0, 0), dtype=int))
    notes: tuple[str, ...] = ()

    for_readers = ("verdict", "controls", "case")

    def check_parts(self) -> None:
        fits(self.task in TASKS, f"'task' is none of {', '.join(TASKS)}")
        fits(bool(self.places), "'places' are none")
        fits(all(each.layers for each in self.places), "a place has no layers")
        in_tokens((each.position for each in self.places), len(self.tokens), "places")

    @property
    def case(self) -> Case:
        """Which conclusion the answers of the layers allow."""
        (first, *others) = self.places
        if others:
            return Case.SEVERAL
        return Case.LAST if first.leads_late else Case.FROM

    @property
    def controls(self) -> int:
        """Number of control texts."""
        return len(self.ids)
