"""What the sheets of comparisons have in common."""

from collections.abc import Sequence
from typing import Any

from attnscope.render.sheet.blocks import Curve
from attnscope.render.sheet.said import marked_word
from attnscope.render.sheet.table import Column, Line, Table


def by_layer(
    layers: Sequence[int],
    title: str,
    measured: str,
    columns: Sequence[Column],
    lines: Sequence[Line],
    **more: Any,
) -> Curve:
    """A curve over layers, with its table and what `more` a curve has."""
    names, places = tuple(f"L{layer}" for layer in layers), tuple(map(float, layers))
    table = Table(*columns)
    return Curve(title, "layer", names, table, places=places, measured=measured, lines=(*lines,), **more)


def in_its_text(text: str, word: str, start: int, most: int) -> str:
    """The word, which starts there, marked in its text, of which `most` characters stand on each side."""
    before, after = text[:start], text[start + len(word) :]
    before = before if len(before) <= most else f"… {before[-most:]}"
    after = after if len(after) <= most else f"{after[:most]} …"
    return marked_word(before, word, after)
