"""Heads that are worth a look, each with its strongest link: which query looks hardest at which key."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.overview.words import told
from attnscope.results import Overview

Place = tuple[int, int]

_FEW_HEADS = 16
_RANKED = 12
_MOST_SPECIAL = 0.5  # of a head's weight: what leaves more on special tokens tells little of the text
_NUMBERS, _SHARE, _LEAST_MEASURE = 32, 9, 7


def link_words(result: Overview, i: int, j: int, cells: int) -> str:
    """`query→key` of layer number `i` and head number `j`, both names cut alike to fit in `cells`.

    Where only one query was asked for, the key alone.
    """
    query, key = (int(position) for position in result.strongest[i, j])
    if query < 0:
        return fit("no valid key", cells)
    if result.aim is not None:
        return fit(f"→{settled(result.key_tokens.labels[key])}", cells)
    names = settled(result.query_tokens.labels[query]), settled(result.key_tokens.labels[key])
    room = cells - 1
    first = min(cell_len(names[0]), max(room // 2, room - cell_len(names[1])))
    return f"{fit(names[0], first)}→{fit(names[1], room - first)}"


def ranked(result: Overview) -> list[Place]:
    """Every head that has a value, the strongest by the main measure first.

    Where links are those of ordinary tokens, heads that leave most of their weight on special ones come last.
    """
    values = result.main.values if result.main.description.strong == "low" else -result.main.values
    places = [(int(i), int(j)) for i, j in np.argwhere(~np.isnan(values))]
    over = _on_special(result)
    return sorted(places, key=lambda place: (place in over, values[place]))


def _on_special(result: Overview) -> set[Place]:
    """The heads that are passed over where there are others; none where just these are looked for."""
    sought = result.main.measure.startswith(("special-tokens", "sink"))
    shares = result.special_shares if result.ordinary and result.aim is None and not sought else None
    found = [] if shares is None else np.argwhere(shares > _MOST_SPECIAL).tolist()
    return {(i, j) for i, j in found}


def link_table(result: Overview, width: int) -> RenderableType:
    """Measure and strongest link of every head where they are few, else of each layer's strongest one.

    Of one query, or of one pair, the heads of all layers in their order.
    """
    order = ranked(result)
    listed: list[Place]
    if result.aim is not None:
        title, listed = result.main.description.strongest, order[:_RANKED]
    elif result.main.values.size <= _FEW_HEADS:
        title = "strongest link of each head"
        listed = [(i, j) for i in range(len(result.layers)) for j in range(len(result.heads))]
    else:
        title = f"{result.main.description.strongest}, and its strongest link"
        firsts = {i: (i, j) for i, j in reversed(order)}
        listed = [firsts[i] for i in sorted(firsts)]
    columns = _columns(result)
    rows = [_row(result, place, width, columns) for place in listed]
    small = [Text(words, style=DIM) for words in _passed_over(result, listed)]
    return Group(line((title, DIM)), line((_heading(columns), DIM)), *rows, *small)


@dataclass(frozen=True)
class _Columns:
    """What stands between a head's name and its link: a measure, if not the weight itself, and a share."""

    measure: str
    cells: int
    shares: Float[np.ndarray, "layer head"] | None


def _columns(result: Overview) -> _Columns:
    measure = "" if result.aim is not None else result.main.measure
    shares = result.special_shares if result.aim is None else None  # those of all rows say nothing of one
    return _Columns(measure, max(len(measure), _LEAST_MEASURE) if measure else 0, shares)


def _heading(columns: _Columns) -> str:
    measure = f"  {columns.measure:>{columns.cells}}" if columns.measure else ""
    share = "" if columns.shares is None else "  special"
    return f"{'head':<8}{measure}{share}  {'weight':>6}  query → key"


def _row(result: Overview, place: Place, width: int, columns: _Columns) -> Text:
    i, j = place
    name = f"L{result.layers[i]} H{result.heads[j]}"
    value = told(result.main, float(result.main.values[place]), 9)
    measure = f"  {value:>{columns.cells}}" if columns.measure else ""
    share = "" if columns.shares is None else f"  {weight_text(float(columns.shares[place])):>7}"
    numbers = f"{measure}{share}  {weight_text(float(result.strongest_weight[place])):>6}  "
    room = width - _NUMBERS - (columns.cells - _LEAST_MEASURE) - (_SHARE if share else 0)
    return line((f"{name:<8}", HEADING), numbers, _positioned(result, i, j, room))


def _passed_over(result: Overview, listed: Sequence[Place]) -> list[str]:
    """That heads which look at special tokens are not in the list, or that there are no others."""
    if not result.ordinary or result.aim is not None or result.special_shares is None:
        return []
    passed = ["special: share of its weight on special tokens; links are those of the others"]
    left_out = len(_on_special(result) - set(listed))
    if left_out and result.main.values.size > _FEW_HEADS:
        passed.append(f"passed over: {counted(left_out, 'head')} with more than half of it there")
    return passed


def _positioned(result: Overview, i: int, j: int, room: int) -> str:
    query, key = (int(position) for position in result.strongest[i, j])
    if query < 0:
        return "no valid key"
    label = max((room - 16) // 2, 6)
    names = result.query_tokens.names[query], result.key_tokens.names[key]
    first, second = (fit(settled(name), label) for name in names)
    places = result.query_tokens.positions[query], result.key_tokens.positions[key]
    return f"{places[0]} {first} → {places[1]} {second}"
