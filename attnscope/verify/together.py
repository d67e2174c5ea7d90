"""Computes several heads of one call together in float64, and their errors against the model.

The arithmetic is that of `attnscope.arithmetic` in a few reused matrices. Heads never mix: every product and
every largest error is one head's (`products`). So a head has the same bits whichever others it is computed
with, and a cached answer says so. Parts of the arithmetic whose operands a fault leaves as the same objects
are not computed again. Verdicts are not decided here.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.arithmetic import Operands, logits_over, softmax_over
from attnscope.attention import AttentionCall, of_heads
from attnscope.reference import EXACT, exact

_FIELDS = tuple(field.name for field in fields(Operands))
_NUMBERS = ("scale", "softcap")
_COUNTED = 100  # a score so far below the largest of its row has a weight of exp(-100) at most


class Distance(NamedTuple):
    """The largest weight error of a head, and its largest output error over the largest value entry."""

    weights: float
    output: float


class Together:
    """Several heads of a call: their operands, together and `alone`, and work matrices.

    `honest` comes first: what it leaves behind serves all the others.
    """

    def __init__(self, call: AttentionCall, heads: Sequence[int]) -> None:
        self.call, self.heads = call, tuple(heads)
        self.operands = call.operands_of(self.heads)
        self.alone = [_one(self.operands, i) for i in range(len(self.heads))]
        shape = (len(self.heads), call.q.shape[1], call.k.shape[1])
        # products of query and key; our weights; the model's; and room to work in
        self.products, self.weights, self.models, self.room = (
            self.operands.q.new_empty(shape) for _ in range(4)
        )
        self.output = exact(of_heads(call.output, self.heads))
        self.largest_value = self.operands.v.abs().amax((1, 2)).clamp_min(torch.finfo(EXACT).tiny)
        self.unanswered = _unanswered(call.allowed, self.heads)
        self._honest: list[Distance] = []
        self._sums: list[float] = []

    def honest(self) -> list[Distance]:
        """The errors of our weights and output against the model's, for each head.

        Rows without any allowed key are left out: the reference has no answer there and says so.
        """
        given = self.operands
        scores = products(given.q, given.k.mT, out=self.products)
        logits_over(scores, given.scale, given.softcap, given.bias, given.allowed, out=self.weights)
        self._sums = self._score_sums()
        softmax_over(self.weights, given.sinks)
        for matrix, head in zip(self.models, self.heads, strict=True):
            matrix.copy_(self.call.weights[head])
        every = range(len(self.heads))
        output = self._output_off(products(self._met(), given.v), every)
        self._honest = _pairs(self._weights_off(self.weights, every), output)
        return self._honest

    def distances(self, faulty: Mapping[int, Operands]) -> dict[int, Distance]:
        """The errors of heads computed from faulty operands, by index of the head."""
        alike: defaultdict[tuple[object, ...], dict[int, Operands]] = defaultdict(dict)
        for i, operands in faulty.items():
            alike[self._change(i, operands)][i] = operands
        found: dict[int, Distance] = {}
        for group in alike.values():
            found |= zip(group, self._off(group), strict=True)
        return found

    def score_sums(self) -> list[float]:
        """S in each head's tolerance: max over pairs of scale * sum |q_i k_i| + |bias|, dimensionless.

        Of the pairs that are allowed, those count whose weight is more than nothing: a score that lies,
        all its rounding included, 100 below the largest of its row has exp(-100) at most (masks of -1e9
        are such).
        """
        return self._sums

    def most_keys(self) -> list[int]:
        """For each head, the largest number of keys that any of its queries may attend to."""
        allowed = self.operands.allowed
        if allowed is None:
            return [self.call.k.shape[1]] * len(self.heads)
        most: list[int] = allowed.sum(-1).amax(-1).expand(len(self.heads)).tolist()
        return most

    def _score_sums(self) -> list[float]:
        """Computes `score_sums` from the logits that are in the weights' memory."""
        given, logits, epsilon = self.operands, self.weights, self.call.epsilon
        sums = products(given.q.abs(), given.k.abs().mT, out=self.room).mul_(abs(given.scale))
        if given.bias is not None:
            sums.add_(given.bias.abs())
        highest = logits.amax(-1, keepdim=True)
        least = (highest - _COUNTED).masked_fill_(highest == -torch.inf, torch.inf)  # of no key none counts
        largest, row = sums.amax(-1).max(-1)
        every = torch.arange(len(sums), device=sums.device)
        key = sums[every, row].argmax(-1)
        if (epsilon * largest + logits[every, row, key] >= least[every, row, 0]).all():  # the largest counts
            return largest.tolist()  # type: ignore[no-any-return]
        lifted = torch.mul(sums, epsilon, out=self.models).add_(logits)
        passed_over = (lifted >= least).logical_not_()  # also what is no number
        return _largest(sums.masked_fill_(passed_over, 0)).tolist()  # type: ignore[no-any-return]

    def _change(self, i: int, faulty: Operands) -> tuple[object, ...]:
        """A key for the operands that a fault changes: heads with equal keys are computed together."""
        mine = vars(self.alone[i])
        return tuple(
            (name, _told_by(name, value)) for name, value in vars(faulty).items() if value is not mine[name]
        )

    def _off(self, group: Mapping[int, Operands]) -> list[Distance]:
        rows, first = list(group), next(iter(group))
        same = {name for name in _FIELDS if getattr(group[first], name) is getattr(self.alone[first], name)}
        v = self._joined("v", group, same)
        if same >= {*_FIELDS} - {"v"}:
            weights_off = self.weights.new_tensor([self._honest[i].weights for i in rows])
            return _pairs(weights_off, self._output_of(_of(self.weights, rows), v, rows))
        scores, room = self._scores(group, same), self.room[: len(group)]
        bias, allowed, sinks = (self._joined(name, group, same) for name in ("bias", "allowed", "sinks"))
        logits = logits_over(scores, group[first].scale, group[first].softcap, bias, allowed, out=room)
        weights = softmax_over(logits, sinks)
        output = self._output_of(weights, v, rows)
        return _pairs(self._weights_off(weights, rows), output)

    def _scores(self, group: Mapping[int, Operands], same: set[str]) -> Float[Tensor, "head query key"]:
        rows, room = list(group), self.room[: len(group)]
        if {"q", "k"} <= same:
            return _of(self.products, rows)
        if all(each.q is self.alone[i].k and each.k is self.alone[i].q for i, each in group.items()):
            return room.copy_(_of(self.products, rows).mT)  # the same sums of the same products
        q, k = self._joined("q", group, same), self._joined("k", group, same)
        return products(q, k.mT, out=room)

    def _joined(self, name: str, group: Mapping[int, Operands], same: set[str]) -> Any:
        mine = [getattr(each, name) for each in group.values()]
        if mine[0] is None:
            return None
        return _of(getattr(self.operands, name), list(group)) if name in same else torch.cat(mine)

    def _met(self) -> Float[Tensor, "head query key"]:
        """The weights that multiply the values: the softmax's, unless the model changes them after it."""
        met = self.call.reweighted
        return self.weights if met is None else torch.stack([exact(met[head]) for head in self.heads])

    def _output_of(
        self,
        weights: Float[Tensor, "head query key"],
        v: Float[Tensor, "head key value_dim"],
        rows: Sequence[int],
    ) -> Float[Tensor, " head"]:
        """The output error; unchanged by a fault where the model's own weights multiply the values."""
        if self.call.reweighted is not None:
            return self.weights.new_tensor([self._honest[i].output for i in rows])
        return self._output_off(products(weights, v), rows)

    def _output_off(
        self, output: Float[Tensor, "head query value_dim"], rows: Sequence[int]
    ) -> Float[Tensor, " head"]:
        distance = self._answered(output.sub_(_of(self.output, rows)), rows)
        off = _largest(distance.abs_()) / _of(self.largest_value, rows)
        if self.unanswered is None:
            return off
        return off.masked_fill_(_of(self.unanswered, rows).all(-1), 0)  # where no value counts, as if not one

    def _weights_off(
        self, weights: Float[Tensor, "head query key"], rows: Sequence[int]
    ) -> Float[Tensor, " head"]:
        off = torch.sub(weights, _of(self.models, rows), out=self.room[: len(rows)])
        return _largest(self._answered(off, rows).abs_())

    def _answered(
        self, distance: Float[Tensor, "head query any"], rows: Sequence[int]
    ) -> Float[Tensor, "head query any"]:
        if self.unanswered is None:
            return distance
        return distance.masked_fill_(_of(self.unanswered, rows)[..., None], 0)


class FewQueries(Together):
    """A subset of queries of `Together`, after `honest`: errors there are lower bounds."""

    def __init__(self, whole: Together, queries: Sequence[int]) -> None:
        vars(self).update(vars(whole))
        self.whole, self.queries = whole, list(queries)
        self.operands = self._cut(whole.operands)
        self.alone = [_one(self.operands, i) for i in range(len(self.heads))]
        self.products, self.weights, self.models, self.output = (
            each[:, self.queries] for each in (whole.products, whole.weights, whole.models, whole.output)
        )
        self.room = torch.empty_like(self.weights)
        self.unanswered = None if whole.unanswered is None else whole.unanswered[:, self.queries]

    def distances(self, faulty: Mapping[int, Operands]) -> dict[int, Distance]:
        """The errors of faulty heads on these queries."""
        return super().distances({i: self._faulty(i, each) for i, each in faulty.items()})

    def _faulty(self, i: int, operands: Operands) -> Operands:
        was, mine, given = (vars(each) for each in (self.whole.alone[i], self.alone[i], operands))
        cut = vars(self._cut(operands))
        return Operands(**{name: mine[name] if given[name] is was[name] else cut[name] for name in cut})

    def _cut(self, operands: Operands) -> Operands:
        by_query = operands.sinks is not None and operands.sinks.ndim > 1 and operands.sinks.shape[1] > 1
        some = {"q": operands.q, "bias": operands.bias, "allowed": operands.allowed}
        some |= {"sinks": operands.sinks} if by_query else {}
        return operands.but(
            **{name: each[:, self.queries] for name, each in some.items() if each is not None}
        )


def products(
    left: Float[Tensor, "head row inner"],
    right: Float[Tensor, "head inner column"],
    out: Float[Tensor, "head row column"] | None = None,
) -> Float[Tensor, "head row column"]:
    """Batched matrix product, each head computed alone so that its bits do not depend on the others.

    In a batched product a library adds in another order where a matrix begins elsewhere in memory, or where
    more of them share its threads.
    """
    if out is None:
        out = left.new_empty(len(left), left.shape[1], right.shape[2])
    if not len(out):
        return out
    one, other, made = (torch.empty_like(each[0]) for each in (left, right, out))
    for mine, theirs, place in zip(left.unbind(), right.unbind(), out.unbind(), strict=True):
        place.copy_(torch.mm(one.copy_(mine), other.copy_(theirs), out=made))
    return out


def _unanswered(
    allowed: Bool[Tensor, "#head query key"] | None, heads: Sequence[int]
) -> Bool[Tensor, "#head query"] | None:
    if allowed is None:
        return None
    none = ~allowed.any(-1)
    none = none[list(heads)] if len(none) > 1 else none
    return none if none.any() else None


def _told_by(name: str, value: Any) -> object:
    return value if value is None or name in _NUMBERS else tuple(value.shape)


def _one(together: Operands, i: int) -> Operands:
    return together.but(
        **{
            name: _of(value, [i])
            for name in _FIELDS
            if name not in _NUMBERS and (value := getattr(together, name)) is not None
        }
    )


def _of(shared: Tensor, rows: Sequence[int]) -> Tensor:
    """The entries of some heads (a shared entry for all), without a copy where possible."""
    if len(shared) == 1 or list(rows) == list(range(len(shared))):
        return shared
    return shared[rows[0] : rows[0] + 1] if len(rows) == 1 else shared[list(rows)]


def _largest(distances: Float[Tensor, "head query any"]) -> Float[Tensor, " head"]:
    """The largest entry of each head, NaN if any is NaN; 0 for an empty tensor."""
    return distances.amax((1, 2)) if distances.numel() else distances.new_zeros(len(distances))


def _pairs(weights: Float[Tensor, " head"], output: Float[Tensor, " head"]) -> list[Distance]:
    return [Distance(*pair) for pair in zip(weights.tolist(), output.tolist(), strict=True)]
