"""Attention as a worked example: every array that was given and every step from it, with named axes."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Certificate, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits
from attnscope.results.steps import WRONG, Check, Step
from attnscope.vocabulary import Scoring

MEASURES = ("spread", "entropy", "gradient")  # of a study of the scale
_MOST_NUMBERS = 4  # of an output that is the answer
_ALIKE = 0.005  # weights that lie less apart are the same on screen


class Case(StrEnum):
    """What the answer of a worked example is, with a mistake beside it what that makes of the weights."""

    OUTPUT = "output"
    WEIGHTS = "weights"
    NO_KEY = "no key"
    PAIRS = "pairs"
    LOOKED_UP = "looked up"
    NO_ANSWER = "no answer"
    OTHER_SUM = "other sum"
    OTHER_WEIGHT = "other weight"
    ALIKE = "alike"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class Mistake:
    """A mistake made on purpose: what was done, why it is wrong, and how its numbers differ, a phrase each.

    Its steps are those of the example that are `wrong`; none where it cannot even be carried out. `what`,
    `why` and `differs` are these phrases.
    """

    name: str
    what: str
    why: str
    differs: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """A query and a key by name, the weight between them, and its rank, 1 the largest, among `pairs`.

    `weight` is that weight, `rank` its rank.
    """

    query: str
    key: str
    weight: float
    rank: int
    pairs: int


def apart(one: Float[np.ndarray, "row column"], other: Float[np.ndarray, "row column"]) -> np.ndarray:
    """How far two matrices lie apart: 0 where neither has a number, infinite where only one of them has."""
    none = np.isnan(one), np.isnan(other)
    return np.where(none[0] & none[1], 0.0, np.where(none[0] | none[1], np.inf, np.abs(one - other)))


@dataclass(frozen=True, eq=False, repr=False)
class Worked(Presented):
    """A worked example. `proofs` are certificates with what each was held against; empty for a dictionary.

    `warnings` are about what may have been meant otherwise, `notes` belong to the example. `formula` is that
    of the whole example, `causal` whether later keys are masked.
    """

    name: str
    title: str
    formula: str
    steps: tuple[Step, ...]
    scoring: Scoring | None = None
    causal: bool = False
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    proofs: tuple[tuple[str, Certificate], ...] = ()
    checks: tuple[Check, ...] = ()
    pairs: tuple[Pair, ...] = ()
    provenance: Provenance | None = None
    mistake: Mistake | None = None

    asks_alone = True
    for_readers = ("verdict", "case")

    @property
    def case(self) -> Case:
        """What the answer is. An output of more than a few numbers is no answer: its weights are."""
        found = {step.key: step for step in self.steps}
        if "found" in found:
            return Case.NO_ANSWER if np.isnan(found["found"].matrix.values).any() else Case.LOOKED_UP
        if self.mistake is not None:
            if not (differences := np.abs(self.differences)).size:
                return Case.IMPOSSIBLE
            if np.abs(self.differences.sum(axis=1)).max() >= _ALIKE:
                return Case.OTHER_SUM
            return Case.OTHER_WEIGHT if differences.max() >= _ALIKE else Case.ALIKE
        if "weights" not in found or not found["weights"].seen.any():
            return Case.NO_KEY
        if self.pairs:
            return Case.PAIRS
        few = "output" in found and len(found["output"].matrix.columns.names) <= _MOST_NUMBERS
        return Case.OUTPUT if few else Case.WEIGHTS

    @property
    def differences(self) -> Float[np.ndarray, "query key"]:
        """Each weight that the mistake makes, less the one that is right; empty where it makes none."""
        found = {step.key: step for step in self.steps}
        wrong, right = (
            np.where(step.seen, step.matrix.values, 0.0) if (step := found.get(key)) else np.zeros((0, 0))
            for key in (f"{WRONG}weights", "weights")
        )
        return wrong - right if wrong.shape == right.shape else np.zeros((0, 0))

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict of the proofs, `failed` also when a check did not pass; None without a proof."""
        if not all(check.passed for check in self.checks):
            return Verdict.FAILED
        return max((one.verdict for _, one in self.proofs), key=lambda verdict: verdict.rank, default=None)

    def step(self, key: str) -> Step:
        """The step called `key`; `KeyError` where the example has none."""
        return {step.key: step for step in self.steps}[key]

    def derived(self) -> dict[str, Value]:
        """Every array by the name of its step: what was given has the keys that `attnscope sdpa` reads."""
        certificates = [
            {"against": against} | vars(one) | {name: getattr(one, name) for name in one.for_readers}
            for against, one in self.proofs
        ]
        arrays = {step.key: step.matrix.values for step in self.steps}
        return {"certificates": certificates, **arrays}


class Scaled(StrEnum):
    """Whether the softmax of scores divided by sqrt(d) has the larger gradient, at the largest size."""

    KEPT = "gradient kept"
    NOT_KEPT = "no gradient kept"


@dataclass(frozen=True, eq=False, repr=False)
class ScaleStudy(Presented):
    """What dividing by sqrt(d) does to random queries and keys, per size `dims` and with/without scale.

    Axis 0 of the measures is `unscaled`, `scaled`. `spread` is the standard deviation of the scores,
    `entropy` that of the softmax in nats, `gradient` the Frobenius norm of its Jacobian; all are means.
    `additive` has the same three of additive scores of the same vectors; an old file has none. `queries` and
    `keys` are how many of each were drawn.
    """

    dims: tuple[int, ...]
    keys: int
    queries: int
    seed: int
    spread: Float[np.ndarray, "2 dim"]
    entropy: Float[np.ndarray, "2 dim"]
    gradient: Float[np.ndarray, "2 dim"]
    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()
    additive: Float[np.ndarray, "3 dim"] | None = None

    asks_alone = True
    for_readers = ("verdict", "case")

    @property
    def case(self) -> Scaled:
        """Whether it keeps a gradient."""
        unscaled, scaled = self.gradient[:, -1]
        return Scaled.KEPT if scaled > unscaled else Scaled.NOT_KEPT

    @property
    def verdict(self) -> Verdict | None:
        """`failed` when a check did not pass, else None: random numbers are no model's."""
        return None if all(check.passed for check in self.checks) else Verdict.FAILED

    def check_parts(self) -> None:
        sizes = (self.keys, self.queries, *self.dims)
        fits(bool(self.dims) and min(sizes) > 0, "'dims', 'keys' and 'queries' are no sizes")
