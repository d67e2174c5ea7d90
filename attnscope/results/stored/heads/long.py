"""One head on a long text: in JSON as in an npz its blocks, and of every query its strongest keys."""

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Certificate
from attnscope.results.long import LongHead
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import certificate, provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import (
    pair_document,
    read_pair,
    read_special_mass,
    special_mass,
    written,
)
from attnscope.vocabulary import Pool

_ARRAYS = ("mean", "largest", "pairs", "entropy", "top_keys", "top_weights")
_PLAIN = ("layer", "head", "layers", "heads", "tower", "module", "block", "blocks", "sampled", "query")
_ROW = Float[np.ndarray, " key"]


@document.register
def _(result: LongHead, arrays: bool = True) -> dict[str, Value]:
    row = {} if result.row is None else {"row": result.row}
    return {
        "schema": "attnscope.long/1",
        "name": result.name,
        "kind": result.kind.value,
        **{name: getattr(result, name) for name in _PLAIN},
        "first": list(result.first),
        "size": list(result.size),
        "steps": list(result.steps),
        "pool": result.pool.value,
        "notes": list(result.notes),
        "special_mass": special_mass(result.special_mass),
        **written(result.query_tokens),
        "verdict": result.certificate.verdict.value,
        "certificate": certificate(result.certificate),
        "provenance": provenance(result.provenance),
        **pair_document(result.query_tokens, result.key_tokens),
        **({name: getattr(result, name) for name in _ARRAYS} | row if arrays else {}),
    }


@arrays_of.register
def _(result: LongHead) -> Arrays:
    """Axes: row column for the blocks, query, query rank, and key for the one row."""
    found = {name: getattr(result, name) for name in _ARRAYS}
    return found if result.row is None else found | {"row": result.row}


@reads("attnscope.long/1")
def read_long(record: Record) -> LongHead:
    query, key = read_pair(record)
    pairs = [record.get(name, tuple[int, int]) for name in ("first", "size", "steps")]
    for side, (first, size, step) in zip((query, key), zip(*pairs, strict=True), strict=True):
        if first < 0 or size < 1 or step < 1 or first + size > len(side):
            raise Damaged("'first', 'size' and 'steps' are no window of the text")
    rows, columns = (-(-size // step) for size, step in zip(*pairs[1:], strict=True))
    record.sizes.update(row=rows, column=columns, query=len(query), key=len(key))
    asked = record.get("query", int | None)
    if (asked is None) != (not record.has("row")) or (asked is not None and not 0 <= asked < len(query)):
        raise Damaged("'query' and 'row' do not belong together")
    found = made(
        LongHead,
        record,
        query_tokens=query,
        key_tokens=key,
        first=pairs[0],
        size=pairs[1],
        steps=pairs[2],
        pool=record.get("pool", Pool),
        certificate=record.get("certificate", Certificate),
        special_mass=read_special_mass(record),
        row=record.array("row", _ROW) if record.has("row") else None,
    )
    if found.top_keys.size and not -1 <= found.top_keys.min() <= found.top_keys.max() < len(key):
        raise Damaged("'top_keys' lead to a token that is not there")
    return found
