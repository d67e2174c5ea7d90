"""Token labels measured in terminal cells: cut, padded and stacked without ever splitting a character.

Wide characters take two cells, combining marks none. All widths in this module are terminal cells.
"""

import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len

from attnscope.printable import LEFT_TO_RIGHT

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
    """`text` in pieces that must stay together: a character with its marks, joiners and skin tone."""
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
    """`text` at the left of a field of exactly `cells`."""
    fitted = fit(text, cells)
    return fitted + " " * (cells - cell_len(fitted))


def right(text: str, cells: int) -> str:
    """`text` at the right of a field of exactly `cells`."""
    fitted = fit(text, cells)
    return " " * (cells - cell_len(fitted)) + fitted


def stacked(text: str, cells: int) -> list[str]:
    """`text` cut into lines of at most `cells`; a character wider than that gives way to `…`."""
    lines = [""]
    for cluster in clusters(text):
        piece = cluster if cell_len(cluster) <= cells else "…"
        if cell_len(lines[-1] + piece) > cells:
            lines.append("")
        lines[-1] += piece
    return [settled(line) for line in lines]


def column_widths(labels: Sequence[str], least: int, room: int) -> list[int]:
    """Width of each column so that its heading stands in as few stacked lines as `room` allows.

    Every column gets `least` cells. What is left goes first to headings of more than `_MOST_LINES` lines,
    then of more than one less, the cheapest first. One cell of each column is its gap.
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
