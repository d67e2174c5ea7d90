"""Heads ranked by one number beside their controls; JSON has them as a ranking, the best first."""

from dataclasses import asdict, replace

import numpy as np

from attnscope.results.base.origin import Provenance, Verdict
from attnscope.results.claims.finding import Contents, Controls, Finding, Sought
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import pair_document, read_pair, written
from attnscope.vocabulary import Special

# the name of each array, and where it stands in a head of the ranking
_OWN = {"weights": "weight", "ranks": "rank", "norms": "norm", "shares": "norm_share", "even": "even"}
_CONTROL = {"mean": "mean", "low": "low", "high": "high", "percentile": "percentile"}


@document.register
def _(result: Finding, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.finding/1",
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "words": result.words,
        "special": result.special.value,
        "verdict": result.verdict.value,
        "sought": asdict(result.sought),
        "layers": list(result.layers),
        "head_numbers": list(result.heads),
        "rows": result.rows,
        "looked_at": result.weights.size,
        "controls": result.controls.count,
        "controls_asked": result.controls.asked,
        "controls_how": result.controls.how,
        "controls_of": result.controls.of.value,
        "seed": result.controls.seed,
        "best_percentile": result.best_percentile,
        **written(result.query_tokens),
        "provenance": provenance(result.provenance),
        **pair_document(result.query_tokens, result.key_tokens),
    }
    if not arrays:
        return told
    return told | {
        "best_of_controls": result.controls.best,
        "heads": [_head(result, i, j) for i, j in (*result.ranking, *_unranked(result))],
    }


def _unranked(result: Finding) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, j in np.argwhere(np.isnan(result.weights))]


def _head(result: Finding, i: int, j: int) -> dict[str, Value]:
    own = {key: _at(getattr(result, name), i, j) for name, key in _OWN.items()}
    control = {key: _at(getattr(result.controls, name), i, j) for name, key in _CONTROL.items()}
    account = result.account((i, j))
    control |= {"difference": _at(result.difference, i, j), "followed": _at(result.followed, i, j)}
    return {
        "layer": result.layers[i],
        "head": result.heads[j],
        **own,
        "control": control,
        "account": None if account is None else account.value,
        "verdict": result.verdicts[i][j].value,
    }


def _at(values: np.ndarray | None, i: int, j: int) -> float | None:
    return None if values is None else float(values[i, j])


@arrays_of.register
def _(result: Finding) -> Arrays:
    """Axes: layer head, and control for the best heads of the controls. What has no meaning is not there."""
    own = {name: getattr(result, name) for name in (*_OWN, "followed")}
    control = {name: getattr(result.controls, name) for name in (*_CONTROL, "best")}
    verdicts = [[verdict.value for verdict in layer] for layer in result.verdicts]
    return {name: each for name, each in {**own, **control}.items() if each is not None} | {
        "verdicts": np.array(verdicts)
    }


@reads("attnscope.finding/1")
def read_finding(record: Record) -> Finding:
    query, key = read_pair(record)
    layers, heads = record.get("layers", tuple[int, ...]), record.get("head_numbers", tuple[int, ...])
    told = {
        "how": record.get("controls_how", str),
        "of": record.get("controls_of", Contents, Contents.TEXT).value,
        "words": record.get("words", bool, False),
        "special": record.get("special", Special, Special.SHOW).value,
        "asked": record.get("controls_asked", int),
        "seed": record.get("seed", int),
        "layers": layers,
        "heads": heads,
    }
    arrays = _from_ranking(record, layers, heads) if record.arrays is None else record.arrays
    sizes = {**record.sizes, "layer": len(layers), "head": len(heads)}
    own = replace(record, told={**record.told, **told}, arrays=arrays, sizes=sizes)
    return made(
        Finding,
        own,
        sought=_sought(record, len(query), len(key)),
        query_tokens=query,
        key_tokens=key,
        controls=made(Controls, own),
        verdicts=_verdicts(own, len(layers), len(heads)),
        provenance=record.get("provenance", Provenance),
    )


def _sought(record: Record, queries: int, keys: int) -> Sought:
    sought: Sought = record.get("sought", Sought)
    for position, size in ((sought.query, queries), (sought.key, keys)):
        if position is not None and not 0 <= position < size:
            raise Damaged("'sought' names a position that is no token's")
    if sum(each is not None for each in (sought.key, sought.pattern, sought.like)) != 1:
        raise Damaged("'sought' is not one thing")
    return sought


def _verdicts(record: Record, layers: int, heads: int) -> tuple[tuple[Verdict, ...], ...]:
    assert record.arrays is not None, "made of the ranking where they are not in the file"
    found = record.arrays.get("verdicts")
    if found is None or found.shape != (layers, heads):
        raise Damaged("'verdicts' are not one for each of the layers and heads")
    try:
        return tuple(tuple(Verdict(str(each)) for each in row) for row in found)
    except ValueError as error:
        raise Damaged("'verdicts' has one that there is not") from error


def _from_ranking(record: Record, layers: tuple[int, ...], heads: tuple[int, ...]) -> Arrays:
    """The arrays of a JSON document, each number put back to its layer and head."""
    rows = record.parts("heads")
    places = [(row.get("layer", int), row.get("head", int)) for row in rows]
    if sorted(places) != sorted((layer, head) for layer in layers for head in heads):
        raise Damaged("'heads' are not one for each of the layers and heads")
    shape = len(layers), len(heads)
    names = {**{name: (None, key) for name, key in _OWN.items()}, "followed": ("control", "followed")}
    names |= {name: ("control", key) for name, key in _CONTROL.items()}
    arrays = {name: np.full(shape, np.nan) for name in names}
    verdicts = np.full(shape, "", dtype="U20")
    for row, (layer, head) in zip(rows, places, strict=True):
        at = layers.index(layer), heads.index(head)
        for name, (under, key) in names.items():
            part = row if under is None else row.part(under)
            arrays[name][at] = part.get(key, float)
        verdicts[at] = row.get("verdict", str)
    optional = ("ranks", "norms", "shares", "even", "followed")
    there = {name: each for name, each in arrays.items() if name not in optional or not np.isnan(each).all()}
    best = record.get("best_of_controls", tuple[float, ...])
    return there | {"best": np.array(best, dtype=np.float64), "verdicts": verdicts}
