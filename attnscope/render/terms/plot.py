"""Every part of a head's scores drawn side by side: heatmaps on one scale, then the score and the weights."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from attnscope.render.kit.figure.page import INK, Frame
from attnscope.render.kit.numbers import largest_magnitude, short
from attnscope.render.kit.stage import Panel, panel
from attnscope.render.kit.typesetting import line_height, text_width
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import grid, head_frame
from attnscope.results import HeadTerms
from attnscope.results.terms import CAP, CONTENT
from attnscope.vocabulary import Scaling

_TITLE = 9.0
_BESIDE = 0.25  # inches between panels


def panels_of(result: HeadTerms, scaling: Scaling = Scaling.AUTO) -> dict[str, Panel]:
    """What is drawn, by title: each part, what enters the softmax, the weights. Scores share one extent."""
    head = result.head
    parts: dict[str, Float[np.ndarray, "query key"]] = {CONTENT: result.scaled}
    if head.softcap is not None:
        parts[CAP] = result.capped - result.scaled
    parts |= head.terms
    if len(parts) > 1:
        parts["score"] = head.scaled
    extent = max(largest_magnitude(values[head.allowed]) for values in parts.values())
    shown = panel(head, "scaled")
    made = {name: replace(shown, values=values, limit=extent) for name, values in parts.items()}
    return made | {"weight": panel(head, "weights", scaling)}


def terms_frames(panels: dict[str, Panel]) -> list[Frame]:
    """The sizes of the axes; only the first has its queries named."""
    frames = []
    for i, (title, shown) in enumerate(panels.items()):
        frame = head_frame(shown)
        wider = max(text_width(title, _TITLE, bold=True) - frame.width, 0.0)
        left = frame.left if i == 0 else _BESIDE
        frames.append(replace(frame, left=left + wider / 2, top=frame.top + line_height(_TITLE) + 0.05))
    return frames


def draw_terms(title: str, shown: Panel, axes: Axes, *, first: bool) -> None:
    """One panel with its title; rows are named in the first only."""
    laid = grid(shown)
    draw_head(shown, axes, laid if first else replace(laid, rows=[""] * len(laid.rows)))
    axes.set_title(title, size=_TITLE, weight="bold", color=INK, pad=6)
    if not first:
        axes.set_ylabel("")


def colour_words(panels: dict[str, Panel]) -> str:
    """What the colours stand for, since the panels have no colour bars."""
    extent, weights = next(iter(panels.values())).extent, panels["weight"]
    scores = f"scores: red -{short(extent)}, white 0, blue {short(extent)}, alike in all"
    return f"{scores}; weights: {weights.scale.legend}"
