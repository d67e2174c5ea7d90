"""The result of `compose`: composition scores of pairs of heads, beside random circuits."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.origin import Counted, Kind, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits

STRONGEST = 10  # pairs of heads that stand in JSON by name
BY_CHANCE = 0.05  # how often any of all pairs that were looked at may pass its limit by chance


class Through(StrEnum):
    """The input by which a later head reads: Q-, K- and V-composition (Elhage et al. 2021)."""

    QUERY = "query"
    KEY = "key"
    VALUE = "value"

    @property
    def plural(self) -> str:
        """The plural: `queries`, `keys`, `values`."""
        return {Through.QUERY: "queries", Through.KEY: "keys", Through.VALUE: "values"}[self]


class Case(StrEnum):
    """Outcomes over all pairs that have a score (docs/guide/claims.md)."""

    NO_SCORE = "no score"
    CANNOT_TELL = "cannot tell"
    NOTHING = "nothing"
    ONE = "one"
    SEVERAL = "several"


@dataclass(frozen=True)
class Pair:
    """An earlier and a later head, the input between them, and their score beside chance.

    `chance` and `spread` are mean and standard deviation of the random scores, `below` how many of these lie
    below the score (ties count half); `limit` is what a score must exceed to stand out of all pairs. `beside`
    is the median score of all other scored pairs of the same two layers, NaN where there is none.
    """

    early: tuple[int, int]
    late: tuple[int, int]
    through: Through
    score: float
    chance: float
    spread: float
    below: float
    limit: float
    beside: float

    @property
    def excess(self) -> float:
        """(score - chance) / (limit - chance): above 1 the pair stands out."""
        return (self.score - self.chance) / (self.limit - self.chance)

    @property
    def stands_out(self) -> bool:
        """Whether the score exceeds the limit, which the best of as many random pairs seldom does."""
        return self.score > self.limit

    @property
    def difference(self) -> float:
        """The score less its mean by chance."""
        return self.score - self.chance

    def derived(self) -> dict[str, Value]:
        return {"above_control": self.difference, "excess": self.excess, "stands_out": self.stands_out}


@dataclass(frozen=True)
class Norm:
    """A norm's effect on directions: the path of its module and the name of its weight.

    `weight` is the parameter's name, empty where it has none; `one` says that 1 is added to the parameter.
    `centred` says that the mean is taken away first.
    """

    module: str
    weight: str
    one: bool
    centred: bool


@dataclass(frozen=True)
class HeadMatrix:
    """Place of a layer's `query`, `key`, `value` or `output` matrix in the model.

    `module` has the matrix. Each head's columns in it (of an output: rows) are `size` from its number in
    `firsts`. `reader` is the norm before it, by its index among the norms. `side` is which of the four it is.
    """

    layer: int
    side: str
    module: str
    firsts: tuple[int, ...]
    size: int
    reader: int | None


@dataclass(frozen=True)
class Way:
    """The norms that are passed between what layer `early` writes and what `late` reads.

    `norms` are their indices.
    """

    early: int
    late: int
    through: Through
    norms: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Composition(Counted, Presented):
    """Composition scores of pairs of heads, 0 to 1; a pair is layer and head of the earlier and of the later.

    `shown` is the head that all pairs have, None where all pairs of the model are here. NaN where a matrix or
    the path between two layers could not be proved: `reasons` say why. `chance`, `spread` and `below` come of
    `draws` pairs of circuits with the same singular values in random directions, drawn with `seed`. A pair
    stands out where its score exceeds its `limit`, which by chance any of all scored pairs, by any input,
    does in BY_CHANCE of models. `counts` is how many heads each layer has, `hidden` the size of the hidden
    state. `inside` and `outside` say what of the model is in the scores and what is not. `certified` counts
    heads by verdict in the run that the matrices were read back in. `matrices` and `norms` locate the weights
    behind the scores, `ways` the norms passed between two layers, where there are any. `pairs` are layer and
    head of the earlier and of the later head, `scores` theirs by input. `read_back_in` is the text of that
    run.
    """

    kind: Kind
    layers: tuple[int, ...]
    counts: tuple[int, ...]
    hidden: int
    through: tuple[Through, ...]
    pairs: Int[np.ndarray, "pair place"]
    scores: Float[np.ndarray, "through pair"]
    chance: Float[np.ndarray, "through pair"]
    spread: Float[np.ndarray, "through pair"]
    below: Float[np.ndarray, "through pair"]
    limit: Float[np.ndarray, "through pair"]
    draws: int = field(metadata={"file": "controls"})
    seed: int
    inside: tuple[str, ...]
    outside: tuple[str, ...]
    reasons: tuple[str, ...]
    certified: dict[Verdict, int]
    provenance: Provenance
    shown: tuple[int, int] | None = None
    tower: str = ""
    notes: tuple[str, ...] = ()
    read_back_in: str = ""
    matrices: tuple[HeadMatrix, ...] = ()
    norms: tuple[Norm, ...] = ()
    ways: tuple[Way, ...] = ()

    @property
    def heads(self) -> int:
        """Number of heads of all layers."""
        return sum(self.counts)

    @property
    def layers_paired(self) -> int:
        """Number of pairs of layers."""
        return len({(early, late) for early, _, late, _ in self.pairs.tolist()})

    @property
    def repeated(self) -> int:
        """Number of further pairs of layers that share the matrices and the path of one that is there."""
        layers = len(self.layers)
        return (layers * (layers - 1) // 2 if self.shown is None else layers - 1) - self.layers_paired

    def looked_at(self, through: Through) -> int:
        """Number of pairs that have a score."""
        return int(np.isfinite(self.scores[self.through.index(through)]).sum())

    def standing_out(self, through: Through) -> int:
        """Number of pairs whose score exceeds its limit."""
        t = self.through.index(through)
        return int((self.scores[t] > self.limit[t]).sum())

    @cached_property
    def best(self) -> Pair | None:
        """The pair with the largest excess by any input; None where no pair has a score."""
        firsts = (pair for each in self.through for pair in self.ranked(each, most=1))
        return max(firsts, key=lambda pair: pair.excess, default=None)

    @cached_property
    def case(self) -> Case:
        """The first outcome whose test holds."""
        if self.best is None:
            return Case.NO_SCORE
        if out := sum(map(self.standing_out, self.through)):
            return Case.ONE if out == 1 else Case.SEVERAL
        return Case.CANNOT_TELL if np.nanmin(self.limit) >= 1 else Case.NOTHING

    def readers(self, pair: Pair) -> tuple[int, int]:
        """Counts of the later layer's heads: standing out by the same earlier head and input, and scored."""
        t, (first, head), (second, _) = self.through.index(pair.through), pair.early, pair.late
        there = (self.pairs[:, :3] == (first, head, second)).all(1) & np.isfinite(self.scores[t])
        return int((self.scores[t] > self.limit[t])[there].sum()), int(there.sum())

    @property
    def sharing(self) -> int:
        """The largest number of heads that share their keys (grouped queries), where that is known."""
        heads = dict(zip(self.layers, self.counts, strict=True))
        made = [each for each in self.matrices if each.side == Through.KEY and each.firsts]
        return max((heads[each.layer] // len(set(each.firsts)) for each in made), default=1)

    def ranked(self, through: Through, *, before: bool | None = None, most: int | None = None) -> list[Pair]:
        """Pairs by their excess, the largest first; `most` limits their number.

        `before` keeps those in which the head shown is the later one (True), or the earlier one (False).
        """
        t = self.through.index(through)
        excess = (self.scores[t] - self.chance[t]) / (self.limit[t] - self.chance[t])
        wanted = np.isfinite(excess)
        if before is not None:
            wanted &= (self.pairs[:, 2:] == self.shown).all(1) == before
        order = np.argsort(-excess, kind="stable")
        return [self.pair(i, through) for i in order[wanted[order]][:most].tolist()]

    def pair(self, i: int, through: Through) -> Pair:
        """The pair at index `i`, with its numbers."""
        t = self.through.index(through)
        first, head, second, other = self.pairs[i].tolist()
        numbers = (self.scores, self.chance, self.spread, self.below, self.limit)
        score, chance, spread, below, limit = (float(each[t, i]) for each in numbers)
        heads = (first, head), (second, other)
        alike = (self.pairs[:, [0, 2]] == self.pairs[i, [0, 2]]).all(1)
        alike[i] = False
        others = self.scores[t, alike]
        others = others[np.isfinite(others)]
        beside = float(np.median(others)) if len(others) else float("nan")
        return Pair(*heads, through, score, chance, spread, below, limit, beside)

    def grid(self, through: Through) -> Float[np.ndarray, "layer head"]:
        """Score less chance of the head shown with every other one, by layer and head; NaN for none."""
        values = np.full((len(self.layers), max(self.counts, default=0)), np.nan)
        t = self.through.index(through)
        for i, (first, head, second, other) in enumerate(self.pairs.tolist()):
            layer, number = (first, head) if (second, other) == self.shown else (second, other)
            values[self.layers.index(layer), number] = self.scores[t, i] - self.chance[t, i]
        return values

    def check_parts(self) -> None:
        fits(len(self.layers) == len(self.counts), "'counts' are not one for each of 'layers'")
        heads = dict(zip(self.layers, self.counts, strict=True))
        for layer, head in self.pairs.reshape(-1, 2).tolist():
            inside = 0 <= head < heads.get(layer, 0)
            fits(inside, f"'pairs' name a head L{layer} H{head} that is not there")

    def derived(self) -> dict[str, Value]:
        """JSON fields: counts of scored and outstanding pairs, and the strongest pairs, by input."""
        looked_at = {each.value: self.looked_at(each) for each in self.through}
        strongest = {each.value: self.ranked(each, most=STRONGEST) for each in self.through}
        standing_out = {each.value: self.standing_out(each) for each in self.through}
        return {
            "verdict": self.verdict,
            "case": self.case,
            "repeated": self.repeated,
            "looked_at": looked_at,
            "standing_out": standing_out,
            "strongest": strongest,
        }
