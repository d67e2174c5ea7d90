"""What a page shows of each kind of result: which heads, numbers, map, prediction; what opens first."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attnscope.render.focus import Focus
from attnscope.render.kit.words.weights import spans
from attnscope.render.web.beside import Beside
from attnscope.render.web.blocks import Blocks
from attnscope.render.web.document import claims, heads
from attnscope.render.web.document.parts import Document
from attnscope.results import (
    Comparison,
    Difference,
    HeadTerms,
    HeadView,
    HeadWeights,
    Overview,
    PictureAttention,
    PictureHeads,
    Projection,
    Report,
    Result,
    SoundAttention,
    SoundHeads,
    Special,
    Thumbnails,
)

STAGES = {"scores": "parts", "scaled": "parts", "q": "product", "k": "product"}


def document(result: Result, focus: Focus, beside: Beside) -> Document:
    """The parts of a page of any result."""
    made = Document(Blocks())
    next((_PARTS[kind] for kind in type(result).__mro__ if kind in _PARTS), claims.of_sheet)(
        made, result, beside
    )
    _focused(made, _on_tokens(result, focus))
    return made


def _on_tokens(result: Result, focus: Focus) -> Focus:
    """On the first token of a span that was named, where a page has its tokens one by one."""
    if not isinstance(result, HeadView) or not spans(result) or result.special is not Special.SHOW:
        return focus
    key = None if focus.key is None else result.key_groups[focus.key][0]
    return replace(focus, queries=tuple(result.query_groups[row][0] for row in focus.queries), key=key)


def _focused(made: Document, focus: Focus) -> None:
    asked = {"query": focus.query, "key": focus.key}
    if any(value is not None for value in asked.values()):
        made.opening |= asked
    if focus.stage != "weights":
        made.opening["view"] = STAGES.get(focus.stage, "matrix")
    if focus.scale != "sqrt":
        made.opening["scale"] = focus.scale.value


# the kinds whose page is more than their sheet
_PARTS: dict[type, Callable[[Document, Any, Beside], None]] = {
    HeadWeights: heads.of_head,
    HeadView: heads.of_view,
    HeadTerms: heads.of_terms,
    Overview: heads.of_overview,
    Thumbnails: heads.of_thumbnails,
    Projection: heads.of_map,
    Report: heads.of_report,
    PictureAttention: heads.of_medium,
    PictureHeads: heads.of_medium,
    SoundAttention: heads.of_medium,
    SoundHeads: heads.of_medium,
    Comparison: claims.of_comparison,
    Difference: claims.of_difference,
}

__all__ = ["Document", "document"]
