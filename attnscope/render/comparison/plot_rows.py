"""What one word attends to, drawn on Axes: a bar for every key, in the order of the text.

`draw_row` may be used on any Axes; how large these should be is `row_frame`'s answer. The rows of both
sides share one scale, so that their bars can be compared.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from matplotlib.axes import Axes

from attnscope.render.comparison.words import OPEN, attended_words, nothing_words, sentence, side_words
from attnscope.render.head.strongest import descending
from attnscope.render.kit.figure.page import FAINT, INK, Frame
from attnscope.render.kit.frame import only_spines
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.typesetting import line_height, text_width, wrapped
from attnscope.results import Comparison, Side

MOST_KEYS, MOST_LINES = 16, 12  # that are drawn, and of each text written
_MATTERS = 0.05  # of the largest weight of a row: a bar of less is hardly one
MASKED = "#aaaaaa"
_BAR, _WORD_BAR = "#4292c6", "#084594"
_WIDE = 2.5  # inches of the bars
_LETTER, _DOTS = 0.16, 0.16  # inches of the letter before a text, and of dots beside a line
_WIDEST_LABEL = 20
_FEW, _HIGH, _LOW = 16, 0.19, 0.15  # keys, and inches of a bar for up to so many and for more
_TITLE, _SCALE = 8.0, 7.0


@dataclass(frozen=True)
class Strip:
    """One row of weights: the keys that are shown, in the order of the text, and their names.

    `high` is the height of each bar in inches, `size` that of the names in points. `others` are the keys
    that are summed up in one line below.
    """

    keys: list[int]
    names: list[str]
    high: float
    size: float
    title: list[str]
    others: list[int]

    @property
    def lines(self) -> int:
        """How many lines the names take: one a key, and one for the others."""
        return len(self.keys) + bool(self.others)


def strip(result: Comparison, side: Side) -> Strip:
    """The layout that keeps every key of `side` legible: of many keys those that matter, and the word."""
    tokens = side.key_tokens
    keys = _keys(side)
    names = tokens.names if len(keys) == len(tokens) else tokens.labels
    high = _HIGH if max(len(each.key_tokens) for each in result.sides) <= _FEW else _LOW
    size = min(high * 72 * 0.72, 8.0)
    shown = [fit(settled(names[key]), _WIDEST_LABEL) for key in keys]
    others = [key for key in range(len(tokens)) if key not in keys and side.allowed[key]]
    shown += [counted(len(others), "other")] if others else []
    width = _WIDE + _widest(shown, size) - _LETTER - _DOTS
    told = [side_words(result, side), sentence(side), attended_words(side)]
    title = [line for each in told if each for line in _around_word(wrapped(each, width, _TITLE))]
    return Strip(keys, shown, high, size, title, others)


def _keys(side: Side) -> list[int]:
    """All of few keys; of many the strongest that have a bar to speak of, and the word itself."""
    weights = np.nan_to_num(side.weights)
    if len(weights) <= MOST_KEYS or not side.allowed.any():
        return sorted({*range(len(weights))[:MOST_KEYS], *_own(side)})
    least = _MATTERS * float(weights.max())
    return sorted({*(key for key in descending(weights)[:MOST_KEYS] if weights[key] >= least), *_own(side)})


def _around_word(lines: list[str]) -> list[str]:
    """Of a long text the lines around the marked word, else its first; dots where something is left out."""
    place = next((i for i, line in enumerate(lines) if OPEN in line), 0)
    first = max(min(place - MOST_LINES // 2, len(lines) - MOST_LINES), 0)
    kept = lines[first : first + MOST_LINES]
    if first > 0:
        kept[0] = f"… {kept[0]}"
    if first + MOST_LINES < len(lines):
        kept[-1] = f"{kept[-1]} …"
    return kept


def leaves_out(result: Comparison) -> bool:
    """Whether a row has more keys than are drawn."""
    return any(len(strip(result, side).keys) < len(side.weights) for side in result.sides)


def _own(side: Side) -> list[int]:
    """The word itself among the keys; in cross-attention it is none of them."""
    return [side.row] if side.query_tokens is side.key_tokens else []


def _widest(names: list[str], size: float) -> float:
    return max(text_width(name, size, bold=True) for name in names)


def row_frame(result: Comparison, side: Side, *, titled: int) -> Frame:
    """The size of the axes and the room for names at their left and `titled` lines of text above."""
    laid = strip(result, side)
    above = titled * line_height(_TITLE) + 0.46
    return Frame(_WIDE, laid.high * laid.lines, _widest(laid.names, laid.size) + 0.3, above)


def draw_row(result: Comparison, side: Side, axes: Axes, *, titled: int) -> None:
    """One bar per key in the order of the text, the word itself darker; masked keys are greyed.

    Of many keys those that hardly count are added up below, without a bar: it would have another scale.
    """
    laid = strip(result, side)
    allowed = side.allowed[laid.keys]
    weights = np.where(allowed, np.nan_to_num(side.weights[laid.keys]), 0.0)
    own = [key in _own(side) for key in laid.keys]
    places = np.arange(len(laid.keys))
    axes.barh(places, weights, height=0.72, color=[_WORD_BAR if word else _BAR for word in own])
    axes.set_ylim(laid.lines - 0.5, -0.5)
    full = max(float(np.nan_to_num(each.weights).max()) for each in result.sides) or 1.0
    axes.set_xlim(0, 1.16 * full)
    for place in np.flatnonzero(weights >= 0.05 * full).tolist() if allowed.any() else []:
        text = f" {weight_text(float(weights[place]))}"
        axes.text(weights[place], place, text, va="center", size=min(laid.size, 7.0), color=INK)
    if laid.others:
        told = f" {weight_text(float(side.weights[laid.others].sum()), 3)} together"
        axes.text(0, len(places), told, va="center", size=min(laid.size, 7.0), color=FAINT)
    if nothing := nothing_words(side):
        axes.text(0.05 * full, (len(places) - 1) / 2, nothing, va="center", size=_TITLE, color=FAINT)
    _names(axes, laid, allowed, own)
    _title(axes, result, side, laid, titled)


def _names(axes: Axes, laid: Strip, allowed: Bool[np.ndarray, " key"], own: list[bool]) -> None:
    """The names of the keys, that of the word in bold, and the scale of the weights above."""
    axes.set_yticks(range(laid.lines), laid.names, size=laid.size, parse_math=False)
    for label in axes.get_yticklabels()[len(laid.keys) :]:
        label.set_color(FAINT)
    for label, visible, word in zip(axes.get_yticklabels(), allowed, own, strict=False):
        label.set_color(INK if visible else MASKED)
        label.set_fontweight("bold" if word else "normal")
    axes.tick_params(axis="y", length=0, pad=3)
    axes.tick_params(axis="x", labelsize=6.5, length=2, colors=INK)
    axes.tick_params(axis="x", top=True, bottom=False, labeltop=True, labelbottom=False)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("attention weight", size=_SCALE, color=INK, labelpad=3)
    only_spines(axes, "left")


def _title(axes: Axes, result: Comparison, side: Side, laid: Strip, titled: int) -> None:
    """`A` and the text with the word marked, above the axes, from the left edge of the names on."""
    frame = row_frame(result, side, titled=titled)

    def write(line: str, left: float, number: int, weight: str) -> None:
        place = (left / frame.width, 1 + (frame.top - (number + 1) * line_height(_TITLE)) / frame.height)
        axes.text(
            *place, line, size=_TITLE, weight=weight, color=INK, transform=axes.transAxes, parse_math=False
        )

    left = -frame.left
    write("A" if side is result.a else "B", left, 0, "bold")
    for number, line in enumerate(laid.title):
        write(line, left + _LETTER, number, "normal")


def title_lines(result: Comparison) -> int:
    """How many lines stand above the rows: those of the longer of both texts."""
    return max(len(strip(result, side).title) for side in result.sides)
