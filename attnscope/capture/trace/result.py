"""What the tracer hands on: a whole attention, from its query to its output, as `batch head query key`."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnscope.capture.trace.layout import Logits, compact, in_order
from attnscope.capture.trace.operations import Multiplication, product_shape
from attnscope.capture.trace.scores import Places
from attnscope.reference import brought, exact


@dataclass(frozen=True, eq=False)
class TracedAttention:
    """One attention as the model computed it.

    `query`: batch head query dim; `key`: batch kv_head key dim; `value`: batch kv_head key value_dim, heads
    that a repeat made alike held once. They are what the model multiplied: a scale on them is in them, and
    `scale` is what came on top. A factor of its own for each head or query is in the query.
    `terms` were added to the scaled (and capped) scores, each its own traced tensor, broadcastable to
    batch head query key, as is `allowed`: a mask, or an added number of -1e4 or less, forbids.
    `remainder` is what of the logits is known only as a difference, None when they were rebuilt from all
    the above. `weights` (batch head query key) and `output` (batch head query value_dim) are the model's
    own; where it changed its softmax's result before it met the values, `reweighted` is what met them.
    `blended` values are no longer one token's each: a matrix of the model mixed them before.
    """

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    softcap: float | None
    terms: tuple[tuple[str, Tensor], ...]
    remainder: Tensor | None
    allowed: Tensor | None
    weights: Tensor
    output: Tensor
    reweighted: Tensor | None = None
    blended: bool = False


@dataclass(frozen=True, eq=False)
class Weights:
    """The result of a softmax on its way to the values: where its cells are now, and whether they changed."""

    logits: Logits
    weights: Tensor
    places: Places
    changed: bool = False


def weights_of(logits: Logits, result: Tensor) -> Weights:
    """The result of the softmax of these logits, still in the model's axes."""
    weights = logits.layout.arrange(result)
    queries, keys = weights.shape[-2:]
    return Weights(logits, weights, logits.layout.places(queries, keys, result.device))


def attention_of(
    module: nn.Module, weights: Weights, made: Multiplication, side: int, result: Tensor
) -> TracedAttention | None:
    """The attention that `made` completes, the weights being its operand number `side`.

    None when the product takes only some of the weights, or uses them otherwise than on values.
    """
    left, right, lead = product_shape(made)
    move, met, value = (made.left, left, right) if side == 0 else (made.right, right, left)
    output = made.result(result) if side == 0 else made.result(result).mT
    places = weights.places.moved(lambda place: move(place).expand(*lead, *met.shape[-2:]))
    batch, heads, queries, keys = weights.weights.shape
    pair = _order(_along(places.lead, range(len(lead))), batch * heads)
    row = _order(_along(places.row, [len(lead)]), queries)
    column = _order(_along(places.column, [len(lead) + 1]), keys)
    if pair is None or row is None or column is None:
        return None

    def arranged(tensor: Tensor, *orders: Tensor) -> Tensor:
        flat = tensor.expand(*lead, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:])
        for axis, order in enumerate(orders):
            flat = in_order(flat, axis, order)
        return flat.reshape(batch, heads, *flat.shape[-2:])

    met = arranged(met, pair, row, column) if weights.changed else weights.weights
    return attention_from(
        module,
        weights.logits,
        weights.weights,
        arranged(value.mT, pair, column),
        arranged(output, pair, row),
        reweighted=None if _alike(met, weights) else met.detach(),
    )


def attention_from(
    module: nn.Module,
    logits: Logits,
    weights: Tensor,
    value: Tensor,
    output: Tensor,
    reweighted: Tensor | None = None,
) -> TracedAttention:
    """The attention of these logits, all of it `batch head ...`, repeated key heads held once."""
    key, value = unrepeated(logits.key, value)
    return TracedAttention(
        module=module,
        query=logits.query.detach(),
        key=key.detach(),
        value=value.detach(),
        scale=logits.scale,
        softcap=logits.softcap,
        terms=tuple((name, term.detach()) for name, term in logits.terms),
        remainder=None if logits.remainder is None else logits.remainder.detach(),
        allowed=logits.allowed,
        weights=weights.detach(),
        output=output.detach(),
        reweighted=reweighted,
    )


def _along(place: Tensor, axes: Iterable[int]) -> Tensor | None:
    """The numbers of `place` along `axes`, flat; None where they differ along any other axis."""
    same, shape = compact(place), [1] * place.ndim
    for axis in axes:
        shape[axis] = place.shape[axis]
    for axis in set(range(place.ndim)) - set(axes):
        first = same.narrow(axis, 0, 1)
        if not torch.equal(same, first.expand_as(same)):
            return None
        same = first
    return same.expand(shape).flatten()


def _order(numbers: Tensor | None, count: int) -> Tensor | None:
    """Where each number from 0 to `count` stands; None when one is missing or comes twice."""
    if numbers is None or len(numbers) != count:
        return None
    values, order = numbers.sort()
    return order if torch.equal(values, torch.arange(count, device=values.device)) else None


def _alike(met: Tensor, weights: Weights) -> bool:
    """Whether weights that passed a further step are still the softmax's, in rows that have any key."""
    if not weights.changed:
        return True
    epsilon = max(torch.finfo(each.dtype).eps for each in (met, weights.weights))
    off = (exact(met) - exact(weights.weights)).abs()
    if weights.logits.allowed is not None:
        off = off.masked_fill(brought(~weights.logits.allowed.any(-1, keepdim=True)), 0)
    return bool(off.amax() <= 2 * epsilon)


def unrepeated(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Key and value with every head once that stands several times in a row, in both alike."""
    heads = key.shape[1]
    for count in range(1, heads):
        if heads % count == 0 and _repeats(key, count) and _repeats(value, count):
            step = heads // count
            return key[:, ::step], value[:, ::step]
    return key, value


def _repeats(tensor: Tensor, count: int) -> bool:
    """Whether the heads are `count` different ones, each copied several times in a row."""
    groups = tensor.reshape(tensor.shape[0], count, -1, *tensor.shape[2:])
    return torch.equal(groups, groups[:, :, :1].expand_as(groups))
