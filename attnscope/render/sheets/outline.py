"""A model from outside: its attention layers, equal ones in a row, those without, and what a head costs."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import own_name
from attnscope.render.sheet.blocks import Block, Ranking
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.render.sheets.outline_words import (
    amount,
    besides_words,
    beyond_words,
    count_words,
    growth_words,
    layer_words,
    position_words,
    range_words,
    shard_words,
    storage_words,
    tower_words,
)
from attnscope.results import Cost, Kind, LayerOutline, Outline, Position, TowerOutline

_SIZES = {"heads": "heads", "key_heads": "key heads", "dim": "dim", "value_dim": "value dim"}
_COLUMNS = tuple(field.name for field in fields(LayerOutline))
_RECORD = ("requested", "model", "demo", "revision", "architecture", "model_type", "parameters")


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
    """What the model is, how much attention it has, how long a text may be, whether heads share keys."""
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
        towers = [tower_words(each) for each in result.towers]
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
    """The layers of one attention: where it is, how it is read and how much text; equal layers in one row."""
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
        title=f"{tower_words(tower)} · {tower.pattern}{read}{reads}",
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
    """What one head takes: its memory item by item, or at several lengths of text as a whole."""
    if result.cost is None:
        return
    cost = result.cost
    where = f"one head of layer {cost.layer}, {tower_words(cost)}"
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
    """A row for each length of text; those that cannot be run have a star."""
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
        yield f"no attention in {layer_words(gap.layers)} of {gap.stack}: {gap.module_class}"
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
    """Where the figures come from."""
    every = [layer for tower in result.towers for layer in tower.layers]
    seen = sum(layer.seen for layer in every)
    run = f"a run without weights, {counted(result.length, 'token')} of text"
    if every and seen == len(every):
        yield f"as seen in {run}"
    elif every:
        rest = f"{len(every) - seen} of {counted(len(every), 'layer')} as their modules and the config say"
        yield f"{rest}, which {run} did not reach" + (f": {result.run}" if result.run else "")


def _table(result: Outline) -> Table:
    """A row per attention layer, empty where something is not told."""
    rows = [(tower, layer) for tower in result.towers for layer in tower.layers]
    return Table(
        Column("tower", [tower.name for tower, _ in rows]),
        Column("kind", [tower.kind.value for tower, _ in rows]),
        *(Column(name, [_cell(getattr(layer, name)) for _, layer in rows]) for name in _COLUMNS),
    )


def _cell(value: object) -> object:
    """Ways of telling positions by their names, yes and no as 1 and 0."""
    if isinstance(value, tuple):
        return " ".join(each.scheme for each in value if isinstance(each, Position))
    return int(value) if isinstance(value, bool) else value
