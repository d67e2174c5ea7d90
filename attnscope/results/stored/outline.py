"""An outline: what there is to look at, layer by layer, and what one head would cost."""

from dataclasses import asdict

import numpy as np

from attnscope.results.outline import Cost, Gap, LayerOutline, Outline, Storage, TowerOutline
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value

_COUNTS = ("layer", "heads", "key_heads", "dim", "value_dim", "queries", "keys")


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
        "further": [_cost(cost) for cost in result.further],
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
    }


@arrays_of.register
def _(result: Outline) -> Arrays:
    """One entry per layer of every tower, in order; -1 for what is not told."""
    layers = [layer for tower in result.towers for layer in tower.layers]
    told = {name: [getattr(layer, name) for layer in layers] for name in _COUNTS}
    return {
        name: np.array([-1 if each is None else each for each in values], np.int64)
        for name, values in told.items()
    }


@reads("attnscope.outline/1")
def read(record: Record) -> Outline:
    """All of it stands in the document; towers take their layers in the order in which they stand."""
    layers = list(record.get("layers", tuple[LayerOutline, ...]))
    towers = []
    for each in record.parts("towers"):
        numbers = each.get("layers", tuple[int, ...])
        own, layers = layers[: len(numbers)], layers[len(numbers) :]
        if tuple(layer.layer for layer in own) != numbers:
            raise Damaged("'towers' and 'layers' do not fit together")
        towers.append(made(TowerOutline, each, layers=tuple(own)))
    return made(
        Outline,
        record,
        storage=record.get("storage", Storage | None),
        towers=tuple(towers),
        gaps=record.get("without_attention", tuple[Gap, ...]),
        run=record.get("run_problem", str | None) or "",
        cost=record.get("cost", Cost | None),
        unlisted=record.get("unlisted", str | None) or "",
        further=record.get("further", tuple[Cost, ...], ()),
    )
