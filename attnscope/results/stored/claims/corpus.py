"""A corpus by head: what is said of each measure, and arrays of all measures one behind the other."""

from dataclasses import asdict, replace

import numpy as np
from jaxtyping import Float

from attnscope.results.base.origin import Provenance, Verdict
from attnscope.results.claims.corpus import (
    LEVELS,
    Corpus,
    CorpusDifference,
    CorpusRead,
    CorpusScores,
    ScoresApart,
)
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.origin import provenance
from attnscope.results.stored.codec.record import Arrays, Record, made
from attnscope.results.stored.codec.registry import arrays_of, document, reads
from attnscope.results.stored.codec.scores import measured, read_scores
from attnscope.results.stored.codec.strict import Value

_HEADS = Float[np.ndarray, "measure layer head"]
_PLAIN = ("error", "count", "least", "largest")
_DEEP = {
    "quantiles": Float[np.ndarray, "measure level layer head"],
    "halves": Float[np.ndarray, "measure half layer head"],
}


@document.register
def _(result: Corpus, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.corpus/1",
        "read": asdict(result.read) | {"set_aside": dict(result.read.set_aside)},
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "verdict": result.verdict.value,
        "certified": dict(result.certified),
        "sampled": result.sampled,
        "unlike": result.unlike,
        "layers": list(result.layers),
        "heads": list(result.heads),
        "levels": list(LEVELS),
        "shown": result.shown,
        "linked": None if result.linked is None else list(result.linked),
        "measures": [measured(each.scores) | {"off": each.off} for each in result.measures.values()],
        "provenance": provenance(result.provenance),
    }
    return told | (dict(arrays_of(result)) if arrays else {})


@arrays_of.register
def _(result: Corpus) -> Arrays:
    """Axes: measure layer head, with level or half behind the measure; `mean` is the commonest class too."""
    every = tuple(result.measures.values())
    shape = (len(result.layers), len(result.heads))
    none = np.full(shape, np.nan)
    return {
        "mean": np.stack([each.values for each in every]),
        **{name: np.stack([getattr(each, name) for each in every]) for name in (*_PLAIN, *_DEEP)},
        "agreement": np.stack([none if each.agreement is None else each.agreement for each in every]),
    }


@reads("attnscope.corpus/1")
def read_corpus(record: Record) -> Corpus:
    told = record.parts("measures")
    layers, heads = (record.get(name, tuple[int, ...]) for name in ("layers", "heads"))
    if record.get("levels", tuple[float, ...]) != LEVELS:
        raise Damaged("'levels' are not those of quantiles")
    own = _sized(record, len(told), layers, heads)
    own.sizes.update(level=len(LEVELS), half=2)
    arrays = {name: own.array(name, _HEADS) for name in ("mean", *_PLAIN, "agreement")}
    arrays |= {name: own.array(name, hint) for name, hint in _DEEP.items()}
    measures = {}
    for i, each in enumerate(told):
        scores = read_scores(each, layers=layers, heads=heads, values=arrays["mean"][i])
        known = {name: arrays[name][i] for name in (*_PLAIN, *_DEEP)}
        agreement = arrays["agreement"][i] if scores.description.classes else None
        measures[scores.measure] = CorpusScores(
            scores=scores, **known, agreement=agreement, off=each.get("off", float)
        )
    result = made(
        Corpus,
        own,
        read=record.get("read", CorpusRead),
        measures=measures,
        certified=record.get("certified", dict[str, int]),
        provenance=record.get("provenance", Provenance),
    )
    _check_shown(result.shown, measures)
    return result


def _sized(record: Record, measures: int, layers: tuple[int, ...], heads: tuple[int, ...]) -> Record:
    if not measures:
        raise Damaged("'measures' are none")
    sizes = {**record.sizes, "measure": measures, "layer": len(layers), "head": len(heads)}
    return replace(record, sizes=sizes)


def _check_shown(shown: str, measures: object) -> None:
    if shown and shown not in measures:  # type: ignore[operator]
        raise Damaged("'shown' is none of the measures")


@document.register
def _(result: CorpusDifference, arrays: bool = True) -> dict[str, Value]:
    told: dict[str, Value] = {
        "schema": "attnscope.corpora/1",
        "reads": [asdict(each) | {"set_aside": dict(each.set_aside)} for each in result.reads],
        "kind": result.kind.value,
        "tower": result.tower,
        "notes": list(result.notes),
        "verdict": result.verdict.value,
        "verdict_of_each": [each.value for each in result.verdict_of_each],
        "layers": list(result.layers),
        "heads": list(result.heads),
        "shown": result.shown,
        "measures": [measured(each.scores) | {"chance": each.chance} for each in result.measures.values()],
        "provenances": [provenance(each) for each in result.provenances],
    }
    return told | (dict(arrays_of(result)) if arrays else {})


@arrays_of.register
def _(result: CorpusDifference) -> Arrays:
    """Axes: measure layer head; `difference` is second less first."""
    every = tuple(result.measures.values())
    return {
        name: np.stack([getattr(each, name) for each in every])
        for name in ("first", "second", "difference", "error")
    }


@reads("attnscope.corpora/1")
def read_difference(record: Record) -> CorpusDifference:
    told = record.parts("measures")
    layers, heads = (record.get(name, tuple[int, ...]) for name in ("layers", "heads"))
    own = _sized(record, len(told), layers, heads)
    names = ("first", "second", "difference", "error")
    arrays = {name: own.array(name, _HEADS) for name in names}
    measures = {}
    for i, each in enumerate(told):
        scores = read_scores(each, layers=layers, heads=heads, values=arrays["difference"][i])
        known = {name: arrays[name][i] for name in ("first", "second", "error")}
        measures[scores.measure] = ScoresApart(scores=scores, **known, chance=each.get("chance", float))
    result = made(
        CorpusDifference,
        own,
        reads=record.get("reads", tuple[CorpusRead, CorpusRead]),
        measures=measures,
        verdict_of_each=record.get("verdict_of_each", tuple[Verdict, Verdict]),
        provenances=record.get("provenances", tuple[Provenance, Provenance]),
    )
    _check_shown(result.shown, measures)
    return result
