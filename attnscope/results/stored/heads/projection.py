"""A map: where queries and keys lie, and the figures that say how far to trust it."""

import numpy as np
from jaxtyping import Float

from attnscope.results.heads import HeadAttention
from attnscope.results.projection import Projection
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.typed import hints_of
from attnscope.results.stored.heads.head import STAGES, read_attention, term_arrays
from attnscope.results.stored.heads.view import read_view, view_document
from attnscope.results.view import HeadView

SETTINGS = ("metric", "centred", "perplexity", "wanted_perplexity", "seed", "max_iter")
FIGURES = (
    *("iterations", "settled", "divergence", "trustworthiness", "neighbours"),
    *("correlation", "otherwise", "apart"),
)
_PLACES = {"query_places": "queries", "key_places": "keys"}
_VIEW = "map view "  # before the names of its arrays in an npz


@document.register
def _(result: Projection, arrays: bool = True) -> dict[str, Value]:
    """What describes the head, then settings and honesty figures of the map, then the arrays of both.

    Under `view`, which is there for a map of words or without special tokens, is what the points are.
    """
    described = document(result.head, arrays=False) | {"schema": "attnscope.projection/1"}
    described |= {name: getattr(result, name) for name in SETTINGS + FIGURES}
    if result.view is not None:
        scaled = {"scaled": result.scaled} if arrays else {}
        described |= {"view": view_document(result.view, arrays) | scaled}
    if not arrays:
        return described
    return described | _arrays(result) | {"terms": dict(result.head.terms)}


@arrays_of.register
def _(result: Projection) -> Arrays:
    return _arrays(result) | term_arrays(result.head) | _view_arrays(result)


def _view_arrays(result: Projection) -> Arrays:
    """Between the points of a view; other arrays of the head stay those of all its tokens."""
    if result.view is None:
        return {}
    arrays = {"weights": result.weights, "scaled": result.scaled, "allowed": result.allowed}
    return {f"{_VIEW}{name}": values for name, values in arrays.items()}


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
    view, scaled = _read_view(record, head)
    places = {field: record.array(name, hints[field]) for name, field in _PLACES.items()}
    return made(Projection, record, head=head, view=view, view_scaled=scaled, **places)


def _read_view(
    record: Record, head: HeadAttention
) -> tuple[HeadView | None, Float[np.ndarray, "query key"] | None]:
    """The view and the scores of its points, which are then as many as the map has."""
    if record.get("view", object, None) is None:
        return None, None
    part = record.part("view").prefixed(_VIEW)
    view = read_view(part, head)
    record.sizes.update(query=len(view.query_tokens), key=len(view.key_tokens))
    return view, part.array("scaled", hints_of(HeadAttention)["scaled"])
