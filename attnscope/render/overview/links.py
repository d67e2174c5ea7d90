"""The strongest link of a head: which query looks hardest at which key, and how hard."""

import numpy as np
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import weight_text
from attnscope.results import Overview

_FEW_HEADS = 16
_NUMBERS, _LEAST_MEASURE = 32, 7


def link_words(result: Overview, i: int, j: int, cells: int) -> str:
    """`query→key` of layer number `i` and head number `j`, both names cut alike to fit in `cells`."""
    query, key = (int(position) for position in result.strongest[i, j])
    if query < 0:
        return fit("no valid key", cells)
    names = settled(result.query_tokens.labels[query]), settled(result.key_tokens.labels[key])
    room = cells - 1
    first = min(cell_len(names[0]), max(room // 2, room - cell_len(names[1])))
    return f"{fit(names[0], first)}→{fit(names[1], room - first)}"


def strongest_head(result: Overview, i: int) -> int | None:
    """Number of the head of layer number `i` whose main measure is strongest, None where it has none."""
    values = result.main.values[i]
    if np.isnan(values).all():
        return None
    return int(np.nanargmin(values) if result.main.description.strong == "low" else np.nanargmax(values))


def link_table(result: Overview, width: int) -> RenderableType:
    """Measure and strongest link of every head where they are few, else of each layer's strongest one."""
    measure = result.main.measure
    cells = max(len(measure), _LEAST_MEASURE)
    if result.main.values.size <= _FEW_HEADS:
        title = "strongest link of each head"
        listed = [(i, j) for i in range(len(result.layers)) for j in range(len(result.heads))]
    else:
        title = f"{result.main.description.strongest}, and its strongest link"
        found = [(i, strongest_head(result, i)) for i in range(len(result.layers))]
        listed = [(i, j) for i, j in found if j is not None]
    heading = f"{'head':<8}  {measure:>{cells}}  {'weight':>6}  query → key"
    rows = [_row(result, i, j, width, cells) for i, j in listed]
    return Group(line((title, DIM)), line((heading, DIM)), *rows)


def _row(result: Overview, i: int, j: int, width: int, cells: int) -> Text:
    name = f"L{result.layers[i]} H{result.heads[j]}"
    value, weight = float(result.main.values[i, j]), float(result.strongest_weight[i, j])
    numbers = f"  {value:>{cells}.2f}  {weight_text(weight):>6}  "
    room = width - _NUMBERS - (cells - _LEAST_MEASURE)
    return line((f"{name:<8}", HEADING), numbers, _positioned(result, i, j, room))


def _positioned(result: Overview, i: int, j: int, room: int) -> str:
    query, key = (int(position) for position in result.strongest[i, j])
    if query < 0:
        return "no valid key"
    label = max((room - 16) // 2, 6)
    names = result.query_tokens.names[query], result.key_tokens.names[key]
    first, second = (fit(settled(name), label) for name in names)
    places = result.query_tokens.positions[query], result.key_tokens.positions[key]
    return f"{places[0]} {first} → {places[1]} {second}"
