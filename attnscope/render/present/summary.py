"""A result in one line, as its `repr`: what it is, of which model, and what is proved of it."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from attnscope.render.kit.labels import fit
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import sheet_of
from attnscope.results import (
    HeadView,
    HeadWeights,
    Provenance,
    Result,
)

_MOST, _MOST_NAME = 150, 40  # cells of all but the verdict, and of one name in it


def summary(result: Result) -> str:
    """`<HeadAttention L3 H11 · encoder self-attention · 11 queries x 11 keys · demo · ✓ certified>`."""
    proved = [] if result.verdict is None else [verdict_words(result.verdict)]
    sheet = sheet_of(result)
    parts = _told(result) if sheet is None else _of_sheet(sheet)
    told = fit(" · ".join(part for part in parts if part), _MOST)
    return f"<{type(result).__name__} {' · '.join([told, *proved])}>"


def _of_sheet(sheet: Sheet) -> list[str]:
    return [fit(sheet.title, 2 * _MOST_NAME), *sheet.summary, *map(_model, sheet.origins[:1])]


@singledispatch
def _told(result: Any) -> list[str]:
    raise TypeError(f"nothing is said of {type(result).__name__}")


def _model(provenance: Provenance) -> str:
    return fit(model_words(provenance), _MOST_NAME)


def _weights(head: HeadWeights, shape: tuple[int, ...]) -> list[str]:
    size = f"{counted(shape[0], 'query')} x {counted(shape[1], 'key')}"
    return [head.name, where_words(head), size, _model(head.provenance)]


def _head(result: HeadWeights) -> list[str]:
    return _weights(result, result.weights.shape)


def _view(result: HeadView) -> list[str]:
    how = "words" if result.words else f"special tokens: {result.special.value}"
    name, *rest = _weights(result.head, result.weights.shape)
    return [f"{name} by {how}" if result.words else f"{name}, {how}", *rest]


_SUMMARIES: dict[type, Callable[[Any], list[str]]] = {
    HeadWeights: _head,
    HeadView: _view,
}
for _kind, _of_kind in _SUMMARIES.items():
    _told.register(_kind, _of_kind)
