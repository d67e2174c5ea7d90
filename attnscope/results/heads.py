"""One attention head on one input: its weights, and with every stage of the arithmetic that led to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict
from attnscope.results.base.parts import Value, fits
from attnscope.results.base.presented import Presented
from attnscope.results.base.special import SpecialMass, special_mass
from attnscope.tokens import Tokens


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeadWeights(Presented):
    """The weights of one head on one input: all that there is where a model was only asked what it returns.

    A row without any allowed key is NaN and False in `answered`. `tower` is where in the model the head is,
    "" where its kind tells; `block` which of the `blocks` separate attentions of its layer this is; `notes`
    say what is odd about the weights.
    """

    layer: int
    head: int
    kind: Kind
    heads: int
    layers: int
    query_tokens: Tokens
    key_tokens: Tokens
    weights: Float[np.ndarray, "query key"]
    allowed: Bool[np.ndarray, "query key"]
    module: str
    certificate: Certificate
    provenance: Provenance
    tower: str = ""
    block: int = 0
    blocks: int = 1
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict of its certificate."""
        return self.certificate.verdict

    @property
    def name(self) -> str:
        return f"L{self.layer} H{self.head}"

    @property
    def answered(self) -> Bool[np.ndarray, " query"]:
        """Which queries have at least one key that they may look at."""
        return np.asarray(self.allowed.any(axis=1))

    @property
    def row_sums(self) -> tuple[float, float]:
        """The least and the largest sum of a row that has a key; NaN where none has."""
        sums = self.weights[self.answered].sum(axis=1)
        return (float(sums.min()), float(sums.max())) if sums.size else (np.nan, np.nan)

    @property
    def special_mass(self) -> SpecialMass | None:
        """How much of the weight lies on special tokens; None where there are none."""
        return special_mass([self.weights], self.key_tokens)

    def special_mass_of(self, queries: Sequence[int]) -> SpecialMass | None:
        """The same of some queries alone: mean over those of them that have a key."""
        return special_mass([self.weights[list(queries)]], self.key_tokens)

    def derived(self) -> dict[str, Value]:
        """What was not read of a head of which only the weights were returned is null."""
        terms = getattr(self, "terms", None)
        absent = {slot.name for slot in fields(HeadAttention)} - {slot.name for slot in fields(self)}
        return dict.fromkeys(sorted(absent)) | {
            "name": self.name,
            "verdict": self.verdict,
            "special_mass": self.special_mass,
            "added": None if terms is None else list(terms),
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeadAttention(HeadWeights):
    """One head on one input, every stage of it.

    `scores` are q.k; `scaled` is what enters the softmax (scaled, capped, with bias; NaN where a key is
    masked) and `terms` what of that was added, by name; `weights` rows sum to 1 unless the head has a sink.
    `key_head` is the key/value head that this query head reads; `sink` the logit of its sink, the mean where
    every query has its own.
    """

    key_head: int
    key_heads: int
    q: Float[np.ndarray, "query dim"]
    k: Float[np.ndarray, "key dim"]
    v: Float[np.ndarray, "key value_dim"]
    scores: Float[np.ndarray, "query key"]
    scaled: Float[np.ndarray, "query key"]
    output: Float[np.ndarray, "query value_dim"]
    scale: float
    softcap: float | None
    sink: float | None
    window: int | None
    terms: Mapping[str, Float[np.ndarray, "query key"]] = field(default_factory=dict)
    sink_by_query: bool = False

    def check_parts(self) -> None:
        fits(self.q.shape[1] > 0, "'q' has no dimensions")
