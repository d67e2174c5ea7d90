"""What analyses return and files hold: frozen, NumPy only, each with its provenance and its certificate.

A result can be rendered, or written and read again, on a machine without torch. Axis words are the
project's own: layer, head, query, key, dim. Numbers are float64 as the reference arithmetic made them.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.tokens import Tokens


class Kind(StrEnum):
    """Which attention of a model: within the encoder, within the decoder, or from decoder to encoder."""

    ENCODER = "encoder"
    DECODER = "decoder"
    CROSS = "cross"


class Verdict(StrEnum):
    """What a certificate concludes, best first (see `attnscope.verify`)."""

    CERTIFIED = "certified"
    INCONCLUSIVE = "inconclusive"
    PARTIAL = "partial"
    UNCERTIFIED = "uncertified"
    FAILED = "failed"

    @property
    def rank(self) -> int:
        """0 for the best verdict; the larger, the less it proves."""
        return list(Verdict).index(self)


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from. `revision` is a hub commit, `digest` a SHA-256 of the weight files."""

    requested: str
    model: str
    architecture: str
    revision: str | None
    digest: str | None
    demo: bool
    kernel: str
    route: str
    device: str
    dtype: str
    versions: dict[str, str]
    token_ids: tuple[int, ...]

    @property
    def source(self) -> str:
        """The shortest thing that pins the weights down: the commit, or the start of their hash."""
        if self.revision:
            return self.revision[:10]
        return self.digest[:19] if self.digest else "unpinned"


@dataclass(frozen=True)
class Fault:
    """A mistake put into the recomputation on purpose, and how far the result then lies off the model's.

    `power` is the distance over the tolerance: above 1 the certificate would have caught the mistake.
    """

    name: str
    weight_error: float
    output_error: float
    power: float


@dataclass(frozen=True)
class Certificate:
    """One head's recomputed attention against the model's own.

    `weight_error` is the largest absolute difference of a weight; `output_error` that of an output entry
    over the largest value entry. Both are dimensionless, as are their tolerances; `precision` says what
    the tolerance was derived from. Faults come smallest power first.
    """

    verdict: Verdict
    weight_error: float
    weight_tolerance: float
    output_error: float
    output_tolerance: float
    precision: str
    faults: tuple[Fault, ...]
    reason: str = ""

    @property
    def power(self) -> float:
        """Power of the fault that is hardest to see; 0 when no fault could be tried."""
        return min((fault.power for fault in self.faults), default=0.0)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Names of the faults that this certificate would have missed."""
        return tuple(fault.name for fault in self.faults if not fault.power > 1)


@dataclass(frozen=True, eq=False)
class HeadAttention:
    """One head on one input, every stage of it.

    `scores` are q.k; `scaled` is what enters the softmax (scaled, capped, with bias; NaN where a key is
    masked); `weights` rows sum to 1 unless the head has a sink. A row without any allowed key is NaN and
    False in `answered`. `key_head` is the key/value head that this query head reads.
    """

    layer: int
    head: int
    kind: Kind
    key_head: int
    heads: int
    key_heads: int
    layers: int
    query_tokens: Tokens
    key_tokens: Tokens
    q: Float[np.ndarray, "query dim"]
    k: Float[np.ndarray, "key dim"]
    v: Float[np.ndarray, "key value_dim"]
    scores: Float[np.ndarray, "query key"]
    scaled: Float[np.ndarray, "query key"]
    weights: Float[np.ndarray, "query key"]
    output: Float[np.ndarray, "query value_dim"]
    allowed: Bool[np.ndarray, "query key"]
    scale: float
    softcap: float | None
    sink: float | None
    window: int | None
    module: str
    certificate: Certificate
    provenance: Provenance

    @property
    def name(self) -> str:
        return f"L{self.layer} H{self.head}"

    @property
    def answered(self) -> Bool[np.ndarray, " query"]:
        """Which queries have at least one key that they may look at."""
        return np.asarray(self.allowed.any(axis=1))


@dataclass(frozen=True, eq=False)
class HeadScores:
    """One number per head: `values[i, j]` belongs to `layers[i]` and `heads[j]`."""

    measure: str
    unit: str
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    values: Float[np.ndarray, "layer head"]


@dataclass(frozen=True, eq=False)
class Overview:
    """Several heads of one model on one input.

    `strongest[i, j]` holds the query and key position of the largest weight of that head, (-1, -1) where
    no query has a key; `strongest_weight` the weight itself. Certificates are by layer, then head.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    entropy: HeadScores
    strongest: Int[np.ndarray, "layer head 2"]
    strongest_weight: Float[np.ndarray, "layer head"]
    weights: tuple[tuple[Float[np.ndarray, "query key"], ...], ...]
    certificates: tuple[tuple[Certificate, ...], ...]
    provenance: Provenance

    @property
    def layers(self) -> tuple[int, ...]:
        return self.entropy.layers

    @property
    def heads(self) -> tuple[int, ...]:
        return self.entropy.heads


@dataclass(frozen=True)
class OutputCheck:
    """One tensor of the model's result, captured run against untouched run: largest absolute difference."""

    name: str
    difference: float
    identical: bool


@dataclass(frozen=True, eq=False)
class LayerCheck:
    """The certificates of one layer's heads, one per head, in order."""

    layer: int
    kind: Kind
    module: str
    certificates: tuple[Certificate, ...]


@dataclass(frozen=True, eq=False)
class Verification:
    """Every layer and head of one model on one input, and the model's final results."""

    tokens: Tokens
    layers: tuple[LayerCheck, ...]
    outputs: tuple[OutputCheck, ...]
    provenance: Provenance
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head; `failed` also when a final result changed."""
        if not all(check.identical for check in self.outputs):
            return Verdict.FAILED
        every = [certificate.verdict for layer in self.layers for certificate in layer.certificates]
        return max(every, key=lambda verdict: verdict.rank, default=Verdict.UNCERTIFIED)
