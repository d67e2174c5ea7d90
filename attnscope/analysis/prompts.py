"""Many prompts under one question: the figures of each prompt's own result, set beside one another.

Nothing is measured here: a figure of a prompt is read off the result that this prompt has alone, with the
controls that were drawn for it. Means, intervals and who goes against them follow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from attnscope.analysis.intervals import interval
from attnscope.errors import InputError
from attnscope.results import Ablation, Contributions, Finding, Flow, LayeredPrediction, Why
from attnscope.results.claims.attributed import DISTANCE
from attnscope.results.claims.prompts import CORRELATION, Asked, Figure, beyond
from attnscope.results.claims.ranking import LEAST_SPREAD
from attnscope.results.claims.why import Part

Spans: TypeAlias = Mapping[str, Sequence[int]]  # the tokens of each field
Single: TypeAlias = Finding | Ablation | Flow | LayeredPrediction | Why | Contributions
NONE = float("nan")
_BOUNDS = {
    "weight": (0.0, 1.0),
    "probability": (0.0, 1.0),
    CORRELATION: (-1.0, 1.0),
    "distance": (0.0, np.inf),
}


@dataclass(frozen=True)
class Seen:
    """One figure in one prompt."""

    value: float
    control: float = NONE
    effect: float = NONE
    stands: bool = False


Figures: TypeAlias = dict[Figure, Seen]


def figures_of(result: Single, spans: Spans) -> tuple[Asked, Figures]:
    """What the result of one prompt has to say; `spans` are the tokens of its fields."""
    if isinstance(result, Finding):
        return (Asked.LIKE if result.smaller_is_better else Asked.FIND), dict(_of_finding(result))
    if isinstance(result, Ablation):
        if result.predicted:
            return Asked.RANK, dict(_of_ranked(result))
        return Asked.ABLATE, dict(_of_ablation(result))
    if isinstance(result, Contributions):
        return Asked.ANSWER, dict(_of_contributions(result))
    if isinstance(result, Flow):
        return Asked.FLOW, dict(_of_flow(result, spans))
    if isinstance(result, LayeredPrediction):
        return Asked.LAYERS, dict(_of_layers(result))
    return Asked.WHY, dict(_of_why(result))


def _head(layer: int, head: int, measured: str) -> Figure:
    return Figure(f"L{layer} H{head}", measured, layer, head)


def _of_finding(result: Finding) -> Iterator[tuple[Figure, Seen]]:
    measured = "distance" if result.smaller_is_better else "weight"
    for i, j in result.places:
        own, control = float(result.weights[i, j]), float(result.controls.mean[i, j])
        if result.elsewhere is not None:  # what other queries give explains as much
            control = float(np.fmax(control, result.elsewhere[i, j]))
        stands = bool(np.isfinite(own)) and result.stands_out((i, j))
        yield _head(result.layers[i], result.heads[j], measured), Seen(own, control, stands=stands)


def _of_ablation(result: Ablation) -> Iterator[tuple[Figure, Seen]]:
    if result.places:
        raise InputError("parts and tokens are not counted over prompts: ask each of them")
    floor, unit = result.floor.rounding, result.unit.removeprefix("of ")
    for each in result.heads:
        control = floor if each.typical is None else each.typical
        first = each.rank == 1 and each.controls > 0 and abs(each.change) > floor
        yield _head(each.layer, each.head, unit), Seen(each.change, control, stands=first)
    if (group := result.group) is not None and len(group.heads) > 1:
        change = group.effect.change
        control = floor if group.typical is None else group.typical
        first = group.below == group.controls > 0 and abs(change) > floor
        yield Figure("all at once", unit), Seen(change, control, stands=first)


def _of_ranked(result: Ablation) -> Iterator[tuple[Figure, Seen]]:
    really = {(each.layer, each.head): each for each in result.heads}
    by_layer = dict[int, list[tuple[int, float]]]()
    for each in result.predicted:
        by_layer.setdefault(each.layer, []).append((each.head, abs(each.change)))
    for each in result.predicted:
        others = [size for head, size in by_layer[each.layer] if head != each.head]
        typical = float(np.median(others)) if others else result.floor.rounding
        taken = really.get((each.layer, each.head))
        effect, first = (NONE, False) if taken is None else (taken.change, taken.rank == 1)
        seen = Seen(each.change, typical, effect, first and abs(effect) > result.floor.rounding)
        yield _head(each.layer, each.head, f"foretold {result.unit.removeprefix('of ')}"), seen


def _of_contributions(result: Contributions) -> Iterator[tuple[Figure, Seen]]:
    for part in result.parts:
        figure = Figure(part.name, "logits", part.layer, part.head)
        if part.removed is None or not part.controls:
            yield figure, Seen(part.direct)
        else:
            most = max(map(abs, part.controls))
            yield figure, Seen(part.direct, most, -part.removed.total, part.stands)


def _of_flow(result: Flow, spans: Spans) -> Iterator[tuple[Figure, Seen]]:
    if (replaced := result.ablated) is None:
        return
    alone = next((each.correlation for each in replaced.trust if each.method == DISTANCE), NONE)
    for each in replaced.trust:
        if each.method != DISTANCE:
            stands = bool(each.correlation > each.high)
            yield Figure(each.method, CORRELATION), Seen(each.correlation, alone, stands=stands)
    measured = f"{replaced.unit} lost" if replaced.answer else replaced.unit
    tried = np.isfinite(replaced.effects)
    for name, places in spans.items():
        own = np.zeros(len(tried), dtype=bool)
        own[list(places)] = True
        if (own & tried).any():
            value, others = (_mean(replaced.effects[part & tried]) for part in (own, ~own))
            stands = bool(np.isfinite(others)) and value > float(replaced.effects[~own & tried].max())
            yield Figure(f"field:{name}", measured), Seen(value, others, stands=stands)


def _mean(values: Float[np.ndarray, " key"]) -> float:
    return float(values.mean()) if len(values) else NONE


def _of_layers(result: LayeredPrediction) -> Iterator[tuple[Figure, Seen]]:
    for each in result.places[0].layers:
        name = "embeddings" if each.layer < 0 else f"layer {each.layer}"
        layer = None if each.layer < 0 else each.layer
        stands = each.rank == 1
        yield Figure(name, "probability", layer), Seen(each.probability, each.control, stands=stands)


def _of_why(result: Why) -> Iterator[tuple[Figure, Seen]]:
    for part in result.parts:
        figure = Figure(f"{part.name} on the {part.side} side", "share", part.layer, part.head)
        yield figure, _of_part(result, part)


def _of_part(result: Why, part: Part) -> Seen:
    if part.removed is None or not part.controls:
        return Seen(part.contrast)
    most = max(map(abs, part.controls))
    return Seen(part.contrast, most, -part.removed.total, result.is_reason(part))


@dataclass(frozen=True)
class Answered:
    """What one prompt is answered: the likeliest, its probability, and that of every choice by name."""

    text: str
    probability: float
    number: int | None
    chances: Float[np.ndarray, " choice"] | None


def figures_of_answers(every: Sequence[Answered], names: Mapping[int, str]) -> list[Figures]:
    """Each prompt's own answer, beside what it has in the other prompts; then every answer by its name.

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
    """Figures by prompt, and the intervals of their means: the fields of `Prompts` by their names."""

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
    """The figures of all prompts side by side; what a prompt has not is NaN there, of an answer's parts 0.

    They were chosen `among` so many, if these are more.
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
