"""From what a kernel was handed and answered over a long text to a `LongCall`, with a sample of its rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.attention import Term
from attnscope.capture.following.call import IN_THE_MASK, RELATIVE_POSITION, KernelCall, kept, kernel_fields
from attnscope.capture.following.takeover import KernelInputs
from attnscope.capture.long.chunked import fused_rows, is_causal_unmasked, own, rows_of
from attnscope.capture.long.masks import SymbolicMask
from attnscope.capture.running import weights_by_identity
from attnscope.tiles.call import EVERYWHERE, LongCall, Rule, Sample, Symbolic, Written

_SAMPLED = 2**19  # pairs of queries and keys in a sample, from 16 rows on


def long_call(
    seen: KernelCall,
    entry: int,
    *,
    heads: Sequence[int] | None,
    rows: Sequence[int] | None,
    by_fused: bool,
    **place: Any,
) -> LongCall:
    """The call's batch entry `entry`; of the chosen `heads` the kernel's own weights of some rows.

    `rows` are those of the sample; None: some are drawn. Of no row the kernel is not asked again.
    """
    given = seen.given
    terms, rule = _terms_and_rule(given, entry)
    sample = sample_rows(given.query.shape[2], given.key.shape[2]) if rows is None else torch.tensor([*rows])
    own = {}
    if len(sample):
        chosen = range(given.query.shape[1]) if heads is None else heads
        own = _own_weights(given, entry, sample.to(given.query.device), chosen, by_fused)
    return LongCall(
        terms=terms,
        allowed=None,
        weights={},
        rule=rule,
        sample=Sample(sample.long(), own),
        **kernel_fields(seen, entry),
        **place,
    )


def sample_rows(queries: int, keys: int) -> Int[Tensor, " row"]:
    """Rows that are certified in full: the first, the last, and others drawn from all with a fixed seed."""
    count = min(queries, max(16, _SAMPLED // max(keys, 1)), 64)
    ends = {0, queries - 1}
    drawn = torch.randperm(queries, generator=torch.Generator().manual_seed(0)).tolist()
    others = [row for row in drawn if row not in ends][: count - len(ends)]
    return torch.tensor(sorted({*ends, *others}))


def _own_weights(
    given: KernelInputs, entry: int, rows: Tensor, heads: Sequence[int], by_fused: bool
) -> dict[int, Tensor]:
    if isinstance(given.mask, SymbolicMask):
        written = given.mask.rows(entry, rows)[None, None]
        some = replace(rows_of(replace(given, mask=None).row(entry), rows), mask=written)
    else:
        some = rows_of(given.row(entry), rows)
    if by_fused:
        few = _of_heads(some, heads)
        weights = weights_by_identity(lambda v: fused_rows(few, v), torch.zeros_like(few.value))
        return {head: kept(weights[0, i]) for i, head in enumerate(heads)}
    some = replace(some, kernel=own(given))
    returned = some.answer()[1]
    if returned is None or some.has_sinks:
        returned = weights_by_identity(some.answer_to, torch.zeros_like(some.value))
    return {head: kept(returned[0, head]) for head in heads}


def _of_heads(some: KernelInputs, heads: Sequence[int]) -> KernelInputs:
    group, mask = some.query.shape[1] // some.key.shape[1], some.mask
    shared = [head // group for head in heads]
    return replace(
        some,
        query=some.query[:, heads],
        key=some.key[:, shared],
        value=some.value[:, shared],
        mask=mask[:, heads] if mask is not None and mask.shape[1] > 1 else mask,
    )


def _terms_and_rule(given: KernelInputs, entry: int) -> tuple[tuple[Term, ...], Rule]:
    terms, rule, mask = [], _unmasked(given), given.mask
    if isinstance(mask, SymbolicMask):
        held, place = mask.rule, entry if mask.shape[0] > 1 else 0
        rule = Symbolic(lambda _head, queries, keys: held.block(place, queries, keys))
    elif mask is not None:
        one = mask[entry if len(mask) > 1 else 0].detach()
        one = one[..., : given.key.shape[2]].expand(-1, given.query.shape[2], -1)
        if one.dtype == torch.bool:
            rule = Written(one)
        else:
            allowed = one > torch.finfo(one.dtype).min / 2
            rule, bias = Written(allowed), torch.where(allowed, one, 0)
            terms += [Term(IN_THE_MASK, bias)] if bias.any() else []
    if (added := given.options.get("position_bias")) is not None:
        values = added[entry if len(added) > 1 else 0].detach()
        values = values.expand(-1, given.query.shape[2], -1)[..., -given.key.shape[2] :]
        terms += [Term(RELATIVE_POSITION, values)] if values.any() else []
    return tuple(terms), rule


def _unmasked(given: KernelInputs) -> Rule:
    if given.mask is not None or not is_causal_unmasked(given):
        return EVERYWHERE
    return Symbolic(lambda _head, queries, keys: keys[None, :] <= queries[:, None])
