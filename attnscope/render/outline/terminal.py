"""A model from outside, in the terminal: a table per tower, equal layers in one row, what a head costs."""

from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.kit.numbers import counted
from attnscope.render.outline.words import (
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
from attnscope.results import Cost, LayerOutline, Outline, TowerOutline
from attnscope.tokens import printable

_HEADINGS = ("layers", "heads", "key heads", "dim", "value dim", "positions", "besides")


def outline(result: Outline, width: int) -> RenderableType:
    """What the model is, its towers, the layers between them, and what one head would cost."""
    parts: list[RenderableType] = [*_subject(result)]
    if not result.towers:
        parts += [Text(), Text("no attention that can be read: nothing to look at here", style="bold")]
    for tower in result.towers:
        parts += [Text(), _tower_line(tower), _table(tower)]
    if result.gaps:
        parts.append(Text())
    for gap in result.gaps:
        what = f"no attention in {layer_words(gap.layers)} of {gap.stack}: {gap.module_class}"
        parts.append(Text(printable(what)))
    parts += [Text(), *_source(result)]
    if result.further:
        parts += [Text(), *lengths_table(result)]
    elif result.cost is not None:
        parts += [Text(), *_cost(result.cost, 0 if result.storage is None else result.storage.files)]
        if result.cost.beyond:
            parts.append(Text(printable(beyond_words(result)), style=DIM))
    return Group(*parts)


def _subject(result: Outline) -> list[Text]:
    name = f"bundled {result.model} model" if result.demo else printable(result.model)
    revision = f" at {result.revision[:10]}" if result.revision else ""
    line = Text.assemble((name, "bold"), f"{revision} · {printable(result.architecture)}")
    size = f"{count_words(result.parameters)} parameters, {amount(4 * result.parameters, 'B')} in float32"
    return [line, Text(f"{size} · {printable(storage_words(result))}")]


def _tower_line(tower: TowerOutline) -> Text:
    """Which attention it is, where, how it is read, and how much text."""
    name = tower_words(tower)
    read = f" · {tower.route}, {tower.kernel}" if tower.kernel == "eager" else f" · {tower.route}"
    reads = f" · at most {counted(tower.context, 'token')}" if tower.context else ""
    return Text.assemble((printable(name), "bold"), f" · {printable(tower.pattern)}{read}{reads}")


def _table(tower: TowerOutline) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True)
    for heading in _HEADINGS:
        figure = heading in ("heads", "key heads", "dim", "value dim")
        table.add_column(heading, justify="right" if figure else "left", overflow="fold")
    for layers, sample in _alike(tower.layers):
        figures = (sample.heads, sample.key_heads, sample.dim, sample.value_dim)
        words = ("not told" if figure is None else str(figure) for figure in figures)
        table.add_row(
            range_words(layers),
            *words,
            position_words(sample.positions, tower.kind),
            besides_words(sample, tower.kind),
        )
    return table


def _alike(layers: Sequence[LayerOutline]) -> list[tuple[list[int], LayerOutline]]:
    """Layers that differ in nothing but their number and path, in the order of their first."""
    found: dict[LayerOutline, list[int]] = {}
    for layer in layers:
        found.setdefault(replace(layer, layer=0, module=""), []).append(layer.layer)
    return [(numbers, sample) for sample, numbers in found.items()]


def _source(result: Outline) -> list[Text]:
    """Where the figures come from."""
    every = [layer for tower in result.towers for layer in tower.layers]
    seen = sum(layer.seen for layer in every)
    if not every:
        return []
    run = f"a run without weights, {counted(result.length, 'token')} of text"
    if seen == len(every):
        return [Text(f"as seen in {run}", style=DIM)]
    rest = f"{len(every) - seen} of {counted(len(every), 'layer')} as their modules and the config say"
    why = f": {result.run}" if result.run else ""
    return [Text(printable(f"{rest}, which {run} did not reach{why}"), style=DIM)]


def _cost(cost: Cost, of_files: int) -> list[RenderableType]:
    """What one head takes, item by item."""
    first = f" of its first {counted(cost.layers_loaded, 'layer')}" if cost.layers_loaded else ""
    memory = {
        f"weights{first}": cost.weights,
        "q, k, v and output": cost.operands,
        "the model's scores and weights": cost.kernel,
        "ours in float64": cost.reference,
    }
    rows = {
        "products": f"{amount(cost.forward_flops, 'FLOP')} of the model up to there, at most {cost.repeats} "
        f"times {amount(cost.head_flops, 'FLOP')} of the head in float64",
        "memory": f"at least {amount(cost.memory, 'B')}: "
        + ", ".join(f"{what} {amount(size, 'B')}" for what, size in memory.items()),
    }
    if cost.shards:
        rows["files"] = f"{len(cost.shards)} of {of_files}: {shard_words(cost.shards)}"
    table = Table.grid(padding=(0, 1))
    for name, words in rows.items():
        table.add_row(Text(name), Text(printable(words)))
    where = f"layer {cost.layer}, {tower_words(cost)}, {_lengths(cost)}"
    return [Text(printable(f"one head of {where}: an estimate"), style="bold"), table]


def lengths_table(result: Outline) -> list[RenderableType]:
    """What one head takes at every length, and how that grows."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True)
    for heading in ("tokens", "memory at least", "of it scores and weights", "model up to there", "the head"):
        table.add_column(heading, justify="right", overflow="fold")
    for cost in result.costs:
        size = f"{cost.queries:,}" if cost.queries == cost.keys else f"{cost.queries:,} x {cost.keys:,}"
        products = (cost.forward_flops, cost.repeats * cost.head_flops)
        table.add_row(
            size + ("*" if cost.beyond else " "),
            *(amount(bytes, "B") for bytes in (cost.memory, cost.pairs)),
            *(amount(flops, "FLOP") for flops in products),
        )
    first = result.costs[0]
    where = f"one head of layer {first.layer}, {tower_words(first)}, by length of text: an estimate"
    told = [beyond_words(result)] if any(cost.beyond for cost in result.costs) else []
    return [
        Text(printable(where), style="bold"),
        table,
        *(Text(printable(line), style=DIM) for line in told),
        Text(growth_words(result.costs)),
    ]


def _lengths(cost: Cost) -> str:
    if cost.queries == cost.keys:
        return f"at {counted(cost.queries, 'token')}"
    return f"at {counted(cost.queries, 'query')} and {counted(cost.keys, 'key')}"
