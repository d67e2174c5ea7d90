"""Sums over a layer's weights in a batch of texts, shared by the measures in few passes.

    column sums        first, sink, special-tokens, punctuation, columns of pattern; whether all are numbers
    diagonals          self, previous, next, diagonals of pattern
    times distance     distance
    times likeness     same
    w ln w             entropy, evenness
    largest            confidence, fixed, offset

By norm a weight counts w |f(x)| / sum w |f(x)|: the weight, a number of its key and a number of its query. So
the same passes serve, times two vectors, and shares are never made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.scores import supplies
from attnscope.capture.weights import Passed
from attnscope.errors import CertificateError, InputError
from attnscope.reference import EXACT, exact
from attnscope.tokens import Tokens

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about a batch of texts, `lengths` tokens long and padded to the longest."""

    lengths: Int[Tensor, " row"]
    special: Bool[Tensor, "row key"]
    punctuation: Bool[Tensor, "row key"]
    alike: Bool[Tensor, "row query key"]

    @classmethod
    def of(cls, texts: Sequence[Tokens]) -> "Facts":
        """The facts of these texts."""
        lengths = [len(tokens) for tokens in texts]
        rows, most = len(texts), max(lengths)
        found = cls(
            torch.tensor(lengths),
            torch.zeros(rows, most, dtype=torch.bool),
            torch.zeros(rows, most, dtype=torch.bool),
            torch.zeros(rows, most, most, dtype=torch.bool),
        )
        for row, (tokens, length) in enumerate(zip(texts, lengths, strict=True)):
            found.special[row, :length] = supplies.special(tokens)
            found.punctuation[row, :length] = supplies.punctuation(tokens)
            found.alike[row, :length, :length] = supplies.alike(tokens, tokens)
        return found

    def at(self, device: torch.device) -> "Facts":
        """The facts on `device`, moved there once."""
        if device == self.lengths.device:
            return self
        moved = (each.to(device) for each in (self.lengths, self.special, self.punctuation, self.alike))
        return self.once(("at", device), lambda: Facts(*moved))

    def once(self, name: object, make: Callable[[], Made]) -> Made:
        """The cached value of `make`, computed once for all layers."""
        kept: dict[object, Any] = self.__dict__.setdefault("_made", {})
        if name not in kept:
            kept[name] = make()
        made: Made = kept[name]
        return made

    @property
    def own(self) -> Bool[Tensor, "row token"]:
        """Mask of tokens that are no padding."""
        return torch.arange(self.special.shape[1], device=self.lengths.device) < self.lengths[:, None]

    @property
    def missing(self) -> dict[str, Bool[Tensor, " row"]]:
        """Masks of texts that lack a kind of key, by kind: measures of it have no meaning there."""
        return {
            "special": ~self.special.any(-1),
            "punctuation": ~self.punctuation.any(-1),
            "alike": self.alike.sum((-2, -1)) <= self.lengths,
        }


def triangles(projection: Float[Tensor, "head value_dim hidden"]) -> Float[Tensor, "head size value_dim"]:
    """Triangular QR factor R of every head's transposed output projection, in float64."""
    triangle: Tensor = torch.linalg.qr(exact(projection).mT, mode="r").R
    return triangle


def norms_moved(passed: Passed, of: Float[Tensor, "head size value_dim"]) -> Float[Tensor, "row chosen key"]:
    """||f(x)|| of every key in the selected heads, in units of the hidden state, in float64.

    ||v P|| is ||R v|| where Q R is P transposed: the triangle R is as wide as the value and not as the hidden
    state, found once for each head, and nothing is squared on the way (Golub and Van Loan, Section 5.2).
    """
    values, heads = exact(passed.values), list(passed.heads)
    each = values[:, [head // passed.shared for head in heads]] @ of[heads].mT.to(values.device)
    lengths: Tensor = torch.linalg.vector_norm(each, dim=-1)
    return lengths


OfHead = Float[Tensor, "row head"]
Mean = tuple[OfHead, Float[Tensor, "row a_head"]]  # a sum over queries, and of how many


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer's weights in a batch, and masks: allowed pairs, visible keys, queries that see a key."""

    weights: Float[Tensor, "row head query key"]
    facts: Facts
    allowed: Bool[Tensor, "row mask_head query key"]
    visible: Int[Tensor, "row mask_head query"]
    answers: Bool[Tensor, "row mask_head query"]

    @classmethod
    def of(cls, passed: Passed, facts: Facts) -> "Layer":
        """The layer of a batch of weights; padding is masked out."""
        weights = passed.weights.detach()
        weights = weights if weights.dtype is EXACT else weights.float()
        queries, keys = weights.shape[-2:]
        tokens = facts.special.shape[1]
        if (queries, keys) != (tokens, tokens):
            raise InputError(f"attention of {queries} queries on {keys} keys is not among {tokens} tokens")
        own = facts.own
        pairs = (own[:, :, None] & own[:, None, :])[:, None]
        allowed = pairs if passed.allowed is None else passed.allowed & pairs
        visible = allowed.sum(-1)
        made = cls(weights, facts, allowed, visible, visible > 0)
        return made if bool(made.columns.isfinite().all()) else made._cleared()

    def _cleared(self) -> "Layer":
        """The layer without non-finite padding; `CertificateError` where a text itself has such weights."""
        cleared = self.weights.masked_fill(~(self.answers[..., None] & self.facts.own[:, None, None]), 0.0)
        found = Layer(cleared, self.facts, self.allowed, self.visible, self.answers)
        if bool(found.columns.isfinite().all()):
            return found
        raise CertificateError("weights of attention are not numbers: the checkpoint may be damaged")

    @cached_property
    def columns(self) -> Float[Tensor, "row head key"]:
        """Column sums: the weight that each key gets from all answering queries."""
        return added_up(self.answers.to(self.weights.dtype), self.weights)

    @cached_property
    def room(self) -> Float[Tensor, "row head query key"]:
        """Buffer for products with the weights, reused by every layer."""
        weights = self.weights
        return self.facts.once(("room", weights.shape, weights.dtype), lambda: torch.empty_like(weights))

    def times(self, by: Tensor) -> Float[Tensor, "row head query key"]:
        """The weights times `by`, in a shared buffer: valid until the next product."""
        return torch.mul(self.weights, by, out=self.room)

    @cached_property
    def may_repeat(self) -> Bool[Tensor, "row mask_head query"]:
        """Mask of queries that may look at another place of their own token."""
        alike = self.facts.once("likeness", lambda: _likeness(self.facts).to(self.weights.dtype))
        return (self.allowed & (alike > 0)).any(-1)

    def behind(self, step: int) -> Float[Tensor, "row mask_head query"]:
        """1 for answering queries whose text has a token `step` places further on, else 0."""
        places = torch.arange(self.weights.shape[-1], device=self.weights.device) + step
        inside = (places >= 0) & (places < self.facts.lengths[:, None, None])
        return (inside & self.answers).to(self.weights.dtype)


@dataclass(eq=False)
class View:
    """A layer's weights, each times a number of its query (`taken`) and one of its key (`of_key`).

    `taken` is 1 for a query that answers, over what it moves where shares are meant, and 0 for one that does
    not count. What is made by whole passes over the weights stands here for both views: each query's
    `entropies`, its `largest` and the key that has it, and of each text the weight times `distance` and on
    keys of the `same` token.
    """

    layer: Layer
    taken: Float[Tensor, "row a_head query"]
    of_key: Float[Tensor, "row head key"] | None = None
    moved: Float[Tensor, "row head query"] | None = None
    entropies: Float[Tensor, "row head query"] = field(init=False)
    largest: Float[Tensor, "row head query"] = field(init=False)
    strongest: Int[Tensor, "row head query"] = field(init=False)
    distance: OfHead = field(init=False)
    same: OfHead = field(init=False)

    @cached_property
    def answers(self) -> Float[Tensor, "row a_head query"]:
        """1 for each query that counts, else 0."""
        return (self.taken != 0).to(self.taken.dtype)

    @cached_property
    def count(self) -> OfHead:
        return self.answers.sum(-1)

    @cached_property
    def columns(self) -> Float[Tensor, "row head key"]:
        if self.of_key is None:
            return self.layer.columns
        return added_up(self.taken, self.layer.weights) * self.of_key

    def summed(self, products: Float[Tensor, "row head query key"]) -> OfHead:
        """Sum over queries and keys of `products`, scaled by query and key."""
        by_key = added_up(self.taken, products)
        return (by_key if self.of_key is None else by_key * self.of_key).sum(-1)

    def at(self, step: int) -> OfHead:
        """Sum of the weights that queries give to the key `step` places further on."""
        line, first = self.layer.weights.diagonal(step, -2, -1), max(-step, 0)
        mine = line * self.taken[..., first : first + line.shape[-1]]
        if self.of_key is not None:
            behind = max(step, 0)
            mine = mine * self.of_key[..., behind : behind + line.shape[-1]]
        return mine.sum(-1)

    def that_may(self, look: Bool[Tensor, "row mask_head query"]) -> OfHead:
        """Number of counting queries for which `look` is true."""
        return (self.answers * look).sum(-1)

    def at_step(self, step: int) -> Mean:
        """Mean weight on the key `step` places after a query, as (sum, count)."""
        look = torch.zeros_like(self.layer.answers)
        line = self.layer.allowed.diagonal(step, -2, -1)
        look[..., max(-step, 0) : max(-step, 0) + line.shape[-1]] = line
        return self.at(step), self.that_may(look)

    def on(self, keys: Bool[Tensor, "row key"]) -> Mean:
        """Mean weight on the given keys, over queries that may see one, as (sum, count)."""
        look = (self.layer.allowed & keys[:, None, None]).any(-1)
        return (self.columns * keys[:, None]).sum(-1), self.that_may(look)

    def over(self, rows: Float[Tensor, "row head query"]) -> Mean:
        """Mean of `rows` over the queries that count, as (sum, count)."""
        return (rows * self.answers).sum(-1), self.count

    def all_moved(self) -> Mean:
        """Mean of what queries move, over all that see a key, as (sum, count)."""
        assert self.moved is not None, "a view by norm"
        answers = self.layer.answers.to(self.moved.dtype)
        return (self.moved * answers).sum(-1), answers.sum(-1)

    def even(self) -> Mean:
        """Mean normalised entropy (entropy / log keys) over queries with two visible keys or more."""
        choice = self.answers * (self.layer.visible > 1)
        most = self.layer.visible.clamp_min(2).to(self.taken.dtype).log()
        return (self.entropies / most * choice).sum(-1), choice.sum(-1)

    def sink(self) -> Mean:
        """Mean weight on the first key, without the first query, as (sum, count)."""
        first = self.layer.weights[..., 0, 0] * self.taken[..., 0]
        first = first if self.of_key is None else first * self.of_key[..., 0]
        look = self.layer.allowed[..., 0].clone()
        look[..., 0] = False
        return self.columns[..., 0] - first, self.that_may(look)

    @cached_property
    def offsets(self) -> tuple[OfHead, OfHead]:
        """The commonest offset of the strongest key, the shortest among equals, and its count."""
        tokens = self.strongest.shape[-1]
        device, dtype = self.strongest.device, self.taken.dtype
        places = self.strongest - torch.arange(tokens, device=device) + tokens - 1
        times = torch.zeros(*places.shape[:2], 2 * tokens - 1, dtype=torch.long, device=device)
        times.scatter_add_(-1, places, self.answers.long().expand(places.shape))
        every = torch.arange(1 - tokens, tokens, device=device)
        rank = 2 * every.abs() + (every > 0)  # the shorter first, before the query before behind it
        best = (times * (4 * tokens) - rank).argmax(-1)
        return every[best].to(dtype), times.gather(-1, best[..., None])[..., 0].to(dtype)


def by_norm(layer: Layer, norms: Float[Tensor, "row head key"]) -> View:
    """Each key's share in what a query moves; queries that move nothing do not count."""
    own = norms * layer.facts.own[:, None]
    moved = by_query(layer.weights, own)
    taken = torch.where(layer.answers & (moved != 0), 1 / moved, 0.0)
    return View(layer, taken, own, moved)


def added_up(
    taken: Float[Tensor, "row a_head query"], values: Float[Tensor, "row head query key"]
) -> Float[Tensor, "row head key"]:
    """Sum over queries, each times its entry of `taken`."""
    return (taken[:, :, None] @ values)[:, :, 0]


def by_query(
    values: Float[Tensor, "row head query key"], of_key: Float[Tensor, "row head key"]
) -> Float[Tensor, "row head query"]:
    """Sum over keys, each times its entry of `of_key`; the vector in front is ten times faster."""
    return (of_key[:, :, None] @ values.mT)[:, :, 0]


def make(layer: Layer, views: Sequence[View], wanted: set[str]) -> None:
    """Computes the sums that need passes over all weights: only those `wanted`, for all views at once."""
    weights, facts = layer.weights, layer.facts
    if wanted & {"entropy", "evenness"}:
        tiny = torch.finfo(weights.dtype).tiny  # 0 ln 0 is 0, and there is no entropy of negative weights
        logs = torch.add(weights, tiny, out=layer.room).log_().mul_(weights)
        for view in views:
            view.entropies = _entropies(view, logs)
    if "distance" in wanted:
        products = layer.times(facts.once("gaps", lambda: _gaps(facts).to(weights.dtype)))
        for view in views:
            view.distance = view.summed(products)
    if "same" in wanted:
        products = layer.times(facts.once("likeness", lambda: _likeness(facts).to(weights.dtype)))
        for view in views:
            view.same = view.summed(products)
    if wanted & {"confidence", "fixed", "offset"}:
        for view in views:
            shares = weights if view.of_key is None else layer.times(view.of_key[:, :, None])
            largest, view.strongest = _strongest(shares)
            view.largest = largest * view.taken


def _strongest(
    shares: Float[Tensor, "row head query key"],
) -> tuple[Float[Tensor, "row head query"], Int[Tensor, "row head query"]]:
    """Largest weight of each query and its first key; on CPU by NumPy, which is faster."""
    if shares.device.type != "cpu":
        largest, at = shares.max(-1)
        return largest, at
    place = torch.from_numpy(shares.numpy().argmax(-1))
    return shares.gather(-1, place[..., None])[..., 0], place


def _entropies(view: View, logs: Float[Tensor, "row head query key"]) -> Float[Tensor, "row head query"]:
    """Row entropies; by norm of s = w n r as -(r (sum n w ln w + sum w n ln n) + ln r)."""
    if view.of_key is None:
        return -logs.sum(-1)
    norms = view.of_key
    parts = by_query(logs, norms) + by_query(view.layer.weights, torch.xlogy(norms, norms))
    return -(view.taken * parts + view.taken.log().where(view.taken > 0, 0.0))


def _gaps(facts: Facts) -> Int[Tensor, "query key"]:
    places = torch.arange(facts.special.shape[1], device=facts.lengths.device)
    return (places[None, :] - places[:, None]).abs()


def _likeness(facts: Facts) -> Bool[Tensor, "row 1 query key"]:
    same = torch.eye(facts.special.shape[1], dtype=torch.bool, device=facts.lengths.device)
    return (facts.alike & ~same)[:, None]
