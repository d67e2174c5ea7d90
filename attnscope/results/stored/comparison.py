"""A comparison: cosines and divergences by layer and head, the word's row and vectors, both heads in full."""

import math
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attnscope.results.base.origin import Certificate, Kind, Provenance, Verdict
from attnscope.results.comparison import Comparison, Divergence, Side, Similarity
from attnscope.results.heads import HeadAttention
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import certificate, provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import pair_document, read_pair
from attnscope.results.stored.heads.head import read_attention
from attnscope.results.stored.heads.view import read_view, view_document

_VALUES, _TOGETHER = Float[np.ndarray, "layer head"], Float[np.ndarray, " layer"]
_ROW, _VECTOR, _ALLOWED = Float[np.ndarray, " key"], Float[np.ndarray, " width"], Bool[np.ndarray, " key"]
# what an old file calls the word's vectors, and where it has none whose width they share
_OF_WORD = {"q": ("query",) * 2, "k": ("key", "query"), "v": ("value", "output"), "output": ("output",) * 2}
_VECTORS = ("query", "key", "value", "output", "unrotated key")


@document.register
def _(result: Comparison, arrays: bool = True) -> dict[str, Value]:
    """What is compared, then by layer and head, then each side; `layers` are pairs of side a and side b.

    The provenance of the whole is that of side a; each side has its own.
    """
    described: dict[str, Value] = {
        "schema": "attnscope.comparison/1",
        "between": result.between.value,
        "verdict": result.verdict.value,
        "layers": [list(pair) for pair in result.layers],
        "heads": list(result.heads),
        "chosen": result.chosen,
        "passed_over": result.passed_over,
        "provenance": provenance(result.a.head.provenance),
        "vectors": [each.vector for each in result.similarities],
    }
    if result.a.view is not None:
        described |= {"words": result.words, "special": result.special.value}
    if arrays:
        described |= {"cosine": _cosines(result), "divergence": _divergence(result)}
    return described | {"a": _side(result.a, arrays), "b": _side(result.b, arrays)}


def _cosines(result: Comparison) -> dict[str, Value] | None:
    """By kind of vector, `together` by layer and `heads` by layer and head; null where there are none."""
    told = {each.vector: {"together": each.together, "heads": each.heads} for each in result.similarities}
    return told or None


def _divergence(result: Comparison) -> dict[str, Value] | None:
    """By layer and head; null where the rows are over different tokens."""
    if result.divergence is None:
        return None
    return {
        "jensen_shannon": result.divergence.jensen_shannon,
        "jensen_shannon_unit": "nats",
        "total_variation": result.divergence.total_variation,
    }


def _side(side: Side, arrays: bool) -> dict[str, Value]:
    """One side; `shown` is its head in full, `certificates` are those of all heads that are compared.

    Where the head is looked at by words or without special tokens, `view` is that, and `pieces` are the
    positions of the word's tokens; `position` is that of the first.
    """
    head = side.head
    told = {
        "name": head.name,
        "kind": head.kind.value,
        "layer": head.layer,
        "head": head.head,
        "position": side.position,
        "word": side.word,
        "certificate": certificate(head.certificate),
        "verdicts": [[one.verdict.value for one in layer] for layer in side.certificates],
        "provenance": provenance(head.provenance),
        **pair_document(head.query_tokens, head.key_tokens),
    }
    every = [[certificate(one) for one in layer] for layer in side.certificates]
    shown: dict[str, Value] = {"certificates": every, "shown": document(head, arrays)}
    if side.view is not None:
        shown |= {"pieces": list(side.pieces), "view": view_document(side.view, arrays)}
    return told | (_of_side(side) if arrays else {}) | shown


def _of_side(side: Side) -> dict[str, Value]:
    """What the word has in the head that is shown: its row by key, and its vectors by dim.

    Scaled scores belong to single tokens: they are null where the row is over words, or leaves tokens out.
    """
    vectors = side.vectors
    scaled = side.head.scaled[side.position] if side.view is None else None
    row = {"weights": side.weights, "scaled": scaled, "allowed": side.allowed}
    return row | {name: vectors[name] for name in ("query", "output", "key", "value") if name in vectors}


@arrays_of.register
def _(result: Comparison) -> Arrays:
    """Axes: layer head, or layer for vectors of all heads together; `a_` and `b_` before what a side has."""
    found = {"layers": np.array(result.layers), "heads": np.array(result.heads)}
    for each in result.similarities:
        name = each.vector.replace(" ", "_")
        found |= {f"cosine_{name}": each.heads, f"cosine_{name}_together": each.together}
    if result.divergence is not None:
        found["jensen_shannon"] = result.divergence.jensen_shannon
        found["total_variation"] = result.divergence.total_variation
    for letter, side in zip("ab", result.sides, strict=True):
        verdicts = [[one.verdict.value for one in layer] for layer in side.certificates]
        found |= {f"{letter}_verdicts": np.array(verdicts)}
        own = {name: array for name, array in _of_side(side).items() if array is not None}
        found |= {f"{letter}_{name}": array for name, array in own.items()}
        found |= {f"{letter}_shown {name}": array for name, array in arrays_of(side.head).items()}
        if side.view is not None:
            row = {"weights": side.view.weights, "allowed": side.view.allowed}
            found |= {f"{letter}_view {name}": array for name, array in row.items()}
    return found


@reads("attnscope.comparison/1")
def read(record: Record) -> Comparison:
    layers = record.get("layers", tuple[tuple[int, int], ...])
    heads = record.get("heads", tuple[int, ...])
    record.sizes.update(layer=len(layers), head=len(heads))
    sides = {letter: _read_side(record.part(letter), letter) for letter in "ab"}
    for side in sides.values():
        if [len(each) for each in side.certificates] != [len(heads)] * len(layers):
            raise Damaged("a side has not one certificate for each of the layers and heads")
    if len({(side.view.words, side.view.special) if side.view else None for side in sides.values()}) > 1:
        raise Damaged("its two sides are looked at in two ways")
    a, b = sides["a"].head, sides["b"].head
    if (a.layer, b.layer) not in layers or a.head not in heads:
        raise Damaged("the heads that are shown are none of those that are compared")
    similarities = tuple(_similarity(record, vector) for vector in _vectors(record))
    return made(Comparison, record, **sides, similarities=similarities, divergence=_read_divergence(record))


def _vectors(record: Record) -> tuple[str, ...]:
    """The kinds of vectors that are compared; an old file has those whose arrays it has."""
    if not record.old:
        vectors: tuple[str, ...] = record.get("vectors", tuple[str, ...])
        return vectors
    if record.arrays is None:
        return tuple(record.get("cosine", dict[str, object] | None) or ())
    return tuple(each for each in _VECTORS if record.has(f"cosine_{each.replace(' ', '_')}"))


def _similarity(record: Record, vector: str) -> Similarity:
    if record.arrays is not None:
        name = f"cosine_{vector.replace(' ', '_')}"
        return Similarity(vector, record.array(name, _VALUES), record.array(f"{name}_together", _TOGETHER))
    own = Record(record.part("cosine").part(vector).told, sizes=record.sizes)
    return Similarity(vector, own.array("heads", _VALUES), own.array("together", _TOGETHER))


def _read_divergence(record: Record) -> Divergence | None:
    if record.arrays is not None:
        return made(Divergence, record) if record.has("jensen_shannon") else None
    if record.get("divergence", object) is None:
        return None
    return made(Divergence, Record(record.part("divergence").told, sizes=record.sizes))


def _read_side(record: Record, letter: str) -> Side:
    position = record.get("position", int)
    if record.old:
        head, certificates = _old_head(record, letter, position), _old_certificates(record)
    else:
        head = read_attention(record.part("shown").prefixed(f"{letter}_shown "))
        certificates = record.get("certificates", tuple[tuple[Certificate, ...], ...])
    if not 0 <= position < len(head.query_tokens):
        raise Damaged(f"'position' is {position}, which is no token's")
    view = None
    if "view" in record.told:
        view = read_view(record.part("view").prefixed(f"{letter}_view "), head)
        if view.query_row(position) is None:
            raise Damaged("'view' leaves the word out")
    return Side(head, position, certificates, view)


def _old_certificates(record: Record) -> tuple[tuple[Certificate, ...], ...]:
    """An old file has no more than their verdicts."""
    none = math.nan
    verdicts = record.get("verdicts", tuple[tuple[Verdict, ...], ...])
    return tuple(
        tuple(Certificate(each, none, none, none, none, "", ()) for each in layer) for layer in verdicts
    )


def _old_head(record: Record, letter: str, position: int) -> HeadAttention:
    """The head of an old file, which has one row of it: what else there was is NaN, its keys allowed."""
    query, key = read_pair(record)
    if not 0 <= position < len(query):
        raise Damaged(f"'position' is {position}, which is no token's")
    own = record.prefixed(f"{letter}_")
    own.sizes.update(record.sizes)
    pairs, numbers = (len(query), len(key)), {name: record.get(name, int) for name in ("layer", "head")}
    fields: dict[str, Any] = dict.fromkeys(("softcap", "sink", "window"))
    fields |= {name: _at(position, own.array(name, _ROW), len(query)) for name in ("weights", "scaled")}
    for field, (name, like) in _OF_WORD.items():
        vector = own.array(name, _VECTOR) if own.has(name) else np.full_like(own.array(like, _VECTOR), np.nan)
        fields[field] = _at(position, vector, len(query if field in ("q", "output") else key))
        own.sizes.pop("width")
    return HeadAttention(
        **numbers,
        **fields,
        **dict.fromkeys(("heads", "key_heads"), numbers["head"] + 1),
        key_head=numbers["head"],
        layers=numbers["layer"] + 1,
        module="",
        scale=math.nan,
        kind=record.get("kind", Kind),
        query_tokens=query,
        key_tokens=key,
        scores=np.full(pairs, np.nan),
        allowed=np.where(np.arange(len(query))[:, None] == position, own.array("allowed", _ALLOWED), True),
        certificate=record.get("certificate", Certificate),
        provenance=record.get("provenance", Provenance),
    )


def _at(position: int, row: Float[np.ndarray, " column"], rows: int) -> Float[np.ndarray, "row column"]:
    """As many rows, all NaN but for one."""
    full = np.full((rows, len(row)), np.nan)
    if position < rows:
        full[position] = row
    return full
