"""Attention heads on one input: one of them in full, or several at a glance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from attnscope.errors import InputError
from attnscope.results.base.measure import MeasureDescription
from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict, worst
from attnscope.results.base.parts import Arrays, Value, fits, one_for_each
from attnscope.results.base.presented import Presented
from attnscope.results.base.special import Special, SpecialMass, special_mass
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


@dataclass(frozen=True, eq=False)
class HeadScores:
    """One number per head: `values[i, j]` belongs to `layers[i]` and `heads[j]`.

    `limits` are the least and the largest possible value. `even` is what each head would have if its
    queries weighed all keys that they may look at alike, None where that was not asked. All values are NaN
    where the measure has no meaning, and `absent` then says why in one phrase. `control` is the median size
    of what each head has for other answers than the one that is meant, None where no answer is.
    """

    description: MeasureDescription = field(metadata={"spread": True})
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    values: Float[np.ndarray, "layer head"]
    limits: tuple[float, float] = (0.0, 1.0)
    even: Float[np.ndarray, "layer head"] | None = None
    absent: str = ""
    control: Float[np.ndarray, "layer head"] | None = None

    @property
    def measure(self) -> str:
        return self.description.name

    @property
    def unit(self) -> str:
        return self.description.unit

    def class_of(self, i: int, j: int) -> str | None:
        """The class of a head whose measure is one, empty for NaN; None where it is a number."""
        if not self.description.classes:
            return None
        value = float(self.values[i, j])
        return "" if np.isnan(value) else self.description.classes[int(value)]

    def check_parts(self) -> None:
        classes = self.description.classes
        known = self.values[self.values == self.values]  # without NaN
        right = not classes or all(value == int(value) and 0 <= value < len(classes) for value in known.flat)
        fits(right, "'values' has a class that there is not")

    def derived(self) -> dict[str, Value]:
        one = {"value": float(self.values.flat[0])} if self.values.size == 1 else {}
        return {"measure": self.measure, "range": self.description.range} | one

    def value_of(self, i: int, j: int) -> Value:
        """A number, or the name of the class that it stands for."""
        named = self.class_of(i, j)
        return float(self.values[i, j]) if named is None else named or None


@dataclass(frozen=True, eq=False, repr=False)
class Overview(Presented):
    """Several heads of one model on one input.

    `scores` are by the name of their measure, at least one; `main` is the first of them that has a meaning.
    `strongest[i, j]` holds the query and key position of the largest weight of that head, (-1, -1) where
    no query has a key; `strongest_weight` the weight itself. With `ordinary` that is among tokens that are
    not special. `aim` is the query, or the query and the key, that alone was asked for. Certificates are by
    layer, then head.

    Of an overview by words, or without special tokens, `tokens` is the one that it was made from. `tower`
    and `notes` are as in `HeadWeights`; `sharing` counts by layer how many heads read the same key head, 1
    where each has its own; it is empty where that is not known. `weights` are None in what was read from
    JSON, which leaves them out; `told_mass` and, by head, `told_shares` are what it says of special tokens.
    """

    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    scores: Mapping[str, HeadScores] = field(metadata={"file": "measures"})
    strongest: Int[np.ndarray, "layer head 2"]
    strongest_weight: Float[np.ndarray, "layer head"]
    weights: tuple[tuple[Float[np.ndarray, "query key"], ...], ...] | None = field(metadata={"npz": True})
    certificates: tuple[tuple[Certificate, ...], ...]
    provenance: Provenance
    words: bool = False
    special: Special = Special.SHOW
    tokens: "Overview | None" = field(default=None, metadata={"file": "by_tokens"})
    tower: str = ""
    notes: tuple[str, ...] = ()
    sharing: tuple[int, ...] = ()
    told_mass: SpecialMass | None = field(
        default=None, metadata={"file": "special_mass", "of": "special_mass"}
    )
    told_shares: Float[np.ndarray, "layer head"] | None = field(
        default=None, metadata={"file": "special_shares", "of": "special_shares"}
    )
    ordinary: bool = False
    aim: tuple[int, int | None] | None = None

    @property
    def dense_weights(self) -> tuple[tuple[Float[np.ndarray, "query key"], ...], ...]:
        """The weights by layer and head; `InputError` where they were not stored."""
        if self.weights is None:
            raise InputError(
                "this overview holds no weights: it was read from JSON, which leaves them out (its npz has "
                "them), or computed in tiles"
            )
        return self.weights

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any head."""
        return worst(certificate.verdict for layer in self.certificates for certificate in layer)

    @property
    def special_mass(self) -> SpecialMass | None:
        """How much of the weight lies on special tokens, by tokens, mean over the heads; None without any."""
        by_tokens = self.tokens or self
        if by_tokens.weights is None:
            return by_tokens.told_mass
        return special_mass([each for row in by_tokens.weights for each in row], by_tokens.key_tokens)

    @cached_property
    def special_shares(self) -> Float[np.ndarray, "layer head"] | None:
        """How much of its weight each head puts on special tokens, by tokens; None without any."""
        by_tokens = self.tokens or self
        if by_tokens.weights is None:
            return by_tokens.told_shares
        masses = [[special_mass([each], by_tokens.key_tokens) for each in row] for row in by_tokens.weights]
        if all(mass is None for row in masses for mass in row):
            return None
        return np.array([[mass.total if mass else np.nan for mass in row] for row in masses])

    @property
    def main(self) -> HeadScores:
        """What the grid shows first, and the strongest heads are chosen by."""
        every = tuple(self.scores.values())
        return next((each for each in every if not each.absent), every[0])

    @property
    def layers(self) -> tuple[int, ...]:
        return self.main.layers

    @property
    def heads(self) -> tuple[int, ...]:
        return self.main.heads

    def check_parts(self) -> None:
        fits(bool(self.scores), "'measures' are empty")
        shape = self.main.values.shape
        one_for_each(self.certificates, shape, "certificates")
        fits(
            self.strongest.shape[:2] == shape, "'strongest' is not one link for each of the layers and heads"
        )
        fits(
            all(each.values.shape == shape for each in self.scores.values()), "'measures' are of other heads"
        )
        most = self.strongest.max(axis=(0, 1), initial=-1)
        right = self.strongest.min(initial=0) >= -1
        right = right and most[0] < len(self.query_tokens) and most[1] < len(self.key_tokens)
        fits(right, "a strongest link leads to a token that is not there")

    def derived(self) -> dict[str, Value]:
        """Every measure by its name, and a row for each head with its strongest link and its verdict."""
        return {
            "layers": self.layers,
            "heads": self.heads,
            "measure": self.main.measure,
            "unit": self.main.unit,
            "verdict": self.verdict,
            **{name: each.values for name, each in self.scores.items()},
            "results": [self._row(i, j) for i, j in np.ndindex(self.main.values.shape)],
        }

    def _row(self, i: int, j: int) -> dict[str, Value]:
        """A head with its strongest link, None where it has none, and its verdict."""
        query, key = (None if position < 0 else int(position) for position in self.strongest[i, j])
        return {
            "layer": self.layers[i],
            "head": self.heads[j],
            **{name: scores.value_of(i, j) for name, scores in self.scores.items()},
            "query": query,
            "key": key,
            "weight": float(self.strongest_weight[i, j]),
            "verdict": self.certificates[i][j].verdict,
        }

    def npz_columns(self) -> Arrays:
        verdicts = [[each.verdict.value for each in layer] for layer in self.certificates]
        places = {"layers": np.array(self.layers), "heads": np.array(self.heads)}
        return {**places, "verdicts": np.array(verdicts)}
