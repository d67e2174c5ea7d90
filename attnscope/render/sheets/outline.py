"""Sheet of a model's outline: its attention layers, equal ones in a row, and the cost of a head."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise

from attnscope.process.machine import duration
from attnscope.render.kit.numbers import amount, number
from attnscope.render.kit.words import own_name
from attnscope.render.sheet.blocks import Block, Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Cost, Kind, LayerOutline, Outline, Position, TowerOutline

_SIZES = {"heads": "heads", "key_heads": "key heads", "dim": "dim", "value_dim": "value dim"}
_COLUMNS = tuple(field.name for field in fields(LayerOutline))
_RECORD = ("requested", "model", "demo", "revision", "architecture", "model_type", "parameters")


def sheet(result: Outline, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    record = [(each, getattr(result, each)) for each in _RECORD]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    return Sheet(
        title=say("title", result.revision, result.demo),
        setting=result.architecture,
        origins=(),
        answer=say(result.case),
        blocks=(*(_tower(each, say) for each in result.towers), *_cost(result, say)),
        table=lambda: _table(result),
        notes=tuple(say.lines("notes")),
        summary=(result.architecture, say("summary")),
        record=(*((name, "" if value is None else value) for name, value in record), ("versions", versions)),
    )


def said(result: Outline) -> Said:
    """Sentences of `model` about this result."""
    layers = [layer for tower in result.towers for layer in tower.layers]
    heads = [layer.heads for layer in layers if layer.heads is not None]
    sharing = {(each.heads, each.key_heads) for each in layers if each.heads and each.key_heads}
    shared = [(heads, keys) for heads, keys in sharing if heads != keys]
    cost, stored = result.cost, result.storage
    at = (cost.tower, cost.kind) if cost else None
    reads = (each.context for each in result.towers if (each.name, each.kind) == at)
    facts = {
        "name": own_name(result.model),
        "layers": len(layers),
        "least": min(heads, default=None),
        "most": max(heads, default=None),
        "shared": shared[0] if len(shared) == 1 else None,
        "gaps": [(each, len(each.layers), range_words(each.layers)) for each in result.gaps],
        # how it was read
        "unseen": sum(not layer.seen for layer in layers),
        "problem": result.run,
        "lacking": 0 if stored is None else [*stored.shards.values()].count(None),
        # what a head costs
        "beyond": any(each.beyond for each in result.costs),
        "reads": next(reads, None),
        "growth": _growth(result.costs) if result.further else None,
    }
    return Said("outline", result, facts)


def _growth(costs: Sequence[Cost]) -> dict[str, object]:
    short, long = min(costs, key=lambda cost: cost.length), max(costs, key=lambda cost: cost.length)
    weights = long.queries * long.keys / (short.queries * short.keys)
    return {"short": short.length, "long": long.length, "weights": weights}


def _tower(tower: TowerOutline, say: Said) -> Ranking:
    rows = _alike(tower.layers)
    samples = [sample for _, sample in rows]
    sizes = (
        Column(field, [str(getattr(each, field) or "-") for each in samples], heading, as_written)
        for field, heading in _SIZES.items()
    )
    positions = [say("positions", each.positions, tower.kind is Kind.CROSS) for each in samples]
    besides = [say("besides", each, tower.kind is Kind.ENCODER, _scaled(each)) for each in samples]
    return Ranking(
        title=say("tower_title", tower),
        of="layers",
        names=tuple(range_words(numbers) for numbers, _ in rows),
        table=Table(
            *sizes, Column("positions", positions, "positions"), Column("besides", besides, "besides")
        ),
    )


def _scaled(layer: LayerOutline) -> bool:
    usual = None if layer.dim is None else layer.dim**-0.5
    return layer.scale is not None and (usual is None or abs(layer.scale - usual) > 1e-6 * usual)


def _alike(layers: Sequence[LayerOutline]) -> list[tuple[list[int], LayerOutline]]:
    """Equal layers, without regard to number and path, in the order of their first."""
    found: dict[LayerOutline, list[int]] = {}
    for layer in layers:
        found.setdefault(replace(layer, layer=0, module=""), []).append(layer.layer)
    return [(numbers, sample) for sample, numbers in found.items()]


def _cost(result: Outline, say: Said) -> Iterator[Block]:
    if (cost := result.cost) is None:
        return
    if result.further:
        yield _lengths(result.costs, say)
        return
    memory = [cost.weights, cost.operands, cost.kernel, cost.reference, cost.memory]
    yield Ranking(
        title=say("cost_title"),
        of="memory",
        names=tuple(say("memory").split(" · ")),
        table=Table(Column("bytes", memory, "bytes", partial(amount, unit="B"))),
    )


def _lengths(costs: Sequence[Cost], say: Said) -> Ranking:
    sizes = [
        f"{each.queries:,}" if each.queries == each.keys else f"{each.queries:,} x {each.keys:,}"
        for each in costs
    ]
    of_each = [(one.memory, one.pairs, one.forward_flops, one.repeats * one.head_flops) for one in costs]
    amounts = zip(say("amounts").split(" · "), ("B", "B", "FLOP", "FLOP"), *of_each, strict=True)
    columns = (
        Column(heading, values, heading, partial(amount, unit=unit)) for heading, unit, *values in amounts
    )
    return Ranking(
        title=say("cost_title"),
        of="tokens",
        names=tuple(size + "*" * each.beyond for size, each in zip(sizes, costs, strict=True)),
        table=Table(*columns),
    )


def _table(result: Outline) -> Table:
    rows = [(tower, layer) for tower in result.towers for layer in tower.layers]
    return Table(
        Column("tower", [tower.name for tower, _ in rows]),
        Column("kind", [tower.kind.value for tower, _ in rows]),
        *(Column(name, [_cell(getattr(layer, name)) for _, layer in rows]) for name in _COLUMNS),
    )


def _cell(value: object) -> object:
    if isinstance(value, tuple):
        return " ".join(each.scheme for each in value if isinstance(each, Position))
    return int(value) if isinstance(value, bool) else value


def time_words(seconds: float) -> str:
    """Duration as text: `3.5 ms`, `420 ms`, `17.7 s`, `7 min`, `2.5 h`, `3 days`."""
    if seconds < 5e-5:
        return "less than 0.1 ms"
    if seconds < 1:
        return f"{number(1000 * seconds, 1 if seconds < 0.01 else 0)} ms"
    return duration(seconds)


def speed_words(seconds: float, rate_float32: float, rate_float64: float) -> str:
    """Sentence for the time of a head's matrix products, and the measured FLOP/s."""
    rates = (amount(each, "FLOP/s") for each in (rate_float32, rate_float64))
    return Said("outline")("speed", time_words(seconds), *rates)


def range_words(numbers: Sequence[int]) -> str:
    """Numbers as ranges: `0-11`, `0, 2, 5-7`, `0-24 by 2`."""
    ordered = sorted(numbers)
    steps = {later - earlier for earlier, later in pairwise(ordered)}
    if len(ordered) > 3 and len(steps) == 1 and steps != {1}:
        return f"{ordered[0]}-{ordered[-1]} by {steps.pop()}"
    runs: list[list[int]] = []
    for each in ordered:
        if runs and runs[-1][-1] == each - 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
