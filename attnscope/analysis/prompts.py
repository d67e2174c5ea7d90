"""Sets the figures of many prompts under one question beside each other, with means and intervals.

Nothing is measured here: each figure is read from the result of its prompt alone, with the controls drawn
for it. Means, intervals and contradicting prompts are computed from them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from attnscope.analysis.controls import interval
from attnscope.results.claims.prompts import CORRELATION, Asked, Figure, beyond
from attnscope.results.claims.ranking import LEAST_SPREAD

Spans: TypeAlias = Mapping[str, Sequence[int]]  # the tokens of each field
NONE = float("nan")
_BOUNDS = {
    "weight": (0.0, 1.0),
    "probability": (0.0, 1.0),
    CORRELATION: (-1.0, 1.0),
    "distance": (0.0, np.inf),
}


@dataclass(frozen=True)
class Seen:
    """One figure in one prompt: its value, control, effect, and whether it stands out."""

    value: float
    control: float = NONE
    effect: float = NONE
    stands: bool = False


Figures: TypeAlias = dict[Figure, Seen]


@dataclass(frozen=True)
class OnePrompt:
    """The figures of one prompt's result.

    `note` makes a sentence from the `kept` values of all prompts.

    """

    asked: Asked
    figures: Figures
    kept: Any = None
    note: Callable[[Sequence[Any]], str] | None = None


def of_head(layer: int, head: int, measured: str) -> Figure:
    """The figure of one head."""
    return Figure(f"L{layer} H{head}", measured, layer, head)


@dataclass(frozen=True)
class Answered:
    """The answer to one prompt: the likeliest choice, its probability, and that of every choice."""

    text: str
    probability: float
    number: int | None
    chances: Float[np.ndarray, " choice"] | None


def figures_of_answers(every: Sequence[Answered], names: Mapping[int, str]) -> list[Figures]:
    """By prompt, the probability of its own answer beside its mean in other prompts, then of `names`.

    Answers of several tokens have no probability in other prompts.
    """
    measured = "probability"
    chances = [each.chances for each in every]
    alike = {len(each) for each in chances if each is not None}
    table = None if None in [each if each is None else 0 for each in chances] or len(alike) != 1 else chances
    found: list[Figures] = []
    for i, each in enumerate(every):
        own: Figures = {}
        if table is None or each.number is None:
            found.append({Figure("own answer", measured): Seen(each.probability, stands=True)})
            continue
        others = [float(other[each.number]) for j, other in enumerate(table) if j != i and other is not None]
        control = float(np.mean(others)) if others else NONE
        own[Figure("own answer", measured)] = Seen(each.probability, control, stands=True)
        mine = table[i]
        assert mine is not None, "checked above"
        for number, name in names.items():
            rest = [float(mine[other]) for other in names if other != number]
            highest = max(rest, default=NONE)
            own[Figure(f"“{name}”", measured)] = Seen(
                float(mine[number]), highest, stands=number == each.number
            )
        found.append(own)
    return found


@dataclass(frozen=True, eq=False)
class Table:
    """Figures by prompt, and the intervals of their means; field names are those of `Prompts`."""

    figures: tuple[Figure, ...]
    values: Float[np.ndarray, "figure prompt"]
    controls: Float[np.ndarray, "figure prompt"]
    effects: Float[np.ndarray, "figure prompt"]
    stands: np.ndarray
    low: Float[np.ndarray, " figure"]
    high: Float[np.ndarray, " figure"]
    excess_low: Float[np.ndarray, " figure"]
    excess_high: Float[np.ndarray, " figure"]
    excess_surely: Float[np.ndarray, " figure"]


def tabled(asked: Asked, every: Sequence[Figures], among: int = 0) -> Table:
    """The figures of all prompts in one table; missing ones are NaN (0 for parts of an answer).

    `among` is the number of candidates that the figures were chosen from, if larger than theirs.

    """
    figures = tuple(dict.fromkeys(figure for each in every for figure in each))
    none = Seen(0.0 if asked is Asked.ANSWER else NONE)
    rows = [[each.get(figure, none) for each in every] for figure in figures]
    shape = len(figures), len(every)

    def column(name: str, kind: type) -> np.ndarray:
        return np.array([[getattr(one, name) for one in row] for row in rows], dtype=kind).reshape(shape)

    values, controls, effects = (column(name, float) for name in ("value", "control", "effect"))
    excess = beyond(asked, values, controls, effects)
    same = np.array([sum(other.measured == each.measured for other in figures) for each in figures])
    same = np.maximum(same, among)
    low, high = (each.clip(*_bounds(figures)) for each in interval(values))
    excess_low, excess_high = interval(excess, least=LEAST_SPREAD)
    surely, _ = interval(excess, same, least=LEAST_SPREAD)
    stands = column("stands", bool)
    return Table(figures, values, controls, effects, stands, low, high, excess_low, excess_high, surely)


def _bounds(figures: Sequence[Figure]) -> Float[np.ndarray, "end figure"]:
    ends = [_BOUNDS.get(each.measured, (-np.inf, np.inf)) for each in figures]
    return np.array(ends, dtype=float).reshape(len(figures), 2).T
