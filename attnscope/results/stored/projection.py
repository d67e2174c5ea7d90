"""A map: where queries and keys lie, and the figures that say how far to trust it."""

from attnscope.results.projection import Projection
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.typed import hints_of
from attnscope.results.stored.head import STAGES, read_attention, term_arrays

SETTINGS = ("metric", "centred", "perplexity", "wanted_perplexity", "seed", "max_iter")
FIGURES = ("iterations", "settled", "divergence", "trustworthiness", "neighbours", "correlation")
_PLACES = {"query_places": "queries", "key_places": "keys"}


@document.register
def _(result: Projection, arrays: bool = True) -> dict[str, Value]:
    """What describes the head, then settings and honesty figures of the map, then the arrays of both."""
    described = document(result.head, arrays=False) | {"schema": "attnscope.projection/1"}
    described |= {name: getattr(result, name) for name in SETTINGS + FIGURES}
    if not arrays:
        return described
    return described | _arrays(result) | {"terms": dict(result.head.terms)}


@arrays_of.register
def _(result: Projection) -> Arrays:
    return _arrays(result) | term_arrays(result.head)


def _arrays(result: Projection) -> dict[str, Value]:
    """Places are point 2, everything by pair is query key; with `q` and `k` the map can be made again."""
    names = ("scores", "scaled", "weights", "allowed", "q", "k")
    places = {name: getattr(result, place) for name, place in _PLACES.items()} | {"distance": result.distance}
    every = (*names, *(name for name in STAGES if name not in names))
    return places | {name: getattr(result.head, name) for name in every}


@reads("attnscope.projection/1")
def read_projection(record: Record) -> Projection:
    head = read_attention(record)
    hints = hints_of(Projection)
    places = {field: record.array(name, hints[field]) for name, field in _PLACES.items()}
    return made(Projection, record, head=head, **places)
