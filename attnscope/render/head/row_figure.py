"""One query of a head as a figure: its row as bars, and with a key the matrix with both marked above them."""

from dataclasses import replace

from matplotlib.figure import Figure

from attnscope.render.head.figure import stage_bar
from attnscope.render.head.row import (
    HIGH,
    STRIP,
    Row,
    draw_row,
    draw_strip,
    mark,
    row_of,
    strip_room,
    strip_width,
)
from attnscope.render.kit.figure.page import Frame, Words, page, sheet
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.stage import panel
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import heading_words, proof_words, sentence_words, source_words
from attnscope.render.kit.words.header import feature_words
from attnscope.render.kit.words.weights import head_of, sums_words, view_words
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import grid, head_frame
from attnscope.results import HeadView, HeadWeights
from attnscope.vocabulary import Scaling

_LEFT, _BETWEEN = 0.62, 0.3  # inches: the numbers of the weights, from one part to the next
_NARROWEST = 3.2


def row_figure(
    result: HeadWeights | HeadView, query: int, key: int | None = None, scaling: Scaling = Scaling.AUTO
) -> Figure:
    """What `query` gives to each key. `scaling` is how dark weights are, where shades are drawn."""
    with drawing():
        row = row_of(panel(result, "weights", scaling), query, key)
        if key is not None:
            return _marked(result, row)
        return _bars(result, row) if row.whole else _strip(result, row)


def _bars(result: HeadWeights | HeadView, row: Row) -> Figure:
    wide = max(row.wide * len(row.keys), _NARROWEST)
    frame = Frame(wide, HIGH, left=_LEFT, top=0.1, bottom=row.below)
    figure, (axes,) = sheet([frame], _words(result, row))
    draw_row(row, axes)
    return figure


def _strip(result: HeadWeights | HeadView, row: Row) -> Figure:
    """The whole row above, its strongest keys below."""
    height = STRIP + _BETWEEN + HIGH
    frame = Frame(strip_width(len(row.tokens)), height, left=_LEFT, top=strip_room(row), bottom=row.below)
    legend = f"strip: the whole row, {row.scale.legend}"
    figure, (host,) = sheet([frame], _words(result, row, legend))
    host.set_axis_off()
    draw_strip(row, host.inset_axes((0, 1 - STRIP / height, 1, STRIP / height)))
    draw_row(row, host.inset_axes((0, 0, 1, HIGH / height)))
    return figure


def _marked(result: HeadWeights | HeadView, row: Row) -> Figure:
    """The matrix with the row and the key outlined, and below it the row as bars, key under key."""
    whole = head_frame(row.shown)
    height = whole.height + _BETWEEN + HIGH
    frame = replace(whole, height=height, left=max(whole.left, _LEFT), bottom=row.below)
    made = page(frame, _words(result, row, f"colours: {row.shown.scale.legend}"))
    made.axes.set_axis_off()
    heat = made.axes.inset_axes((0, 1 - whole.height / height, 1, whole.height / height))
    drawn = draw_head(row.shown, heat, grid(row.shown))
    mark(row, heat)
    draw_row(row, made.axes.inset_axes((0, 0, 1, HIGH / height)))
    stage_bar(made, drawn, row.shown)
    return made.figure


def _words(result: HeadWeights | HeadView, row: Row, *legend: str) -> Words:
    head = head_of(result)
    queries = row.shown.row_tokens
    name = f"what {queries.positions[row.query]} {queries.names[row.query]} attends to"
    told = [*legend, *([_pair_words(row)] if row.key is not None else []), *_left_out(row)]
    told += [sums_words(result), *view_words(result), *feature_words(head)]
    foot = (" · ".join(told), proof_words(head.certificate), source_words(head.provenance))
    return Words(heading_words(head, name), sentence_words(head), foot)


def _pair_words(row: Row) -> str:
    """`marked: 5 door gets .031, the 4th most of 13 keys`."""
    assert row.key is not None, "asked before"
    name = f"marked: {row.tokens.positions[row.key]} {row.tokens.names[row.key]}"
    if not row.shown.visible[row.query, row.key]:
        return f"{name} is masked"
    weights = row.shown.values[row.query]
    rank = 1 + int((weights[row.shown.visible[row.query]] > weights[row.key]).sum())
    allowed = counted(int(row.shown.visible[row.query].sum()), "key")
    return f"{name} gets {weight_text(float(weights[row.key]), 3)}, rank {rank} of {allowed}"


def _left_out(row: Row) -> list[str]:
    """What is not drawn as a bar."""
    visible = row.shown.visible[row.query]
    told = (
        []
        if visible.all()
        else ["hatched: masked"]
        if row.whole
        else [f"{counted(int((~visible).sum()), 'key')} masked"]
    )
    drawn = set(row.keys)
    others = [key for key in visible.nonzero()[0].tolist() if key not in drawn]
    if others:
        share = weight_text(float(row.shown.values[row.query, others].sum()))
        told.append(f"{counted(len(others), 'more key')} share {share}")
    return told
