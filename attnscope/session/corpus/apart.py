"""Two corpora held against each other: what every head measures more over the second."""

import math
from statistics import NormalDist

import numpy as np

from attnscope.errors import InputError
from attnscope.results import HeadScores
from attnscope.results.claims.corpus import Corpus, CorpusDifference, CorpusScores, ScoresApart


def corpora_apart(a: Corpus, b: Corpus) -> CorpusDifference:
    """Second less first, of the layers, heads and measures that both have; `InputError` where there are none.

    The texts of both are taken as independent of each other. Where both are the same texts, as under two
    models, the error is too large rather than too small as long as what they give goes together.
    """
    if a.kind is not b.kind:
        raise InputError(f"one corpus is of {a.kind} attention, the other of {b.kind}: no head is in both")
    layers = tuple(layer for layer in a.layers if layer in b.layers)
    heads = tuple(head for head in a.heads if head in b.heads)
    names = [
        name
        for name, measured in a.measures.items()
        if name in b.measures and not measured.scores.description.classes
        if not measured.absent and not b.measures[name].absent
    ]
    if not layers or not heads or not names:
        raise InputError("the two corpora have no layer, head and measure in common")
    shown = next((name for name in (b.shown, a.shown) if name in names), "")
    return CorpusDifference(
        reads=(a.read, b.read),
        kind=a.kind,
        layers=layers,
        heads=heads,
        measures={name: _apart(name, a, b, layers, heads) for name in names},
        verdict_of_each=(a.verdict, b.verdict),
        provenances=(a.provenance, b.provenance),
        tower=a.tower if a.tower == b.tower else "",
        shown=shown,
        notes=_notes(a, b),
    )


def _notes(a: Corpus, b: Corpus) -> tuple[str, ...]:
    first, second = set(a.read.digests), set(b.read.digests)
    if not first & second:
        return ()
    same_files = "both read the same files" if first == second else "both read some files"
    return (f"{same_files}: errors are those of independent texts",)


def _apart(name: str, a: Corpus, b: Corpus, layers: tuple[int, ...], heads: tuple[int, ...]) -> ScoresApart:
    first, second = (_cut(corpus, corpus.measures[name], layers, heads) for corpus in (a, b))
    difference = second["mean"] - first["mean"]
    error = np.sqrt(first["error"] ** 2 + second["error"] ** 2)
    described = a.measures[name].scores.description
    size = float(np.nanmax(np.abs(difference), initial=0.0)) or 1.0
    scores = HeadScores(described, layers, heads, difference, (-size, size))
    return ScoresApart(scores, first["mean"], second["mean"], error, beyond_by_chance(difference.size))


def _cut(
    corpus: Corpus, scores: CorpusScores, layers: tuple[int, ...], heads: tuple[int, ...]
) -> dict[str, np.ndarray]:
    rows = [corpus.layers.index(layer) for layer in layers]
    columns = [corpus.heads.index(head) for head in heads]
    return {"mean": scores.values[np.ix_(rows, columns)], "error": scores.error[np.ix_(rows, columns)]}


def beyond_by_chance(heads: int) -> float:
    """How many errors off one of so many heads would be by chance, in the mean."""
    return NormalDist().inv_cdf(1 - 1 / (2 * heads)) if heads > 1 else math.nan
