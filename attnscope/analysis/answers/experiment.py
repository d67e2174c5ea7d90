"""Ablates heads singly and together, beside random heads, rounding and gradient estimates."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from attnscope.analysis.answers.attribution import attributed
from attnscope.analysis.answers.question import Ids, Tell, effect, log_chances
from attnscope.capture.intervening.changes import Change, Cut, Put, Rounded, Variant, What, Zero
from attnscope.capture.intervening.experiments import Experiments, Outcome
from attnscope.capture.intervening.passing import gradients
from attnscope.errors import InputError, listed
from attnscope.reference import exact
from attnscope.results.claims.effect import Effect, Floor, Group, HeadEffect, Intervention, Predicted, ranked

Head = tuple[int, int]  # layer and head
MOST_DRAWN = 12  # other heads of a layer, and other groups
_MOST_SETS = 10_000  # of layers, to draw from


def others_drawn(heads: Sequence[Head], counts: Mapping[int, int], seed: int) -> list[Head]:
    """Up to `MOST_DRAWN` random other heads in each layer of `heads`; none where all its heads are given.

    `counts` says how many heads a layer has.
    """
    random, drawn = np.random.default_rng(seed), list[Head]()
    for layer in sorted({layer for layer, _ in heads}):
        left = [head for head in range(counts[layer]) if (layer, head) not in set(heads)]
        several = random.permutation(left)[:MOST_DRAWN]
        drawn += sorted((layer, int(head)) for head in several)
    return drawn


def layers_drawn(group: Sequence[Head], counts: Mapping[int, int], seed: int) -> list[tuple[Head, ...]]:
    """Other sets of as many whole layers, where `group` is whole layers; empty where it is not."""
    mine = Counter(layer for layer, _ in group)
    others = [layer for layer in sorted(counts) if layer not in mine]
    if any(count < counts[layer] for layer, count in mine.items()) or len(others) < len(mine):
        return []
    sets = list(islice(combinations(others, len(mine)), _MOST_SETS))
    order = np.random.default_rng(seed).permutation(len(sets))[:MOST_DRAWN]
    return [
        tuple((layer, head) for layer in sets[each] for head in range(counts[layer]))
        for each in sorted(order)
    ]


def groups_drawn(group: Sequence[Head], counts: Mapping[int, int], seed: int) -> list[tuple[Head, ...]]:
    """Random groups with as many heads in the same layers as `group`; empty where no other exists.

    They are made of heads that are not in `group` as far as there are enough of these in every layer.
    """
    random = np.random.default_rng(seed)
    needed = Counter(layer for layer, _ in group)
    pools: dict[int, list[int]] = defaultdict(list)
    for layer, count in needed.items():
        left = [head for head in range(counts[layer]) if (layer, head) not in set(group)]
        pools[layer] = left if len(left) >= count else list(range(counts[layer]))
    found: dict[tuple[Head, ...], None] = {}
    for _ in range(20 * MOST_DRAWN):
        one = tuple(
            (layer, int(head))
            for layer, count in sorted(needed.items())
            for head in sorted(random.permutation(pools[layer])[:count])
        )
        if set(one) != set(group):
            found[one] = None
        if len(found) == MOST_DRAWN:
            break
    return list(found)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Effects on the answer without each head and without all at once, and the noise floor."""

    heads: tuple[HeadEffect, ...]
    group: Group | None
    floor: Floor


def taken_away(
    experiments: Experiments,
    ids: Sequence[int],
    heads: Sequence[Head],
    what: What,
    *,
    together: bool,
    seed: int,
    name: Callable[[int], str] | None = None,
    tell: Tell | None = None,
) -> Outcomes:
    """Ablates every head alone and, if `together`, all at once: the effects on the answer.

    `ids` are the answer, `name` names a choice, `tell` measures the effect (by default the change of the log
    probability). Every head is compared with random other heads of its layer or, where all heads of the layer
    are ablated, with these.

    """
    counts = head_counts(experiments)
    check_heads(heads, counts)
    drawn = others_drawn(heads, counts, seed)
    group = tuple(heads) if together and len(heads) > 1 else ()
    groups = groups_drawn(group, counts, seed) if group else []
    whole_layers = [] if groups or not group else layers_drawn(group, counts, seed)
    groups = groups or whole_layers
    variants = [_variant(each, what) for each in (*([one] for one in (*heads, *drawn)), *groups)]
    variants += [_variant(group, what)] if group else []
    first = min(layer for layer, _ in heads)
    variants.append(_variant([(first, head) for head in range(counts[first])], Rounded()))
    *outcomes, rounded = experiments.run(variants)
    tell = tell or _of_chances(experiments, ids, name)
    effects = [tell(each.scores) for each in outcomes]
    singles = [
        HeadEffect(**vars(each), layer=layer, head=head)
        for (layer, head), each in zip((*heads, *drawn), effects, strict=False)
    ]
    mine, random = singles[: len(heads)], singles[len(heads) :]
    found = ranked(tuple(_beside(each, random, mine) for each in mine))
    others = effects[len(singles) : len(singles) + len(groups)]
    whole = None
    if group:
        typical, below = against(effects[-1], others)
        whole = Group(group, effects[-1], typical, below, len(others), bool(whole_layers), tuple(groups))
    return Outcomes(found, whole, floor_of(tell, outcomes, rounded, random, seed))


def _of_chances(experiments: Experiments, ids: Sequence[int], name: Callable[[int], str] | None) -> Tell:
    before = log_chances(experiments.untouched[0])
    return lambda after: effect(before, log_chances(after[0]), ids, name)


def head_counts(experiments: Experiments) -> dict[int, int]:
    """Number of heads by layer; of a layer that attends several times the smallest number."""
    counts: dict[int, int] = {}
    for (layer, _), answer in experiments.answers.items():
        counts[layer] = min(counts.get(layer, answer.shape[1]), answer.shape[1])
    return counts


def check_heads(heads: Sequence[Head], counts: dict[int, int]) -> None:
    """Raises `InputError` for a head that its layer does not have."""
    for layer, head in heads:
        if layer not in counts:
            raise InputError(f"no layer {layer}: layers are {listed(sorted(counts))}")
        if head >= counts[layer]:
            raise InputError(f"no head {head} in layer {layer}: heads are {listed(range(counts[layer]))}")


def intervention(experiments: Experiments) -> Intervention:
    """The fidelity of the changes so far, as read back from the model."""
    tally = experiments.tally
    return Intervention.of(tally.back, tally.lost, tally.unseen, experiments.faithful)


def _variant(heads: Sequence[Head], what: What) -> Variant:
    return tuple(Change(layer, head, what) for layer, head in heads)


def _beside(one: HeadEffect, random: Sequence[HeadEffect], every: Sequence[HeadEffect]) -> HeadEffect:
    """The effect with its control: random heads of the layer, or all other heads where none were drawn."""
    there = [each for each in random if each.layer == one.layer]
    there = there or [each for each in every if each.layer == one.layer and each.head != one.head]
    typical, below = against(one, there)
    return replace(one, typical=typical, below=below, controls=len(there))


def against(one: Effect, others: Sequence[Effect]) -> tuple[float | None, int]:
    """The median size of the others' changes, and the number of others with a smaller change."""
    sizes = [abs(each.change) for each in others]
    return (float(np.median(sizes)) if sizes else None), sum(size < abs(one.change) for size in sizes)


def floor_of(
    tell: Tell,
    outcomes: Sequence[Outcome],
    rounded: Outcome,
    random: Sequence[HeadEffect],
    seed: int,
) -> Floor:
    """The noise floor: the change in the unchanged entry of each batch, and in one rounded on purpose."""
    controls = {id(each.control): each.control for each in outcomes if each.control is not None}
    effects = [tell(each) for each in (*controls.values(), rounded.scores)]
    largest = max(abs(each.change) for each in effects)
    return Floor(largest, max(each.kl for each in effects), len(controls), tuple(random), seed)


FEWEST = 3  # heads whose order can be compared


def estimated(experiments: Experiments, ids: Sequence[int], what: What) -> tuple[Predicted, ...]:
    """The change of the answer's log probability that gradients predict for each head, largest first."""
    if isinstance(what, Cut):
        raise InputError("--rank foretells what replacing an output does: leave --link out")

    def score(output: Any) -> Tensor:
        scores = experiments.asked.of(output)[0].float().log_softmax(-1)
        return scores[torch.arange(len(ids), device=scores.device), list(ids)].sum()

    slopes = gradients(experiments.model, experiments.inputs, experiments.sites, score)
    changes: dict[tuple[int, int], float] = {}
    for place, slope in slopes.items():
        if place not in experiments.answers:
            continue
        there = exact(experiments.answers[place].cpu())  # not every device has float64
        new = what.answers[place].to(there) if isinstance(what, Put) else torch.zeros_like(there)
        of_heads = ((new - there) * exact(slope.cpu())).sum((0, 2, 3))
        for head, value in enumerate(of_heads.tolist()):
            changes[place[0], head] = changes.get((place[0], head), 0.0) + value
    order = sorted(changes, key=lambda one: (-abs(changes[one]), one))
    return tuple(Predicted(layer, head, changes[layer, head]) for layer, head in order)


def held_against(
    heads: Sequence[HeadEffect], estimates: Sequence[Predicted]
) -> tuple[tuple[HeadEffect, ...], float | None]:
    """The effects with their predictions, and the Spearman correlation (None for fewer than `FEWEST`)."""
    foretold = {(each.layer, each.head): each.change for each in estimates}
    both = tuple(replace(each, predicted=foretold[each.layer, each.head]) for each in heads)
    if len(both) < FEWEST:
        return both, None
    rho = spearmanr([each.change for each in both], [each.predicted for each in both]).statistic
    return both, None if rho != rho else float(rho)


def measured_estimates(
    experiments: Experiments, ids: Ids, by: str, heads: Sequence[tuple[int, int]]
) -> tuple[Predicted, ...]:
    """The predicted change without each of `heads`, by the measure `by`, largest size first.

    For `importance` it is -output . gradient, for another measure its negative. `InputError` where the
    measure has no meaning.

    """
    if by == "importance":
        return estimated(experiments, ids, Zero())
    layers, numbers = (sorted({head[i] for head in heads}) for i in (0, 1))
    scores = attributed(experiments, (ids,), (by,), layers, numbers)[by]
    if scores.absent:
        raise InputError(f"--by {by} has no meaning here: {scores.absent}")
    estimates = [
        Predicted(layers[i], numbers[j], -float(value))
        for (i, j), value in np.ndenumerate(scores.values)
        if not np.isnan(value)
    ]
    return tuple(sorted(estimates, key=lambda one: (-abs(one.change), one.layer, one.head)))
