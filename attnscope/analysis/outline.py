"""Outlines a tower's attention layers, from a run without weights or else from their modules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from attnscope.capture.dry_run import DryCall, DryRun, run_dry
from attnscope.capture.following.describe import kernel_of
from attnscope.capture.following.takeover import STAND_INS
from attnscope.model.anatomy import positions
from attnscope.model.anatomy.positions import find_rotation, is_rotary
from attnscope.model.anatomy.sites import Site
from attnscope.model.anatomy.towers import (
    Tower,
    chunk,
    config_of,
    context,
    dim,
    head_count,
    key_heads,
    sinks,
    softcap,
    value_dim,
    window,
)
from attnscope.results import Kind, LayerOutline, Position, TowerOutline


@dataclass(frozen=True, eq=False)
class Observed:
    """Records of dry runs (without weights): attention calls, rotations, and parameters used."""

    calls: Mapping[nn.Module, Sequence[DryCall]]
    rotated: Mapping[nn.Module, int]
    used: frozenset[nn.Parameter]
    problem: str

    def of(self, tower: Tower, layer: int) -> list[DryCall]:
        every = (each for site in tower.sites for each in self.calls.get(site.module, ()))
        return [each for each in every if each.layer == layer]

    def reached(self, tower: Tower) -> bool:
        return any(self.calls.get(site.module) for site in tower.sites)


def observe(model: nn.Module, towers: Sequence[Tower], length: int) -> Observed:
    """Dry runs of the whole model, and of submodels for towers that it does not reach."""
    every = [site for tower in towers for site in tower.sites]
    runs = [run_dry(model, every, length, STAND_INS)]
    for tower in towers:
        for part in _parts(model, tower.sites[0].path):
            if any(run.calls.get(site.module) for run in runs for site in tower.sites):
                break
            inside = set(part.modules())
            held = [site for site in every if site.module in inside]
            runs.append(run_dry(part, held, length, STAND_INS))
    merged = {site.module: _first(site, runs) for site in every}
    rotated = {module: width for run in runs for module, width in run.rotated.items()}
    used = frozenset[nn.Parameter]().union(*(run.used for run in runs))
    problem = "" if all(merged.values()) else next((run.problem for run in runs if run.problem), "")
    return Observed(merged, rotated, used, problem)


def _first(site: Site, runs: Sequence[DryRun]) -> Sequence[DryCall]:
    return next((run.calls[site.module] for run in runs if run.calls.get(site.module)), ())


def _parts(model: nn.Module, path: str) -> list[nn.Module]:
    """Submodels that hold the module at `path`, outermost first."""
    parts = path.split(".")
    inner = (model.get_submodule(".".join(parts[:end])) for end in range(1, len(parts)))
    return [each for each in inner if hasattr(each, "main_input_name") and hasattr(each, "config")]


def tower_outline(
    model: nn.Module, tower: Tower, towers: Sequence[Tower], observed: Observed
) -> TowerOutline:
    shared = _positions_of(model, tower, towers, observed)
    return TowerOutline(
        name=tower.name,
        kind=tower.kind,
        pattern=tower.pattern,
        route=tower.route,
        kernel=kernel_of(tower.sites[0]),
        context=context_of(model, tower, towers),
        layers=tuple(
            _layer(model, towers, tower, site, layer, shared, observed)
            for layer, site in sorted(_by_layer(tower).items())
        ),
    )


def _by_layer(tower: Tower) -> dict[int, Site]:
    return {layer: site for site in reversed(tower.sites) for layer in site.layers}


def _layer(
    model: nn.Module,
    towers: Sequence[Tower],
    tower: Tower,
    site: Site,
    layer: int,
    shared: tuple[Position, ...],
    observed: Observed,
) -> LayerOutline:
    module, config = site.module, config_of(model, site.path)
    calls = observed.of(tower, layer)
    first = calls[0] if calls else None
    rotated = find_rotation(model, towers, tower, layer, observed.rotated.get(module))
    is_rotated = rotated is not None and (first is None or _rotates(model, module, observed))
    stated: dict[str, Any] = {
        "heads": head_count(module),
        "key_heads": key_heads(module, config),
        "dim": dim(module, config),
        "value_dim": value_dim(module, config),
        "scale": None,
        "softcap": softcap(module),
        "sinks": sinks(module),
        "window": window(module, config),
    }
    measured = {name: value for name in stated if first and (value := getattr(first, name)) is not None}
    if first and first.scale is not None:  # a kernel is told all of these
        measured |= {"window": first.window, "softcap": first.softcap}
    return LayerOutline(
        layer=layer,
        module=site.path,
        seen=first is not None,
        positions=shared + ((rotated,) if is_rotated and rotated else ()),
        chunk=chunk(config, layer),
        blocks=sum(each.blocks for each in calls) or None,
        queries=first.queries if first else None,
        keys=first.keys if first else None,
        **(stated | measured),
    )


def _rotates(model: nn.Module, module: nn.Module, observed: Observed) -> bool:
    """Whether the module's keys are rotated: a run saw it, or no module of the model makes rotations."""
    return module in observed.rotated or not any(is_rotary(each) for each in model.modules())


def _positions_of(
    model: nn.Module, tower: Tower, towers: Sequence[Tower], observed: Observed
) -> tuple[Position, ...]:
    used = observed.used if observed.reached(tower) else None
    shared = [each.position for each in positions.tables(model, towers)[tower] if each.is_used(used)]
    if positions.by_distance(model, tower, towers, used):
        shared.append(Position(positions.RELATIVE))
    config = config_of(model, tower.sites[0].path)
    if tower.kind is not Kind.CROSS and positions.has_alibi(model, config):
        shared.append(Position(positions.ALIBI))
    return tuple(dict.fromkeys(shared))


def context_of(model: nn.Module, tower: Tower, towers: Sequence[Tower]) -> int | None:
    """The most tokens a tower reads, by its config and its position tables; None where neither says."""
    stated = context(config_of(model, tower.sites[0].path), tower.kind)
    most = (stated, *(table.most for table in positions.tables(model, towers)[tower]))
    return min((each for each in most if each is not None), default=None)
