"""Two stored runs, two corpora, or two results in memory, held against each other. No model is needed."""

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np

from attnscope.analysis.claims.comparison.difference import Picked, difference, matrices_in
from attnscope.errors import InputError
from attnscope.results import Corpus, CorpusDifference, Difference, HeadScores, Result, load
from attnscope.results.claims.corpora import ScoresApart
from attnscope.results.claims.corpus import CorpusScores
from attnscope.session import selection
from attnscope.session.wanted import Numbers


def load_both(a: Path, b: Path) -> tuple[tuple[Result, Result], tuple[str, str]]:
    """The results in two files, and what they are called beside each other."""
    names = a.name, b.name
    if a.name == b.name and a.resolve() != b.resolve():
        names = str(a), str(b)
    return (load(a), load(b)), names


def compare_any(
    a: Result,
    b: Result,
    names: tuple[str, str],
    layer: Numbers = None,
    head: Numbers = None,
    layer_b: Numbers = None,
    head_b: Numbers = None,
) -> Difference | CorpusDifference:
    """The heads of two results called `names`, or of two corpora; `layer_b` and `head_b` are of the other."""
    if isinstance(a, Corpus) and isinstance(b, Corpus):
        if any(number is not None for number in (layer, head, layer_b, head_b)):
            raise InputError("two corpora are compared in all their heads: leave layers and heads out")
        return corpora_apart(a, b)
    return compare_results(a, b, names, layer, head, layer_b, head_b)


def compare_results(
    a: Result,
    b: Result,
    names: tuple[str, str],
    layer: Numbers = None,
    head: Numbers = None,
    layer_b: Numbers = None,
    head_b: Numbers = None,
) -> Difference:
    """The heads of two results held against each other."""
    first, second = map(matrices_in, (a, b), names)
    there = [sorted({place[i] for place in first.weights}) for i in (0, 1)]
    others = [sorted({place[i] for place in second.weights}) for i in (0, 1)]
    picked = Picked(
        _numbers(layer, there[0], "layer", names[0]),
        _numbers(head, there[1], "head", names[0]),
        _one(layer_b, others[0], "layer", names[1]),
        _one(head_b, others[1], "head", names[1]),
    )
    return difference(first, second, names, picked)


def _numbers(wanted: Numbers, there: list[int], what: str, name: str) -> tuple[int, ...] | None:
    if wanted is None:
        return None
    where = f"{name}: it has {what}s {', '.join(map(str, there))}"
    return selection.choose(selection.parse(wanted, what), tuple(there), what, where)


def _one(wanted: Numbers, there: list[int], what: str, name: str) -> int | None:
    numbers = _numbers(wanted, there, what, name)
    if numbers is None:
        return None
    if len(numbers) != 1:
        raise InputError(f"--{what}-b is one {what}: give one number")
    return numbers[0]


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
