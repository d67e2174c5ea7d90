"""The strongest keys of each query, for matrices that are too large to be seen whole."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import (
    DIM,
    HEADING,
    RowHeads,
    cell_texts,
    digits_of,
    line,
    row_heads,
    widest,
)
from attnscope.render.kit.labels import left, right, settled
from attnscope.render.kit.stage import Panel
from attnscope.render.terminal.shading import Shading
from attnscope.tokens import Tokens

_MOST_LABEL = 10
_LEAST_ENTRY = 9


@dataclass(frozen=True)
class _Entry:
    """How wide the parts of one key's entry are: position, token, number; `cells` in all."""

    keys: Tokens
    digits: int
    label: int
    number: int

    @property
    def cells(self) -> int:
        return 2 + self.digits + 1 + self.label + 1 + self.number

    def name(self, key: int) -> str:
        return (
            f"  {self.keys.positions[key]:>{self.digits}} {left(settled(self.keys.names[key]), self.label)} "
        )


def strongest_keys(shown: Panel, shades: Shading, rows: list[int], width: int) -> RenderableType:
    """A line for each of `rows`: as many keys as fit in `width` cells, strongest first, with numbers."""
    assert shown.column_tokens is not None, "vectors have no strongest keys"
    heads = row_heads(shown.row_tokens, width // 4)
    keys = _ranked(shown, rows, most=max((width - heads.cells) // _LEAST_ENTRY, 1))
    texts = cell_texts(_of_ranked(shown, rows, keys))
    entry = _entry(shown.column_tokens, widest(texts))
    count = max((width - heads.cells) // entry.cells, 1)
    axes = ((left(f"{shown.row_word} ↓", heads.cells), DIM), ("  strongest keys →", DIM))
    lines = [line(*axes)]
    for row, own, numbers in zip(rows, keys.tolist(), texts, strict=True):
        lines.append(_row(shown, shades, row, heads, entry, list(zip(own, numbers, strict=True))[:count]))
    return Group(*lines)


def _ranked(shown: Panel, rows: list[int], most: int) -> Int[np.ndarray, "row rank"]:
    """Positions of the `most` strongest visible keys of each query; a shorter row ends in masked keys."""
    values = np.where(shown.visible[rows], shown.values[rows], -np.inf)
    return np.argsort(-values, axis=1, kind="stable")[:, :most]


def _of_ranked(shown: Panel, rows: list[int], keys: Int[np.ndarray, "row rank"]) -> Panel:
    values = np.take_along_axis(shown.values[rows], keys, axis=1)
    return replace(shown, values=values, visible=np.take_along_axis(shown.visible[rows], keys, axis=1))


def _entry(keys: Tokens, number: int) -> _Entry:
    label = max((cell_len(settled(name)) for name in keys.names), default=0)
    return _Entry(keys, digits_of(keys), min(label, _MOST_LABEL), number)


def _row(
    shown: Panel, shades: Shading, row: int, heads: RowHeads, entry: _Entry, keys: list[tuple[int, str]]
) -> Text:
    """One query; `keys` are positions by falling rank, each with its number as text."""
    if not shown.answered[row]:
        return line(heads.text(row), (f"  {shown.unanswered}", DIM))
    parts: list[tuple[str, StyleType] | str] = []
    for key, number in keys:
        if shown.visible[row, key]:
            parts += [entry.name(key), (right(number, entry.number), shades.style(row, key))]
    return line((heads.text(row), HEADING), *parts)
