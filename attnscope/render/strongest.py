"""The strongest keys of each query, for matrices that are too large to be seen whole."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.render.cells import DIM, HEADING, RowHeads, cell_style, cell_texts, line, row_heads, widest
from attnscope.render.labels import left, right, settled
from attnscope.render.panels import Panel
from attnscope.tokens import Tokens

_MOST_LABEL = 10


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
        return f"  {key:>{self.digits}} {left(settled(self.keys.names[key]), self.label)} "


def strongest_keys(shown: Panel, width: int) -> RenderableType:
    """One line per query: as many keys as fit in `width` cells, strongest first, each with its number."""
    texts = cell_texts(shown)
    heads = row_heads(shown.row_tokens, width // 4)
    entry = _entry(shown, texts)
    count = max((width - heads.cells) // entry.cells, 1)
    lines = [
        line((left(f"{shown.row_word} ↓", heads.cells), DIM), ("  strongest keys →", DIM), f" {shown.show}"),
    ]
    lines += [_row(shown, row, heads, entry, row_texts, count) for row, row_texts in enumerate(texts)]
    return Group(*lines)


def _entry(shown: Panel, texts: list[list[str]]) -> _Entry:
    keys = shown.column_tokens
    assert keys is not None, "vectors have no strongest keys"
    label = max((cell_len(settled(name)) for name in keys.names), default=0)
    return _Entry(keys, len(str(len(keys) - 1)), min(label, _MOST_LABEL), widest(texts))


def _row(shown: Panel, row: int, heads: RowHeads, entry: _Entry, texts: list[str], count: int) -> Text:
    if not shown.answered[row]:
        return line(heads.text(row), ("  no valid key", DIM))
    visible = [key for key in descending(shown.values[row]) if shown.visible[row, key]]
    parts: list[tuple[str, Style] | str] = []
    for key in visible[:count]:
        style = cell_style(shown, float(shown.values[row, key]))
        parts += [entry.name(key), (right(texts[key], entry.number), style)]
    return line((heads.text(row), HEADING), *parts)
