"""What reaches a token from the patches of a picture, each method a map of the picture, and their effects."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnscope.render.flow.words import effect_text, share_text
from attnscope.render.kit.figure.page import FAINT, INK
from attnscope.render.kit.numbers import largest_magnitude, short
from attnscope.results import Flow
from attnscope.tokens import Patches

_SIDE, _TICK, _NUMBER = 1.45, 7.0, 5.5  # inches of the longer side; points
_MOST_NUMBERS = 36  # patches that have a number each
_NOTHING, _OWN = "#efefef", "#d95f02"

Map = Float[np.ndarray, "row column"]


def patches_of(result: Flow) -> Patches | None:
    """The picture whose patches the tokens are; None where they are none, or only some of a text."""
    stretch = next(iter(result.tokens.stretches), None)
    if not isinstance(stretch, Patches) or len(result.tokens.stretches) > 1:
        return None
    return None if result.tokens.texts else stretch


def map_size(patches: Patches) -> tuple[float, float]:
    """Width and height of one map in inches."""
    longest = max(patches.rows, patches.columns)
    return _SIDE * patches.columns / longest, _SIDE * patches.rows / longest


def laid_out(patches: Patches, values: Float[np.ndarray, " key"]) -> Map:
    """Values by position as those of the patches, row by row; NaN for a patch that has no position."""
    flat = [values[place] if place >= 0 else np.nan for place in patches.positions]
    return np.array(flat, dtype=np.float64).reshape(patches.rows, patches.columns)


def draw_map(result: Flow, patches: Patches, name: str, axes: Axes) -> None:
    """The share of every patch by one method, from 0 to the largest of any patch but the query itself."""
    values = np.where(result.reached, result.methods[name], np.nan)
    others = values.copy()
    others[result.query] = np.nan
    largest = largest_magnitude(laid_out(patches, others)) or 1.0
    _draw(result, patches, values, (0.0, largest), "Blues", axes)
    _numbers(patches, values, [share_text(float(each)) for each in values], largest, axes)
    axes.set_title(name, size=_TICK, color=INK, pad=3)
    axes.set_xlabel(f"0 to {short(largest)}", size=_TICK, color=INK, labelpad=3)


def draw_effect_map(result: Flow, patches: Patches, axes: Axes) -> None:
    """What replacing every patch does, around 0 where an answer may gain."""
    assert result.ablated is not None, "drawn only where something was replaced"
    values = result.ablated.effects
    largest = largest_magnitude(values) or 1.0
    signed = bool(np.nanmin(values, initial=0.0) < 0)
    ends = (-largest if signed else 0.0, largest)
    _draw(result, patches, values, ends, "RdBu" if signed else "Blues", axes)
    texts = [effect_text(result, place) for place in range(len(values))]
    _numbers(patches, values, texts, largest, axes)
    unit = "nats" if result.ablated.answer else "1 - cosine"
    axes.set_title(f"effect, {unit}", size=_TICK, color=INK, pad=3)
    axes.set_xlabel(f"{short(ends[0])} to {short(largest)}", size=_TICK, color=INK, labelpad=3)


def _draw(
    result: Flow,
    patches: Patches,
    values: Float[np.ndarray, " key"],
    ends: tuple[float, float],
    cmap: str,
    axes: Axes,
) -> None:
    """Grey where there is no number; the query's own patch has a frame."""
    axes.set_facecolor(_NOTHING)
    axes.pcolormesh(
        np.ma.masked_invalid(laid_out(patches, values)), cmap=cmap, vmin=ends[0], vmax=ends[1],
        edgecolors="white", linewidth=0.3,
    )  # fmt: skip
    axes.set_xlim(0, patches.columns)
    axes.set_ylim(patches.rows, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)
    if result.query in patches.positions:
        row, column = divmod(patches.positions.index(result.query), patches.columns)
        own = Rectangle((column, row), 1, 1, fill=False, edgecolor=_OWN, linewidth=1.4, zorder=3)
        axes.add_patch(own)


def _numbers(
    patches: Patches, values: Float[np.ndarray, " key"], texts: list[str], largest: float, axes: Axes
) -> None:
    """A number in every patch, where there are few."""
    if patches.count > _MOST_NUMBERS:
        return
    for number, place in enumerate(patches.positions):
        if place < 0 or np.isnan(values[place]):
            continue
        row, column = divmod(number, patches.columns)
        dark = abs(values[place]) > 0.6 * largest
        axes.text(
            column + 0.5, row + 0.53, texts[place], ha="center", va="center", size=_NUMBER,
            color="white" if dark else INK,
        )  # fmt: skip
