"""The attention layers of a tower, each as a run without weights shows it, else as its module says."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from attnscope.analysis.outline.observed import Observed
from attnscope.capture.following.describe import kernel_of
from attnscope.model.anatomy import dimensions, positions
from attnscope.model.anatomy.dimensions import head_count
from attnscope.model.anatomy.positions import find_rotation, is_rotary
from attnscope.model.anatomy.sites import Site
from attnscope.model.anatomy.towers import Tower
from attnscope.results import Kind, LayerOutline, Position, TowerOutline


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
        context=context_of(model, tower),
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
    module, config = site.module, dimensions.config_of(model, site.path)
    calls = observed.of(tower, layer)
    first = calls[0] if calls else None
    rotated = find_rotation(model, towers, tower, layer, observed.rotated.get(module))
    is_rotated = rotated is not None and (first is None or _rotates(model, module, observed))
    stated: dict[str, Any] = {
        "heads": head_count(module),
        "key_heads": dimensions.key_heads(module, config),
        "dim": dimensions.dim(module, config),
        "value_dim": dimensions.value_dim(module, config),
        "scale": None,
        "softcap": dimensions.softcap(module),
        "sinks": dimensions.sinks(module),
        "window": dimensions.window(module, config),
    }
    measured = {name: value for name in stated if first and (value := getattr(first, name)) is not None}
    if first and first.scale is not None:  # a kernel is told all of these
        measured |= {"window": first.window, "softcap": first.softcap}
    return LayerOutline(
        layer=layer,
        module=site.path,
        seen=first is not None,
        positions=shared + ((rotated,) if is_rotated and rotated else ()),
        chunk=dimensions.chunk(config, layer),
        blocks=sum(each.blocks for each in calls) or None,
        queries=first.queries if first else None,
        keys=first.keys if first else None,
        **(stated | measured),
    )


def _rotates(model: nn.Module, module: nn.Module, observed: Observed) -> bool:
    """Whether the run saw a rotation in the module; where no module makes rotations it does so by itself."""
    return module in observed.rotated or not any(is_rotary(each) for each in model.modules())


def _positions_of(
    model: nn.Module, tower: Tower, towers: Sequence[Tower], observed: Observed
) -> tuple[Position, ...]:
    """What all layers of a tower share: tables that are in use, biases by distance."""
    used = observed.used if observed.reached(tower) else None
    shared = [each.position for each in positions.tables(model, towers)[tower] if each.is_used(used)]
    if positions.by_distance(model, tower, towers, used):
        shared.append(Position(positions.RELATIVE))
    config = dimensions.config_of(model, tower.sites[0].path)
    if tower.kind is not Kind.CROSS and positions.has_alibi(model, config):
        shared.append(Position(positions.ALIBI))
    return tuple(dict.fromkeys(shared))


def context_of(model: nn.Module, tower: Tower) -> int | None:
    """The most tokens that the tower's config says it reads."""
    return dimensions.context(dimensions.config_of(model, tower.sites[0].path), tower.kind)
