"""Results of `sdpa`: attention as a worked example, with every array and step, and the scale study."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Certificate, Provenance, Verdict
from attnscope.results.base.presented import Presented, Value, fits
from attnscope.results.steps import WRONG, Check, Step
from attnscope.vocabulary import Scoring

MEASURES = ("spread", "entropy", "gradient")  # of the scale study
_MOST_NUMBERS = 4  # most numbers of an output that is the answer
_ALIKE = 0.005  # difference below which weights look the same on screen


class Case(StrEnum):
    """Kind of answer of a worked example, or effect of its mistake on the weights."""

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
    """A deliberate mistake: `what` was done, `why` it is wrong, and how its numbers differ, as phrases.

    Its steps are those of the example that are `wrong`; none where it cannot be carried out. `differs` has
    a phrase for each array that differs.
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
    """Absolute difference of two matrices: 0 where both are NaN, infinite where only one is."""
    none = np.isnan(one), np.isnan(other)
    return np.where(none[0] & none[1], 0.0, np.where(none[0] | none[1], np.inf, np.abs(one - other)))


@dataclass(frozen=True, eq=False, repr=False)
class Worked(Presented):
    """A worked example of attention. `proofs` pair each certificate with the computation it compares with.

    `warnings` are about ambiguous inputs, `notes` belong to the example. `formula` is that of the whole
    example, `causal` says whether later keys are masked.
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
        """Kind of answer: the output where it has few numbers, else the weights, a lookup or a mistake."""
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
        """Wrong weights minus right weights; empty where the mistake gives no weights of this shape."""
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
        """Certificates, and every array by its step; inputs have the keys that `attnscope sdpa` reads."""
        certificates = [
            {"against": against} | vars(one) | {name: getattr(one, name) for name in one.for_readers}
            for against, one in self.proofs
        ]
        arrays = {step.key: step.matrix.values for step in self.steps}
        return {"certificates": certificates, **arrays}


class Scaled(StrEnum):
    """Whether dividing scores by sqrt(d) gives the larger softmax gradient, at the largest size."""

    KEPT = "gradient kept"
    NOT_KEPT = "no gradient kept"


@dataclass(frozen=True, eq=False, repr=False)
class ScaleStudy(Presented):
    """Effect of dividing scores by sqrt(d) on random queries and keys, by vector size `dims`.

    Axis 0 of the measures is `unscaled`, `scaled`. `spread` is the standard deviation of the scores,
    `entropy` that of the softmax in nats, `gradient` the Frobenius norm of its Jacobian; all are means.
    `additive` has these three measures for additive scores of the same vectors; old files lack it. `queries`
    and `keys` are how many of each were drawn.
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
        """Whether scaled scores have the larger gradient, at the largest size."""
        unscaled, scaled = self.gradient[:, -1]
        return Scaled.KEPT if scaled > unscaled else Scaled.NOT_KEPT

    @property
    def verdict(self) -> Verdict | None:
        """`failed` when a check did not pass, else None: random numbers are no model's."""
        return None if all(check.passed for check in self.checks) else Verdict.FAILED

    def check_parts(self) -> None:
        sizes = (self.keys, self.queries, *self.dims)
        fits(bool(self.dims) and min(sizes) > 0, "'dims', 'keys' and 'queries' are no sizes")
