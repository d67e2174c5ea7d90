"""What the word attends to on both sides, in a terminal: ranked keys with bars, beside each other."""

from itertools import zip_longest

import numpy as np
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from attnscope.render.comparison.words import nothing_words
from attnscope.render.head.strongest import descending
from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import left, settled
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.palette import BAR
from attnscope.render.kit.words.weights import key_groups
from attnscope.results import Comparison, Side

MOST_KEYS = 20
_MOST_LABEL, _LEAST_BAR, _BETWEEN = 16, 8, 3


def both_rows(result: Comparison, width: int) -> list[RenderableType]:
    """Both rows of weights, side by side where `width` allows, on one scale."""
    full = max((float(np.nanmax(side.weights, initial=0.0)) for side in result.sides), default=0.0)
    half = (width - _BETWEEN) // 2
    blocks = [_row(name, side, full, half) for name, side in zip("AB", result.sides, strict=True)]
    needed = max(each.cell_len for block in blocks for each in block)
    if needed > half:
        blocks = [_row(name, side, full, width) for name, side in zip("AB", result.sides, strict=True)]
        return [*blocks[0], "", *blocks[1]]
    return [_joined(left_line, right_line, half + _BETWEEN) for left_line, right_line in zip_longest(*blocks)]


def _joined(first: Text | None, second: Text | None, place: int) -> Text:
    """Two lines in one, the second from cell `place` on."""
    joined = Text(no_wrap=True, overflow="crop") if first is None else first.copy()
    if second is not None:
        joined.append(" " * (place - joined.cell_len))
        joined.append_text(second)
    return joined


def _row(name: str, side: Side, full: float, width: int) -> list[Text]:
    """The keys of the word by weight; a full bar is the largest weight of both sides."""
    tokens, weights = side.key_tokens, side.weights
    heading = line(
        (f"{name} ", HEADING), (f"{side.position} {settled(side.word)}", HEADING), (" attends to", DIM)
    )
    if nothing := nothing_words(side):
        return [line((f"{name} {settled(side.word)}", HEADING), f" has {nothing}")]
    ranked = [key for key in descending(weights) if side.allowed[key]]
    label = min(max(cell_len(settled(tokens.names[key])) for key in ranked[:MOST_KEYS]), _MOST_LABEL)
    places = [group[0] for group in key_groups(side.looked_at)]
    digits = len(str(max(places)))
    room = max(width - digits - label - 9, _LEAST_BAR)
    lines = [heading]
    for key in ranked[:MOST_KEYS]:
        label_text, weight = left(settled(tokens.names[key]), label), weight_text(weights[key], 3)
        told = f"{places[key]:>{digits}} {label_text}  {weight:>4} "
        lines.append(line(told, (bar(weights[key] / full if full else 0.0, room), BAR)))
    return [*lines, *_left_out(side, ranked)]


def _left_out(side: Side, ranked: list[int]) -> list[Text]:
    """Further keys, masked keys, what special tokens hold that are not shown, the share of a sink."""
    told = []
    if further := ranked[MOST_KEYS:]:
        told.append(
            f"{counted(len(further), 'more key')} share {weight_text(float(side.weights[further].sum()))}"
        )
    if masked := len(side.key_tokens) - len(ranked):
        told.append(f"{counted(masked, 'key')} masked")
    if side.special_weight is not None:
        told.append(f"special tokens, left out, hold {weight_text(side.special_weight)}")
    if side.head.sink is not None:
        row = side.weights[ranked] if side.view is None else side.whole_row
        told.append(f"the sink takes {weight_text(float(1 - row.sum()))}")
    return [Text(" · ".join(told), style=DIM)] if told else []
