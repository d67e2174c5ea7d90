"""A model's kernel over a long text: the same function, a few queries at a time, and the keys in reach.

Rows of attention do not depend on one another, so the answer is the kernel's own. Where transformers runs
the model with torch's fused kernel too, and nothing is asked for that this cannot do (soft cap, sink, added
positions), the fused one answers; a few rows of the model's own eager function are held against it first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnscope.capture.arithmetic import epsilon_of
from attnscope.capture.following.takeover import KernelInputs, kernel_name, own_eager_function, takeover
from attnscope.capture.long.masks import SymbolicMask, lowered, symbolic_masks
from attnscope.errors import InputError
from attnscope.vocabulary import IN_PARTS

_FUSED_PAIRS = 2**24  # pairs of a chunk whose mask is written out
_EAGER_PAIRS = 2**24  # pairs of a chunk in all heads
_BY_QUERY = ("position_bias", "sinks")
_TRIED = 4  # rows of the fused kernel that are held against the model's own function


class Chunks:
    """How the kernels of one model answer; `fused` counts those of torch's fused kernel."""

    def __init__(self, supports_fused: bool) -> None:
        self.supports_fused = supports_fused
        self.silent = False
        self.fused = self.others = 0

    def answer(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        """The output `batch query head value_dim`; zeros while `silent`."""
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
        """By name the kernels that answered."""
        names = ["sdpa"] * bool(self.fused) + ["eager"] * bool(self.others)
        return f"{', '.join(names)}, {IN_PARTS}"


@contextmanager
def without_squares(model: nn.Module, modules: list[nn.Module]) -> Iterator[Chunks]:
    """While open, the attention of all `modules` runs in chunks, and masks are kept as rules.

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
    """Whether torch's fused kernel can be asked the same."""
    special = (*_BY_QUERY, "softcap", "s_aux")
    plain = all(given.options.get(name) is None for name in special) and not given.options.get("dropout")
    mask = given.mask
    return plain and (mask is None or isinstance(mask, SymbolicMask)) and given.query.shape[2] > 1


def rows_of(given: KernelInputs, rows: Tensor) -> KernelInputs:
    """The inputs of some of the queries, all keys, its mask written out for them."""
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
    """Whether no mask stands for a causal one: fused kernels are told by a flag."""
    return kernel_name(given.module) == "sdpa" and given.query.shape[2] > 1 and given.is_causal


def own(given: KernelInputs) -> Callable[..., Any]:
    """The model's own eager function."""
    return own_eager_function(given.module)


def eager(given: KernelInputs) -> Tensor:
    """The kernel that the model asked for itself, as many queries at a time as have room."""
    batch, heads, queries, _ = given.query.shape
    step = max(1, _EAGER_PAIRS // (batch * heads * given.key.shape[2]))
    kernel = _kernel(given)
    outputs = []
    for start in range(0, queries, step):
        rows = torch.arange(start, min(start + step, queries), device=given.query.device)
        outputs.append(replace(rows_of(given, rows), kernel=kernel).answer()[0])
    return torch.cat(outputs, 1)


def _kernel(given: KernelInputs) -> Callable[..., Any]:
    """What `given` would have been answered by without us: our own stand-in is left out."""
    if kernel_name(given.module) == "eager":
        return own(given)
    return given.kernel


def fused(given: KernelInputs) -> Tensor:
    """Torch's fused kernel: output `batch query head value_dim`, keys out of reach never looked at."""
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
    """Whether a query may look at itself and at all keys before it, and at nothing else."""
    if given.mask is None:
        return is_causal_unmasked(given) and given.query.shape[2] == given.key.shape[2]
    return bool(given.mask.rule.causal)


def _mask(
    given: KernelInputs, entry: int, rows: range, keys: int, device: torch.device
) -> tuple[int, int, Tensor | None]:
    """The keys in the reach of some rows, and where they may look among these, None: everywhere."""
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
    """What torch's fused kernel answers to some rows and these values: `batch head query value_dim`."""
    key, values = (for_each_head(each, some.query.shape[1]) for each in (some.key, values))
    return scaled_dot_product_attention(
        some.query, key, values, attn_mask=some.mask, scale=some.options.get("scaling")
    )


def for_each_head(shared: Tensor, heads: int) -> Tensor:
    """Keys or values that heads share, once for each of these."""
    return shared if shared.shape[1] == heads else shared.repeat_interleave(heads // shared.shape[1], 1)


def _agrees(given: KernelInputs) -> bool:
    """Whether a few rows of the fused kernel are those of the model's own function, up to rounding."""
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
