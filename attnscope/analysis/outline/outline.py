"""A model from outside: every attention layer of every tower, what stands between, what one head would cost.

The model is run without weights (`capture.dry_run`), whole and where that does not reach a tower, by the
part that holds it; what such a run does not show is asked of the modules and the config.
"""

from collections.abc import Sequence
from functools import cache, partial

import torch
from torch import nn

from attnscope.analysis.outline.cost import head_cost
from attnscope.analysis.outline.layers import context_of, tower_outline
from attnscope.analysis.outline.lengths import cost_at
from attnscope.analysis.outline.observed import observe
from attnscope.capture.following.describe import versions
from attnscope.model.anatomy.sites import layer_stacks
from attnscope.model.anatomy.towers import Tower, reading_text
from attnscope.model.loading.load import Plan
from attnscope.model.loading.memory import size_of
from attnscope.model.source.listing import Listing
from attnscope.results import Cost, Gap, Outline

DEFAULT_LENGTH = 512


def outline_plan(
    planned: Plan,
    listing: Listing,
    *,
    tower: Tower | None = None,
    layer: int = -1,
    length: int | Sequence[int] | None = None,
) -> Outline:
    """The outline of a planned model; its cost is that of one head of `layer` of `tower`.

    `tower` is by default the one that reads text, `length` the tokens of a text: 512, or as many as the
    model reads. Of several lengths each has its cost, also of those that are longer than the model reads.
    Raises `InputError` for a layer or a length that there is not.
    """
    model, towers = planned.skeleton, planned.towers
    chosen = tower or (reading_text(towers) if towers else None)
    context = None if chosen is None else context_of(model, chosen)
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
    """Entries of the lists of layers in which nothing attends, by what they have instead."""
    if not towers:
        return [
            Gap(path, tuple(range(len(stack))), type(stack[0]).__name__) for path, stack in _longest(model)
        ]
    attending = {site.module for tower in towers for site in tower.sites}
    gaps: dict[tuple[str, str], list[int]] = {}
    for path, stack in layer_stacks(model).items():
        having = [any(inner in attending for inner in entry.modules()) for entry in stack]
        usual = {
            name
            for entry, has in zip(stack, having, strict=True)
            if has
            for name, _ in entry.named_children()
        }
        for number, (entry, has) in enumerate(zip(stack, having, strict=True)):
            if not has:
                gaps.setdefault((path, _instead(entry, usual)), []).append(number)
    return [Gap(path, tuple(numbers), name) for (path, name), numbers in gaps.items()]


def _longest(model: nn.Module) -> list[tuple[str, nn.ModuleList]]:
    """The longest list of modules with its path: the layers of a model in which nothing attends."""
    stacks = [
        (path, each) for path, each in model.named_modules() if isinstance(each, nn.ModuleList) and each
    ]
    return [max(stacks, key=lambda stack: len(stack[1]))] if stacks else []


def _instead(entry: nn.Module, usual: set[str]) -> str:
    """Class of the part that layers with attention do not have, else that of the layer."""
    other = [type(part).__name__ for name, part in entry.named_children() if name not in usual]
    return ", ".join(other) or type(entry).__name__
