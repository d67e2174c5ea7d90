"""The strongest keys of each query, for matrices that are too large to be seen whole."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import StyleType
from rich.text import Text

from attnscope.render.kit.cells import (
    DIM,
    HEADING,
    RowHeads,
    cell_style,
    cell_texts,
    digits_of,
    line,
    row_heads,
    widest,
)
from attnscope.render.kit.labels import left, right, settled
from attnscope.render.kit.stage import Panel
from attnscope.tokens import Tokens

_MOST_LABEL = 10
_LEAST_ENTRY = 9


def descending(values: Float[np.ndarray, " key"]) -> list[int]:
    """Positions by falling value, the earlier first where two are alike, NaN last."""
    return [int(i) for i in np.argsort(-values, kind="stable")]


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


def strongest_keys(shown: Panel, width: int) -> RenderableType:
    """One line per query: as many keys as fit in `width` cells, strongest first, each with its number."""
    assert shown.column_tokens is not None, "vectors have no strongest keys"
    heads = row_heads(shown.row_tokens, width // 4)
    ranked = _ranked(shown, most=max((width - heads.cells) // _LEAST_ENTRY, 1))
    best = _of_ranked(shown, ranked)
    texts = cell_texts(best)
    entry = _entry(shown.column_tokens, widest(texts))
    count = max((width - heads.cells) // entry.cells, 1)
    axes = ((left(f"{shown.row_word} ↓", heads.cells), DIM), ("  strongest keys →", DIM), f" {shown.show}")
    lines = [line(*axes)]
    for row, keys in enumerate(ranked):
        lines.append(_row(best, row, heads, entry, texts[row], keys[:count].tolist()))
    return Group(*lines)


def _ranked(shown: Panel, most: int) -> Int[np.ndarray, "row rank"]:
    """Positions of the `most` strongest visible keys of each query; a shorter row ends in masked keys."""
    values = np.where(shown.visible, shown.values, -np.inf)
    return np.argsort(-values, axis=1, kind="stable")[:, :most]


def _of_ranked(shown: Panel, ranked: Int[np.ndarray, "row rank"]) -> Panel:
    """The panel with its columns in the order of `ranked`, so that only these become text."""
    values = np.take_along_axis(shown.values, ranked, axis=1)
    return replace(shown, values=values, visible=np.take_along_axis(shown.visible, ranked, axis=1))


def _entry(keys: Tokens, number: int) -> _Entry:
    label = max((cell_len(settled(name)) for name in keys.names), default=0)
    return _Entry(keys, digits_of(keys), min(label, _MOST_LABEL), number)


def _row(best: Panel, row: int, heads: RowHeads, entry: _Entry, texts: list[str], keys: list[int]) -> Text:
    """One query; `best` and `texts` hold its keys by rank, `keys` their positions."""
    if not best.answered[row]:
        return line(heads.text(row), (f"  {best.unanswered}", DIM))
    parts: list[tuple[str, StyleType] | str] = []
    for rank, key in enumerate(keys):
        if best.visible[row, rank]:
            style = cell_style(best, float(best.values[row, rank]))
            parts += [entry.name(key), (right(texts[rank], entry.number), style)]
    return line((heads.text(row), HEADING), *parts)
