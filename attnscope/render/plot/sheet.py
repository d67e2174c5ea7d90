"""A sheet as a picture: each block a panel as large as its labels need, the panels laid out on one page.

With a given size the axes take the room beside the words; if that is too little, everything is scaled down.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, zip_longest
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.render.kit.page import EDGE, Line, ShownFigure, write_lines
from attnscope.render.kit.palette import FAINT, OUTLINES
from attnscope.render.kit.typesetting import drawing, line_height, shortened, wrapped
from attnscope.render.kit.words import source_words, verdict_words
from attnscope.render.look import DPI, look_now
from attnscope.render.plot import grid, heat, media, ranking, row, steps
from attnscope.render.plot import map as map_
from attnscope.render.plot.panel import SMALL, Panel, linked_panel, statements_panel
from attnscope.render.sheet.blocks import (
    Beside,
    Block,
    Curve,
    Drawing,
    KeyBars,
    Linked,
    Matrix,
    Ranking,
    Statements,
    flat,
)
from attnscope.render.sheet.heads import HeadGrid, HeadMatrices
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.steps import Steps
from attnscope.render.sheet.table import legend
from attnscope.render.sheets.media import Original, Overlay, Overlays, Timeline
from attnscope.render.sheets.projection import Map
from attnscope.results import Verdict
from attnscope.results.base.origin import worst

_GUTTER, _BELOW, _GAP = 0.4, 0.25, 0.14  # inches: between panels across and down, between words and panels
_HEADING, _ANSWER, _TEXT = 11.0, 9.0, 8.0  # points
_LEAST, _SHAPE, _WIDEST = 5.4, 1.6, 15.0  # of a page: inches, width over height at best, inches if not higher
_FEW = 8  # panels of which every arrangement is tried
_STEP = 0.98  # from one size of the letters to the next smaller one

# what one kind of result alone has
DRAWINGS: dict[type, Callable[[Any], Panel]] = {
    Linked: linked_panel,
    Map: map_.panel,
    Original: media.original,
    Overlay: media.overlay,
    Overlays: media.overlays,
    Statements: statements_panel,
    Steps: steps.panel,
    Timeline: media.timeline,
}

Columns = list[list[Panel]]  # panels one below the other, and these side by side


def panel(block: Block, alone: bool = False) -> Panel:
    """The panel of any block; `alone` where it has no other of its kind beside it."""
    match block:
        case KeyBars():
            return row.panel(block, alone)
        case Ranking():
            return ranking.panel(block)
        case Curve():
            return ranking.curve_panel(block)
        case HeadGrid():
            return grid.panel(block, alone)
        case HeadMatrices():
            return grid.panel_of_weights(block)
        case Drawing():
            return DRAWINGS[type(block)](block)
    return heat.panel(block)


def draw(block: Block, axes: Axes) -> None:
    """Draw a block on any axes, without a colour bar."""
    block = replace(block, measured="") if isinstance(block, Matrix) else block
    panel(block, alone=True).draw(axes)


def figure(sheet: Sheet) -> Figure:
    """The sheet's figure: heading, text and answer, panels, small print."""
    with drawing():
        size, zoom = look_now().sides, 1.0
        laid = _natural(sheet, None)
        while size is not None:
            inner = (EDGE * size[0] / zoom, EDGE * size[1] / zoom)
            if (fitted := _stretched(_natural(sheet, inner[0]), inner)) is not None:
                laid = fitted
                break
            zoom *= _STEP
        drawn = ShownFigure(figsize=(laid.width, laid.height), dpi=DPI, facecolor="white")
        drawn.zoom = zoom
        _fill(drawn, laid)
    return drawn


@dataclass(frozen=True)
class _Laid:
    width: float
    height: float
    margin: float
    above: list[Line]
    below: list[Line]
    bands: list[Columns]


def _natural(sheet: Sheet, width: float | None) -> _Laid:
    bare = look_now().bare
    margin, bands = 0.1 if bare else 0.2, _bands(sheet)
    page = 2 * margin + max(map(_across, bands), default=0.0)
    page = page if bare else max(page, _LEAST)
    above, below = _lines(sheet, 0.99 * ((width or page) - 2 * margin))
    words = sum(_height(each) + _GAP for each in (above, below) if each)
    down = sum(max(map(_tall, band)) for band in bands) + _BELOW * (len(bands) - 1)
    return _Laid(page, 2 * margin + words + down, margin, above, below, bands)


def _stretched(laid: _Laid, size: tuple[float, float]) -> _Laid | None:
    """The page stretched to exactly this size; None where its axes would be too small."""
    if not laid.bands:
        return replace(laid, width=size[0], height=size[1])
    room = size[0] - 2 * laid.margin
    across = min(
        1 + (room - _across(band)) / sum(max(each.width for each in column) for column in band)
        for band in laid.bands
    )
    spare = size[1] - laid.height
    axes = sum(max(sum(each.height for each in column) for column in band) for band in laid.bands)
    down = 1 + spare / axes
    least = max(each.least for band in laid.bands for column in band for each in column)
    if min(across, down) < least:
        return None
    bands = [
        [
            [replace(each, width=across * each.width, height=down * each.height) for each in column]
            for column in band
        ]
        for band in laid.bands
    ]
    return replace(laid, width=size[0], height=size[1], bands=bands)


def _bands(sheet: Sheet) -> list[Columns]:
    bands, loose = list[Columns](), list[Block]()
    blocks = sheet.blocks if any(map(_drawn, sheet.every)) else sheet.more
    alone = sum(isinstance(one, HeadGrid) for each in blocks for one in flat(each)) == 1
    for each in blocks:
        if isinstance(each, Beside):
            bands += [_arranged(_panels(loose, alone))] if loose else []
            band = [[one] for one in _panels([one for one in each.blocks if _drawn(one)])]
            if len(band) > 2 and _across(band) > _WIDEST:
                abreast = math.ceil(math.sqrt(len(band)))
                band = [[one for (one,) in band[k::abreast]] for k in range(abreast)]
            bands += [_aligned(band)] if band else []
            loose = []
        elif _drawn(each):
            loose.append(each)
    return [*bands, *([_arranged(_panels(loose, alone))] if loose else [])]


def _panels(blocks: Sequence[Block], alone: bool = False) -> list[Panel]:
    panels = [panel(each, alone) for each in blocks]
    layers = [each.layers if isinstance(each, HeadGrid) else () for each in blocks]
    highest = {
        each: max(one.height for one, of in zip(panels, layers, strict=True) if of == each) for each in layers
    }
    return [replace(one, height=highest[of]) if of else one for one, of in zip(panels, layers, strict=True)]


def _drawn(block: Block) -> bool:
    if isinstance(block, Drawing):
        return type(block) in DRAWINGS
    return not isinstance(block, Ranking) or (bool(block.marks or block.cells) and not block.repeats)


def _arranged(panels: list[Panel]) -> Columns:
    inner, alike = range(1, len(panels)), len({(each.width, each.height) for each in panels}) == 1
    if alike or len(panels) > _FEW:
        return _aligned(min(([panels[k::n] for k in range(n)] for n in range(1, len(panels) + 1)), key=_cost))
    cuts = [cut for pieces in range(len(panels)) for cut in combinations(inner, pieces)]
    every = [[panels[a:b] for a, b in pairwise((0, *cut, len(panels)))] for cut in cuts]
    return min(every, key=_cost)


def _aligned(columns: Columns) -> Columns:
    heads = [max(each.head for each in row if each) for row in zip_longest(*columns)]
    return [
        [
            replace(each, above=each.above + head - each.head)
            for each, head in zip(column, heads, strict=False)
        ]
        for column in columns
    ]


def _cost(columns: Columns) -> float:
    wide, high = _across(columns), max(map(_tall, columns))
    shape = abs(math.log(wide / (high + 1.2) / _SHAPE))
    return wide * high * (1 + shape) * (10.0 if len(columns) > 1 and wide > max(_WIDEST, high) else 1.0)


def _across(columns: Columns) -> float:
    return sum(max(each.wide for each in column) for column in columns) + _GUTTER * (len(columns) - 1)


def _tall(column: Sequence[Panel]) -> float:
    return sum(each.high for each in column) + _BELOW * (len(column) - 1)


def _lines(sheet: Sheet, width: float) -> tuple[list[Line], list[Line]]:
    look, above = look_now(), []
    usual = sheet.title
    if sheet.proof and not (verdict := worst(each for each, _ in sheet.proof)).proved:
        usual += f" · {verdict_words(verdict)}"
    if heading := look.heading(usual):
        above += [Line(each, _HEADING, "bold") for each in wrapped(heading, width, _HEADING, bold=True)]
    if heading and sheet.setting:
        above += [Line(each, _TEXT, color=FAINT) for each in wrapped(sheet.setting, width, _TEXT)]
    if not look.bare:
        read = *sheet.texts, *([f"messages: {sheet.messages}"] if sheet.messages else [])
        above += [Line(each, _TEXT) for text in read for each in shortened(text, width, _TEXT, 4)]
    if not look.captioned:
        return above, []
    above += [Line(each, _ANSWER) for each in wrapped(sheet.answer, width, _ANSWER)]
    sources = (source_words(each) for each in sheet.origins)
    proved = [told for verdict, told in sheet.proof if verdict is not Verdict.FAILED]
    failed = [told for verdict, told in sheet.proof if verdict is Verdict.FAILED]
    shown = [each for each in sheet.every if isinstance(each, Ranking) and each.cells]
    foot = (
        legend([each.table[name] for each in shown for name in (*each.cells, each.written) if name]),
        *_hidden(sheet),
        *sheet.told,
        " · ".join((*proved, *sheet.departs)),
        *sources,
    )
    lines = (each for told in failed for each in wrapped(told, width, _TEXT, bold=True))
    small = (each for told in foot if told for each in wrapped(told, width, SMALL))
    return above, [
        *(Line(each, _TEXT, "bold", OUTLINES[Verdict.FAILED]) for each in lines),
        *(Line(each, SMALL, color=FAINT) for each in small),
    ]


def _hidden(sheet: Sheet) -> Iterator[str]:
    drawn = [each for each in sheet.every if isinstance(each, Ranking) and _drawn(each)]
    for each in drawn:
        of = f"{each.title}: " if len(drawn) > 1 and each.title else ""
        if each.hidden:
            yield f"{of}{each.hidden:,} more {'is' if each.hidden == 1 else 'are'} not drawn"


def _height(lines: Sequence[Line]) -> float:
    return sum(line_height(each.size) for each in lines)


def _fill(drawn: Figure, laid: _Laid) -> None:
    write_lines(drawn, laid.above, laid.margin, laid.height - laid.margin)
    write_lines(drawn, laid.below, laid.margin, laid.margin + _height(laid.below))
    top = laid.height - laid.margin - (_height(laid.above) + _GAP if laid.above else 0.0)
    for band in laid.bands:
        left, keys = laid.margin, dict[tuple[str, ...], Axes]()
        for column in band:
            _column(drawn, column, left, top, keys)
            left += max(each.wide for each in column) + _GUTTER
        top -= max(map(_tall, band)) + _BELOW


def _column(
    drawn: Figure, column: Sequence[Panel], left: float, top: float, keys: dict[tuple[str, ...], Axes]
) -> None:
    width, height = drawn.get_size_inches()
    indent = max(each.left for each in column)
    room = max(each.wide for each in column)
    for each in column:
        write_lines(drawn, [Line(text, size, weight) for text, size, weight in each.words], left, top)
        start = left + (indent if indent + each.width + each.right <= room + 1e-6 else each.left)
        bottom = top - each.head - each.height
        axes = drawn.add_axes((start / width, bottom / height, each.width / width, each.height / height))
        each.draw(axes)
        if (key := axes.get_legend()) is not None and keys.setdefault(each.key, axes) is not axes:
            key.remove()
        top -= each.high + _BELOW
