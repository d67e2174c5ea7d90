"""Two stored runs, two corpora, or two results in memory, held against each other. No model is needed."""

from pathlib import Path

from attnscope.analysis.claims.comparison.difference import Picked, difference, matrices_in
from attnscope.analysis.corpus.apart import corpora_apart
from attnscope.errors import InputError
from attnscope.results import Corpus, CorpusDifference, Difference, Result, load
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
