"""From a kernel's arguments to terms added to its scores and allowed pairs, by each kernel's convention."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_mask

from attnscope.attention import Term
from attnscope.capture.following.takeover import KernelInputs, is_foreign, kernel_name, kernel_weights

RELATIVE_POSITION = "relative position"
IN_THE_MASK = "bias in the mask"


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
