"""A model from outside: its attention layers, equal ones in a row, those without, and what a head costs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise

from attnscope.process.machine import duration
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, number, parameter
from attnscope.render.kit.words.header import own_name
from attnscope.render.sheet.blocks import Block, Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.results import Cost, Kind, LayerOutline, Outline, Position, TowerOutline

_SIZES = {"heads": "heads", "key_heads": "key heads", "dim": "dim", "value_dim": "value dim"}
_COLUMNS = tuple(field.name for field in fields(LayerOutline))
_RECORD = ("requested", "model", "demo", "revision", "architecture", "model_type", "parameters")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


def sheet(result: Outline, focus: Focus = WHOLE) -> Sheet:
    name = f"bundled {result.model} model" if result.demo else result.model
    record = [(each, getattr(result, each)) for each in _RECORD]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    return Sheet(
        title=name + (f" at {result.revision[:10]}" if result.revision else ""),
        setting=result.architecture,
        origins=(),
        answer=_answer(result),
        blocks=(*map(_tower, result.towers), *_cost(result)),
        table=lambda: _table(result),
        notes=tuple(_notes(result)),
        summary=(result.architecture, counted(_layers(result), "attention layer")),
        record=(*((name, "" if value is None else value) for name, value in record), ("versions", versions)),
    )


def _layers(result: Outline) -> int:
    return sum(len(each.layers) for each in result.towers)


def _answer(result: Outline) -> str:
    name = own_name(result.model)
    made = f"({result.architecture}, {count_words(result.parameters)} parameters)"
    if not result.towers:
        return f"{name} {made} has no attention that can be read: nothing to look at here."
    layers = [layer for tower in result.towers for layer in tower.layers]
    heads = [layer.heads for layer in layers if layer.heads is not None]
    told = counted(len(layers), "layer")
    if heads:
        least, most = min(heads), max(heads)
        told += f" of {counted(most, 'head') if least == most else f'{least} to {most} heads'}"
    if len(result.towers) == 1:
        (tower,) = result.towers
        reads = f", up to {counted(tower.context, 'token')}" if tower.context else ""
        told = f"{name} is {_WITH_ARTICLE[tower.kind]} {made}: {told}{reads}."
    else:
        towers = [_tower_words(each) for each in result.towers]
        told = f"{name} {made} has attention in {', '.join(towers[:-1])} and {towers[-1]}: {told}."
    shared = {(each.heads, each.key_heads) for each in layers if each.heads and each.key_heads}
    shared = {pair for pair in shared if pair[0] != pair[1]}
    if len(shared) == 1:
        ((heads_there, keys),) = shared
        told += f" {heads_there} heads share {counted(keys or 0, 'key head')}."
    return told


_WITH_ARTICLE = {
    Kind.ENCODER: "an encoder",
    Kind.DECODER: "a decoder",
    Kind.CROSS: "a model with cross-attention",
}


def _tower(tower: TowerOutline) -> Ranking:
    read = f" · {tower.route}, {tower.kernel}" if tower.kernel == "eager" else f" · {tower.route}"
    reads = f" · at most {counted(tower.context, 'token')}" if tower.context else ""
    rows = _alike(tower.layers)
    samples = [sample for _, sample in rows]
    positions = [position_words(each.positions, tower.kind) for each in samples]
    sizes = (
        Column(field, [_size(getattr(each, field)) for each in samples], heading, as_written)
        for field, heading in _SIZES.items()
    )
    return Ranking(
        title=f"{_tower_words(tower)} · {tower.pattern}{read}{reads}",
        of="layers",
        names=tuple(range_words(numbers) for numbers, _ in rows),
        table=Table(
            *sizes,
            Column("positions", positions, "positions"),
            Column("besides", [besides_words(each, tower.kind) for each in samples], "besides"),
        ),
    )


def _size(value: int | None) -> str:
    return "not told" if value is None else str(value)


def _alike(layers: Sequence[LayerOutline]) -> list[tuple[list[int], LayerOutline]]:
    """Layers that differ in nothing but their number and path, in the order of their first."""
    found: dict[LayerOutline, list[int]] = {}
    for layer in layers:
        found.setdefault(replace(layer, layer=0, module=""), []).append(layer.layer)
    return [(numbers, sample) for sample, numbers in found.items()]


def _cost(result: Outline) -> Iterator[Block]:
    if result.cost is None:
        return
    cost = result.cost
    where = f"one head of layer {cost.layer}, {_tower_words(cost)}"
    if result.further:
        yield _lengths(result.costs, f"{where}, by length of text: an estimate")
        return
    at = counted(cost.queries, "token")
    if cost.queries != cost.keys:
        at = f"{counted(cost.queries, 'query')} and {counted(cost.keys, 'key')}"
    first = f" of its first {counted(cost.layers_loaded, 'layer')}" if cost.layers_loaded else ""
    memory = {
        f"weights{first}": cost.weights,
        "q, k, v and output": cost.operands,
        "the model's scores and weights": cost.kernel,
        "ours in float64": cost.reference,
        "together at least": cost.memory,
    }
    yield Ranking(
        title=f"{where}, at {at}: an estimate",
        of="memory",
        names=tuple(memory),
        table=Table(Column("bytes", list(memory.values()), "bytes", partial(amount, unit="B"))),
    )


def _lengths(costs: Sequence[Cost], title: str) -> Ranking:
    sizes = [
        f"{each.queries:,}" if each.queries == each.keys else f"{each.queries:,} x {each.keys:,}"
        for each in costs
    ]
    amounts: dict[str, tuple[list[int], str]] = {
        "memory at least": ([each.memory for each in costs], "B"),
        "of it scores and weights": ([each.pairs for each in costs], "B"),
        "model up to there": ([each.forward_flops for each in costs], "FLOP"),
        "the head": ([each.repeats * each.head_flops for each in costs], "FLOP"),
    }
    columns = (
        Column(heading, values, heading, partial(amount, unit=unit))
        for heading, (values, unit) in amounts.items()
    )
    return Ranking(
        title=title,
        of="tokens",
        names=tuple(size + "*" * each.beyond for size, each in zip(sizes, costs, strict=True)),
        table=Table(*columns),
    )


def _notes(result: Outline) -> Iterator[str]:
    yield f"{amount(4 * result.parameters, 'B')} in float32; {storage_words(result)}"
    for gap in result.gaps:
        yield f"no attention in {_layer_words(gap.layers)} of {gap.stack}: {gap.module_class}"
    yield from _source(result)
    if result.cost is not None and not result.further:
        cost = result.cost
        yield (
            f"products of that head: {amount(cost.forward_flops, 'FLOP')} of the model up to there, at most "
            f"{cost.repeats} times {amount(cost.head_flops, 'FLOP')} of the head in float64"
        )
        if cost.shards:
            files = 0 if result.storage is None else result.storage.files
            yield f"files for it: {len(cost.shards)} of {files}: {shard_words(cost.shards)}"
    if any(cost.beyond for cost in result.costs):
        yield beyond_words(result)
    if result.further:
        yield growth_words(result.costs)


def _source(result: Outline) -> Iterator[str]:
    every = [layer for tower in result.towers for layer in tower.layers]
    seen = sum(layer.seen for layer in every)
    run = f"a run without weights, {counted(result.length, 'token')} of text"
    if every and seen == len(every):
        yield f"as seen in {run}"
    elif every:
        rest = f"{len(every) - seen} of {counted(len(every), 'layer')} as their modules and the config say"
        yield f"{rest}, which {run} did not reach" + (f": {result.run}" if result.run else "")


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


def amount(value: float, unit: str) -> str:
    """Three digits with a prefix of ten: `438 MB`, `97.2 GFLOP`, `109 M`."""
    power = 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    places = 0 if value >= 99.95 or power == 0 else 1 if value >= 9.995 else 2
    return f"{value:.{places}f} {_PREFIXES[power]}{unit}".rstrip()


def shard_words(names: Sequence[str]) -> str:
    """The names of files; of more than four the first two and the last."""
    shown = names if len(names) <= 4 else (*names[:2], "…", names[-1])
    return ", ".join(shown)


def count_words(count: int) -> str:
    """`624 thousand`, `109 million`, `671 billion`."""
    words = ("", " thousand", " million", " billion", " trillion")
    shown = amount(count, "").split()
    return shown[0] + words[_PREFIXES.index(shown[1]) if len(shown) > 1 else 0]


def time_words(seconds: float) -> str:
    """`3.5 ms`, `420 ms`, `17.7 s`, `7 min`, `2.5 h`, `3 days`."""
    if seconds < 5e-5:
        return "less than 0.1 ms"
    if seconds < 1:
        return f"{number(1000 * seconds, 1 if seconds < 0.01 else 0)} ms"
    return duration(seconds)


def speed_words(seconds: float, rate_float32: float, rate_float64: float) -> str:
    """How long the products of a head take, as measured, and at which speeds."""
    rates = f"{amount(rate_float32, 'FLOP/s')}, in float64 {amount(rate_float64, 'FLOP/s')}"
    return f"about {time_words(seconds)} for its products at {rates}, as measured now; the rest comes on top"


def range_words(numbers: Sequence[int]) -> str:
    """`0-11`, `0, 2, 5-7`; numbers at one distance from each other `0-24 by 2`."""
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


def _layer_words(numbers: Sequence[int]) -> str:
    return f"{'layer' if len(numbers) == 1 else 'layers'} {range_words(numbers)}"


def _tower_words(tower: TowerOutline | Cost) -> str:
    """Name and kind of a tower, once where they are the same; a cost is called by the tower it belongs to."""
    name = tower.name if isinstance(tower, TowerOutline) else tower.tower
    return str(tower.kind) if name in ("", tower.kind) else f"{name} ({tower.kind})"


def position_words(positions: Sequence[Position], kind: Kind) -> str:
    """`learned (512)`, `rotary 64, base 10000`, several joined; `none found` for none."""
    none = "none of its own" if kind is Kind.CROSS else "none found"
    return " + ".join(map(_position, positions)) or none


def _position(position: Position) -> str:
    words = position.scheme if position.dims is None else f"{position.scheme} {position.dims}"
    if position.size is not None:
        words += f" ({position.size})"
    if position.base is not None:
        words += f", base {parameter(position.base)}"
    return words if position.variant is None else f"{words}, {position.variant}"


def besides_words(layer: LayerOutline, kind: Kind) -> str:
    """What the layer does that most do not: window, soft cap, sinks, a scale of its own, several blocks.

    An encoder looks to either side of a token; the window that it is given counts the token itself.
    """
    found = []
    if layer.window is not None and kind is Kind.ENCODER:
        found.append(f"window {layer.window - 1} to either side")
    elif layer.window is not None:
        found.append(f"window {layer.window}")
    if layer.chunk is not None:
        found.append(f"chunks of {layer.chunk}")
    if layer.softcap is not None:
        found.append(f"cap {parameter(layer.softcap)}")
    if layer.sinks:
        found.append("sinks")
    usual = None if layer.dim is None else layer.dim**-0.5
    if layer.scale is not None and (usual is None or abs(layer.scale - usual) > 1e-6 * usual):
        found.append(f"scale {parameter(layer.scale)}")
    if layer.blocks is not None and layer.blocks > 1:
        found.append(counted(layer.blocks, "block"))
    if not layer.seen:
        found.append("not run")
    return ", ".join(found) or "-"


def growth_words(costs: Sequence[Cost]) -> str:
    """`from 128 to 1,024 tokens: 8 times the text, 64 times the weights (...)`, shortest against longest."""
    short, long = min(costs, key=lambda cost: cost.length), max(costs, key=lambda cost: cost.length)
    text, weights = long.length / short.length, long.queries * long.keys / (short.queries * short.keys)
    lengths = f"from {short.length:,} to {long.length:,} tokens"
    square = ": every token has a weight for every other" if math.isclose(weights, text**2) else ""
    return f"{lengths}: {_times(text)} the text, {_times(weights)} the weights{square}"


def _times(factor: float) -> str:
    return f"{parameter(factor, 2)} times"


def beyond_words(result: Outline) -> str:
    """Which lengths cannot be run, and how they are known."""
    context = next((tower.context for tower in result.towers if _is_of(result.costs[0], tower)), None)
    reads = f"it reads at most {context:,} tokens" if context else "longer than it reads"
    marked = "* " if result.further else ""
    made_for = f"{marked}beyond what {own_name(result.model)} was made for, {reads}"
    return f"{made_for}: the same arithmetic, no run of it"


def _is_of(cost: Cost, tower: TowerOutline) -> bool:
    return (cost.tower, cost.kind) == (tower.name, tower.kind)


def storage_words(result: Outline) -> str:
    """`stored on this machine: 440 MB, float32, 1 file`, or why that is not known."""
    stored = result.storage
    if stored is None:
        return result.unlisted or "weights not looked for"
    size = "size not told" if stored.size is None else amount(stored.size, "B")
    lacking = [file for file, held in stored.shards.items() if held is None]
    missing = f" ({len(lacking)} not here)" if lacking else ""
    precision = f", {stored.precision}" if stored.precision else ""
    return f"stored {stored.place}: {size}{precision}, {counted(stored.files, 'file')}{missing}"
