"""The map of a head as a figure with its page."""

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Words, sheet
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.figure import heading_words, proof_words, sentence_words, source_words
from attnscope.render.kit.words.header import written_words
from attnscope.render.map.plot import draw_map, map_frame
from attnscope.render.map.words import (
    DISCLAIMER,
    centring_words,
    correlation_words,
    kind_words,
    points_words,
    settings_words,
    trust_words,
)
from attnscope.results import Projection
from attnscope.tokens import printable


def map_figure(
    result: Projection, queries: Sequence[int] = (), key: int | None = None, links: int = 5
) -> Figure:
    """The t-SNE map of a head: one panel, or the same map once for each of `queries` with its links."""
    chosen: list[int | None] = [*queries] or [None]
    with drawing():
        frame = map_frame(result, titled=bool(queries))
        further = [replace(frame, left=0.2)] * (len(chosen) - 1)
        figure, panels = sheet([frame, *further], _map_words(result))
        for query, axes in zip(chosen, panels, strict=True):
            draw_map(result, axes, query, key, links)
    return figure


def _map_words(result: Projection) -> Words:
    head, written = result.head, written_words(result.head.query_tokens)
    told = (trust_words(result), correlation_words(result), centring_words(result), DISCLAIMER)
    trust = tuple(each for each in told if each)
    points = points_words(result)
    foot = (
        *trust,
        *([" · ".join(points)] if points else []),
        " · ".join([*settings_words(result), *([written] if written else [])]),
        proof_words(head.certificate),
        source_words(head.provenance),
    )
    return Words(
        heading_words(head, kind_words(result)),
        sentence_words(head) or ", ".join(map(printable, head.notes)),  # such as the picture that was read
        foot,
    )
