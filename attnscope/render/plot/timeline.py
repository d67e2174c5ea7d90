"""Attention over a sound on Axes that share their time: spectrogram above, the weights of its rows below.

The spectrogram is grey, dark where it is loud; colours stand for weights. Time runs from left to right in
seconds, a frame from its start to the start of the next.
"""

from functools import partial

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from attnscope.render.kit.numbers import largest_magnitude, percent, significant
from attnscope.render.kit.palette import CHOSEN, INK, PAPER
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.typesetting import text_width, tick
from attnscope.render.plot.heat import WEIGHTS, weight_norm
from attnscope.render.plot.layout import token_labels
from attnscope.render.plot.overlay import BAR, weight_bar
from attnscope.render.plot.panel import TICK, Panel, only_spines
from attnscope.render.sheets.picture import Timeline
from attnscope.results import SoundAttention, Spectrogram

_HERTZ = (250, 500, 1000, 2000, 4000, 8000, 16000)
_SPECTROGRAM, _GAP, _CURVE = 1.5, 0.12, 1.0  # inches
_SUMS = 0.6  # inches of the numbers right of the row of a head
_ROW, _NAMED, _TALLEST = 0.17, 0.09, 24.0  # inches: of a row, of one that is named, of all rows at most
_NARROWEST, _WIDEST, _SECOND = 5.5, 11.0, 0.5  # inches of the time axis, and of one second


def panel(block: Timeline) -> Panel:
    """As wide as the sound is long, as high as its rows need."""
    told = [] if block.result.gaze.cell is None else ["marked: the query's own frame"]
    told += [] if block.pointed is None else ["dashed: the key"]
    if _of_heads(block):
        told.append("at the right: the largest weight on a frame, and the share on the sound")
    scale = block.plain.scale
    if isinstance(scale, Weights) and scale.told and not _single(block):
        told.append(f"colours: {scale.told}")
    return Panel(
        title=block.plain.title,
        says=" · ".join(told),
        width=min(max(_NARROWEST, _SECOND * block.result.sound.seconds), _WIDEST),
        height=_rows_high(block) + (_SPECTROGRAM + _GAP) * block.spectrogram,
        left=max([0.45, *(text_width(label, TICK) + 0.1 for label in _labels(block))]) + 0.2,
        above=0.05,
        below=0.4,
        draw=partial(draw, block),
        right=0.1 if _single(block) else BAR + _SUMS * _of_heads(block),
        least=0.6,
    )


def draw(block: Timeline, axes: Axes) -> None:
    """The spectrogram on the upper part of the axes, where it is wanted, and the weights below it."""
    result, shown = block.result, [axes]
    if block.spectrogram:
        axes.set_axis_off()
        high = _rows_high(block) + _GAP + _SPECTROGRAM
        upper, lower = _SPECTROGRAM / high, _rows_high(block) / high
        shown = [axes.inset_axes((0.0, 0.0, 1.0, lower)), axes.inset_axes((0.0, 1 - upper, 1.0, upper))]
        _draw_spectrogram(result.heard, result.sound.seconds, shown[1])
    if _single(block):
        _draw_curve(block, shown[0])
    else:
        _draw_rows(block, shown[0])
    if block.pointed is not None:
        for each in shown:
            for end in (block.pointed, block.pointed + 1):
                each.axvline(end * result.seconds, color=CHOSEN, linewidth=0.9, linestyle="--")
    if result.gaze.cell is not None:
        frame, step = result.gaze.cell[0], result.seconds
        for each in shown[-1:] if _of_heads(block) else shown:
            each.axvspan(frame * step, (frame + 1) * step, color=CHOSEN, alpha=0.35, linewidth=0)
            each.axvline((frame + 0.5) * step, color=CHOSEN, linewidth=0.8)


def _of_heads(block: Timeline) -> bool:
    return not isinstance(block.result, SoundAttention)


def _single(block: Timeline) -> bool:
    return len(block.plain.rows) == 1


def _rows_high(block: Timeline) -> float:
    rows = len(block.plain.rows)
    return _CURVE if _single(block) else max(0.6, min(_ROW, _TALLEST / rows) * rows)


def _labels(block: Timeline) -> list[str]:
    if _single(block):
        return []
    names = token_labels(block.plain.rows)
    if isinstance(block.result, SoundAttention) or _rows_high(block) / len(names) >= _NAMED:
        return names
    return [label if i % len(block.result.overview.heads) == 0 else "" for i, label in enumerate(names)]


def _draw_spectrogram(shown: Spectrogram, seconds: float, axes: Axes) -> None:
    bands, frames = shown.levels.shape
    left, right = -0.5 * shown.seconds, (frames - 0.5) * shown.seconds
    axes.imshow(
        shown.levels,
        extent=(left, right, -0.5, bands - 0.5),
        origin="lower",
        aspect="auto",
        cmap="Greys",
        vmin=-80,
        vmax=0,
        interpolation="nearest",
    )
    marks = [hertz for hertz in _HERTZ if shown.centres[0] <= hertz <= shown.centres[-1]]
    places = np.interp(marks, shown.centres, np.arange(bands))
    axes.set_yticks(places, [f"{hertz // 1000} kHz" if hertz >= 1000 else f"{hertz} Hz" for hertz in marks])
    axes.set_ylim(-0.5, bands - 0.5)
    axes.set_ylabel("frequency", size=TICK, color=INK)
    _time(axes, seconds, labelled=False)


def _draw_curve(block: Timeline, axes: Axes) -> None:
    weights, step = block.plain.values[0], block.result.seconds
    axes.stairs(
        weights, step * np.arange(len(weights) + 1), fill=True, color=PAPER["light"]["line"], linewidth=0
    )
    axes.set_ylim(0, 1.08 * (largest_magnitude(weights) or 1.0))
    axes.yaxis.set_major_formatter(tick)
    axes.set_ylabel("weight", size=TICK, color=INK)
    _time(axes, block.result.sound.seconds)


def _draw_rows(block: Timeline, axes: Axes) -> None:
    values, result = block.plain.values, block.result
    rows, frames = values.shape
    scale = block.plain.scale
    assert isinstance(scale, Weights), "all are weights"
    axes.imshow(
        scale.shades(values),
        extent=(0.0, frames * result.seconds, rows, 0.0),
        aspect="auto",
        cmap=WEIGHTS,
        norm=Normalize(0.0, 1.0),
        interpolation="nearest",
    )
    labels = _labels(block)
    places = [i + 0.5 for i, label in enumerate(labels) if label]
    axes.set_yticks(places, [label for label in labels if label], parse_math=False)
    axes.set_ylim(rows, 0)
    _time(axes, result.sound.seconds)
    bar = ScalarMappable(weight_norm(scale), WEIGHTS)
    weight_bar(bar, axes, scale, 0.1 if isinstance(result, SoundAttention) else 0.1 + _SUMS)
    if isinstance(result, SoundAttention):
        axes.set_ylabel(block.plain.words[0], size=TICK, color=INK)
        return
    heads = len(result.overview.heads)
    for first in range(heads, rows, heads):
        axes.axhline(first, color=INK, linewidth=0.6)
    if all(labels):
        _sums(values, axes)


def _sums(values: Float[np.ndarray, "row frame"], axes: Axes) -> None:
    for i, row in enumerate(values):
        told = f" {significant(float(row.max()))} · {percent(float(row.sum()))}"
        axes.text(1.0, i + 0.5, told, size=5.5, color=INK, va="center", transform=axes.get_yaxis_transform())


def _time(axes: Axes, seconds: float, labelled: bool = True) -> None:
    axes.set_xlim(0.0, seconds)
    axes.tick_params(labelsize=TICK, length=2, colors=INK, labelbottom=labelled)
    if labelled:
        axes.set_xlabel("time in seconds", size=TICK, color=INK, labelpad=2)
    only_spines(axes, "left", "bottom")
