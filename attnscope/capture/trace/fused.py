"""Attention inside one function of torch, which shows no scores and no weights.

The fused kernel is asked again with the identity in place of V, so that it prints its weights. Where torch
hides the operations from whoever follows its functions, they are opened up: `F.multi_head_attention_forward`
is one function to torch's function modes, `nn.MultiheadAttention` has a native path that shows nothing, and
functions compiled by `torch.jit.script` are not seen at all.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.capture.running import hooked, weights_by_identity
from attnscope.capture.trace.operations import multiplication, product_shape
from attnscope.capture.trace.rebuild import rebuilt
from attnscope.capture.trace.result import TracedAttention, attention_from
from attnscope.capture.trace.scores import (
    Origin,
    Part,
    Scores,
    added,
    forbidding,
    product_scores,
    scaled,
    version,
)
from attnscope.model.anatomy.dimensions import head_count

_NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")

# the very code of torch, only that it does not hand itself over as a whole
stepwise: Callable[..., Any] = FunctionType(
    F.multi_head_attention_forward.__code__,
    {**vars(F), "has_torch_function": lambda tensors: False},
    "multi_head_attention_forward",
    F.multi_head_attention_forward.__defaults__,
)


def fused_attention(
    module: nn.Module,
    kernel: Callable[..., Tensor],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    output: Tensor,
    origin_of: Callable[[Tensor], Origin],
) -> TracedAttention | None:
    """The attention of one call of `scaled_dot_product_attention`, whose answer was `output`.

    Its weights are what the same kernel answers to blocks of the identity in place of the values. None
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
    """While open, functions that the modules' source files gave to torch.jit.script are plain Python."""
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
    """While open, nn.MultiheadAttention in `modules` still answers what torch's native path says.

    Under a function mode it goes step by step, which may round otherwise; the native path is then asked too.
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
