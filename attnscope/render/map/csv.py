"""A map as CSV: a row per point; above it the figures that say how far to trust it."""

from collections.abc import Iterator

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.kit.words.certificate import certificate_words
from attnscope.render.map.words import points_words
from attnscope.results import Projection

_SETTINGS = ("metric", "centred", "perplexity", "wanted_perplexity", "seed", "max_iter")
_FIGURES = (
    *("iterations", "settled", "divergence", "trustworthiness", "neighbours"),
    *("correlation", "otherwise", "apart"),
)


@rows.register
def _(result: Projection) -> Iterator[Row]:
    yield "side", "position", "token", "x", "y"
    for side, tokens, places in (
        ("query", result.query_tokens, result.queries),
        ("key", result.key_tokens, result.keys),
    ):
        for position, label, (x, y) in zip(tokens.positions, tokens.labels, places, strict=True):
            yield side, position, label, exact(x), exact(y)


@comments.register
def _(result: Projection) -> Iterator[tuple[str, object]]:
    """The comments that any result has, then certificate, settings and honesty figures."""
    yield from comments.dispatch(object)(result)
    yield "certificate", certificate_words(result.head.certificate)
    yield from ((name, getattr(result, name)) for name in _SETTINGS + _FIGURES)
    yield from (("points", phrase) for phrase in points_words(result))
