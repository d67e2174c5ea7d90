"""Splits the score of a query and key: by added terms, and by dimension."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.presented import Value, fits, within
from attnscope.results.heads import HeadAttention, OfOneHead

CONTENT, CAP, MASK, SINK = "q·k x scale", "soft cap", "mask", "sink"


class Case(StrEnum):
    """The conclusion about a head's scores: several parts, one part, or no query with a key."""

    PARTS = "parts of it"
    ONE_PART = "one part"
    NO_KEY = "no key"


class Product(StrEnum):
    """Whether the product of a query and its key exceeds the mean with other keys."""

    ABOVE = "above"
    BELOW = "below"
    ONE_KEY = "one key"


@dataclass(frozen=True)
class Influence:
    """The part of the scores named `name`, and how far weights move without it.

    `mean`, `least` and `most` are over the allowed pairs (for a sink over its queries), in units of the
    score; NaN for a mask, which adds no number. `moved` is the total variation between the head's weights
    with and without the part, a sink counted as one more key: 0 nothing moves, 1 everything; the mean over
    queries that have a key. `moved_most` is the largest of them.
    """

    name: str
    mean: float
    least: float
    most: float
    moved: float
    moved_most: float


@dataclass(frozen=True, eq=False, repr=False)
class HeadTerms(OfOneHead):
    """One head with its scores split: `scaled` is q.k times the scale, `capped` that after a soft cap.

    `capped` plus `head.terms` is the softmax input (`head.scaled`). A weight is exp(score - normaliser):
    `normaliser` is the log of the sum over the keys and the sink, NaN where a query has no key; `sinks` the
    logit of the sink for every query.
    """

    head: HeadAttention = field(metadata={"spread": True})
    scaled: Float[np.ndarray, "query key"] = field(metadata={"file": "times_scale"})
    capped: Float[np.ndarray, "query key"]
    sinks: Float[np.ndarray, " query"] | None
    normaliser: Float[np.ndarray, " query"]
    influences: tuple[Influence, ...] = field(metadata={"file": "parts"})

    for_readers = ("verdict", "sink_weights")

    @property
    def ranked(self) -> list[Influence]:
        """The parts whose removal moves weights, largest movement first."""
        return sorted((each for each in self.influences if each.moved >= 0), key=lambda part: -part.moved)

    @property
    def case(self) -> Case:
        """The conclusion: whether there are several parts."""
        return (Case.NO_KEY, Case.ONE_PART, Case.PARTS)[min(2, len(self.ranked))]

    @property
    def sink_weights(self) -> Float[np.ndarray, " query"] | None:
        """The weight of the sink in each query's row; None without a sink."""
        return None if self.sinks is None else np.exp(self.sinks - self.normaliser)

    @property
    def columns(self) -> Mapping[str, Float[np.ndarray, "query key"]]:
        """Every step from q.k to the weight, by name and in order; `mask` is -inf where masked."""
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


@dataclass(frozen=True, eq=False)
class Rotation:
    """Dimension pairs that a rotary position embedding rotates (Su et al. 2021).

    Pair i is dimensions `first[i]` and `second[i]`; from one token to the next it is turned by `angle[i]`,
    in radians, at most half a turn. What the pair adds to a score depends on the distance of query and key,
    and repeats after `wavelength[i]` tokens.
    """

    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]
    angle: Float[np.ndarray, " pair"]

    @property
    def wavelength(self) -> Float[np.ndarray, " pair"]:
        """Tokens per full turn of each pair; infinite for a pair that does not turn."""
        with np.errstate(divide="ignore"):
            return np.asarray(2 * np.pi / np.abs(self.angle))


@dataclass(frozen=True, eq=False, repr=False)
class Dimensions(OfOneHead):
    """One query-key pair of a head by dimension: `products` are q[dim] k[dim], which sum to q.k.

    `rotation` is None where the head rotates nothing, or where the rotated pairs of dimensions could not be
    found; `unpaired` then says why.
    """

    head: HeadAttention = field(metadata={"spread": True})
    query: int
    key: int
    rotation: Rotation | None = None
    unpaired: str = ""

    @property
    def query_vector(self) -> Float[np.ndarray, " dim"]:
        """The query vector of the pair."""
        return np.asarray(self.head.q[self.query])

    @property
    def key_vector(self) -> Float[np.ndarray, " dim"]:
        """The key vector of the pair."""
        return np.asarray(self.head.k[self.key])

    @property
    def products(self) -> Float[np.ndarray, " dim"]:
        """The product of query and key in each dimension; they sum to q.k."""
        return np.asarray(self.query_vector * self.key_vector)

    @property
    def others(self) -> list[int]:
        """Positions of the other keys that the query may attend to."""
        return [key for key in np.flatnonzero(self.head.allowed[self.query]).tolist() if key != self.key]

    @property
    def beside(self) -> Float[np.ndarray, " dim"]:
        """Each dimension's mean product with the other keys, to compare `products` with.

        Weights depend on differences between keys alone. NaN where there is no other key.
        """
        if not self.others:
            return np.full(len(self.products), np.nan)
        return np.asarray(self.query_vector * self.head.k[self.others].mean(axis=0))

    @property
    def lead(self) -> float:
        """The score q.k less its mean with the other keys; NaN where there are none."""
        return float((self.products - self.beside).sum())

    @property
    def case(self) -> Product:
        """Whether the score is above its mean with the other keys, below it, or has none."""
        if not self.others:
            return Product.ONE_KEY
        return Product.BELOW if self.lead < 0 else Product.ABOVE

    @property
    def order(self) -> Int[np.ndarray, " dim"]:
        """The dimensions by size of their product, largest first."""
        return np.argsort(-np.abs(self.products), kind="stable")

    @property
    def cumulated(self) -> Float[np.ndarray, " dim"]:
        """Cumulative sums of the products in `order`; the last one is q.k."""
        return np.cumsum(self.products[self.order])

    @property
    def by_pair(self) -> Float[np.ndarray, " pair"]:
        """The sum of products over each pair of `rotation`; empty without a rotation."""
        if self.rotation is None:
            return np.zeros(0)
        return np.asarray(self.products[self.rotation.first] + self.products[self.rotation.second])

    def check_parts(self) -> None:
        for name, position, size in (
            ("query", self.query, len(self.head.q)),
            ("key", self.key, len(self.head.k)),
        ):
            fits(within(position, size), f"'{name}' is no position of {size}")
        dimensions = self.head.q.shape[1]
        for places in () if self.rotation is None else (self.rotation.first, self.rotation.second):
            inside = not places.size or (places.min() >= 0 and places.max() < dimensions)
            fits(inside, f"'rotation' names a dimension that is none of {dimensions}")

    def derived(self) -> dict[str, Value]:
        """Derived file entries: score and weight of the pair, a row per dimension, largest product first."""
        head, place = self.head, (self.query, self.key)
        named = {"q": self.query_vector, "k": self.key_vector}
        named |= {"product": self.products, "others": self.beside}
        every = zip(self.order.tolist(), self.cumulated.tolist(), strict=True)
        products = [
            {"dim": dim, **{name: float(values[dim]) for name, values in named.items()}, "cumulated": so_far}
            for dim, so_far in every
        ]
        pair = {"score": float(head.scores[place]), "weight": float(head.weights[place])}
        return pair | {"rotary": self.rotation is not None, "products": products}
