"""Input tokens by methods as colours, what replacing them does as bars, correlations with their shuffles."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from attnscope.render.flow.words import NEARNESS, effect_text, share_text, token_words
from attnscope.render.kit.figure.page import FAINT, INK, ink_on
from attnscope.render.kit.frame import named_rows
from attnscope.render.kit.labels import fit
from attnscope.results import Flow

_TICK, _NUMBER = 7.0, 6.0
_MOST_NUMBERS, _LONGEST = 64, 24  # tokens that have a number in every cell; characters of a name
_GAIN, _LOSS, _NEAR, _RANGE = "#d6604d", "#3a7ebf", "#c4c4c4", "#222222"


def row_height(result: Flow) -> float:
    """Inches of one token."""
    return 0.2 if len(result.tokens) <= _MOST_NUMBERS else max(12.0 / len(result.tokens), 0.03)


def names(result: Flow) -> list[str]:
    """What the rows are called; of very many tokens every few."""
    step = max(1, round(0.11 / row_height(result)))
    return [
        fit(token_words(result, key), _LONGEST) if key % step == 0 or key == result.query else ""
        for key in range(len(result.tokens))
    ]


def draw_shares(result: Flow, axes: Axes) -> QuadMesh:
    """A row per input token, a column per method, all on one scale; the query's own name is bold."""
    methods = result.methods
    values = np.where(result.reached[:, None], np.array(list(methods.values())).T, np.nan)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(values), cmap="Blues", vmin=0, vmax=float(np.nanmax(values)),
        edgecolors="white", linewidth=0.5,
    )  # fmt: skip
    axes.set_ylim(len(values), 0)
    axes.set_xlim(0, len(methods))
    axes.set_xticks(np.arange(len(methods)) + 0.5, list(methods), size=_TICK)
    axes.set_yticks(np.arange(len(values)) + 0.5, names(result), size=_TICK, parse_math=False)
    axes.get_yticklabels()[result.query].set_fontweight("bold")
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0, pad=2, colors=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if len(values) <= _MOST_NUMBERS:
        for (i, j), value in ((place, each) for place, each in np.ndenumerate(values) if not np.isnan(each)):
            axes.text(
                j + 0.5, i + 0.52, share_text(float(value)), ha="center", va="center", size=_NUMBER,
                color=ink_on(mesh, float(value)),
            )  # fmt: skip
    return mesh


def draw_effects(result: Flow, axes: Axes) -> None:
    """What replacing each token does, in the rows of `draw_shares`."""
    found = result.ablated
    effects = np.full(len(result.tokens), np.nan) if found is None else found.effects
    there = np.flatnonzero(~np.isnan(effects))
    colours = [_LOSS if effects[key] >= 0 else _GAIN for key in there]
    axes.barh(there + 0.5, effects[there], height=0.72, color=colours)
    axes.axvline(0, color=FAINT, linewidth=0.6)
    low, high = min(0.0, float(np.nanmin(effects, initial=0.0))), float(np.nanmax(effects, initial=0.0))
    span = (high - low) or 1.0
    axes.set_xlim(low - (0.3 * span if low < 0 else 0.0), high + 0.3 * span)
    axes.set_ylim(len(effects), 0)
    axes.set_yticks([])
    if len(effects) <= _MOST_NUMBERS:
        for key in there:
            value, text = float(effects[key]), effect_text(result, int(key))
            side = "left" if value >= 0 else "right"
            shift = 0.02 * span if value >= 0 else -0.02 * span
            axes.text(value + shift, key + 0.52, text, ha=side, va="center", size=_NUMBER, color=INK)
    axes.tick_params(axis="x", labelsize=_TICK, length=2, colors=INK)
    axes.set_xlabel("nats" if found is not None and found.answer else "1 - cosine", size=_TICK, color=INK)
    for name, spine in axes.spines.items():
        spine.set_visible(name == "bottom")
        spine.set_color(FAINT)


def draw_trust(result: Flow, axes: Axes) -> None:
    """The correlation of each method with the effects; across it the middle nine tenths of shuffled ones."""
    trust = () if result.ablated is None else result.ablated.trust
    for row, each in enumerate(trust):
        colour = _NEAR if each.method == NEARNESS else _LOSS
        axes.barh(row, np.nan_to_num(each.correlation), height=0.62, color=colour)
        axes.plot((each.low, each.high), (row, row), color=_RANGE, linewidth=1.1, solid_capstyle="butt")
        for end in (each.low, each.high):
            axes.plot((end, end), (row - 0.17, row + 0.17), color=_RANGE, linewidth=1.1)
    axes.axvline(0, color=FAINT, linewidth=0.6)
    axes.set_xlim(-1.02, 1.02)
    named_rows(axes, [each.method for each in trust], "Spearman; line: of shuffled effects", _TICK)
