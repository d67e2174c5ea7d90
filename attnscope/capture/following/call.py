"""From what an attention was handed and answered to an `AttentionCall`: one batch entry, on its device.

A kernel's arguments become terms added to its scores and allowed pairs, by each kernel's convention.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_mask

from attnscope.attention import AttentionCall, Term
from attnscope.capture.arithmetic import precision_of, sums_of
from attnscope.capture.following.takeover import KernelInputs, is_foreign, kernel_name, kernel_weights
from attnscope.capture.trace.tracer import TracedAttention
from attnscope.errors import InputError
from attnscope.results import Kind, Route

RELATIVE_POSITION = "relative position"
IN_THE_MASK = "bias in the mask"
_BLENDED = "the values of several tokens are mixed before the weights meet them"


def terms_and_allowed(given: KernelInputs, row: int) -> tuple[tuple[Term, ...], Tensor | None]:
    """What is added to the scores, and where a query may look (`head-or-1 query key`, None: everywhere)."""
    queries, keys = given.query.shape[2], given.key.shape[2]
    name, mask = kernel_name(given.module), given.mask
    added: dict[str, Tensor] = {}
    allowed = None
    if isinstance(mask, BlockMask):
        allowed = _of_block_mask(mask, given, row)
    elif (mask is None or mask.ndim == 2) and is_foreign(name):
        allowed = _of_foreign(given, row)
    elif name.startswith("flash"):
        allowed = _together(_flagged(given, row))
    elif mask is not None:
        mask = _of_row(mask, row)[..., :keys].expand(-1, queries, -1)
        # eager functions add whatever they are given: a mask of True and False is one of 1 and 0 to them
        bias, allowed = _of_tensor(mask.to(given.query.dtype) if name == "eager" else mask)
        added |= {} if bias is None else {IN_THE_MASK: bias}
    elif name == "sdpa" and queries > 1 and given.is_causal:  # eager without a mask looks everywhere
        allowed = given.query.new_ones(queries, keys, dtype=torch.bool).tril()[None]
    if (bias := given.options.get("position_bias")) is not None:
        added[RELATIVE_POSITION] = _of_row(bias, row).expand(-1, queries, -1)[..., -keys:]
    terms = tuple(Term(name, values.clone()) for name, values in added.items() if values.any())
    return terms, None if allowed is None or allowed.all() else allowed


def _of_row(tensor: Tensor, row: int) -> Tensor:
    return tensor[row if tensor.shape[0] > 1 else 0].detach()


def _of_tensor(mask: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Bias and allowed pairs. Below half the lowest number is forbidden, the rest is a learned bias."""
    if mask.dtype == torch.bool:
        return None, mask.clone()
    allowed = mask > torch.finfo(mask.dtype).min / 2
    return torch.where(allowed, mask, 0), allowed


def _of_block_mask(mask: BlockMask, given: KernelInputs, row: int) -> Tensor:
    queries, keys = given.query.shape[2], given.key.shape[2]
    asked: Any = create_mask(mask.mask_mod, mask.shape[0], mask.shape[1], queries, keys, given.query.device)
    return _of_row(asked, row)


def _of_foreign(given: KernelInputs, row: int) -> Tensor | None:
    """What a kernel of unknown conventions looks at, that was handed no mask for every pair.

    It may heed or leave out whatever else it was told: it is read by those rules that the weights which it
    prints itself keep to. Whether it then computes what we do is the certificate's business.
    """
    seen = (kernel_weights(given, row) != 0).any(0)
    return _together([rule for rule in _flagged(given, row) if not (seen & ~rule).any()])


def _together(rules: list[Tensor]) -> Tensor | None:
    return torch.stack(rules).all(0)[None] if rules else None


def _flagged(given: KernelInputs, row: int) -> list[Tensor]:
    """The rules that a kernel gets beside a mask for every pair: causality, a window, and the padding.

    Each is `query key`. They are aligned to the last query and key; a window of w reaches w - 1 tokens back,
    and as far ahead where the kernel is not causal. Padding is a row of 0 and 1.
    """
    queries, keys = given.query.shape[2], given.key.shape[2]
    to, by = (torch.arange(length, device=given.query.device) for length in (keys, queries))
    ahead = to[None, :] - by[:, None] - (keys - queries)
    window, mask = given.options.get("sliding_window"), given.mask
    rules = []
    if causal := queries > 1 and given.is_causal:
        rules.append(ahead <= 0)
    if window is not None and keys > window:
        rules.append((-ahead if causal else ahead.abs()) < window)
    if mask is not None:
        there = mask[row if len(mask) > 1 else 0].detach().bool()[None, -keys:]
        rules.append(there.expand(queries, -1))
    return rules


@dataclass(frozen=True, eq=False)
class KernelCall:
    """One call as it passed by, with what the kernel answered and the key before its rotation, if seen."""

    given: KernelInputs
    output: Tensor
    weights: Tensor | None
    unrotated: Tensor | None

    @property
    def entries(self) -> int:
        """Length of the batch axis."""
        return self.given.query.shape[0]


def of_kernel(seen: KernelCall, entry: int, *, heads: Sequence[int] | None, **place: Any) -> AttentionCall:
    """The call's batch entry `entry`, with the model's own weights for `heads`; `place` says where it is."""
    terms, allowed = terms_and_allowed(seen.given, entry)
    fields = kernel_fields(seen, entry)
    # a sink that a kernel applies after its softmax is missing in the weights that it returns
    returned = seen.weights if fields["sinks"] is None and _are_weights(seen) else None
    weights = kernel_weights(seen.given, entry) if returned is None else returned[entry]
    own = of_heads(weights, heads)
    return AttentionCall(terms=terms, allowed=allowed, weights=own, **fields, **place)


def kernel_fields(seen: KernelCall, entry: int) -> dict[str, Any]:
    """What the record of a call holds whatever the length of its text: nothing of queries by keys."""
    given = seen.given
    epsilon, precision = precision_of(given.query, seen.output)
    scale = given.options.get("scaling")
    return {
        "q": kept(given.query[entry]),
        "k": kept(given.key[entry]),
        "v": kept(given.value[entry]),
        "scale": given.query.shape[-1] ** -0.5 if scale is None else float(scale),
        "softcap": given.options.get("softcap"),
        "sinks": _sinks(given, entry),
        "window": given.options.get("sliding_window"),
        "output": kept(seen.output[entry].transpose(0, 1)),
        "epsilon": epsilon,
        "precision": precision,
        "sums": sums_of(given.query, seen.output),
        "unrotated_k": _unrotated(seen, entry),
        "reach": {},
    }


def of_trace(
    seen: TracedAttention, entry: int, *, heads: Sequence[int] | None, **place: Any
) -> AttentionCall:
    """The traced attention's batch entry `entry`, with the model's own weights for `heads`."""
    epsilon, precision = precision_of(seen.query, seen.output)
    shape = (*seen.query.shape[:3], seen.key.shape[2])
    remainder = None if seen.remainder is None else _one(seen.remainder, entry, shape)
    allowed = None if seen.allowed is None else _one(seen.allowed, entry, shape)
    return AttentionCall(
        q=kept(seen.query[entry]),
        k=kept(seen.key[entry]),
        v=kept(seen.value[entry]),
        scale=seen.scale,
        softcap=seen.softcap,
        terms=tuple(Term(name, _one(values, entry, shape)) for name, values in seen.terms),
        allowed=None if allowed is None or allowed.all() else allowed,
        sinks=None,
        window=None,
        output=kept(seen.output[entry]),
        weights=of_heads(seen.weights[entry], heads),
        epsilon=epsilon,
        precision=precision,
        sums=sums_of(seen.query, seen.output),
        remainder=remainder,
        reweighted=None if seen.reweighted is None else of_heads(seen.reweighted[entry], heads),
        reservation=_BLENDED if seen.blended else "",
        reach={},
        **place | {"route": Route.TRACED},
    )


def kept(tensor: Tensor) -> Tensor:
    """A copy that later in-place work of the model cannot reach."""
    return tensor.detach().clone()


def of_heads(weights: Tensor, heads: Sequence[int] | None) -> dict[int, Tensor]:
    """The weights `head query key` of the chosen heads, by head."""
    chosen = range(len(weights)) if heads is None else [_chosen_head(head, len(weights)) for head in heads]
    return {head: kept(weights[head]) for head in chosen}


def _chosen_head(head: int, count: int) -> int:
    if not -count <= head < count:
        raise InputError(f"no head {head}: heads are 0-{count - 1}")
    return head % count


def _are_weights(seen: KernelCall) -> bool:
    """Whether what came back beside the output is weights: flex attention returns something else there."""
    lengths = (seen.given.query.shape[2], seen.given.key.shape[2])
    return seen.weights is not None and seen.weights.ndim == 4 and seen.weights.shape[2:] == lengths


def _one(tensor: Tensor, entry: int, shape: Sequence[int]) -> Tensor:
    """One batch entry of what is broadcast over scores of `shape`, query and key axes written out."""
    full = tensor.reshape((1,) * (4 - tensor.ndim) + tuple(tensor.shape))
    one = full[entry if full.shape[0] > 1 else 0]
    return kept(one.expand(-1, shape[2], shape[3]))


def _sinks(given: KernelInputs, entry: int) -> Tensor | None:
    """The extra logit of each head, or of each head and query, by the name that models hand it over under."""
    if (by_head := given.options.get("s_aux")) is not None:
        return kept(by_head.flatten())
    by_query = given.options.get("sinks")
    return None if by_query is None else kept(by_query[entry if len(by_query) > 1 else 0, :, :, 0])


def _unrotated(seen: KernelCall, entry: int) -> Tensor | None:
    """The key before its rotary position as `kv_head key dim`, where a projection showed it in this shape."""
    if seen.unrotated is None or seen.unrotated.shape[0] != seen.entries:
        return None
    return as_keys(seen.unrotated[entry].detach(), seen.given.key[entry].detach())


def as_keys(before: Tensor, rotated: Tensor) -> Tensor | None:
    """What a projection returned for one input, in the shape of the keys made of it; None where it cannot."""
    key_heads, keys, dim = rotated.shape
    candidates = [before] if before.shape == rotated.shape else []
    if before.numel() == rotated.numel() and before.shape[0] == keys:
        candidates.append(before.reshape(keys, key_heads, dim).transpose(0, 1))
    # as many tokens as key heads: both fit; a rotation keeps every length, the wrong order does not
    lengths = rotated.norm(dim=-1)
    candidates.sort(key=lambda each: float((each.norm(dim=-1) - lengths).abs().max()))
    return candidates[0].clone() if candidates else None


def of_kind_seen(call: AttentionCall, module: nn.Module) -> AttentionCall:
    """The call of `module` as a decoder's where it is called an encoder's only for want of knowledge.

    Modules of transformers state their kind; CLIP's text encoder is one though its mask is causal. Of code
    that a model brings along nothing is known: there one in which no query ever looks ahead is a decoder's.
    """
    stated = type(module).__module__.startswith("transformers.") or hasattr(module, "is_causal")
    guessed = call.kind is Kind.ENCODER and not stated
    return replace(call, kind=Kind.DECODER) if guessed and looks_back_only(call) else call


def looks_back_only(call: AttentionCall) -> bool:
    """Whether no query of any head may look at a later position, and some may look at an earlier one."""
    if call.allowed is None or call.allowed.shape[-1] != call.allowed.shape[-2]:
        return False
    behind = torch.ones_like(call.allowed).tril(-1)
    ahead = behind.transpose(-1, -2)
    return bool((call.allowed & behind).any()) and not bool((call.allowed & ahead).any())
