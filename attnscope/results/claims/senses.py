"""One word in many texts: how alike its vectors are, and how far labels part them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Kind, Provenance, Verdict, worst
from attnscope.results.base.parts import Value, fits
from attnscope.results.base.presented import Presented


@dataclass(frozen=True)
class Usage:
    """The word in one text: the token that was taken, its position, and the text's label, "" without one."""

    text: str
    label: str
    word: str
    position: int


@dataclass(frozen=True, eq=False)
class Separation:
    """Mean cosines of pairs of texts with one label (`within`) and with two (`between`), by layer and head.

    The gap is the one less the other. `chance` is the mean gap of labels that were shuffled, `percentile` how
    many in a hundred of these stay below the real one. `best_chance` and `best_percentile` are the same of
    the head of a layer whose gap is largest, held against the largest of any head each time.
    """

    within: Float[np.ndarray, " layer"]
    between: Float[np.ndarray, " layer"]
    heads_within: Float[np.ndarray, "layer head"]
    heads_between: Float[np.ndarray, "layer head"]
    chance: Float[np.ndarray, " layer"]
    percentile: Float[np.ndarray, " layer"]
    best_chance: Float[np.ndarray, " layer"]
    best_percentile: Float[np.ndarray, " layer"]
    controls: int
    seed: int

    @property
    def gap(self) -> Float[np.ndarray, " layer"]:
        return np.asarray(self.within - self.between)

    @property
    def heads_gap(self) -> Float[np.ndarray, "layer head"]:
        return np.asarray(self.heads_within - self.heads_between)


@dataclass(frozen=True, eq=False, repr=False)
class Senses(Presented):
    """A word in many texts. `cosines` are of its output vectors, those of all `heads` of a layer as one.

    The output of a head is that before the output projection. `separation` is None where the texts have no
    labels. `certified` counts the heads behind all numbers by verdict.
    """

    asked: str
    kind: Kind
    usages: tuple[Usage, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    cosines: Float[np.ndarray, "layer text text"]
    separation: Separation | None
    certified: dict[Verdict, int]
    provenance: Provenance

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all heads."""
        return worst(each for each, count in self.certified.items() if count)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels there are, in the order of the texts."""
        return tuple(dict.fromkeys(usage.label for usage in self.usages if usage.label))

    @property
    def shown(self) -> int:
        """The place in `layers` of that which is shown in full: that with the largest gap, else the last."""
        if self.separation is None:
            return len(self.layers) - 1
        return int(np.nan_to_num(self.separation.gap, nan=-np.inf).argmax())

    def extremes(self, layer: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The two texts whose vectors are most alike in the layer at that place, and the two least alike."""
        pairs = np.triu_indices(len(self.usages), 1)
        values = self.cosines[layer][pairs]
        most, least = int(np.nan_to_num(values, nan=-2).argmax()), int(np.nan_to_num(values, nan=2).argmin())
        return tuple((int(pairs[0][place]), int(pairs[1][place])) for place in (most, least))  # type: ignore[return-value]

    def check_parts(self) -> None:
        fits(len(self.usages) >= 2, "'usages' are of fewer than two texts")
        fits(self.cosines.shape[1:] == (len(self.usages),) * 2, "'cosines' are not between all 'usages'")

    def derived(self) -> dict[str, Value]:
        return {"verdict": self.verdict}
