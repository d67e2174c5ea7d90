"""The window of a mask that has no numbers: asked of the rule that the mask is made from.

Some models hand their kernel a mask with a window in it and do not tell the kernel how wide that is.
transformers makes its masks by a rule for a pair of positions, which can be asked about pairs far apart.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers.masking_utils import AttentionMaskInterface

Rule = Callable[[Any, Any, Any, Any], Any]

_FAR = 2**40  # of a position, from which any window ends before the start of the text
_WIDEST = 2**24  # tokens; a rule that allows keys that far back has no window


@contextmanager
def windows_of_masks(note: Callable[[Tensor, int | None], None]) -> Iterator[None]:
    """While open, `note` gets every mask that is made for eager attention, with the window of its rule."""
    masks = AttentionMaskInterface._global_mapping
    original = masks["eager"]

    def eager(*args: Any, **options: Any) -> Any:
        mask = original(*args, **options)
        if isinstance(mask, Tensor) and "mask_function" in options:
            note(mask, window_of(options["mask_function"]))
        return mask

    masks["eager"] = eager
    try:
        yield
    finally:
        masks["eager"] = original


def window_of(rule: Rule) -> int | None:
    """How far back the rule lets a query look, itself counted; None where it does not end so.

    Nor where the answer depends on the query, as it does for chunks.
    """
    try:
        here, next_one = (_reach(rule, query) for query in (_FAR, _FAR + 1))
    except Exception:  # a rule that looks up tensors of this text
        return None
    return here if here == next_one else None


def _reach(rule: Rule, query: int) -> int | None:
    """The shortest distance that is not allowed, found by halving; None where all are."""
    if _allows(rule, query, _WIDEST) or not _allows(rule, query, 0):
        return None
    near, far = 0, _WIDEST
    while far - near > 1:
        middle = (near + far) // 2
        near, far = (middle, far) if _allows(rule, query, middle) else (near, middle)
    return far


def _allows(rule: Rule, query: int, distance: int) -> bool:
    zero = torch.zeros((), dtype=torch.long, device="cpu")
    return bool(rule(zero, zero, zero + query, zero + query - distance))
