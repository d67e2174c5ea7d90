"""Several heads at a glance; the dense weights of each stand in the npz only."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from attnscope.results.base.origin import Certificate
from attnscope.results.heads import HeadScores, Overview
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import certificate, provenance, worst
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.scores import meant, measured, read_scores
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.tokens import (
    pair_document,
    read_pair,
    read_special_mass,
    special_mass,
    written,
)
from attnscope.results.stored.codec.typed import hints_of
from attnscope.tokens import Tokens

_WEIGHTS = Float[np.ndarray, "layer head query key"]
_VALUES = Float[np.ndarray, "layer head"]
Weights = tuple[tuple[Float[np.ndarray, "query key"], ...], ...]


@document.register
def _(result: Overview, arrays: bool = True) -> dict[str, Value]:
    """Of an overview by words, or without special tokens, `by_tokens` is the one that it was made from."""
    every = [certificate for layer in result.certificates for certificate in layer]
    own = None if result.tokens is None else document(result.tokens, arrays)
    return {
        "schema": "attnscope.overview/1",
        "kind": result.kind.value,
        "layers": list(result.layers),
        "heads": list(result.heads),
        "tower": result.tower,
        "notes": list(result.notes),
        "measure": result.main.measure,
        "unit": result.main.unit,
        "words": result.words,
        "special": result.special.value,
        "special_mass": special_mass(result.special_mass),
        **written(result.query_tokens),
        "verdict": worst(every),
        "provenance": provenance(result.provenance),
        **pair_document(result.query_tokens, result.key_tokens),
        **{name: each.values for name, each in result.scores.items()},
        "results": [_head(result, i, j) for i, j in np.ndindex(result.main.values.shape)],
        "measures": [_measure(each) for each in result.scores.values()],
        "sharing": list(result.sharing),
        "ordinary": result.ordinary,
        "aim": None if result.aim is None else list(result.aim),
        "special_shares": None if result.tokens is not None else result.special_shares,
        **({} if own is None else {"by_tokens": own}),
    }


def _measure(scores: HeadScores) -> dict[str, Value]:
    """What is said of it, and what its numbers are held against."""
    control = {} if scores.control is None else {"control": scores.control}
    return measured(scores) | {"even": scores.even, **control}


def _head(result: Overview, i: int, j: int) -> dict[str, Value]:
    """One head of an overview; query and key are null where no query has a key."""
    query, key = (int(position) for position in result.strongest[i, j])
    return {
        "layer": result.layers[i],
        "head": result.heads[j],
        **{name: _value(each, i, j) for name, each in result.scores.items()},
        "query": None if query < 0 else query,
        "key": None if key < 0 else key,
        "weight": float(result.strongest_weight[i, j]),
        "certificate": certificate(result.certificates[i][j]),
    }


def _value(scores: HeadScores, i: int, j: int) -> Value:
    """A number, or the class that it stands for."""
    named = scores.class_of(i, j)
    return float(scores.values[i, j]) if named is None else named or None


@arrays_of.register
def _(result: Overview) -> Arrays:
    """Axes: layer head, and layer head query key for the weights; `by_tokens` before those of the tokens."""
    verdicts = [[certificate.verdict.value for certificate in layer] for layer in result.certificates]
    by_tokens = {} if result.tokens is None else arrays_of(result.tokens)
    return {
        "layers": np.array(result.layers),
        "heads": np.array(result.heads),
        **{name: each.values for name, each in result.scores.items()},
        "strongest": result.strongest,
        "strongest_weight": result.strongest_weight,
        **({} if result.weights is None else {"weights": np.array(result.weights)}),
        "verdicts": np.array(verdicts),
        **{f"by_tokens {name}": values for name, values in by_tokens.items()},
    }


@reads("attnscope.overview/1")
def read_overview(record: Record) -> Overview:
    """From JSON without its dense weights; how much of them lies on special tokens is then as it says."""
    query, key = read_pair(record)
    layers, heads = (record.get(name, tuple[int, ...]) for name in ("layers", "heads"))
    record.sizes.update(layer=len(layers), head=len(heads))
    results = record.parts("results")
    if not results or len(results) != len(layers) * len(heads):
        raise Damaged("'results' are not one for each of the layers and heads")
    strongest, weight = _links(record, results)
    _check_links(strongest, query, key)
    weights = _dense(record) if record.arrays is not None and record.has("weights") else None
    certificates = [each.get("certificate", Certificate) for each in results]
    return made(
        Overview,
        record,
        query_tokens=query,
        key_tokens=key,
        scores=_scores(record, layers, heads),
        strongest=strongest,
        strongest_weight=weight,
        weights=weights,
        certificates=tuple(
            tuple(certificates[i * len(heads) : (i + 1) * len(heads)]) for i in range(len(layers))
        ),
        tokens=_by_tokens(record),
        told_mass=read_special_mass(record) if weights is None else None,
        told_shares=_shares(record) if weights is None else None,
    )


def _scores(record: Record, layers: tuple[int, ...], heads: tuple[int, ...]) -> Mapping[str, HeadScores]:
    if "measures" not in record.told:
        name, unit = record.get("measure", str), record.get("unit", str)
        values = record.array(name, _VALUES)
        return {name: meant(name, unit, record.sizes["key"], layers=layers, heads=heads, values=values)}
    found = {}
    for each in record.parts("measures"):
        name = each.get("name", str)
        each = Record(each.told, sizes=record.sizes)
        even = each.array("even", _VALUES) if each.has("even") else None
        control = each.array("control", _VALUES) if each.has("control") else None
        known = {"values": record.array(name, _VALUES), "even": even, "control": control}
        found[name] = read_scores(each, layers=layers, heads=heads, **known)
    if not found:
        raise Damaged("'measures' are empty")
    return found


def _links(
    record: Record, results: list[Record]
) -> tuple[Int[np.ndarray, "layer head 2"], Float[np.ndarray, "layer head"]]:
    """Query and key of the strongest link of each head, and its weight."""
    if record.arrays is not None:
        hints = hints_of(Overview)
        return record.array("strongest", hints["strongest"]), record.array("strongest_weight", _VALUES)
    shape = record.sizes["layer"], record.sizes["head"]
    places = [[each.get(name, int | None) for name in ("query", "key")] for each in results]
    numbers = [[-1 if place is None else place for place in pair] for pair in places]
    weights = [each.get("weight", float) for each in results]
    return np.array(numbers, np.int64).reshape(*shape, 2), np.array(weights, np.float64).reshape(shape)


def _check_links(strongest: Int[np.ndarray, "layer head 2"], query: Tokens, key: Tokens) -> None:
    most = strongest.max(axis=(0, 1))
    if strongest.min() < -1 or most[0] >= len(query) or most[1] >= len(key):
        raise Damaged("a strongest link leads to a token that is not there")


def _shares(record: Record) -> Float[np.ndarray, "layer head"] | None:
    return record.array("special_shares", _VALUES) if record.has("special_shares") else None


def _dense(record: Record) -> Weights:
    values = record.array("weights", _WEIGHTS)
    return tuple(tuple(head for head in layer) for layer in values)


def _by_tokens(record: Record) -> Overview | None:
    if "by_tokens" not in record.told:
        return None
    return read_overview(record.part("by_tokens").prefixed("by_tokens "))
