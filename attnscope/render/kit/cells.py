"""Text in terminal cells: cuts, pads and stacks labels and numbers without splitting a character.

All widths are cells: wide characters take two, combining marks none. Row headings, coloured numbers and
stacked column headings of grids are here too.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.style import Style, StyleType
from rich.text import Text

from attnscope.printable import LEFT_TO_RIGHT
from attnscope.render.kit.numbers import alike_texts, in_words, weight_cell
from attnscope.render.kit.stage import Panel
from attnscope.tokens import Tokens

_MOST_LINES = 3  # of a heading


def settled(name: str) -> str:
    """`name` made safe to stand beside other text in one line.

    A label that opens with a combining mark gets a dotted circle to carry it, and right-to-left text is
    closed with a left-to-right mark, so that a terminal with bidirectional text does not move the numbers
    that follow.
    """
    if name and unicodedata.category(name[0]).startswith("M"):
        name = "◌" + name
    if name.endswith(LEFT_TO_RIGHT):
        return name
    turned = any(unicodedata.bidirectional(character) in {"R", "AL"} for character in name)
    return name + LEFT_TO_RIGHT if turned else name


def clusters(text: str) -> list[str]:
    """`text` split into grapheme clusters: a character with its marks, joiners and skin tone."""
    graphemes: list[str] = []
    for character in text:
        if graphemes and (_follows(character) or graphemes[-1].endswith("\u200d")):
            graphemes[-1] += character
        else:
            graphemes.append(character)
    return graphemes


def _follows(character: str) -> bool:
    joined = character in "\u200c\u200d\u200e" or "\U0001f3fb" <= character <= "\U0001f3ff"
    return joined or unicodedata.category(character).startswith("M")


def fit(text: str, cells: int) -> str:
    """`text`, or its start and an ellipsis where it is wider than `cells`."""
    if cell_len(text) <= cells:
        return text
    return "" if cells < 1 else settled(_start(text, cells - 1)) + "…"


def _start(text: str, cells: int) -> str:
    start = ""
    for cluster in clusters(text):
        if cell_len(start + cluster) > cells:
            break
        start += cluster
    return start


def left(text: str, cells: int) -> str:
    """`text`, left-aligned in exactly `cells`."""
    fitted = fit(text, cells)
    return fitted + " " * (cells - cell_len(fitted))


def right(text: str, cells: int) -> str:
    """`text`, right-aligned in exactly `cells`."""
    fitted = fit(text, cells)
    return " " * (cells - cell_len(fitted)) + fitted


def stacked(text: str, cells: int) -> list[str]:
    """`text` cut into lines of at most `cells`; a wider single character becomes `…`."""
    lines = [""]
    for cluster in clusters(text):
        piece = cluster if cell_len(cluster) <= cells else "…"
        if cell_len(lines[-1] + piece) > cells:
            lines.append("")
        lines[-1] += piece
    return [settled(line) for line in lines]


def column_widths(labels: Sequence[str], least: int, room: int) -> list[int]:
    """Width of each column so that its heading stands in as few stacked lines as `room` allows.

    Every column gets `least` cells. Spare cells go to the headings with the most lines first, the cheapest
    among them before others. One cell of each column is its gap.
    """
    widths = [least] * len(labels)
    spare = room - sum(widths)
    for lines in range(_MOST_LINES, 0, -1):
        wishes = [(_width_for(label, lines, least - 1) + 1, i) for i, label in enumerate(labels)]
        for wish, i in sorted(wishes, key=lambda pair: pair[0] - widths[pair[1]]):
            extra = max(wish - widths[i], 0)
            if extra <= spare:
                widths[i] += extra
                spare -= extra
    return widths


def _width_for(label: str, lines: int, least: int) -> int:
    width = max(least, -(-cell_len(label) // lines))
    while len(stacked(label, width)) > lines:
        width += 1
    return width


HEADING = Style(bold=True)
DIM = Style(dim=True)
_LEAST_LABEL, _MOST_LABEL, _LEAST_HEAD = 6, 24, 8
_MOST_SENTENCE = 60
_MOST_NAME = 62  # of names other than tokens
_EIGHTHS = " ▏▎▍▌▋▊▉"


def line(*parts: tuple[str, StyleType] | str) -> Text:
    """One unwrapped line of styled parts, without trailing blanks."""
    text = Text(no_wrap=True, overflow="crop")
    for part in parts:
        text.append(part) if isinstance(part, str) else text.append(*part)
    text.rstrip()
    return text


def bar(share: float, cells: int) -> str:
    """A bar of `share` of `cells`, to an eighth of a cell; never empty for a share above 0."""
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


def widest(texts: Sequence[Sequence[str]]) -> int:
    return max((cell_len(text) for row in texts for text in row), default=0)


@dataclass(frozen=True)
class RowHeads:
    """Row headings of a grid: position and name of each token, `cells` wide including a gap."""

    tokens: Tokens
    cells: int

    def text(self, row: int) -> str:
        name, digits = settled(_whole(self.tokens)[row]), digits_of(self.tokens)
        return f"{self.tokens.positions[row]:>{digits}} " + left(name, self.cells - digits - 1)


def digits_of(tokens: Tokens) -> int:
    """The number of digits of the largest position."""
    return len(str(max(tokens.positions, default=0)))


def row_heads(tokens: Tokens, room: int) -> RowHeads:
    """Row headings as wide as the longest name where `room` allows, else cut."""
    before = digits_of(tokens) + 1
    longest = max((cell_len(settled(name)) for name in _whole(tokens)), default=0)
    most = _MOST_LABEL if isinstance(tokens, Tokens) else _MOST_NAME
    most = _MOST_SENTENCE if of_sentences(tokens) else most
    label = min(longest, most, max(room - before, _LEAST_LABEL))
    return RowHeads(tokens, max(before + label, _LEAST_HEAD))


def _whole(tokens: Tokens) -> Sequence[str]:
    return tokens.in_full if isinstance(tokens, Tokens) else tokens.names


def of_sentences(tokens: object) -> bool:
    return isinstance(tokens, Tokens) and tokens.of_sentences


def columns_of(tokens: Tokens) -> Sequence[str]:
    """Column names: the tokens' names; empty for sentences, which are named by number alone."""
    return [""] * len(tokens) if of_sentences(tokens) else tokens.names


def headings(
    heads: RowHeads,
    words: tuple[str, str, str],
    positions: Sequence[int],
    names: Sequence[str],
    widths: list[int],
) -> list[Text]:
    """Heading lines above a grid: its title and axis words, then positions, then stacked names.

    `words` are the title, the rows' word and the columns' word.
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
