"""A model from outside: every attention layer of every tower, what stands between, what one head would cost.

The model is run without weights (`capture.empty_run`), whole and where that does not reach a tower, by the
part that holds it; what such a run does not show is asked of the modules and the config.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from attnscope.analysis import cost
from attnscope.capture.describe import kernel_of, versions
from attnscope.capture.empty_run import EmptyRun, Handed, run_empty
from attnscope.errors import InputError, listed
from attnscope.model import dimensions, positions
from attnscope.model.anatomy import Site, layer_stacks
from attnscope.model.listing import Listing
from attnscope.model.load import Plan
from attnscope.model.memory import size_of
from attnscope.model.partial import can_be_cut, kept, needed
from attnscope.model.towers import Tower, reading_text
from attnscope.results import Cost, Gap, Kind, LayerOutline, Outline, Position, TowerOutline

DEFAULT_LENGTH = 512


def outline(
    planned: Plan,
    listing: Listing,
    *,
    tower: Tower | None = None,
    layer: int = -1,
    length: int | None = None,
) -> Outline:
    """The outline of a planned model; its cost is that of one head of `layer` of `tower`.

    `tower` is by default the one that reads text, `length` the tokens of a text: 512, or as many as the
    model reads. Raises `InputError` for a layer or a length that there is not.
    """
    model, found = planned.skeleton, planned.towers
    chosen = tower or (reading_text(found) if found else None)
    length = _length(planned, chosen, length)
    seen = _seen(model, found, length)
    shown = tuple(_tower(model, each, found, seen) for each in found)
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
        towers=shown,
        gaps=tuple(_gaps(model, found)),
        length=length,
        run=seen.problem,
        cost=None if chosen is None else _cost(planned, listing, chosen, layer, length, seen),
        unlisted=listing.why,
    )


def _length(planned: Plan, tower: Tower | None, wanted: int | None) -> int:
    context = None if tower is None else _context(planned.skeleton, tower)
    if wanted is None:
        return min(DEFAULT_LENGTH, context or DEFAULT_LENGTH)
    if wanted < 1 or (context is not None and wanted > context):
        most = f", {planned.name} reads at most {context}" if context else ""
        raise InputError(f"--length {wanted}: a text has at least 1 token{most}")
    return wanted


def _context(model: nn.Module, tower: Tower) -> int | None:
    return dimensions.context(dimensions.config_of(model, tower.sites[0].path), tower.kind)


@dataclass(frozen=True, eq=False)
class _Seen:
    """What one or several runs without weights have shown of the sites they reached."""

    handed: Mapping[nn.Module, Sequence[Handed]]
    rotated: frozenset[nn.Module]
    used: frozenset[nn.Parameter]
    problem: str

    def of(self, tower: Tower, layer: int) -> list[Handed]:
        every = (each for site in tower.sites for each in self.handed.get(site.module, ()))
        return [each for each in every if each.layer == layer]

    def reached(self, tower: Tower) -> bool:
        return any(self.handed.get(site.module) for site in tower.sites)


def _seen(model: nn.Module, towers: Sequence[Tower], length: int) -> _Seen:
    """The run of the whole model, and for towers that it does not reach that of the part they stand in."""
    every = [site for tower in towers for site in tower.sites]
    runs = [run_empty(model, every, length)]
    for tower in towers:
        for part in _parts(model, tower.sites[0].path):
            if any(run.handed.get(site.module) for run in runs for site in tower.sites):
                break
            inside = set(part.modules())
            runs.append(run_empty(part, [site for site in every if site.module in inside], length))
    merged = {site.module: _first(site, runs) for site in every}
    rotated = frozenset[nn.Module]().union(*(run.rotated for run in runs))
    used = frozenset[nn.Parameter]().union(*(run.used for run in runs))
    complete = all(merged.values())
    return _Seen(merged, rotated, used, "" if complete else runs[0].problem or "not every part is used")


def _first(site: Site, runs: Sequence[EmptyRun]) -> Sequence[Handed]:
    return next((run.handed[site.module] for run in runs if run.handed.get(site.module)), ())


def _parts(model: nn.Module, path: str) -> list[nn.Module]:
    """The models inside of the model that hold the module at `path`, outermost first."""
    parts = path.split(".")
    inner = (model.get_submodule(".".join(parts[:end])) for end in range(1, len(parts)))
    return [each for each in inner if hasattr(each, "main_input_name") and hasattr(each, "config")]


def _tower(model: nn.Module, tower: Tower, towers: Sequence[Tower], seen: _Seen) -> TowerOutline:
    known = _positions_of(model, tower, towers, seen)
    return TowerOutline(
        name=tower.name,
        kind=tower.kind,
        pattern=tower.pattern,
        route=tower.route,
        kernel=kernel_of(tower.sites[0]),
        context=_context(model, tower),
        layers=tuple(
            _layer(model, site, layer, seen.of(tower, layer), known, seen)
            for layer, site in sorted(_by_layer(tower).items())
        ),
    )


def _by_layer(tower: Tower) -> dict[int, Site]:
    return {layer: site for site in reversed(tower.sites) for layer in site.layers}


def _layer(
    model: nn.Module,
    site: Site,
    layer: int,
    handed: Sequence[Handed],
    known: tuple[Position, ...],
    seen: _Seen,
) -> LayerOutline:
    module, config = site.module, dimensions.config_of(model, site.path)
    first = handed[0] if handed else None
    turned = positions.rotation(model, site.path, layer)
    turns = turned is not None and (first is None or _rotates(model, module, seen))
    said: dict[str, Any] = {
        "heads": dimensions.heads(module),
        "key_heads": dimensions.key_heads(module, config),
        "dim": dimensions.dim(module, config),
        "value_dim": dimensions.value_dim(module, config),
        "scale": None,
        "softcap": dimensions.softcap(module),
        "sinks": dimensions.sinks(module),
        "window": dimensions.window(module, config),
    }
    shown = {name: value for name in said if first and (value := getattr(first, name)) is not None}
    return LayerOutline(
        layer=layer,
        module=site.path,
        seen=first is not None,
        positions=known + ((turned,) if turns and turned else ()),
        chunk=dimensions.chunk(config, layer),
        blocks=sum(each.blocks for each in handed) or None,
        queries=first.queries if first else None,
        keys=first.keys if first else None,
        **(said | shown),
    )


def _rotates(model: nn.Module, module: nn.Module, seen: _Seen) -> bool:
    """Whether the run saw a rotation in the module; where no module makes rotations it does so by itself."""
    return module in seen.rotated or not any(positions.is_rotary(each) for each in model.modules())


def _positions_of(
    model: nn.Module, tower: Tower, towers: Sequence[Tower], seen: _Seen
) -> tuple[Position, ...]:
    """What all layers of a tower share: tables that are in use, biases by distance."""
    used = seen.used if seen.reached(tower) else None
    found = [each.position for each in positions.tables(model, towers)[tower] if each.is_used(used)]
    if positions.by_distance(model, tower, towers, used):
        found.append(Position(positions.RELATIVE))
    config = dimensions.config_of(model, tower.sites[0].path)
    if tower.kind is not Kind.CROSS and positions.has_alibi(model, config):
        found.append(Position(positions.ALIBI))
    return tuple(dict.fromkeys(found))


def _gaps(model: nn.Module, towers: Sequence[Tower]) -> list[Gap]:
    """Entries of the lists of layers in which nothing attends, by what they have instead."""
    attending = {site.module for tower in towers for site in tower.sites}
    found: dict[tuple[str, str], list[int]] = {}
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
                found.setdefault((path, _instead(entry, usual)), []).append(number)
    return [Gap(path, tuple(numbers), name) for (path, name), numbers in found.items()]


def _instead(entry: nn.Module, usual: set[str]) -> str:
    """Class of the part that layers with attention do not have, else that of the layer."""
    other = [type(part).__name__ for name, part in entry.named_children() if name not in usual]
    return ", ".join(other) or type(entry).__name__


def _cost(planned: Plan, listing: Listing, tower: Tower, layer: int, length: int, seen: _Seen) -> Cost | None:
    """None where the run without weights did not come to the layer."""
    there = tower.layers
    if layer not in there and not -len(there) <= layer < 0:
        raise InputError(f"no layer {layer} in {planned.name}: attention is in layers {listed(there)}")
    number = there[layer] if layer < 0 else layer
    handed = seen.of(tower, number)
    if not handed:
        return None
    model, first = planned.skeleton, handed[0]
    cut = number + 1 if can_be_cut(model, planned.config) else None
    names = kept(model, cut)
    head_flops, stages = cost.recomputation(first)
    blocks = sum(each.blocks for each in handed)
    pairs = first.queries * first.keys
    shared = first.keys * (first.dim + first.value_dim)
    rows = first.queries * (first.dim + first.value_dim)
    shards = {listing.shards[name] for name in needed(listing.shards, model, cut)} if listing.shards else ()
    return Cost(
        tower=tower.name,
        kind=tower.kind,
        layer=number,
        length=length,
        queries=first.queries,
        keys=first.keys,
        forward_flops=handed[-1].flops,
        head_flops=head_flops,
        repeats=cost.repeats(first),
        layers_loaded=cut,
        weights=size_of(model, names, torch.float32),
        operands=4 * blocks * (first.heads * rows + first.key_heads * shared),
        kernel=2 * 4 * blocks * first.heads * pairs,
        reference=2 * stages,
        rate_float32=cost.rate(torch.float32),
        rate_float64=cost.rate(torch.float64),
        shards=tuple(sorted(shards)),
    )
