"""Outlines a model without weights: attention layers of every tower, layers without, cost of one head.

The model runs without weights (`capture.dry_run`), as a whole or, where that does not reach a tower, by the
part that holds it; what such a run does not show is read from the modules and the config.

Costs are also given for lengths that the model does not read. Computed positions allow a run without weights
at any length. A table of positions ends it; then every figure is extrapolated from shorter texts as a
polynomial of second degree in the length (which products, operands and pairs of tokens are), if a fourth
length confirms it. Else no cost is given.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import torch
from torch import nn

from attnscope.analysis.outline import Observed, context_of, observe, tower_outline
from attnscope.arithmetic import Operands, attend
from attnscope.capture.dry_run import Count, DryCall
from attnscope.capture.following.describe import versions
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.sites import layer_stacks
from attnscope.model.anatomy.towers import Tower, reading_text
from attnscope.model.loading.load import Plan
from attnscope.model.loading.memory import size_of
from attnscope.model.loading.partial import can_be_cut, kept, needed
from attnscope.model.source.listing import Listing
from attnscope.reference import EXACT
from attnscope.results import Cost, Gap, Outline
from attnscope.verify import FAULTS

_SIDE = 512  # of the square matrices that measure the machine's speed
_SECONDS = 0.05


def head_cost(
    planned: Plan, listing: Listing, tower: Tower, layer: int, length: int, observed: Observed
) -> Cost | None:
    """Cost of one head of a layer; None where the run without weights did not reach the layer."""
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
    held = needed(listing.shards, model, cut) if listing.shards else ()  # by weight files, of several
    width = first.dim + first.value_dim  # numbers of a query with its output, or of a key with its value
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
        shards=tuple(sorted({listing.shards[each] for each in held})),
    )


def recomputation(call: DryCall) -> tuple[int, int]:
    """FLOP of one recomputation of one head in float64, and bytes of all its stages."""
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
    """Most recomputations of a head: once to show it, once to certify it, once for every injected fault."""
    return 2 + len(FAULTS) + bool(call.biased)


def seconds(cost: Cost, rate_float32: float, rate_float64: float) -> float:
    """Seconds for the model's float32 products and our float64 products, at the given FLOP/s."""
    return cost.forward_flops / rate_float32 + cost.repeats * cost.head_flops / rate_float64


def rate(dtype: torch.dtype) -> float:
    """FLOP/s of a product of square matrices in `dtype`, measured now on this machine."""
    square = torch.ones(_SIDE, _SIDE, dtype=dtype)
    square @ square
    done, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < _SECONDS:
        square @ square
        done += 1
    return done * 2 * _SIDE**3 / passed


DEFAULT_LENGTH = 512

MOST = 10**9
_GROWING = ("queries", "keys", "forward_flops", "head_flops", "weights", "operands", "kernel", "reference")
CostAt = Callable[[int], Cost | None]  # cost at a length, by a run without weights; None where it fails


def outline_plan(
    planned: Plan,
    listing: Listing,
    *,
    tower: Tower | None = None,
    layer: int = -1,
    length: int | Sequence[int] | None = None,
) -> Outline:
    """Outline of a planned model, with the cost of one head of `layer` of `tower`.

    `tower` is by default the one that reads text, `length` the tokens of a text: by default 512, or as many
    as the model reads. Each of several lengths has its cost, even beyond what the model reads. Raises
    `InputError` for a layer that does not exist and for an invalid length.
    """
    model, towers = planned.skeleton, planned.towers
    chosen = tower or (reading_text(towers) if towers else None)
    context = None if chosen is None else context_of(model, chosen, towers)
    usual = min(DEFAULT_LENGTH, context or DEFAULT_LENGTH)
    lengths = [usual] if length is None else [length] if isinstance(length, int) else list(length)
    at = cache(partial(observe, model, towers))  # a run without weights for each length

    def run(length: int) -> Cost | None:
        return None if chosen is None else head_cost(planned, listing, chosen, layer, length, at(length))

    costs = [cost_at(each, context, usual, run, planned.name) for each in lengths]
    length = lengths[0] if costs[0] is None or run(lengths[0]) else usual
    observed = at(length)
    source = planned.checkpoint.source
    return Outline(
        requested=source.requested,
        model=source.name,
        demo=source.demo,
        revision=source.revision,
        architecture=planned.model_class.__name__,
        model_type=planned.config.model_type,
        versions=versions(),
        parameters=size_of(model, model.state_dict(), torch.float32) // 4,
        storage=listing.storage,
        towers=tuple(tower_outline(model, each, towers, observed) for each in towers),
        gaps=tuple(_gaps(model, towers)),
        length=length,
        run=observed.problem,
        cost=costs[0],
        unlisted=listing.why,
        further=tuple(cost for cost in costs[1:] if cost is not None),
    )


def _gaps(model: nn.Module, towers: Sequence[Tower]) -> list[Gap]:
    if not towers:
        lists = [
            (path, each) for path, each in model.named_modules() if isinstance(each, nn.ModuleList) and each
        ]
        longest = [max(lists, key=lambda each: len(each[1]))] if lists else []
        return [Gap(path, tuple(range(len(stack))), type(stack[0]).__name__) for path, stack in longest]
    attending = {site.module for tower in towers for site in tower.sites}
    gaps: dict[tuple[str, str], list[int]] = {}
    for path, stack in layer_stacks(model, towers[0].sites[0].every).items():
        having = [any(inner in attending for inner in entry.modules()) for entry in stack]
        usual = {
            name
            for entry, has in zip(stack, having, strict=True)
            if has
            for name, _ in entry.named_children()
        }
        for number, (entry, has) in enumerate(zip(stack, having, strict=True)):
            if not has:
                other = [type(part).__name__ for name, part in entry.named_children() if name not in usual]
                gaps.setdefault((path, (", ".join(other) or type(entry).__name__)), []).append(number)
    return [Gap(path, tuple(numbers), name) for (path, name), numbers in gaps.items()]


def cost_at(length: int, context: int | None, usual: int, run: CostAt, name: str) -> Cost | None:
    """Cost at one length, marked where that is `beyond` the model's `context`.

    None where no run reaches the layer at all. Raises `InputError` for an invalid length, and for a length
    at which no cost can be derived.
    """
    most = f", {name} reads at most {context:,}" if context else ""
    if not 1 <= length <= MOST:
        raise InputError(f"--length {length}: a text has 1 to {MOST:,} tokens{most}")
    beyond = context is not None and length > context
    found = run(length)
    if found is None and length > usual:
        found = _gone_on(length, usual, run)
        if found is None and run(usual) is not None:
            raise InputError(f"--length {length}: nothing can be said of a text so long{most}")
    return None if found is None else replace(found, beyond=beyond)


def _gone_on(length: int, most: int, run: CostAt) -> Cost | None:
    """Cost at `length`, extrapolated from texts of up to `most` tokens; None where they fit no polynomial."""
    known = {each: run(each) for each in sorted({max(1, most * part // 4) for part in (1, 2, 3, 4)})}
    costs = [(each, cost) for each, cost in known.items() if cost is not None]
    if len(costs) < 4:
        return None
    *points, check = costs
    figures: dict[str, Any] = {}
    for name in _GROWING:
        through = [(each, getattr(cost, name)) for each, cost in points]
        figure = _polynomial(through, length)
        if _polynomial(through, check[0]) != getattr(check[1], name) or figure.denominator != 1:
            return None
        figures[name] = int(figure)
    return replace(check[1], length=length, **figures)


def _polynomial(points: Sequence[tuple[int, int]], at: int) -> Fraction:
    """The value at `at` of the polynomial of least degree through `points` (Lagrange)."""
    total = Fraction(0)
    for here, value in points:
        term = Fraction(value)
        for other, _ in points:
            if other != here:
                term *= Fraction(at - other, here - other)
        total += term
    return total
