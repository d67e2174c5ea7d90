"""Heads as thumbnails: in JSON as in an npz all their cells."""

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Verdict
from attnscope.results.claims.thumbnails import Thumbnails
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import pair_document, read_pair, written
from attnscope.vocabulary import Special

_WEIGHTS = Float[np.ndarray, "layer head row column"]


@document.register
def _(result: Thumbnails, arrays: bool = True) -> dict[str, Value]:
    return {
        "schema": "attnscope.thumbnails/1",
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "words": result.words,
        "special": result.special.value,
        "verdict": result.verdict.value,
        "layers": list(result.layers),
        "heads": list(result.heads),
        "step": result.step,
        "verdicts": [[verdict.value for verdict in layer] for layer in result.verdicts],
        **written(result.query_tokens),
        "provenance": provenance(result.provenance),
        **pair_document(result.query_tokens, result.key_tokens),
        **({"weights": result.weights} if arrays else {}),
    }


@arrays_of.register
def _(result: Thumbnails) -> Arrays:
    """Axes: layer head row column."""
    return {"weights": result.weights}


@reads("attnscope.thumbnails/1")
def read_thumbnails(record: Record) -> Thumbnails:
    query, key = read_pair(record)
    layers, heads = (record.get(name, tuple[int, ...]) for name in ("layers", "heads"))
    step, verdicts = record.get("step", int), record.get("verdicts", tuple[tuple[Verdict, ...], ...])
    if step < 1:
        raise Damaged("'step' is no number of tokens")
    if [len(row) for row in verdicts] != [len(heads)] * len(layers) or not heads:
        raise Damaged("'verdicts' are not one for each of the layers and heads")
    rows, columns = (-(-len(tokens) // step) for tokens in (query, key))
    record.sizes.update(layer=len(layers), head=len(heads), row=rows, column=columns)
    values = record.array("weights", _WEIGHTS)
    return made(
        Thumbnails,
        record,
        query_tokens=query,
        key_tokens=key,
        weights=values,
        words=record.get("words", bool, False),
        special=record.get("special", Special, Special.SHOW),
    )
