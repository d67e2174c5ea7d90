"""Traced attentions as a whole, also those made inside one fused function of torch.

Such a function shows no scores and no weights. The fused kernel is asked again with the identity in place of
V, so that it returns its weights. Torch hides some operations from function modes; these are opened up:
`F.multi_head_attention_forward` is one function to torch's function modes,
`nn.MultiheadAttention` has a native path that shows nothing, and functions compiled by `torch.jit.script` are
not seen at all.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.capture.running import hooked, weights_by_identity
from attnscope.capture.trace.layout import Logits, compact, in_order, rebuilt
from attnscope.capture.trace.operations import Multiplication, multiplication, product_shape
from attnscope.capture.trace.scores import (
    Origin,
    Part,
    Places,
    Scores,
    added,
    forbidding,
    product_scores,
    scaled,
    version,
)
from attnscope.model.anatomy.towers import head_count
from attnscope.reference import brought, exact

_NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")

# torch's own code, but function modes see its steps rather than the whole
stepwise: Callable[..., Any] = FunctionType(
    F.multi_head_attention_forward.__code__,
    {**vars(F), "has_torch_function": lambda tensors: False},
    "multi_head_attention_forward",
    F.multi_head_attention_forward.__defaults__,
)


@dataclass(frozen=True, eq=False)
class TracedAttention:
    """One attention as the model computed it, read off torch's operations.

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
    """Result of a softmax on its way to the values: the current places of its cells, and if they changed."""

    logits: Logits
    weights: Tensor
    places: Places
    changed: bool = False


def weights_of(logits: Logits, result: Tensor) -> Weights:
    """`Weights` of the softmax of these logits; `result` is still in the model's axes."""
    weights = logits.layout.arrange(result)
    queries, keys = weights.shape[-2:]
    return Weights(logits, weights, logits.layout.places(queries, keys, result.device))


def attention_of(
    module: nn.Module, weights: Weights, made: Multiplication, side: int, result: Tensor
) -> TracedAttention | None:
    """The attention that the product `made` completes, with the weights as its operand number `side`.

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
    """`TracedAttention` of these logits, weights, values and output, with repeated key heads held once."""
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
    """Index at which each number from 0 to `count` - 1 stands; None when one is missing or comes twice."""
    if numbers is None or len(numbers) != count:
        return None
    values, order = numbers.sort()
    return order if torch.equal(values, torch.arange(count, device=values.device)) else None


def _alike(met: Tensor, weights: Weights) -> bool:
    """Whether weights that passed a further step still equal the softmax's, in rows that have any key."""
    if not weights.changed:
        return True
    epsilon = max(torch.finfo(each.dtype).eps for each in (met, weights.weights))
    off = (exact(met) - exact(weights.weights)).abs()
    if weights.logits.allowed is not None:
        off = off.masked_fill(brought(~weights.logits.allowed.any(-1, keepdim=True)), 0)
    return bool(off.amax() <= 2 * epsilon)


def unrepeated(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Key and value without repeated heads, where consecutive heads are equal in both."""
    heads = key.shape[1]
    for count in range(1, heads):
        if heads % count == 0 and _repeats(key, count) and _repeats(value, count):
            step = heads // count
            return key[:, ::step], value[:, ::step]
    return key, value


def _repeats(tensor: Tensor, count: int) -> bool:
    """Whether the heads are `count` groups of consecutive equal heads."""
    groups = tensor.reshape(tensor.shape[0], count, -1, *tensor.shape[2:])
    return torch.equal(groups, groups[:, :, :1].expand_as(groups))


def fused_attention(
    module: nn.Module,
    kernel: Callable[..., Tensor],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    output: Tensor,
    origin_of: Callable[[Tensor], Origin],
) -> TracedAttention | None:
    """The attention of one call of `scaled_dot_product_attention`, whose result was `output`.

    Its weights are the same kernel's output for blocks of the identity in place of the values. None
    under dropout, which is drawn anew at each call.
    """
    given = {**dict(zip(_NAMES, args, strict=False)), **kwargs}
    query, key, value = given["query"], given["key"], given["value"]
    if given.get("dropout_p"):
        return None
    repeats = query.shape[-3] // key.shape[-3] if given.get("enable_gqa") else 1
    if repeats > 1:
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    made = multiplication("matmul", (query, key.mT), {})
    if made is None:
        return None
    lead = product_shape(made)[2]
    shape = torch.Size((*lead, query.shape[-2], key.shape[-2]))
    origins = origin_of(given["query"]), origin_of(given["key"])
    product = product_scores(made, query.new_empty(1).expand(shape), Origin(), origins)
    scores = _masked(product, given, shape, origin_of)
    logits = rebuilt(scores, None, len(shape) - 1, head_count(module)) if scores else None
    if logits is None:
        return None
    options = {each: given[each] for each in ("attn_mask", "is_causal", "scale") if each in given}
    blank = torch.zeros_like(value, memory_format=torch.contiguous_format)
    weights = weights_by_identity(lambda values: kernel(query, key, values, **options), blank)
    value, output = (each.expand(*lead, *each.shape[-2:]) for each in (value, output))
    arrange = logits.layout.arrange
    return attention_from(module, logits, arrange(weights), arrange(value), arrange(output))


def _masked(
    product: Scores, given: Mapping[str, Any], shape: torch.Size, origin_of: Callable[[Tensor], Origin]
) -> Scores | None:
    scale, mask = given.get("scale"), given.get("attn_mask")
    scores = scaled(product, given["query"].shape[-1] ** -0.5 if scale is None else scale)
    if scores is None:
        return None
    if given.get("is_causal"):
        causal = torch.ones(shape[-2:], dtype=torch.bool, device=given["query"].device).tril()
        scores = forbidding(scores, ~causal)
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return forbidding(scores, ~mask)
    part = Part(mask, version(mask), origin_of(mask))
    return added(scores, Scores(mask.shape, (part,)), shape)


@contextmanager
def unscripted(modules: Iterable[nn.Module]) -> Iterator[None]:
    """While open, functions that the modules' source files compiled by torch.jit.script are plain Python."""
    sources = {cls.__module__ for module in modules for cls in type(module).__mro__}
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for source in sources & set(sys.modules):
            names = vars(sys.modules[source])
            for name, entry in list(names.items()):
                original = getattr(entry, "_torchdynamo_inline", None)
                if isinstance(entry, torch.jit.ScriptFunction) and original is not None:
                    replaced.append((names, name, entry))
                    names[name] = original
        yield
    finally:
        for names, name, entry in replaced:
            names[name] = entry


@contextmanager
def native_answers(modules: Iterable[nn.Module]) -> Iterator[None]:
    """While open, nn.MultiheadAttention in `modules` still returns the result of torch's native path.

    Under a function mode it goes step by step, which may round otherwise; the native path is then run too.
    """
    inside = dict.fromkeys(inner for outer in modules for inner in outer.modules())
    attending = [each for each in inside if isinstance(each, nn.MultiheadAttention)]
    with hooked(each.register_forward_hook(_native_answer, with_kwargs=True) for each in attending):
        yield


def _native_answer(module: nn.Module, args: Any, kwargs: Any, answer: Any) -> Any:
    given: list[Tensor] = [*args, *(kwargs[each] for each in ("query", "key", "value") if each in kwargs)]
    if not module.batch_first or given[0] is not given[1] or given[1] is not given[2]:
        return None
    with torch._C.DisableTorchFunction():
        return type(module).forward(module, *args, **kwargs)
