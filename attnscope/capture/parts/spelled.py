"""Functions that are several in one, in elementary ones: the rule meets these in their place."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attnscope.capture.trace.fused import stepwise


def _layer_norm(x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    centred = x - x.mean(axes, keepdim=True)
    made: Tensor = centred * (centred.pow(2).mean(axes, keepdim=True) + eps).rsqrt()
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def _rms_norm(x: Tensor, shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    least = torch.finfo(x.dtype).eps if eps is None else eps
    made: Tensor = x * (x.pow(2).mean(axes, keepdim=True) + least).rsqrt()
    return made if weight is None else made * weight


def _normalize(x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None) -> Tensor:
    made: Tensor = x / x.norm(p, dim, keepdim=True).clamp_min(eps)
    return made


def _addmm(input: Any, *operands: Any, beta: float = 1, alpha: float = 1, **named: Any) -> Tensor:
    first, second = (*operands, *named.values())  # mat1 and mat2, or batch1 and batch2
    made: Tensor = first @ second
    made = made if alpha == 1 else made * alpha
    return made if beta == 0 else made + (input if beta == 1 else input * beta)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    groups = query.shape[-3] // key.shape[-3] if enable_gqa else 1
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        shape = query.shape[-2], key.shape[-2]
        later = torch.ones(shape, dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return F.softmax(scores, -1) @ value


SPELLED: dict[str, Callable[..., Any]] = {
    "multi_head_attention_forward": stepwise,
    "scaled_dot_product_attention": _attention,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "normalize": _normalize,
    "addmm": _addmm,
    "baddbmm": _addmm,
}
