"""One head: as it was recomputed, or only its weights as the model returned them."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Certificate
from attnscope.results.heads import HeadAttention, HeadWeights
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import certificate, provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value, or_none
from attnscope.results.stored.codec.tokens import (
    pair_document,
    read_pair,
    read_special_mass,
    special_mass,
    written,
)
from attnscope.results.stored.codec.typed import hints_of

STAGES = ("scores", "scaled", "q", "k", "v", "output")
_TERM = Float[np.ndarray, "query key"]


@document.register
def _(result: HeadWeights, arrays: bool = True) -> dict[str, Value]:
    return _described(result) | (head_arrays(result) if arrays else {})


def _described(result: HeadWeights) -> dict[str, Value]:
    """What describes a head; null for what weights that were only returned do not tell."""
    described = ("layer", "head", "layers", "heads", "tower", "module", "block", "blocks")
    of_operands = ("key_head", "key_heads", "window")
    terms = getattr(result, "terms", None)
    return {
        "schema": "attnscope.head/1",
        "name": result.name,
        "kind": result.kind.value,
        **{name: getattr(result, name) for name in described},
        **{name: getattr(result, name, None) for name in of_operands},
        **{name: or_none(getattr(result, name, None)) for name in ("scale", "softcap", "sink")},
        "sink_by_query": getattr(result, "sink_by_query", None),
        "added": None if terms is None else list(terms),
        "notes": list(result.notes),
        "special_mass": special_mass(result.special_mass),
        **written(result.query_tokens),
        "verdict": result.certificate.verdict.value,
        "certificate": certificate(result.certificate),
        "provenance": provenance(result.provenance),
        **pair_document(result.query_tokens, result.key_tokens),
    }


def head_arrays(result: HeadWeights) -> dict[str, Value]:
    """The arrays as JSON holds them."""
    weights = {"allowed": result.allowed, "weights": result.weights}
    if not isinstance(result, HeadAttention):
        return weights | dict.fromkeys((*STAGES, "terms"))
    return weights | {name: getattr(result, name) for name in STAGES} | {"terms": dict(result.terms)}


@arrays_of.register
def _(result: HeadWeights) -> Arrays:
    return {"weights": result.weights, "allowed": result.allowed}


@arrays_of.register
def _(result: HeadAttention) -> Arrays:
    names = ("weights", *STAGES, "allowed")
    return {name: getattr(result, name) for name in names} | term_arrays(result)


def term_arrays(result: HeadAttention) -> dict[str, Float[np.ndarray, "query key"]]:
    """What was added to the scores, as an npz names it."""
    return {f"term {name}": values for name, values in result.terms.items()}


@reads("attnscope.head/1")
def read_head(record: Record) -> HeadWeights:
    """A head, or what was returned of one."""
    if record.get("key_head", int | None) is None:
        return made(HeadWeights, record, **_common(record))
    return read_attention(record)


def read_attention(record: Record) -> HeadAttention:
    """A head in full."""
    known = _common(record)
    if record.old and not record.has("v"):
        record.sizes["dim"] = record.sizes["value_dim"] = _old_dimensions(record)
    sink_by_query = record.get("sink_by_query", bool, before=False)
    head = made(HeadAttention, record, **known, terms=_terms(record), sink_by_query=sink_by_query)
    if not head.q.shape[1]:
        raise Damaged("'q' has no dimensions")
    return head


def _common(record: Record) -> dict[str, Value]:
    query, key = read_pair(record)
    mass = None if record.has("weights") else read_special_mass(record)
    return {
        "query_tokens": query,
        "key_tokens": key,
        "certificate": record.get("certificate", Certificate),
        "told_mass": mass,
    }


def _old_dimensions(record: Record) -> int:
    """How many dimensions a head had whose vectors are not all stored: its usual scale is 1/sqrt(dim)."""
    if record.has("q"):
        dimensions: int = record.array("q", hints_of(HeadAttention)["q"]).shape[1]
        return dimensions
    scale: float = record.get("scale", float)
    return max(round(scale**-2), 1)


def _terms(record: Record) -> Mapping[str, Float[np.ndarray, "query key"]]:
    names = record.get("added", tuple[str, ...], before=())
    return {name: record.array(f"term {name}", _TERM, under="terms", key=name) for name in names}
