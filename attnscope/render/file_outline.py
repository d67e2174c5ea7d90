"""An outline as JSON: what there is to look at, layer by layer, and what one head would cost."""

from dataclasses import asdict

from attnscope.render.file_json import Value, document
from attnscope.results import Cost, LayerOutline, Outline, TowerOutline


@document.register
def _(result: Outline, arrays: bool = True) -> dict[str, Value]:
    told = ("requested", "model", "demo", "revision", "architecture", "model_type", "parameters")
    return {
        "schema": "attnscope.outline/1",
        **{name: getattr(result, name) for name in told},
        "bytes_float32": 4 * result.parameters,
        "versions": dict(sorted(result.versions.items())),
        "storage": None if result.storage is None else asdict(result.storage),
        "unlisted": result.unlisted or None,
        "length": result.length,
        "run_problem": result.run or None,
        "cost": None if result.cost is None else _cost(result.cost),
        "without_attention": [asdict(gap) for gap in result.gaps],
        "towers": [_tower(tower) for tower in result.towers],
        "layers": [_layer(tower, layer) for tower in result.towers for layer in tower.layers],
    }


def _tower(tower: TowerOutline) -> dict[str, Value]:
    told = ("name", "pattern", "kernel", "context")
    return {
        **{name: getattr(tower, name) for name in told},
        "kind": tower.kind.value,
        "route": tower.route.value,
        "layers": [layer.layer for layer in tower.layers],
    }


def _layer(tower: TowerOutline, layer: LayerOutline) -> dict[str, Value]:
    return {"tower": tower.name, "kind": tower.kind.value, **asdict(layer)}


def _cost(cost: Cost) -> dict[str, Value]:
    return {
        **asdict(cost),
        "kind": cost.kind.value,
        "flops": cost.flops,
        "bytes": cost.memory,
        "seconds": cost.seconds,
    }
