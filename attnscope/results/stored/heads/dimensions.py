"""One query and one key by dimension: the head, which pair, which dimensions are turned together."""

from typing import Any

from attnscope.results.dimensions import Dimensions, Rotation
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value, or_none
from attnscope.results.stored.codec.typed import hints_of
from attnscope.results.stored.heads.head import head_arrays, read_attention

_TURNED = ("first", "second", "angle")
_ROTATION = "rotation "  # before the names of its arrays in an npz


@document.register
def _(result: Dimensions, arrays: bool = True) -> dict[str, Value]:
    """The head, the pair, and a row per dimension, largest product first."""
    head = result.head
    described = document(head, arrays=False) | {
        "schema": "attnscope.dimensions/1",
        "query": result.query,
        "key": result.key,
        "score": or_none(float(head.scores[result.query, result.key])),
        "weight": or_none(float(head.weights[result.query, result.key])),
        "unpaired": result.unpaired,
        "rotary": result.rotation is not None,
        "products": _rows(result),
    }
    return described | (head_arrays(head) | {"rotation": _turned(result.rotation)} if arrays else {})


def _rows(result: Dimensions) -> list[dict[str, Value]]:
    columns = {"q": result.query_vector, "k": result.key_vector}
    columns |= {"product": result.products, "others": result.beside}
    every = zip(result.order.tolist(), result.cumulated.tolist(), strict=True)
    return [
        {"dim": dim, **{name: or_none(float(values[dim])) for name, values in columns.items()}}
        | {"cumulated": or_none(so_far)}
        for dim, so_far in every
    ]


def _turned(rotation: Rotation | None) -> dict[str, Any] | None:
    return None if rotation is None else {name: getattr(rotation, name) for name in _TURNED}


@arrays_of.register
def _(result: Dimensions) -> Arrays:
    turned = _turned(result.rotation) or {}
    return {**arrays_of(result.head), **{f"{_ROTATION}{name}": each for name, each in turned.items()}}


@reads("attnscope.dimensions/1")
def read(record: Record) -> Dimensions:
    head = read_attention(record)
    for name, size in (("query", len(head.q)), ("key", len(head.k))):
        if not 0 <= record.get(name, int) < size:
            raise Damaged(f"'{name}' is no position of {size}")
    return made(Dimensions, record, head=head, rotation=_read_rotation(record, head.q.shape[1]))


def _read_rotation(record: Record, dimensions: int) -> Rotation | None:
    if not record.get("rotary", bool):
        return None
    part, hints = record.beside("rotation", _ROTATION), hints_of(Rotation)
    found = Rotation(**{name: part.array(name, hints[name]) for name in _TURNED})
    for places in (found.first, found.second):
        if places.size and not (places.min() >= 0 and places.max() < dimensions):
            raise Damaged(f"'rotation' names a dimension that is none of {dimensions}")
    return found
