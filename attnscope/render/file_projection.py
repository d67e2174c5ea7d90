"""A map as JSON, CSV and npz: where queries and keys lie, and the figures that say how far to trust it."""

from collections.abc import Iterator

from attnscope.render.file_csv import Row, comments, exact, rows
from attnscope.render.file_json import Value, document, number, numbers
from attnscope.render.file_npz import Arrays, arrays_of
from attnscope.render.kit.certificate import certificate_words
from attnscope.results import Projection

_SETTINGS = ("metric", "centred", "perplexity", "wanted_perplexity", "seed", "max_iter")
_FIGURES = ("iterations", "settled", "divergence", "trustworthiness", "neighbours", "correlation")


@document.register
def _(result: Projection, arrays: bool = True) -> dict[str, Value]:
    """What describes the head, then settings and honesty figures of the map, then the arrays of both."""
    described = document(result.head, arrays=False) | {"schema": "attnscope.projection/1"}
    settings = {name: _plain(getattr(result, name)) for name in _SETTINGS + _FIGURES}
    if not arrays:
        return described | settings
    values = {
        name: array.tolist() if array.dtype == bool else numbers(array)
        for name, array in arrays_of(result).items()
    }
    return described | settings | values


def _plain(value: Value) -> Value:
    return number(value) if isinstance(value, float) else value


@rows.register
def _(result: Projection) -> Iterator[Row]:
    yield "side", "position", "token", "x", "y"
    for side, tokens, places in (
        ("query", result.head.query_tokens, result.queries),
        ("key", result.head.key_tokens, result.keys),
    ):
        for position, (label, (x, y)) in enumerate(zip(tokens.labels, places, strict=True)):
            yield side, position, label, exact(x), exact(y)


@arrays_of.register
def _(result: Projection) -> Arrays:
    """Places are point 2, everything by pair is query key; with `q` and `k` the map can be made again."""
    names = ("scores", "scaled", "weights", "allowed", "q", "k")
    places = {"query_places": result.queries, "key_places": result.keys, "distance": result.distance}
    return places | {name: getattr(result.head, name) for name in names}


@comments.register
def _(result: Projection) -> Iterator[tuple[str, object]]:
    """The comments that any result has, then certificate, settings and honesty figures."""
    yield from comments.dispatch(object)(result)
    yield "certificate", certificate_words(result.head.certificate)
    yield from ((name, getattr(result, name)) for name in _SETTINGS + _FIGURES)
