"""The words of an outline: ranges of layers, positions, what is special, amounts with their unit."""

import math
from collections.abc import Sequence
from itertools import pairwise

from attnscope.process.machine import duration
from attnscope.render.kit.numbers import counted, number, parameter
from attnscope.render.kit.words.header import own_name
from attnscope.results import Cost, Kind, LayerOutline, Outline, Position, TowerOutline

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


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


def layer_words(numbers: Sequence[int]) -> str:
    return f"{'layer' if len(numbers) == 1 else 'layers'} {range_words(numbers)}"


def tower_words(tower: TowerOutline | Cost) -> str:
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
    """`8 times`, `1.5 times`, `4,096 times`."""
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
