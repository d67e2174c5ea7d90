"""Masks without their squares: transformers' mask function is kept as the rule that it is.

While `symbolic_masks` is open, a model that asks for a mask gets a tensor that has a shape and no memory.
The kernel asks its rule for the rows that it works on. Whatever else is done with such a mask makes a plain
tensor of it first, so that any model gets what it computes with; one that is too large for that is refused.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import masking_utils
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface

from attnscope.capture.following.takeover import put_back
from attnscope.errors import DoesNotFitError

_LARGEST = 2**31  # bytes of a mask that is written out because a model works on it
_AT_ONCE = 2**26  # pairs that a rule is asked for at once
Bounds = tuple[int, int, bool]


@dataclass(frozen=True, eq=False)
class MaskRule:
    """The rule of a mask: transformers' function of batch, head, query and key, with its offsets.

    `causal`: a query may look at itself and at all keys before it, which fused kernels know by a flag.
    """

    function: Callable[..., Tensor]
    q_offset: int
    kv_offset: int
    vmapped: bool
    causal: bool = False
    bounds: dict[tuple[int, int, int], Bounds] = field(default_factory=dict)

    def block(
        self, entry: int, queries: Int[Tensor, " query"], keys: Int[Tensor, " key"]
    ) -> Bool[Tensor, "query key"]:
        """Where these queries of one batch entry may look among these keys."""
        device = queries.device
        batch, head = torch.tensor([entry], device=device), torch.zeros(1, dtype=torch.long, device=device)
        places = batch, head, queries.long() + self.q_offset, keys.long() + self.kv_offset
        if self.vmapped:
            with masking_utils.TransformGetItemToIndex():
                made = masking_utils._vmap_expansion_sdpa(self.function)(*places)
        else:
            made = self.function(*masking_utils._non_vmap_expansion_sdpa(*places))
        allowed: Tensor = made.expand(1, 1, len(queries), len(keys))[0, 0].bool()
        return allowed

    def reach(self, entry: int, rows: range, keys: int, device: torch.device) -> Bounds:
        """The first key and the one behind the last that the rows may look at, and if all may at all."""
        place = entry, rows.start, rows.stop
        if place not in self.bounds:
            block = self.block(entry, *_positions(rows, range(keys), device))
            there = block.any(0).nonzero().flatten()
            first, last = (int(there[0]), int(there[-1]) + 1) if len(there) else (0, keys)
            if bool(block.any(1).all()):
                self.bounds[place] = first, last, bool(block[:, first:last].all())
            else:  # a query that may look nowhere: kernels give it weights all the same, over all keys
                self.bounds[place] = 0, keys, False
        return self.bounds[place]


class SymbolicMask(Tensor):
    """A mask `batch 1 query key` that has no memory, True or False, or 0 and the lowest number."""

    rule: MaskRule

    @staticmethod
    def __new__(cls, rule: MaskRule, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
        made = Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=device)  # type: ignore[attr-defined]
        made.rule = rule
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"SymbolicMask({tuple(self.shape)})"

    def rows(self, entry: int, rows: Tensor, keys: range | None = None) -> Tensor:
        """These rows of one batch entry written out, `query key`, as the model's kernel takes them.

        Without `keys` over all of them. A mask of one entry is the same for every entry of a batch.
        """
        wanted = range(self.shape[-1]) if keys is None else keys
        entry = entry if self.shape[0] > 1 else 0
        block = self.rule.block(entry, rows, torch.arange(wanted.start, wanted.stop, device=rows.device))
        return block if self.dtype == torch.bool else lowered(block, self.dtype)

    def written(self) -> Tensor:
        """All of it; `DoesNotFitError` where that is too much."""
        batch, _, queries, keys = self.shape
        size = batch * queries * keys * self.dtype.itemsize
        if size > _LARGEST:
            raise DoesNotFitError(
                f"the model itself works on its mask of {queries:,} x {keys:,}: that takes "
                f"{size / 1e9:.0f} GB and cannot be kept as a rule"
            )
        step = max(1, _AT_ONCE // keys)
        parts = torch.arange(queries, device=self.device).split(step)  # type: ignore[no-untyped-call]
        entries = [torch.cat([self.rows(i, part) for part in parts]) for i in range(batch)]
        return torch.stack(entries)[:, None]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function in _SAME and isinstance(args[0], cls):
            mask, *rest = args
            if function is not torch.ops.aten.slice.Tensor or _is_whole(mask, *rest):
                return cls(mask.rule, tuple(mask.shape), mask.dtype, mask.device)
        if function is torch.ops.aten._to_copy.default and set(kwargs or {}) <= {"device", "non_blocking"}:
            there = (kwargs or {}).get("device", args[0].device)  # where another layer works
            return cls(args[0].rule, tuple(args[0].shape), args[0].dtype, there)
        plain = torch.utils._pytree.tree_map_only(cls, cls.written, (args, dict(kwargs or {})))
        return function(*plain[0], **plain[1])


_SAME = (torch.ops.aten.detach.default, torch.ops.aten.alias.default, torch.ops.aten.slice.Tensor)


def _is_whole(
    mask: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> bool:
    return not start and step == 1 and (end is None or end >= mask.shape[dim])


def lowered(allowed: Bool[Tensor, "*any"], dtype: torch.dtype) -> Tensor:
    """What an eager kernel adds: 0 where a query may look, the lowest number where not."""
    nothing = torch.zeros((), dtype=dtype, device=allowed.device)
    return torch.where(allowed, nothing, torch.finfo(dtype).min)


def _positions(rows: range, keys: range, device: torch.device) -> tuple[Tensor, Tensor]:
    queries, others = (torch.arange(each.start, each.stop, device=device) for each in (rows, keys))
    return queries, others


@contextmanager
def symbolic_masks() -> Iterator[None]:
    """While open, models that run with eager or sdpa attention are handed masks that have no memory."""
    common, own = AttentionMaskInterface._global_mapping, ALL_MASK_ATTENTION_FUNCTIONS._local_mapping
    with put_back(common, own):
        for name, floating in (("eager", True), ("sdpa", False)):
            common[name] = _maker(floating)
            own.pop(name, None)
        yield


def _maker(floating: bool) -> Callable[..., Tensor | None]:
    """A mask function as transformers' own for eager (0 and the lowest number) or sdpa (True and False)."""

    def mask(
        batch_size: int,
        q_length: int,
        kv_length: int,
        q_offset: int = 0,
        kv_offset: int = 0,
        mask_function: Callable[..., Tensor] = masking_utils.causal_mask_function,
        attention_mask: Tensor | None = None,
        local_size: int | None = None,
        allow_is_bidirectional_skip: bool = False,
        use_vmap: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        **_others: Any,
    ) -> Tensor | None:
        padding = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset)
        padding = None if padding is not None and bool(padding.all()) else padding
        skips = allow_is_bidirectional_skip
        if skips and masking_utils._ignore_bidirectional_mask_sdpa(padding, kv_length, local_size):
            return None
        if padding is not None:
            own = masking_utils.padding_mask_function(padding)
            mask_function = masking_utils.and_masks(mask_function, own)
        plain = mask_function is masking_utils.causal_mask_function and q_length == kv_length
        causal = plain and int(q_offset) == int(kv_offset)
        rule = MaskRule(mask_function, int(q_offset), int(kv_offset), use_vmap, causal)
        shape = (batch_size, 1, q_length, kv_length)
        made: Tensor = SymbolicMask(rule, shape, dtype if floating else torch.bool, torch.device(device))
        return made

    return mask
