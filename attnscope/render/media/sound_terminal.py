"""Attention over a sound in a terminal: bars over time, and the strongest frames."""

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import left, right, settled
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.palette import BAR
from attnscope.render.media.picture_terminal import verdict_lines
from attnscope.render.media.words import shares_words
from attnscope.render.terminal.strongest import descending
from attnscope.results import Kind, SoundAttention, SoundHeads

_LEVELS = " ▁▂▃▄▅▆▇█"
_MOST, _MOST_LABEL, _MOST_ROWS = 8, 21, 60


def sound_frames(result: SoundAttention, width: int) -> RenderableType:
    """A bar over time, the strongest frames, and where the rest of the row lies.

    Of cross-attention without a chosen query a bar for each token of the decoder.
    """
    head = result.head
    if head.kind is Kind.CROSS and result.gaze.query is None:
        names = [settled(name) for name in head.query_tokens.names]
        rows = head.weights[:, result.gaze.keys]
        if len(rows) <= _MOST_ROWS:
            body = _rows(names, rows, result.sound.seconds, result.seconds, width)
            return Group(*body, Text(shares_words(result), style=DIM))
    body = _rows(["weight"], result.weights[None], result.sound.seconds, result.seconds, width)
    return Group(*body, Text(""), *_strongest(result, width), Text(shares_words(result), style=DIM))


def sound_heads(result: SoundHeads, width: int) -> RenderableType:
    """A bar over time for each head."""
    overview = result.overview
    names = [f"L{layer} H{head}" for layer in overview.layers for head in overview.heads]
    rows = result.weights.reshape(-1, result.weights.shape[-1])
    body = _rows(names, rows, result.sound.seconds, result.seconds, width)
    return Group(*body, *verdict_lines(overview))


def _rows(
    names: list[str], rows: Float[np.ndarray, "row frame"], seconds: float, step: float, width: int
) -> list[Text]:
    """One line of bars for each row, each from 0 to its own largest cell; at its end what that is."""
    label = min(max(cell_len(name) for name in names), _MOST_LABEL)
    margin = label + 1
    cells = max(min(width - margin - 6, rows.shape[1]), 8)
    cells = min(cells, rows.shape[1])
    bounds = np.linspace(0, rows.shape[1], cells + 1).round().astype(int)
    lines = []
    for name, row in zip(names, rows, strict=True):
        summed = np.add.reduceat(np.nan_to_num(row), bounds[:-1])
        largest = float(summed.max())
        levels = np.ceil(8 * summed / (largest or 1.0) - 1e-9).astype(int)
        bars = "".join(_LEVELS[level] for level in levels)
        lines.append(line((left(name, label) + " ", HEADING), (bars, BAR), f" {weight_text(largest, 3)}"))
    lasts = step * rows.shape[1] / cells
    each = "a frame" if cells == rows.shape[1] else f"{1000 * lasts:.0f} ms, weights summed"
    told = f"each bar: {each}; a full bar is the number at the end of its line"
    return [*lines, _axis(margin, cells, lasts), Text(told, style=DIM)]


def _axis(margin: int, cells: int, lasts: float) -> Text:
    """Times in seconds under the bars that begin there."""
    every = max(8, cells // 8)
    marks = [left(f"{cell * lasts:.2f}s", every) for cell in range(0, cells, every)]
    whole = [mark for i, mark in enumerate(marks) if i * every + len(mark.rstrip()) <= cells or not i]
    return line(" " * margin, ("".join(whole), DIM))


def _strongest(result: SoundAttention, width: int) -> list[Text]:
    """The strongest frames, each by when it starts, with its weight and a bar."""
    names = [result.head.key_tokens.names[int(key)] for key in result.gaze.keys]
    label = max(len(name) for name in (*names, "frame"))
    full = float(result.weights.max()) or 1.0
    lines = [line((f"{left('frame', label)}  weight", DIM))]
    for frame in descending(result.weights)[:_MOST]:
        weight = float(result.weights[frame])
        number = f"{left(names[frame], label)}  {right(weight_text(weight, 3), 6)}  "
        lines.append(line(number, (bar(weight / full, max(min(width, 80) - len(number), 8)), BAR)))
    return lines
