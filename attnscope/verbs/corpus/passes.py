"""A layer's weights in a batch of texts, and what measures share of a few passes over them.

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
    """Texts of a batch, `lengths` tokens long, filled up to as many as the longest has."""

    lengths: Int[Tensor, " row"]
    special: Bool[Tensor, "row key"]
    punctuation: Bool[Tensor, "row key"]
    alike: Bool[Tensor, "row query key"]

    @classmethod
    def of(cls, texts: Sequence[Tokens]) -> "Facts":
        """What the tokens tell."""
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
        """The same facts on `device`, moved there once."""
        if device == self.lengths.device:
            return self
        moved = (each.to(device) for each in (self.lengths, self.special, self.punctuation, self.alike))
        return self.once(("at", device), lambda: Facts(*moved))

    def once(self, name: object, make: Callable[[], Made]) -> Made:
        """What is the same for all layers, made once."""
        kept: dict[object, Any] = self.__dict__.setdefault("_made", {})
        if name not in kept:
            kept[name] = make()
        made: Made = kept[name]
        return made

    @property
    def own(self) -> Bool[Tensor, "row token"]:
        """Which tokens are the text's own."""
        return torch.arange(self.special.shape[1], device=self.lengths.device) < self.lengths[:, None]

    @property
    def missing(self) -> dict[str, Bool[Tensor, " row"]]:
        """Which texts lack a sort of keys altogether: what is measured of these then has no meaning."""
        return {
            "special": ~self.special.any(-1),
            "punctuation": ~self.punctuation.any(-1),
            "alike": self.alike.sum((-2, -1)) <= self.lengths,
        }


def triangles(projection: Float[Tensor, "head value_dim hidden"]) -> Float[Tensor, "head size value_dim"]:
    """R of every head, in float64."""
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
    """The weights of a layer in a batch, and which queries of it answer: those of a text that see a key."""

    weights: Float[Tensor, "row head query key"]
    facts: Facts
    allowed: Bool[Tensor, "row mask_head query key"]
    visible: Int[Tensor, "row mask_head query"]
    answers: Bool[Tensor, "row mask_head query"]

    @classmethod
    def of(cls, passed: Passed, facts: Facts) -> "Layer":
        """What is in a batch of weights; what stands where no text is, is passed over."""
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
        """Without what is no number where no text is; `CertificateError` where one stands in a text."""
        cleared = self.weights.masked_fill(~(self.answers[..., None] & self.facts.own[:, None, None]), 0.0)
        found = Layer(cleared, self.facts, self.allowed, self.visible, self.answers)
        if bool(found.columns.isfinite().all()):
            return found
        raise CertificateError("weights of attention are not numbers: the checkpoint may be damaged")

    @cached_property
    def columns(self) -> Float[Tensor, "row head key"]:
        """What the queries that answer give to each key, added up."""
        return added_up(self.answers.to(self.weights.dtype), self.weights)

    @cached_property
    def room(self) -> Float[Tensor, "row head query key"]:
        """Where products with the weights are made, one after the other; the same for every layer."""
        weights = self.weights
        return self.facts.once(("room", weights.shape, weights.dtype), lambda: torch.empty_like(weights))

    def times(self, by: Tensor) -> Float[Tensor, "row head query key"]:
        """The weights times what each counts; until the next product."""
        return torch.mul(self.weights, by, out=self.room)

    @cached_property
    def may_repeat(self) -> Bool[Tensor, "row mask_head query"]:
        """Which queries may look at another place of their own token."""
        alike = self.facts.once("likeness", lambda: _likeness(self.facts).to(self.weights.dtype))
        return (self.allowed & (alike > 0)).any(-1)

    def behind(self, step: int) -> Float[Tensor, "row mask_head query"]:
        """1 for the queries that answer and whose text has a token `step` behind them."""
        places = torch.arange(self.weights.shape[-1], device=self.weights.device) + step
        inside = (places >= 0) & (places < self.facts.lengths[:, None, None])
        return (inside & self.answers).to(self.weights.dtype)


@dataclass(eq=False)
class View:
    """The weights of a layer, each times a number of its query (`taken`) and one of its key (`of_key`).

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
        """1 for each query that counts."""
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
        """The sum over queries and keys of something times the weights."""
        by_key = added_up(self.taken, products)
        return (by_key if self.of_key is None else by_key * self.of_key).sum(-1)

    def at(self, step: int) -> OfHead:
        """The sum of what queries give to the key `step` behind them."""
        line, first = self.layer.weights.diagonal(step, -2, -1), max(-step, 0)
        mine = line * self.taken[..., first : first + line.shape[-1]]
        if self.of_key is not None:
            behind = max(step, 0)
            mine = mine * self.of_key[..., behind : behind + line.shape[-1]]
        return mine.sum(-1)

    def that_may(self, look: Bool[Tensor, "row mask_head query"]) -> OfHead:
        """How many of the queries that count may look somewhere."""
        return (self.answers * look).sum(-1)

    def at_step(self, step: int) -> Mean:
        """The mean weight on the key `step` behind a query."""
        look = torch.zeros_like(self.layer.answers)
        line = self.layer.allowed.diagonal(step, -2, -1)
        look[..., max(-step, 0) : max(-step, 0) + line.shape[-1]] = line
        return self.at(step), self.that_may(look)

    def on(self, keys: Bool[Tensor, "row key"]) -> Mean:
        """The mean weight on keys of a sort."""
        look = (self.layer.allowed & keys[:, None, None]).any(-1)
        return (self.columns * keys[:, None]).sum(-1), self.that_may(look)

    def over(self, rows: Float[Tensor, "row head query"]) -> Mean:
        """The mean over queries."""
        return (rows * self.answers).sum(-1), self.count

    def all_moved(self) -> Mean:
        """The mean of what queries move, of those that move nothing too."""
        assert self.moved is not None, "a view by norm"
        answers = self.layer.answers.to(self.moved.dtype)
        return (self.moved * answers).sum(-1), answers.sum(-1)

    def even(self) -> Mean:
        """The mean of entropies over their largest, of queries that have a choice."""
        choice = self.answers * (self.layer.visible > 1)
        most = self.layer.visible.clamp_min(2).to(self.taken.dtype).log()
        return (self.entropies / most * choice).sum(-1), choice.sum(-1)

    def sink(self) -> Mean:
        """The mean weight on the first key, of queries but the first."""
        first = self.layer.weights[..., 0, 0] * self.taken[..., 0]
        first = first if self.of_key is None else first * self.of_key[..., 0]
        look = self.layer.allowed[..., 0].clone()
        look[..., 0] = False
        return self.columns[..., 0] - first, self.that_may(look)

    @cached_property
    def offsets(self) -> tuple[OfHead, OfHead]:
        """The most frequent offset of the strongest key, of several the shortest, and how often it is."""
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
    """The shares of keys in what each query moves; one that moves nothing has none, and does not count."""
    own = norms * layer.facts.own[:, None]
    moved = by_query(layer.weights, own)
    taken = torch.where(layer.answers & (moved != 0), 1 / moved, 0.0)
    return View(layer, taken, own, moved)


def added_up(
    taken: Float[Tensor, "row a_head query"], values: Float[Tensor, "row head query key"]
) -> Float[Tensor, "row head key"]:
    """The sum over queries, each times what is taken of it."""
    return (taken[:, :, None] @ values)[:, :, 0]


def by_query(
    values: Float[Tensor, "row head query key"], of_key: Float[Tensor, "row head key"]
) -> Float[Tensor, "row head query"]:
    """The sum over keys, each times a number of it; the vector in front is ten times faster."""
    return (of_key[:, :, None] @ values.mT)[:, :, 0]


def make(layer: Layer, views: Sequence[View], wanted: set[str]) -> None:
    """What takes passes over all weights: what is `wanted` alone, for both views of one product."""
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
    """The largest of each query and the first key that has it: on a processor NumPy finds that sooner."""
    if shares.device.type != "cpu":
        largest, at = shares.max(-1)
        return largest, at
    place = torch.from_numpy(shares.numpy().argmax(-1))
    return shares.gather(-1, place[..., None])[..., 0], place


def _entropies(view: View, logs: Float[Tensor, "row head query key"]) -> Float[Tensor, "row head query"]:
    """Of s = w n r, n of the key and r of the query: -(r (sum n w ln w + sum w n ln n) + ln r)."""
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
