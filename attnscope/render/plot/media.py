"""Attention over a picture or a sound on Axes: one head in full, or a grid of many.

Weights are opaque squares of colour, one for each patch, so that a colour depends on the weight alone. The
picture's outlines are drawn above them, and its greys where there are no weights. Rows of patches run from
top to bottom, columns from left to right.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from attnscope.render.kit.numbers import largest_magnitude, percent, significant
from attnscope.render.kit.palette import CHOSEN, INK, OUTLINES, PAPER
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.kit.typesetting import text_width, tick
from attnscope.render.plot.heat import WEIGHTS, token_labels, weight_norm
from attnscope.render.plot.panel import TICK, Panel, inches, only_spines
from attnscope.render.sheets.media import Original, Overlay, Overlays, Timeline, query_words
from attnscope.results import Picture, PictureHeads, SoundAttention, Spectrogram
from attnscope.vocabulary import Scaling

_TALLEST, _WIDEST = 3.6, 4.6  # inches, of one picture
_SMALLEST, _LARGEST, _SHEET = 0.45, 1.5, 13.0  # inches, of a small picture's longer side; of a whole row
_GAP, _CAPTION = 0.1, 0.17  # inches beside a small picture, and above it
BAR = 0.85  # inches of a colour bar and its numbers
TALLEST_BAR = 3.0
_DARK = 0.6  # a shade that black lines are no longer seen on
_MOST_PIXELS = 160  # of a side of a small picture
_OUTLINES, _OUTLINED = 0.75, 0.2  # opacity, and share of the pixels at most
_SOFTENED = 90  # of a side: the size of details that have no outline


def faded(pixels: Float[np.ndarray, "height width 3"]) -> Float[np.ndarray, "height width"]:
    """The picture's luma (Rec. 601), squeezed into middle greys."""
    return np.asarray(0.3 + 0.6 * (pixels @ np.array([0.299, 0.587, 0.114])))


def original(block: Original) -> Panel:
    """Panel of the picture as the model saw it."""
    return _panel(block.title, "", block.picture, partial(_draw_original, block.picture))


def overlay(block: Overlay) -> Panel:
    """Panel of the weights under the picture's outlines, with a colour bar at the right."""
    result = block.result
    told = ["lines: outlines of the picture"]
    own = result.gaze.cell is not None
    told += ["framed: the query's own patch"] if own else []
    told += [f"{'dashed' if own else 'framed'}: the key"] if block.pointed is not None else []
    told += ["without colour: not read"] if np.isnan(result.weights).any() else []
    told += [f"colours: {block.scale.told}"] if block.scale.told else []
    panel = _panel(query_words(result), " · ".join(told), result.picture, partial(_draw_overlay, block))
    return replace(panel, right=BAR)


def _panel(title: str, says: str, picture: Picture, draw: Callable[[Axes], None]) -> Panel:
    height, width = picture.size
    scale = min(_TALLEST / height, _WIDEST / width)
    return Panel(
        title=title, says=says, width=width * scale, height=height * scale, below=0.05,
        draw=draw, least=0.4,
    )  # fmt: skip


def _draw_original(picture: Picture, axes: Axes) -> None:
    axes.imshow(picture.image, interpolation="nearest", aspect="auto")
    _bare(axes)


def _draw_overlay(block: Overlay, axes: Axes) -> None:
    result = block.result
    height, width = result.picture.size
    place = _Place(0.0, 0.0, float(width), float(height))
    drawn = _overlay(result.picture, result.picture.image, (result.weights, block.scale), axes, place)
    if result.gaze.cell is not None:
        _outline(result.picture, result.weights.shape, result.gaze.cell, axes, place, 2.0)
    if block.pointed is not None:
        line = "-" if result.gaze.cell is None else "--"
        _outline(result.picture, result.weights.shape, block.pointed, axes, place, 2.0, line)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    _bare(axes)
    weight_bar(drawn, axes, block.scale)


def weight_bar(drawn: ScalarMappable, axes: Axes, scale: Weights, beside: float = 0.1) -> None:
    """Draw the colour bar of weights, `beside` inches right of the axes."""
    wide, high = inches(axes)
    tall = min(1.0, TALLEST_BAR / high)
    bar = axes.figure.colorbar(
        drawn, cax=axes.inset_axes((1 + beside / wide, 1 - tall, 0.14 / wide, tall)), ticks=[]
    )
    places, texts = zip(*scale.ticks, strict=True)
    bar.set_ticks(places, labels=texts)
    bar.minorticks_off()
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=TICK, length=2, colors=INK)
    bar.ax.set_ylabel("attention weight", size=TICK, color=INK)


@dataclass(frozen=True)
class _Place:
    """Rectangle of a picture on an Axes, y downwards."""

    left: float
    top: float
    width: float
    height: float


def _overlay(
    picture: Picture,
    pixels: Float[np.ndarray, "height width 3"],
    drawn: tuple[Float[np.ndarray, "row column"], Weights],
    axes: Axes,
    at: _Place,
) -> ScalarMappable:
    high, wide = _covered(picture, at)
    whole = (at.left, at.left + at.width, at.top + at.height, at.top)
    cut = (at.left, at.left + wide, at.top + high, at.top)
    shown = {"interpolation": "nearest", "aspect": "auto"}
    grey = faded(pixels)
    axes.imshow(grey, extent=whole, cmap="gray", vmin=0, vmax=1, **shown)  # type: ignore[arg-type]
    weights, scale = drawn
    norm = weight_norm(scale)
    colours = axes.imshow(weights, extent=cut, cmap=WEIGHTS, norm=norm, **shown)  # type: ignore[arg-type]
    lines = outlines(grey)
    lines[..., :3] = _line_inks(norm(np.ma.masked_invalid(weights)), lines.shape[:2], picture)[..., None]
    axes.imshow(lines, extent=whole, **shown)  # type: ignore[arg-type]
    return colours


def _line_inks(
    shades: np.ma.MaskedArray, shape: tuple[int, int], picture: Picture
) -> Float[np.ndarray, "height width"]:
    places = [
        np.minimum(((np.arange(count) + 0.5) / count * whole / covered * patches).astype(int), patches)
        for count, whole, covered, patches in zip(
            shape, picture.size, picture.covered, shades.shape, strict=True
        )
    ]
    beyond = np.pad(shades.filled(0.0), ((0, 1), (0, 1)))
    return np.asarray(np.where(beyond[np.ix_(*places)] > _DARK, 1.0, 0.0))


def outlines(grey: Float[np.ndarray, "height width"]) -> Float[np.ndarray, "height width 4"]:
    """RGBA image of a picture's edges as thin lines, transparent everywhere else.

    Edges are where the smoothed picture changes fastest, at most a fifth of its pixels.
    """
    drawn = np.ones((*grey.shape, 4))
    drawn[..., 3] = 0.0
    if min(grey.shape) > 2:
        reach = max(1, max(grey.shape) // _SOFTENED)
        down, across = np.gradient(_softened(_softened(grey, reach), reach))
        slope, upright = np.hypot(down, across), np.abs(across) > np.abs(down)
        ridge = np.where(upright, _crest(slope.T).T, _crest(slope))
        steep = slope > max(float(np.quantile(slope, 1 - _OUTLINED)), 1e-3)
        drawn[ridge & steep, 3] = _OUTLINES
    return drawn


def _crest(slope: Float[np.ndarray, "row column"]) -> Bool[np.ndarray, "row column"]:
    """True where a slope is larger than in the row before, and not smaller than in the next."""
    around = np.pad(slope, ((1, 1), (0, 0)), mode="edge")
    return np.asarray((slope > around[:-2]) & (slope >= around[2:]))


def _softened(grey: Float[np.ndarray, "height width"], reach: int) -> Float[np.ndarray, "height width"]:
    padded = np.pad(grey, reach, mode="edge")
    sums = np.pad(padded, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    side = 2 * reach + 1
    return (
        np.asarray(sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side])
        / side**2
    )


def _covered(picture: Picture, at: _Place) -> tuple[float, float]:
    height, width = picture.size
    return picture.covered[0] / height * at.height, picture.covered[1] / width * at.width


def _outline(
    picture: Picture,
    shape: tuple[int, ...],
    cell: tuple[int, ...],
    axes: Axes,
    at: _Place,
    line: float,
    style: str = "-",
) -> None:
    high, wide = (side / count for side, count in zip(_covered(picture, at), shape, strict=True))
    corner = (at.left + cell[1] * wide, at.top + cell[0] * high)
    axes.add_patch(
        Rectangle(corner, wide, high, fill=False, edgecolor=CHOSEN, linewidth=line, linestyle=style)
    )


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    only_spines(axes)


def _small(result: PictureHeads) -> tuple[float, float]:
    height, width = result.picture.size
    room = (_SHEET - _GAP * len(result.overview.heads)) / len(result.overview.heads)
    wide = min(max(room, _SMALLEST), _LARGEST * min(1.0, width / height))
    return wide * height / width, wide


def overlays(block: Overlays) -> Panel:
    """Panel of one picture per head, with row and column labels `L11` and `H11`."""
    result = block.result
    high, wide = _small(result)
    told = ["above each: largest weight on a patch, and share on the picture"]
    told += ["lines: outlines"]
    told += ["framed: the query's own patch"] if result.gaze.cell is not None else []
    told += ["outlined: not certified"] if result.overview.verdict.stands_out else []
    told += [f"colours: {block.scale.told.replace('row', 'head')}"] if block.scale.told else []
    return Panel(
        title=query_words(result),
        says=" · ".join(told),
        width=(wide + _GAP) * len(result.overview.heads),
        height=(high + _CAPTION + _GAP) * len(result.overview.layers),
        left=text_width(f"L{max(result.overview.layers)}", TICK) + 0.1,
        above=0.2,
        draw=partial(_draw_heads, block),
        right=BAR,
    )


def _draw_heads(block: Overlays, axes: Axes) -> None:
    result, scale = block.result, block.scale
    high, wide = _small(result)
    pixels = result.picture.image
    step = max(1, math.ceil(max(pixels.shape) / _MOST_PIXELS))
    height, width = (side // step * step for side in pixels.shape[:2])
    blocks = pixels[:height, :width].reshape(height // step, step, width // step, step, 3)
    small = np.asarray(blocks.mean(axis=(1, 3)))
    size = min(6.5, 7.0 * (wide + _GAP) / max(text_width(".000 · 100 %", 7.0), 0.01))
    down, across = high + _CAPTION + _GAP, wide + _GAP
    for i, j in np.ndindex(result.weights.shape[:2]):
        at = _Place(j * across, i * down + _CAPTION, wide, high)
        weights = result.weights[i, j]
        own = scale
        if scale.kind is Scaling.ROW:  # of each head
            own = Weights(Scaling.MAX, scale.tops[[i * result.weights.shape[1] + j]])
        drawn = _overlay(result.picture, small, (weights, own), axes, at)
        if result.gaze.cell is not None:
            _outline(result.picture, weights.shape, result.gaze.cell, axes, at, 0.8)
        told = f"{significant(largest_magnitude(weights))} · {percent(float(np.nansum(weights)))}"
        axes.text(at.left, at.top - 0.04, told, size=size, color=INK, va="bottom")
        verdict = result.overview.certificates[i][j].verdict
        if verdict.stands_out:
            axes.add_patch(
                Rectangle((at.left, at.top), wide, high, fill=False, edgecolor=OUTLINES[verdict], lw=1.5)
            )
    _grid_ticks(result, axes, down, across)
    if scale.kind is not Scaling.ROW:
        weight_bar(drawn, axes, scale)


def _grid_ticks(result: PictureHeads, axes: Axes, down: float, across: float) -> None:
    overview, (high, wide) = result.overview, _small(result)
    axes.set_xlim(0, across * len(overview.heads))
    axes.set_ylim(down * len(overview.layers), 0)
    _bare(axes)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    middles = [j * across + wide / 2 for j in range(len(overview.heads))]
    axes.set_xticks(middles, [f"H{head}" for head in overview.heads], size=TICK)
    rows = [i * down + _CAPTION + high / 2 for i in range(len(overview.layers))]
    axes.set_yticks(rows, [f"L{layer}" for layer in overview.layers], size=TICK)


_HERTZ = (250, 500, 1000, 2000, 4000, 8000, 16000)
_SPECTROGRAM, _BETWEEN, _CURVE = 1.5, 0.12, 1.0  # inches
_SUMS = 0.6  # inches of the numbers right of the row of a head
_ROW, _NAMED, _HIGHEST = 0.17, 0.09, 24.0  # inches: of a row, of one that is named, of all rows at most
_NARROWEST, _LONGEST, _SECOND = 5.5, 11.0, 0.5  # inches of the time axis, and of one second


def timeline(block: Timeline) -> Panel:
    """Panel of a sound: as wide as it is long, as high as its rows need."""
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
        width=min(max(_NARROWEST, _SECOND * block.result.sound.seconds), _LONGEST),
        height=_rows_high(block) + (_SPECTROGRAM + _BETWEEN) * block.spectrogram,
        left=max([0.45, *(text_width(label, TICK) + 0.1 for label in _labels(block))]) + 0.2,
        above=0.05,
        below=0.4,
        draw=partial(_draw_timeline, block),
        right=0.1 if _single(block) else BAR + _SUMS * _of_heads(block),
        least=0.6,
    )


def _draw_timeline(block: Timeline, axes: Axes) -> None:
    result, shown = block.result, [axes]
    if block.spectrogram:
        axes.set_axis_off()
        high = _rows_high(block) + _BETWEEN + _SPECTROGRAM
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
    return _CURVE if _single(block) else max(0.6, min(_ROW, _HIGHEST / rows) * rows)


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
