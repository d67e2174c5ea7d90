"""From what a kernel was handed to an `AttentionCall`: one batch entry, mask and bias told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.capture.describe import Sides
from attnscope.capture.takeover import KernelInputs, kernel_name, weights_by_identity
from attnscope.errors import InputError
from attnscope.model.anatomy import Site


@dataclass(frozen=True, eq=False)
class KernelCall:
    """One call as it passed by, with what the kernel answered and the key before its rotation, if seen."""

    given: KernelInputs
    output: Tensor
    weights: Tensor | None
    unrotated: Tensor | None


def attention_call(
    seen: KernelCall,
    site: Site,
    layer: int,
    number: int,
    sides: Sides,
    heads: Sequence[int] | None,
    row: int,
) -> AttentionCall:
    """The call's batch entry `row`, on the CPU, with the model's own weights for `heads`.

    Raises `InputError` when queries or keys are not the tokens of the input, as with a cache.
    """
    query_tokens, key_tokens = sides.of(site.kind)
    queries, keys = seen.given.query.shape[2], seen.given.key.shape[2]
    if (queries, keys) != (len(query_tokens), len(key_tokens)):
        tokens = f"the input has {len(query_tokens)} and {len(key_tokens)} tokens"
        raise InputError(
            f"{site.path} has {queries} queries and {keys} keys, {tokens}: caches are not read yet"
        )
    bias, allowed = _bias_and_allowed(seen, row)
    sinks = seen.given.options.get("s_aux")
    epsilon, precision = _precision(seen.given.query)
    scale = seen.given.options.get("scaling")
    return AttentionCall(
        module=site.path,
        call=number,
        layer=layer,
        kind=site.kind,
        query_tokens=query_tokens,
        key_tokens=key_tokens,
        q=_kept(seen.given.query[row]),
        k=_kept(seen.given.key[row]),
        v=_kept(seen.given.value[row]),
        scale=seen.given.query.shape[-1] ** -0.5 if scale is None else float(scale),
        softcap=seen.given.options.get("softcap"),
        bias=bias,
        allowed=allowed,
        sinks=None if sinks is None else _kept(sinks.flatten()),
        window=seen.given.options.get("sliding_window"),
        output=_kept(seen.output[row].transpose(0, 1)),
        weights=_own_weights(seen, heads, row),
        epsilon=epsilon,
        precision=precision,
        unrotated_k=_unrotated(seen, row),
    )


def _kept(tensor: Tensor) -> Tensor:
    """A copy that later in-place work of the model cannot reach."""
    return tensor.detach().to("cpu", copy=True)


def _own_weights(seen: KernelCall, heads: Sequence[int] | None, row: int) -> dict[int, Tensor]:
    """The weights that the model's own kernel made, by head: returned by eager, asked out of the others."""
    count = seen.given.query.shape[1]
    chosen = range(count) if heads is None else [_chosen_head(head, count) for head in heads]
    weights = weights_by_identity(seen.given.row(row)) if seen.weights is None else seen.weights[row]
    return {head: _kept(weights[head]) for head in chosen}


def _chosen_head(head: int, count: int) -> int:
    if not -count <= head < count:
        raise InputError(f"no head {head}: heads are 0-{count - 1}")
    return head % count


def _bias_and_allowed(seen: KernelCall, row: int) -> tuple[Tensor | None, Tensor | None]:
    """What is added to the scores and where a query may look, each `head-or-1 query key`, None when trivial.

    A float mask may carry a learned bias: below half the lowest number is forbidden, the rest is bias.
    """
    bias, allowed = None, None
    if seen.given.mask is not None:
        mask = seen.given.mask[row if seen.given.mask.shape[0] > 1 else 0].detach().cpu()
        mask = mask.expand(mask.shape[0], seen.given.query.shape[2], mask.shape[-1])[
            ..., : seen.given.key.shape[2]
        ]
        if mask.dtype == torch.bool:
            allowed = mask.clone()
        else:
            allowed = mask > torch.finfo(mask.dtype).min / 2
            bias = torch.where(allowed, mask, 0)
    elif _causal_without_mask(seen):
        allowed = torch.ones(seen.given.query.shape[2], seen.given.key.shape[2], dtype=torch.bool).tril()[
            None
        ]
    if (added := seen.given.options.get("position_bias")) is not None:
        added = added[row if added.shape[0] > 1 else 0].detach().cpu()
        bias = added if bias is None else bias + added
    return (
        bias if bias is not None and bias.any() else None,
        allowed if allowed is not None and not allowed.all() else None,
    )


def _causal_without_mask(seen: KernelCall) -> bool:
    """torch's sdpa is told to be causal by a flag; eager without a mask lets every query look everywhere."""
    if kernel_name(seen.given.module) == "eager" or seen.given.query.shape[2] == 1:
        return False
    flag = seen.given.options.get("is_causal")
    return bool(getattr(seen.given.module, "is_causal", True) if flag is None else flag)


def _precision(query: Tensor) -> tuple[float, str]:
    """Machine epsilon of the coarsest arithmetic that the kernel may use, and where that comes from.

    Many models run their softmax in float32 whatever the rest runs in, so float64 counts as float32.
    """
    device, dtype = query.device.type, query.dtype
    if torch.is_autocast_enabled(device):
        dtype = max(dtype, torch.get_autocast_dtype(device), key=lambda each: torch.finfo(each).eps)
    name = str(dtype).removeprefix("torch.")
    tf32 = query.is_cuda and dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
    if tf32:
        return 2.0**-10, f"TensorFloat-32 products on {device}"
    if dtype == torch.float64:
        return torch.finfo(torch.float32).eps, f"float64 on {device}, its softmax perhaps in float32"
    return torch.finfo(dtype).eps, f"{name} on {device}"


def _unrotated(seen: KernelCall, row: int) -> Tensor | None:
    """The key before its rotary position as `kv_head key dim`, where a projection showed it in this shape."""
    if seen.unrotated is None:
        return None
    rotated, before = seen.given.key[row].detach().cpu(), seen.unrotated[row].detach().cpu()
    key_heads, keys, dim = rotated.shape
    candidates = [before] if before.shape == rotated.shape else []
    if before.numel() == rotated.numel() and before.shape[0] == keys:
        candidates.append(before.reshape(keys, key_heads, dim).transpose(0, 1))
    # as many tokens as key heads: both fit; a rotation keeps every length, the wrong order does not
    lengths = rotated.norm(dim=-1)
    candidates.sort(key=lambda each: float((each.norm(dim=-1) - lengths).abs().max()))
    return candidates[0].clone() if candidates else None
