"""One word in many texts: how alike its vectors are, and how far labels part them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import factorial

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, fits
from attnscope.vocabulary import Unit

LEVEL = 0.05  # of all labelings: where more part the word as well, nothing is shown
ROUNDING = 1e-9  # of a gap, in its spread


@dataclass(frozen=True)
class Usage:
    """The word in one text: the token that was taken, its position, and the text's label, "" without one.

    `word` is that token, and the pieces that belong to it; `pieces` are the positions of all of these.
    """

    text: str
    label: str
    word: str
    position: int
    pieces: tuple[int, ...] = ()


class Case(StrEnum):
    """What can be said of a word in many texts: which of the sentences answers."""

    UNLABELLED = "unlabelled"
    FEW_TEXTS = "few texts"
    FEW_CONTROLS = "few controls"
    PARTED = "parted"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, eq=False)
class Separation:
    """Mean cosines of pairs of texts with one label (`within`) and with two (`between`), by layer and head.

    The gap is the one less the other. Its control are other labelings with groups as large: of the `splits`
    there are, the real one among them, all others where they are no more than was asked for (`exact`), else
    labels that were shuffled with `seed`. `control_mean` is the mean gap of all labelings that were gone
    through, `excess` how far the real gap is above it, in the standard deviation of that layer or head over
    them (at least .02), `below` how many of the `controls` stay below it in each layer. `strongest` is the
    largest excess of any layer in each control, so that the best layer is held against the best of every
    labeling (Westfall and Young 1993); `heads_strongest` is the same of all heads of all layers.
    `heads_within`, `heads_between`, `heads_control_mean` and `heads_excess` are the same of single heads.
    """

    within: Float[np.ndarray, " layer"]
    between: Float[np.ndarray, " layer"]
    heads_within: Float[np.ndarray, "layer head"]
    heads_between: Float[np.ndarray, "layer head"]
    control_mean: Float[np.ndarray, " layer"]
    heads_control_mean: Float[np.ndarray, "layer head"]
    excess: Float[np.ndarray, " layer"]
    heads_excess: Float[np.ndarray, "layer head"]
    below: Float[np.ndarray, " layer"]
    strongest: Float[np.ndarray, " control"]
    heads_strongest: Float[np.ndarray, " control"]
    splits: int
    exact: bool
    seed: int

    for_readers = ("controls", "above_control", "reached", "p", "heads_reached", "heads_p", "least_p")

    @property
    def gap(self) -> Float[np.ndarray, " layer"]:
        """How much more alike vectors of one label are, in cosine: `within` less `between`."""
        return np.asarray(self.within - self.between)

    @property
    def above_control(self) -> Float[np.ndarray, " layer"]:
        """The gap less the mean of that with other labels."""
        return np.asarray(self.gap - self.control_mean)

    @property
    def heads_gap(self) -> Float[np.ndarray, "layer head"]:
        """How much more alike outputs of a head are within one label, in cosine."""
        return np.asarray(self.heads_within - self.heads_between)

    @property
    def controls(self) -> int:
        """How many other labelings there are to be held against."""
        return len(self.strongest)

    @property
    def reached(self) -> int:
        """In how many controls some layer stands as clear of its own as the best one really does."""
        return reaching(self.strongest, self.excess)

    @property
    def heads_reached(self) -> int:
        """In how many controls some head stands as clear of its own as the best one really does."""
        return reaching(self.heads_strongest, self.heads_excess)

    @property
    def p(self) -> float:
        """How often other labels part the word as well: exact where all splits were gone through."""
        return (1 + self.reached) / (self.controls + 1)

    @property
    def heads_p(self) -> float:
        """How often other labels part the outputs of some head as well as those of the best one."""
        return (1 + self.heads_reached) / (self.controls + 1)

    @property
    def least_p(self) -> float:
        """The best that could have come out: what no control reaches."""
        return 1 / (self.controls + 1)


def reaching(controls: Float[np.ndarray, " control"], real: Float[np.ndarray, "..."]) -> int:
    """How many of the controls are not smaller than the largest of the real ones, rounding aside."""
    return int((~(controls < np.fmax.reduce(real, axis=None) - ROUNDING)).sum())


def splits_of(sizes: Sequence[int]) -> int:
    """In how many ways texts can be split into groups of these sizes, whatever the groups are called."""
    ways = factorial(sum(sizes))
    for size in sizes:
        ways //= factorial(size)
    for alike in Counter(sizes).values():
        ways //= factorial(alike)
    return ways


@dataclass(frozen=True, eq=False, repr=False)
class Senses(Counted, Presented):
    """A word in many texts. `cosines` are of its output vectors, those of all `heads` of a layer as one.

    The output of a head is that before the output projection. `separation` is None where the texts have no
    labels. `certified` counts the heads behind all numbers by verdict. `by` is the unit that was compared:
    token, word, sentence or passage. `question` is the word, as it was asked for.
    """

    question: str
    kind: Kind
    usages: tuple[Usage, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    cosines: Float[np.ndarray, "layer text text"]
    separation: Separation | None
    certified: dict[Verdict, int]
    provenance: Provenance
    by: Unit = Unit.TOKEN

    for_readers = ("verdict", "case")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels there are, in the order of the texts."""
        return tuple(dict.fromkeys(usage.label for usage in self.usages if usage.label))

    @property
    def shown(self) -> int:
        """The place in `layers` of that which is shown in full: the one that parts best, else the last."""
        if self.separation is None:
            return len(self.layers) - 1
        return int(np.nan_to_num(self.separation.excess, nan=-np.inf).argmax())

    @property
    def case(self) -> Case:
        """What can be said: first whether anything could have come out, then what has."""
        parted = self.separation
        if parted is None:
            return Case.UNLABELLED
        if parted.splits * LEVEL < 1:
            return Case.FEW_TEXTS
        if parted.least_p > LEVEL:
            return Case.FEW_CONTROLS
        return Case.PARTED if parted.p <= LEVEL else Case.CANNOT_TELL

    def extremes(self, layer: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The two texts whose vectors are most alike in the layer at that place, and the two least alike."""
        pairs = np.triu_indices(len(self.usages), 1)
        values = self.cosines[layer][pairs]
        most, least = int(np.nan_to_num(values, nan=-2).argmax()), int(np.nan_to_num(values, nan=2).argmin())
        return tuple((int(pairs[0][place]), int(pairs[1][place])) for place in (most, least))  # type: ignore[return-value]

    def check_parts(self) -> None:
        fits(len(self.usages) >= 2, "'usages' are of fewer than two texts")
        fits(self.cosines.shape[1:] == (len(self.usages),) * 2, "'cosines' are not between all 'usages'")
        if (parted := self.separation) is not None:
            one_each = len(parted.strongest) == len(parted.heads_strongest) > 0
            fits(one_each, "'strongest' and 'heads_strongest' are not one for each control")
