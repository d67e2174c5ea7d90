"""What a change does along one path, beside what it does by all, and along the same path to other heads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from attnscope.analysis.claims.ablation.experiment import groups_drawn, head_counts, layers_drawn
from attnscope.analysis.claims.ablation.question import Tell
from attnscope.capture.intervening.along import Via
from attnscope.capture.intervening.changes import Variant
from attnscope.capture.intervening.experiments import Experiments
from attnscope.results.claims.effect import Beside, Group, Path, Receiver

One = TypeVar("One", bound=Beside)


def along(experiments: Experiments, path: Path | None) -> Experiments:
    """The same experiments, with what is changed let along this path alone where there is one."""
    return experiments if path is None else experiments.along(Via(path.receivers, path.direct))


def beside_all_ways(
    experiments: Experiments,
    path: Path | None,
    effects: Sequence[One],
    made: Callable[[One], Variant],
    tell: Tell,
) -> tuple[One, ...]:
    """The effects along a path, each with that of the same change where it comes to everything."""
    if path is None:
        return tuple(effects)
    outcomes = experiments.run([made(each) for each in effects])
    return tuple(
        replace(one, whole=tell(outcome.scores).change)
        for one, outcome in zip(effects, outcomes, strict=True)
    )


def beside_other_receivers(
    experiments: Experiments, path: Path | None, variant: Variant, tell: Tell, seed: int
) -> Path | None:
    """The path with what this change does where it comes to as many other heads of the same layers.

    Where all heads of the layers are its receivers, to all of as many other layers that come after it.
    """
    if path is None:
        return None
    mine = [(each.layer, each.head) for each in path.receivers]
    inputs, counts = [each.inputs for each in path.receivers], head_counts(experiments)
    groups = groups_drawn(mine, counts, seed) if mine else []
    if not groups and len({*inputs}) == 1:
        first = min(change.layer for change in variant)
        later = {layer: count for layer, count in counts.items() if layer > first}
        groups = layers_drawn(mine, later, seed) if {layer for layer, _ in mine} <= set(later) else []
    others = []
    for heads in groups:
        by_head = inputs if len(inputs) == len(heads) else inputs[:1] * len(heads)
        receivers = tuple(Receiver(*head, by) for head, by in zip(heads, by_head, strict=True))
        (outcome,) = experiments.along(Via(receivers, path.direct)).run([variant])
        others.append(Group(heads, tell(outcome.scores)))
    return replace(path, others=tuple(others))
