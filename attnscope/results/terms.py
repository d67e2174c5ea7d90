"""What the score of one query and key is made of, and what each part of it does to the weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Verdict
from attnscope.results.base.parts import Value
from attnscope.results.base.presented import Presented
from attnscope.results.heads import HeadAttention

CONTENT, CAP, MASK, SINK = "q·k x scale", "soft cap", "mask", "sink"


@dataclass(frozen=True)
class Influence:
    """What one part adds to the scores, and how far the weights move when it is left out.

    `mean`, `least` and `most` are over the allowed pairs (of a sink over the queries that it takes part
    in), in units of the score; NaN for a mask, which adds no number. `moved` is the total variation between
    the head's weights and those without the part, the share of a sink counted as one more key: 0 nothing
    moves, 1 everything; the mean over the queries that have a key. `moved_most` is the largest of them.
    """

    name: str
    mean: float
    least: float
    most: float
    moved: float
    moved_most: float


@dataclass(frozen=True, eq=False, repr=False)
class HeadTerms(Presented):
    """One head, its scores taken apart: `scaled` is q.k times the scale, `capped` the same after a soft cap.

    With what `head.terms` adds, `capped` is what enters the softmax (`head.scaled`). A weight is
    exp(score - normaliser): `normaliser` is the log of the sum over the keys and the sink, NaN where a query
    has no key; `sinks` the logit of the sink for every query.
    """

    head: HeadAttention = field(metadata={"spread": True})
    scaled: Float[np.ndarray, "query key"] = field(metadata={"file": "times_scale"})
    capped: Float[np.ndarray, "query key"]
    sinks: Float[np.ndarray, " query"] | None
    normaliser: Float[np.ndarray, " query"]
    influences: tuple[Influence, ...] = field(metadata={"file": "parts"})

    @property
    def verdict(self) -> Verdict:
        """The verdict of the head's certificate."""
        return self.head.verdict

    @property
    def sink_weights(self) -> Float[np.ndarray, " query"] | None:
        """What the sink takes of every query; None without one."""
        return None if self.sinks is None else np.exp(self.sinks - self.normaliser)

    @property
    def columns(self) -> Mapping[str, Float[np.ndarray, "query key"]]:
        """Every step from q.k to the weight, by name and in order; -inf in `mask` where a key is masked."""
        head = self.head
        capped = {} if head.softcap is None else {"capped": self.capped}
        masked = {} if head.allowed.all() else {MASK: np.where(head.allowed, 0.0, -np.inf)}
        return {
            "q·k": head.scores,
            "scaled": self.scaled,
            **capped,
            **head.terms,
            **masked,
            "score": np.where(head.allowed, head.scaled, -np.inf),
            "weight": head.weights,
        }

    def derived(self) -> dict[str, Value]:
        return {"sink_weights": self.sink_weights}
