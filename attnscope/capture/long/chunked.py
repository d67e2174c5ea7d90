"""Run a model's attention over a long text in chunks of queries, with masks kept as rules.

Rows of attention do not depend on one another, so the output is the kernel's own. Where transformers runs
the model with torch's fused kernel too, and nothing is asked for that this cannot do (soft cap, sink, added
positions), the fused one answers; a few rows of it are compared with the model's own eager function first.

While `symbolic_masks` is open, a model that asks for a mask gets a tensor that has a shape and no memory:
transformers' mask function is kept as the rule that it is, and the kernel asks it for the rows that it works
on. Whatever else is done with such a mask makes a plain tensor of it first, so that any model gets what it
computes with; one that is too large for that is refused.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import masking_utils
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface

from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.following.takeover import (
    KernelInputs,
    kernel_name,
    own_eager_function,
    put_back,
    takeover,
)
from attnscope.errors import DoesNotFitError, InputError
from attnscope.vocabulary import IN_PARTS

_LARGEST = 2**31  # bytes of a mask that is written out because a model works on it
_AT_ONCE = 2**26  # pairs that a rule is asked for at once
Bounds = tuple[int, int, bool]
_FUSED_PAIRS = 2**24  # pairs of a chunk whose mask is written out
_EAGER_PAIRS = 2**24  # pairs of a chunk in all heads
_BY_QUERY = ("position_bias", "sinks")
_TRIED = 4  # rows of the fused kernel that are compared with the model's own


@dataclass(frozen=True, eq=False)
class MaskRule:
    """Rule of a mask: transformers' function of batch, head, query and key, with its offsets.

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
        """Mask `query key`: where these queries of one batch entry may look among these keys."""
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
        """First key and end of the keys that the rows may look at, and whether every row sees all between."""
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
    """A mask `batch 1 query key` without memory: boolean, or 0 and the dtype's lowest number."""

    rule: MaskRule

    @staticmethod
    def __new__(cls, rule: MaskRule, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
        made = Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=device)  # type: ignore[attr-defined]
        made.rule = rule
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"SymbolicMask({tuple(self.shape)})"

    def rows(self, entry: int, rows: Tensor, keys: range | None = None) -> Tensor:
        """These rows of one batch entry as a plain tensor `query key`, over `keys` (None: all).

        A mask of one entry is the same for every entry of a batch.
        """
        wanted = range(self.shape[-1]) if keys is None else keys
        entry = entry if self.shape[0] > 1 else 0
        block = self.rule.block(entry, rows, torch.arange(wanted.start, wanted.stop, device=rows.device))
        return block if self.dtype == torch.bool else lowered(block, self.dtype)

    def written(self) -> Tensor:
        """The whole mask as a plain tensor; `DoesNotFitError` where that is too large."""
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
    """The mask as an eager kernel adds it: 0 where a query may look, the dtype's lowest number elsewhere."""
    nothing = torch.zeros((), dtype=dtype, device=allowed.device)
    return torch.where(allowed, nothing, torch.finfo(dtype).min)


def _positions(rows: range, keys: range, device: torch.device) -> tuple[Tensor, Tensor]:
    queries, others = (torch.arange(each.start, each.stop, device=device) for each in (rows, keys))
    return queries, others


@contextmanager
def symbolic_masks() -> Iterator[None]:
    """While open, models with eager or sdpa attention get `SymbolicMask`s."""
    common, own = AttentionMaskInterface._global_mapping, ALL_MASK_ATTENTION_FUNCTIONS._local_mapping
    with put_back(common, own):
        for name, floating in (("eager", True), ("sdpa", False)):
            common[name] = _maker(floating)
            own.pop(name, None)
        yield


def _maker(floating: bool) -> Callable[..., Tensor | None]:
    """A mask function like transformers' own for eager (`floating`) or sdpa (boolean), without memory."""

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


class Chunks:
    """Answers kernel calls in chunks; `fused` counts the calls that torch's fused kernel answered."""

    def __init__(self, supports_fused: bool) -> None:
        self.supports_fused = supports_fused
        self.silent = False
        self.fused = self.others = 0

    def answer(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        """The attention output `batch query head value_dim`; zeros while `silent`."""
        if self.silent:
            batch, heads, queries, _ = given.query.shape
            return given.value.new_zeros(batch, queries, heads, given.value.shape[-1]), None
        if self.supports_fused and may_be_fused(given) and _agrees(given):
            self.fused += 1
            return fused(given), None
        self.others += 1
        return eager(given), None

    @property
    def kernels(self) -> str:
        """Names of the kernels that answered."""
        names = ["sdpa"] * bool(self.fused) + ["eager"] * bool(self.others)
        return f"{', '.join(names)}, {IN_PARTS}"


@contextmanager
def without_squares(model: nn.Module, modules: list[nn.Module]) -> Iterator[Chunks]:
    """While open, the attention of all `modules` runs in chunks of queries, with masks kept as rules.

    Raises `InputError` for a kernel that is neither eager nor sdpa.
    """
    names = {kernel_name(module) for module in modules}
    if others := names - {"eager", "sdpa"}:
        raise InputError(
            f"a long text is read with --attention eager or sdpa, not {', '.join(sorted(others))}"
        )
    chunks = Chunks(bool(getattr(model, "_supports_sdpa", False)))
    with symbolic_masks(), takeover(modules, chunks.answer):
        yield chunks


def may_be_fused(given: KernelInputs) -> bool:
    """Whether torch's fused kernel can compute this call: no soft cap, sink, added position or dropout."""
    special = (*_BY_QUERY, "softcap", "s_aux")
    plain = all(given.options.get(name) is None for name in special) and not given.options.get("dropout")
    mask = given.mask
    return plain and (mask is None or isinstance(mask, SymbolicMask)) and given.query.shape[2] > 1


def rows_of(given: KernelInputs, rows: Tensor) -> KernelInputs:
    """Kernel inputs for some of the queries and all keys, with the mask written out for these rows."""
    mask, queries = given.mask, given.query.shape[2]
    if isinstance(mask, SymbolicMask):
        mask = torch.stack([mask.rows(entry, rows) for entry in range(mask.shape[0])])[:, None]
    elif mask is None and is_causal_unmasked(given):
        places = torch.arange(given.key.shape[2], device=rows.device)
        mask = (places[None, :] <= rows[:, None])[None, None]
    elif mask is not None and mask.shape[2] == queries:
        mask = mask[:, :, rows]
    options = {name: _of_rows(name, value, rows, queries) for name, value in given.options.items()}
    if "is_causal" in options or kernel_name(given.module) == "sdpa":
        options["is_causal"] = False  # the mask says it
    return replace(given, query=given.query[:, :, rows], mask=mask, options=options)


def _of_rows(name: str, value: Any, rows: Tensor, queries: int) -> Any:
    by_query = name in _BY_QUERY and isinstance(value, Tensor) and value.shape[2] == queries
    return value[:, :, rows] if by_query else value


def is_causal_unmasked(given: KernelInputs) -> bool:
    """Whether the call is causal by a flag, without a mask."""
    return kernel_name(given.module) == "sdpa" and given.query.shape[2] > 1 and given.is_causal


def own(given: KernelInputs) -> Callable[..., Any]:
    """The eager attention function of the model's own code."""
    return own_eager_function(given.module)


def eager(given: KernelInputs) -> Tensor:
    """Output of the model's own kernel, computed for as many queries at a time as fit."""
    batch, heads, queries, _ = given.query.shape
    step = max(1, _EAGER_PAIRS // (batch * heads * given.key.shape[2]))
    kernel = _kernel(given)
    outputs = []
    for start in range(0, queries, step):
        rows = torch.arange(start, min(start + step, queries), device=given.query.device)
        outputs.append(replace(rows_of(given, rows), kernel=kernel).answer()[0])
    return torch.cat(outputs, 1)


def _kernel(given: KernelInputs) -> Callable[..., Any]:
    """The kernel that would answer without our stand-in."""
    if kernel_name(given.module) == "eager":
        return own(given)
    return given.kernel


def fused(given: KernelInputs) -> Tensor:
    """Output `batch query head value_dim` of torch's fused kernel; keys out of reach are skipped."""
    batch, heads, queries, _ = given.query.shape
    key, value = (for_each_head(each, heads) for each in (given.key, given.value))
    if _is_causal(given):
        scale = given.options.get("scaling")
        answer = scaled_dot_product_attention(given.query, key, value, is_causal=True, scale=scale)
        return answer.transpose(1, 2)
    keys, device = key.shape[2], key.device
    step = max(16, min(1024, _FUSED_PAIRS // keys))
    output = value.new_empty(batch, queries, heads, value.shape[-1])
    for entry in range(batch):
        one = slice(entry, entry + 1)
        for start in range(0, queries, step):
            rows = range(start, min(start + step, queries))
            first, last, mask = _mask(given, entry, rows, keys, device)
            answer = scaled_dot_product_attention(
                given.query[one, :, rows.start : rows.stop],
                key[one, :, first:last],
                value[one, :, first:last],
                attn_mask=mask,
                scale=given.options.get("scaling"),
            )
            output[one, rows.start : rows.stop] = answer.transpose(1, 2)
    return output


def _is_causal(given: KernelInputs) -> bool:
    """Whether each query may look at itself and all keys before it, and at nothing else."""
    if given.mask is None:
        return is_causal_unmasked(given) and given.query.shape[2] == given.key.shape[2]
    return bool(given.mask.rule.causal)


def _mask(
    given: KernelInputs, entry: int, rows: range, keys: int, device: torch.device
) -> tuple[int, int, Tensor | None]:
    """First key and end of the keys that some rows reach, and their mask among these (None: all)."""
    queries = torch.arange(rows.start, rows.stop, device=device)
    if given.mask is None:
        if not is_causal_unmasked(given):
            return 0, keys, None
        return 0, rows.stop, torch.arange(rows.stop, device=device)[None, :] <= queries[:, None]
    first, last, all_of_them = given.mask.rule.reach(entry, rows, keys, device)
    if all_of_them:
        return first, last, None
    mask = given.mask.rows(entry, queries, range(first, last))
    return first, last, mask if mask.dtype == torch.bool else mask.to(given.query.dtype)


def fused_rows(some: KernelInputs, values: Tensor) -> Tensor:
    """Output `batch head query value_dim` of torch's fused kernel for some rows and these values."""
    key, values = (for_each_head(each, some.query.shape[1]) for each in (some.key, values))
    return scaled_dot_product_attention(
        some.query, key, values, attn_mask=some.mask, scale=some.options.get("scaling")
    )


def for_each_head(shared: Tensor, heads: int) -> Tensor:
    """Keys or values repeated so that each of `heads` query heads has its own."""
    return shared if shared.shape[1] == heads else shared.repeat_interleave(heads // shared.shape[1], 1)


def _agrees(given: KernelInputs) -> bool:
    """Whether a few rows of the fused kernel equal those of the model's eager function, up to rounding."""
    queries = given.query.shape[2]
    places = sorted({round(i * (queries - 1) / (_TRIED - 1)) for i in range(_TRIED)})
    rows = torch.tensor(places, device=given.query.device)
    some = rows_of(replace(given, kernel=own(given)), rows)
    if some.mask is not None and some.mask.dtype == torch.bool:
        some = replace(some, mask=lowered(some.mask, given.query.dtype))
    expected = some.answer()[0]
    found = fused_rows(some, some.value).transpose(1, 2)
    size = given.value.abs().max() * 64 * epsilon_of(found) * queries**0.5
    return bool(((found - expected).abs() <= size).all())
