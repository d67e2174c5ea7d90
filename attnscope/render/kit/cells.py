"""The pieces that every grid in the terminal is made of: row heads, coloured numbers, stacked headings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.style import Style, StyleType
from rich.text import Text

from attnscope.render.kit import palette
from attnscope.render.kit.labels import left, right, settled, stacked
from attnscope.render.kit.numbers import alike_texts, in_words, weight_cell
from attnscope.render.kit.stage import Panel
from attnscope.tokens import Tokens

HEADING = Style(bold=True)
DIM = Style(dim=True)
_LEAST_LABEL, _MOST_LABEL, _LEAST_HEAD = 6, 24, 8
_MOST_SENTENCE = 60
_MOST_NAME = 62  # of what is no token
_MOST_LINES = 3  # of a heading
_EIGHTHS = " ▏▎▍▌▋▊▉"


def line(*parts: tuple[str, StyleType] | str) -> Text:
    """One line of a grid: never wrapped, without blanks at its end."""
    text = Text(no_wrap=True, overflow="crop")
    for part in parts:
        text.append(part) if isinstance(part, str) else text.append(*part)
    text.rstrip()
    return text


def bar(share: float, cells: int) -> str:
    """A bar of `share` of `cells`, to an eighth of a cell; never nothing for a share above 0."""
    eighths = max(round(min(share, 1.0) * cells * 8), 1) if share > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def cell_texts(panel: Panel, decimals: int = 2) -> list[list[str]]:
    """The number of every cell as text, empty where it is masked."""
    if panel.form is not None:
        texts = in_words(panel.form, panel.values)
    elif panel.show == "weights":
        texts = in_words(weight_cell, panel.values)
    else:
        texts = alike_texts(np.where(panel.visible, panel.values, np.nan), decimals)
    visible: list[list[str]] = np.where(panel.visible, texts, "").tolist()
    return visible


def cell_style(panel: Panel, value: float) -> str:
    """Style of one value around 0."""
    return palette.diverging(value, panel.extent)


def widest(texts: Sequence[Sequence[str]]) -> int:
    return max((cell_len(text) for row in texts for text in row), default=0)


@dataclass(frozen=True)
class RowHeads:
    """The left edge of a grid: position and name of each token, `cells` wide with the gap that follows."""

    tokens: Tokens
    cells: int

    @property
    def digits(self) -> int:
        return digits_of(self.tokens)

    def text(self, row: int) -> str:
        name = settled(_whole(self.tokens)[row])
        return f"{self.tokens.positions[row]:>{self.digits}} " + left(name, self.cells - self.digits - 1)


def digits_of(tokens: Tokens) -> int:
    """How many digits the largest position has."""
    return len(str(max(tokens.positions, default=0)))


def row_heads(tokens: Tokens, room: int) -> RowHeads:
    """Row heads as wide as the longest name where `room` allows, else cut, but never to nothing."""
    before = digits_of(tokens) + 1
    longest = max((cell_len(settled(name)) for name in _whole(tokens)), default=0)
    most = _MOST_LABEL if isinstance(tokens, Tokens) else _MOST_NAME
    most = _MOST_SENTENCE if _of_sentences(tokens) else most
    label = min(longest, most, max(room - before, _LEAST_LABEL))
    return RowHeads(tokens, max(before + label, _LEAST_HEAD))


def _whole(tokens: Tokens) -> Sequence[str]:
    return tokens.in_full if isinstance(tokens, Tokens) else tokens.names


def _of_sentences(tokens: Tokens) -> bool:
    return isinstance(tokens, Tokens) and tokens.of_sentences


def columns_of(tokens: Tokens) -> Sequence[str]:
    """What columns are called: sentences by their number alone, their text stands in the margin."""
    return [""] * len(tokens) if _of_sentences(tokens) else tokens.names


def least_head(tokens: Tokens) -> int:
    """The fewest cells that `row_heads` makes do with."""
    return row_heads(tokens, 0).cells


def headings(
    heads: RowHeads,
    words: tuple[str, str, str],
    positions: Sequence[int],
    names: Sequence[str],
    widths: list[int],
) -> list[Text]:
    """The lines above a grid: what is shown and the axis words, positions, names stacked under them.

    `words` are the title, the word of the rows and the word of the columns.
    """
    title, row_word, column_word = words
    numbers = "".join(right(str(i), width) for i, width in zip(positions, widths, strict=False))
    stacks = [_stack(settled(name), width) for name, width in zip(names, widths, strict=False)]
    depth = max((len(stack) for stack in stacks), default=0) if any(names) else 0
    lines = [
        line((left(title, heads.cells), HEADING), (f" {column_word} →", DIM)),
        line((left(f"{row_word} ↓", heads.cells), DIM), (numbers, DIM)),
    ]
    for level in range(depth):
        parts = [
            stack[level] if level < len(stack) else " " * w for stack, w in zip(stacks, widths, strict=False)
        ]
        lines.append(line(" " * heads.cells, ("".join(parts), HEADING)))
    return lines


def _stack(name: str, width: int) -> list[str]:
    chunks = stacked(name, width - 1)
    if len(chunks) == 1:
        return [right(chunks[0], width)]
    most = _MOST_LINES - 1
    rest = ["".join(chunks[most:])] if chunks[most:] else []
    return [" " + left(chunk, width - 1) for chunk in [*chunks[:most], *rest]]
