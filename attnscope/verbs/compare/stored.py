"""Two stored runs, two corpora, or two results in memory, held against each other. No model is needed."""

from pathlib import Path
from typing import Any

from attnscope.errors import InputError
from attnscope.results import Result, load
from attnscope.session import selection
from attnscope.session.question import Answer
from attnscope.session.wanted import Numbers
from attnscope.verbs.compare.corpora import corpora_apart
from attnscope.verbs.compare.corpora_result import CorpusDifference
from attnscope.verbs.compare.difference import Picked, difference, matrices_in
from attnscope.verbs.compare.difference_result import Difference
from attnscope.verbs.compare.question import Runs
from attnscope.verbs.corpus.result import Corpus


def compare_runs(_: Any, __: Any, asked: Runs, ___: Any) -> Answer[Difference | CorpusDifference]:
    """The heads of two results held against each other, or two corpora; no model is opened for it."""
    files = asked.a, asked.b
    runs: Any = tuple(load(run) if isinstance(run, Path) else run for run in files)
    picked = asked.wanted.layer, asked.wanted.head, asked.layer_b, asked.head_b
    if not all(isinstance(run, Corpus) for run in runs):
        found = compare_results(runs[0], runs[1], _names(*files), *picked)
        return Answer(found, beside=lambda: {"heads": runs})
    if any(number is not None for number in picked):
        raise InputError("two corpora are compared in all their heads: leave layers and heads out")
    return Answer(corpora_apart(*runs))


def _names(*runs: Any) -> tuple[str, str]:
    """What both are called beside each other: by their whole paths where their names are the same."""
    a, b = (run.name if isinstance(run, Path) else letter for run, letter in zip(runs, "AB", strict=True))
    return (str(runs[0]), str(runs[1])) if a == b and runs[0] != runs[1] else (a, b)


def compare_results(a: Result, b: Result, names: tuple[str, str], *picked: Numbers) -> Difference:
    """The heads of two results held against each other, or those of a layer and a head of `a`, and of `b`."""
    layer, head, layer_b, head_b = picked or (None,) * 4
    first, second = map(matrices_in, (a, b), names)
    there = [sorted({place[i] for place in first.weights}) for i in (0, 1)]
    others = [sorted({place[i] for place in second.weights}) for i in (0, 1)]
    places = Picked(
        _numbers(layer, there[0], "layer", names[0]),
        _numbers(head, there[1], "head", names[0]),
        _one(layer_b, others[0], "layer", names[1]),
        _one(head_b, others[1], "head", names[1]),
    )
    return difference(first, second, names, places)


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
