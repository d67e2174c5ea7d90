"""What one head of one layer would cost, reckoned from shapes before anything is loaded.

The products are counted, not guessed: the model's by a run without weights, ours by running our own
arithmetic on the same shapes. How fast this machine multiplies is measured only for who wants to know the
time, which no outline holds.
"""

import time
from dataclasses import fields

import torch
from torch import nn

from attnscope.analysis.outline.layers import Observed
from attnscope.arithmetic import Operands, attend
from attnscope.capture.dry_run.products import Count
from attnscope.capture.dry_run.watch import DryCall
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.towers import Tower
from attnscope.model.loading.load import Plan
from attnscope.model.loading.memory import size_of
from attnscope.model.loading.partial import can_be_cut, kept, needed
from attnscope.model.source.listing import Listing
from attnscope.reference import EXACT
from attnscope.results import Cost
from attnscope.verify import FAULTS

_SIDE = 512  # of the square matrices that are multiplied to see how fast that goes
_SECONDS = 0.05


def head_cost(
    planned: Plan, listing: Listing, tower: Tower, layer: int, length: int, observed: Observed
) -> Cost | None:
    """The cost of a head of one layer; None where the run without weights did not come to it."""
    layers = tower.layers
    if layer not in layers and not -len(layers) <= layer < 0:
        raise InputError(f"no layer {layer} in {planned.name}: attention is in layers {listed(layers)}")
    number = layers[layer] if layer < 0 else layer
    calls = observed.of(tower, number)
    if not calls:
        return None
    model, first = planned.skeleton, calls[0]
    cut = number + 1 if can_be_cut(model, planned.config) else None
    head_flops, stages = recomputation(first)
    blocks = sum(each.blocks for each in calls)
    width = first.dim + first.value_dim  # of a query with its output, and of a key with its value
    rows = first.heads * first.queries + first.key_heads * first.keys
    return Cost(
        tower=tower.name,
        kind=tower.kind,
        layer=number,
        length=length,
        queries=first.queries,
        keys=first.keys,
        forward_flops=calls[-1].flops,
        head_flops=head_flops,
        repeats=repeats(first),
        layers_loaded=cut,
        weights=size_of(model, kept(model, cut), torch.float32),
        operands=4 * blocks * rows * width,
        kernel=2 * 4 * blocks * first.heads * first.queries * first.keys,
        reference=2 * stages,
        shards=_shards(listing, model, cut),
    )


def _shards(listing: Listing, model: nn.Module, cut: int | None) -> tuple[str, ...]:
    """The weight files that hold something of the layers that are kept; nothing of a single file."""
    names = needed(listing.shards, model, cut) if listing.shards else ()
    return tuple(sorted({listing.shards[name] for name in names}))


def recomputation(call: DryCall) -> tuple[int, int]:
    """Floating-point operations of one recomputation of one head in float64, and bytes of all its stages."""
    shape = {"dtype": EXACT, "device": "meta"}
    pairs = (1, call.queries, call.keys)
    operands = Operands(
        q=torch.empty(1, call.queries, call.dim, **shape),  # type: ignore[call-overload]
        k=torch.empty(1, call.keys, call.dim, **shape),  # type: ignore[call-overload]
        v=torch.empty(1, call.keys, call.value_dim, **shape),  # type: ignore[call-overload]
        scale=1.0,
        softcap=call.softcap,
        bias=torch.empty(pairs, **shape) if call.biased else None,  # type: ignore[call-overload]
        allowed=torch.empty(pairs, dtype=torch.bool, device="meta"),
        sinks=torch.empty(1, **shape) if call.sinks else None,  # type: ignore[call-overload]
    )
    with Count() as count:
        stages = attend(operands)
    made = {
        id(stage): stage for field in fields(stages) if (stage := getattr(stages, field.name)) is not None
    }
    return count.flops, sum(stage.numel() * stage.element_size() for stage in made.values())


def repeats(call: DryCall) -> int:
    """How often the head is recomputed at most: to be shown, to be certified, and once for every fault."""
    return 2 + len(FAULTS) + bool(call.biased)


def seconds(cost: Cost, rate_float32: float, rate_float64: float) -> float:
    """Time of the products alone, the model's in float32 and ours in float64, at so many in a second."""
    return cost.forward_flops / rate_float32 + cost.repeats * cost.head_flops / rate_float64


def rate(dtype: torch.dtype) -> float:
    """Floating-point operations in a second of a product of square matrices, measured now on this machine."""
    square = torch.ones(_SIDE, _SIDE, dtype=dtype)
    square @ square
    done, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < _SECONDS:
        square @ square
        done += 1
    return done * 2 * _SIDE**3 / passed
