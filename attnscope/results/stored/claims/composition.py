"""Composition of heads: JSON and npz have every pair that was looked at."""

from dataclasses import asdict

from attnscope.results.base.origin import Provenance
from attnscope.results.claims.composition import Composition
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value

_ARRAYS = ("pairs", "scores", "chance", "spread", "percentile")
_STRONGEST = 10  # pairs that stand in JSON by name


@document.register
def _(result: Composition, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.composition/1",
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "verdict": result.verdict.value,
        "certified": dict(result.certified),
        "layers": list(result.layers),
        "counts": list(result.counts),
        "hidden": result.hidden,
        "shown": None if result.shown is None else list(result.shown),
        "through": [each.value for each in result.through],
        "looked_at": {each.value: result.looked_at(each) for each in result.through},
        "strongest": {
            each.value: [
                asdict(pair) | {"difference": pair.difference} for pair in result.ranked(each)[:_STRONGEST]
            ]
            for each in result.through
        },
        "largest": list(result.largest),
        "draws": result.draws,
        "seed": result.seed,
        "inside": list(result.inside),
        "outside": list(result.outside),
        "reasons": list(result.reasons),
        "provenance": provenance(result.provenance),
    }
    return told | ({name: getattr(result, name) for name in _ARRAYS} if arrays else {})


@arrays_of.register
def _(result: Composition) -> Arrays:
    """Axes: pair place (layer and head of the earlier, layer and head of the later), and through pair."""
    return {name: getattr(result, name) for name in _ARRAYS}


@reads("attnscope.composition/1")
def read_composition(record: Record) -> Composition:
    record.sizes["place"] = 4
    result = made(Composition, record, provenance=record.get("provenance", Provenance))
    if not len(result.through) == len(result.scores) == len(result.largest):
        raise Damaged("'scores' are not one row for each of 'through'")
    if len(result.layers) != len(result.counts):
        raise Damaged("'counts' are not one for each of 'layers'")
    heads = dict(zip(result.layers, result.counts, strict=True))
    for layer, head in result.pairs.reshape(-1, 2).tolist():
        if not 0 <= head < heads.get(layer, 0):
            raise Damaged(f"'pairs' name a head L{layer} H{head} that is not there")
    return result
