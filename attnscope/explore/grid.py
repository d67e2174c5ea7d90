"""The grid of heads: a row per layer, a column per head, each cell shaded by a measure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isnan

from rich.style import Style, StyleType
from rich.text import Text

from attnscope.explore.state import Head, State
from attnscope.explore.surface import Cells, Line, Part, Surface, window
from attnscope.render.kit.cells import DIM, HEADING, left, right
from attnscope.render.kit.numbers import cell
from attnscope.render.kit.palette import LOSES
from attnscope.render.kit.words import GLYPHS, STYLES
from attnscope.render.sheet import measured as measures
from attnscope.render.terminal.ranking import folded
from attnscope.render.terminal.raster import SHADES
from attnscope.results import HeadScores, Overview, Verdict

CURSOR = Style(bold=True, reverse=True)
_UNKNOWN = "…"
_TICK = 4
_FEWEST = 3  # heads that are worth a heading over them


@dataclass(frozen=True, eq=False)
class Measured:
    """A head's value, the scores it belongs to, and its certificate's verdict."""

    value: float
    scores: HeadScores
    verdict: Verdict


Heads = Mapping[Head, Measured]


@lru_cache(maxsize=8)
def measured(overviews: tuple[Overview, ...], measure: str) -> Heads:
    """Values of all known heads by a measure, on one common scale."""
    every = [overview for overview in overviews if measure in overview.scores]
    if not every:
        return {}
    ends = [overview.scores[measure].limits for overview in every]
    limits = min(low for low, _ in ends), max(high for _, high in ends)
    heads: dict[Head, Measured] = {}
    for overview in every:
        scores = replace(overview.scores[measure], limits=limits)
        for i, layer in enumerate(scores.layers):
            for j, head in enumerate(scores.heads):
                verdict = overview.certificates[i][j].verdict
                heads[layer, head] = Measured(float(scores.values[i, j]), scores, verdict)
    return heads


@dataclass(frozen=True)
class Places:
    """Layout of the grid: its visible layers and heads, under one heading line, after a left margin."""

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    margin: int
    cells: int

    def at(self, column: int, row: int) -> Head | None:
        """The head at this cell of the pane, None where there is none."""
        place = (column - self.margin) // self.cells
        if not 1 <= row <= len(self.layers) or column < self.margin or place >= len(self.heads):
            return None
        return self.layers[row - 1], self.heads[place]


def wide(state: State, most: int) -> int:
    """The width of the grid in cells, at most `most`: two cells or one for a head."""
    tower = state.scene.tower
    margin = _margin(state)
    return next(
        (margin + cells * tower.heads for cells in (2, 1) if margin + cells * tower.heads <= most), most
    )


def places(state: State, width: int, height: int) -> Places:
    """The layout of the layers and heads that fit a pane of this size."""
    tower, margin = state.scene.tower, _margin(state)
    room = max(width - margin, 1)
    cells = next((size for size in (6, 5, 4, 2) if size * tower.heads <= room), 1)
    layers = window(len(tower.layers), height - 1, tower.layers.index(state.layer))
    heads = window(tower.heads, room // cells, state.head)
    return Places(tuple(tower.layers[i] for i in layers), tuple(heads), margin, cells)


def grid(state: State, measured: Heads, width: int, height: int, surface: Surface) -> Cells:
    """Draw the heads known so far, with the chosen head and bad verdicts marked."""
    laid = places(state, width, height)
    lines = [Line((" " * laid.margin + _heading(laid), DIM))]
    for layer in laid.layers:
        line = Line((left(f"L{layer}", laid.margin), HEADING if layer == state.layer else DIM))
        for head in laid.heads:
            for part in _cell(state, measured.get((layer, head)), (layer, head), laid.cells, surface):
                line.append(*part)
        lines.append(line)
    return Cells(lines)


def part_of(state: State, width: int, height: int) -> str:
    """The layers and heads in view, where these are not all; else empty."""
    tower, laid = state.scene.tower, places(state, width, height)
    told = []
    if len(laid.layers) < len(tower.layers):
        told.append(f"L{laid.layers[0]}-{laid.layers[-1]} of {len(tower.layers)}")
    if len(laid.heads) < tower.heads:
        told.append(f"H{laid.heads[0]}-{laid.heads[-1]} of {tower.heads}")
    return ", ".join(told)


def _heading(laid: Places) -> str:
    if laid.cells > 1:
        return "".join(
            right(str(head), laid.cells - (laid.cells > 2)) + " " * (laid.cells > 2) for head in laid.heads
        )
    marks = (left(str(head), _TICK) for head in laid.heads[::_TICK])
    return "".join(marks)[: len(laid.heads)]


def _cell(state: State, measured: Measured | None, head: Head, cells: int, surface: Surface) -> list[Part]:
    chosen = head == state.place
    if head in state.removed:
        return [(left("×" * min(cells, 2), cells), CURSOR if chosen else LOSES)]
    if measured is None:
        return [_marked(right(_UNKNOWN, cells), chosen, DIM)]
    shade: StyleType = measures.scale(measured.scores).style(measured.value)
    if cells > 2:
        text = _written(measured, cells - 1) + " "
    else:
        text = " " * cells if not surface.shades else _shade(measured.scores, measured.value) * cells
        shade = shade if not surface.shades else ""
    if not measured.verdict.stands_out:
        return [_marked(text, chosen, shade)]
    if chosen:
        return [_marked(text[:-1] + GLYPHS[measured.verdict], True, shade)]
    return [(text[:-1], shade), (GLYPHS[measured.verdict], STYLES[measured.verdict])]


def _written(measured: Measured, cells: int) -> str:
    text = measures.written(measured.scores, measured.value, in_grid=True)
    shorter = [cell(measured.value, decimals) for decimals in (1, 0)] if "." in text else []
    return right(next((each for each in (text, *shorter) if len(each) <= cells), text), cells)


def _marked(text: str, chosen: bool, shade: StyleType) -> Part:
    if not chosen:
        return text, shade
    if len(text) > 2:
        return text, CURSOR
    last = text[-1] if text[-1] in GLYPHS.values() else ""
    return (last or "◆" if len(text) == 1 else f"[{last or ']'}"), CURSOR


def _shade(scores: HeadScores, value: float) -> str:
    if isnan(value):
        return " "
    strength = abs(measures.scale(scores).strength(value))
    return SHADES[min(int(strength * len(SHADES)), len(SHADES) - 1)]


def value_words(state: State, measured: Heads) -> str:
    """The chosen head's measure: `entropy .83`; its name alone while unknown, "none here" without meaning."""
    head = measured.get(state.place)
    if head is None:
        return state.measure
    if head.scores.absent:
        return f"{state.measure}: none here"
    return f"{state.measure} {measures.written(head.scores, head.value)}"


def ranking(
    state: State, measured: Heads, explained: Mapping[Head, str], keys: int, width: int, height: int
) -> Text:
    """Ranked heads known so far, below the measure's meaning where there is room.

    Heads in `explained` come last, each with its cause.
    """
    if not measured:
        return Text(_UNKNOWN, DIM)
    some = next(iter(measured.values())).scores
    described, shades = some.description, measures.scale(some, keys)
    said = (Text(described.meaning, DIM), Text(shades.meaning(measures.form(some)), DIM))
    lines = [line for each in said for line in folded(each, width)]
    most = height - len(lines) - 1
    if most < _FEWEST:
        lines, most = [], height - 1
    ranked = [(one.value, head) for head, one in measured.items() if not isnan(one.value)]
    if not ranked:
        return Text("\n").join([*lines, Text(some.absent or "no value", DIM)])
    sign = 1.0 if described.strong == "low" else -1.0
    ranked.sort(key=lambda pair: (pair[1] in explained, sign * pair[0], pair[1]))
    every = len(state.scene.tower.layers) * state.scene.tower.heads
    of = f"{every} heads" if len(measured) == every else f"the {len(measured)} heads so far"
    lines.append(Text(f"strongest of {of}", HEADING))
    for value, head in ranked[: max(most, 1)]:
        lines.append(
            Text.assemble(
                (left(f"L{head[0]} H{head[1]}", 9), CURSOR if head == state.place else HEADING),
                (measures.written(some, value).rjust(6), shades.style(value)),
                (f" {explained.get(head, '')}", DIM),
            )
        )
    return Text("\n").join(lines)


def _margin(state: State) -> int:
    return len(f"L{max(state.scene.tower.layers)}") + 1
