"""Two runs held against each other: JSON has the heads as a ranking, those that differ most first."""

from attnscope.results.base.origin import Kind, Provenance, Verdict
from attnscope.results.claims.difference import Difference, Run
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import pair_document, read_pair, written

_ARRAYS = ("rows", "divergences", "largest", "rounding", "before", "after")


@document.register
def _(result: Difference, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.difference/1",
        "verdict": result.verdict.value,
        "a": _run(result.a),
        "b": _run(result.b),
        "pairs": [list(pair) for pair in result.pairs],
        "ranking": [_ranked(result, i) for i in result.ranking],
        "looked_at": len(result.pairs),
        "within_rounding": result.within_rounding,
        "other_tokens": result.other_tokens,
        "unlike": result.unlike,
        "unit": "nats",
        "shown": result.shown,
        "provenance": provenance(result.a.provenance),
    }
    return told | ({name: getattr(result, name) for name in _ARRAYS} if arrays else {})


def _run(run: Run) -> dict[str, Value]:
    return {
        "name": run.name,
        "kind": run.kind.value,
        "verdict": run.verdict.value,
        **written(run.query_tokens),
        **pair_document(run.query_tokens, run.key_tokens),
        "provenance": provenance(run.provenance),
    }


def _ranked(result: Difference, i: int) -> dict[str, Value]:
    layer, head, layer_b, head_b = result.pairs[i]
    return {
        "layer": layer,
        "head": head,
        "layer_b": layer_b,
        "head_b": head_b,
        "divergence": float(result.divergences[i]),
        "largest": float(result.largest[i]),
        "rounding": float(result.rounding[i]),
    }


@arrays_of.register
def _(result: Difference) -> Arrays:
    """Axes: pair query, pair, and query key of the pair that is shown."""
    return {name: getattr(result, name) for name in _ARRAYS}


@reads("attnscope.difference/1")
def read_difference(record: Record) -> Difference:
    a, b = (_read_run(record.part(side)) for side in ("a", "b"))
    pairs = record.get("pairs", tuple[tuple[int, int, int, int], ...])
    shown = record.get("shown", int)
    if not 0 <= shown < len(pairs):
        raise Damaged("'shown' is none of the pairs")
    record.sizes.update(pair=len(pairs), query=len(a.query_tokens), key=len(a.key_tokens))
    if (len(b.query_tokens), len(b.key_tokens)) != (len(a.query_tokens), len(a.key_tokens)):
        raise Damaged("'a' and 'b' have not as many tokens")
    return made(Difference, record, a=a, b=b, pairs=pairs, shown=shown)


def _read_run(record: Record) -> Run:
    query, key = read_pair(record)
    return Run(
        name=record.get("name", str),
        kind=record.get("kind", Kind),
        query_tokens=query,
        key_tokens=key,
        provenance=record.get("provenance", Provenance),
        verdict=record.get("verdict", Verdict),
    )
