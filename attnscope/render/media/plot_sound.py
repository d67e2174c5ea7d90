"""Attention over a sound, drawn on Axes that share their time: spectrogram above, weights below.

The spectrogram is grey, dark where it is loud; colours stand for weights. Time runs from left to right in
seconds, a frame from its start to the start of the next.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.media.plot_picture import heat
from attnscope.results import Spectrogram

_HERTZ = (250, 500, 1000, 2000, 4000, 8000, 16000)
_BLUE, _MARK = "#2171b5", "#d6004b"


def draw_spectrogram(shown: Spectrogram, seconds: float, axes: Axes) -> None:
    """Power in mel bands over time, 80 decibels from white to black; `seconds` is where the sound ends."""
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
    axes.set_ylabel("frequency", size=8, color=INK)
    _time(axes, seconds, labelled=False)


def draw_curve(weights: Float[np.ndarray, " frame"], step: float, seconds: float, axes: Axes) -> None:
    """The weight of each frame, of `step` seconds, as the height of a step."""
    axes.stairs(weights, step * np.arange(len(weights) + 1), fill=True, color=_BLUE, linewidth=0)
    axes.set_ylim(0, 1.08 * (largest_magnitude(weights) or 1.0))
    axes.set_ylabel("weight", size=8, color=INK)
    _time(axes, seconds)


def draw_rows(
    weights: Float[np.ndarray, "row frame"],
    labels: Sequence[str],
    step: float,
    seconds: float,
    axes: Axes,
    *,
    own_scale: bool = False,
) -> ScalarMappable:
    """Rows of weights as colours over time, with `own_scale` each from 0 to its own largest.

    Returns what a colour bar is made for.
    """
    rows, frames = weights.shape
    largest = np.maximum(weights.max(axis=1, keepdims=True), 1e-300)
    shown = weights / largest if own_scale else weights
    drawn = axes.imshow(
        shown,
        extent=(0.0, frames * step, rows, 0.0),
        aspect="auto",
        cmap=heat(),
        norm=Normalize(0.0, 1.0 if own_scale else largest_magnitude(weights) or 1.0),
        interpolation="nearest",
    )
    places = [i + 0.5 for i, label in enumerate(labels) if label]
    axes.set_yticks(places, [label for label in labels if label], parse_math=False)
    axes.set_ylim(rows, 0)
    _time(axes, seconds)
    return drawn


def mark_frame(frame: int, step: float, *several: Axes) -> None:
    """The frame that the query itself stands for, across all of `several`."""
    for axes in several:
        axes.axvspan(frame * step, (frame + 1) * step, color=_MARK, alpha=0.35, linewidth=0)
        axes.axvline((frame + 0.5) * step, color=_MARK, linewidth=0.8)


def _time(axes: Axes, seconds: float, labelled: bool = True) -> None:
    axes.set_xlim(0.0, seconds)
    axes.tick_params(labelsize=7, length=2, colors=INK, labelbottom=labelled)
    if labelled:
        axes.set_xlabel("time in seconds", size=8, color=INK, labelpad=2)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
