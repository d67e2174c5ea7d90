"""Every head's effect, foretold from one forward and one backward pass, and how far that is right.

    estimate = sum over the head's output of (what would stand there - what stands there) * gradient

of the answer's log probability, which is the first term of what really putting it there would do (attribution
patching: Nanda 2023; Syed et al. 2023, arXiv 2310.10348). It needs no list of architectures and no
unembedding. With zeros its size is the importance of a head, |output . gradient| (Michel et al. 2019), for
one text and not divided by that of its layer. It is an estimate, and far off where the answer is nearly
certain or a head is backed up by others: whoever shows it really takes the best heads away, and shows both.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from attnscope.analysis.claims.ablation.attribution import attributed
from attnscope.analysis.claims.ablation.question import Ids
from attnscope.capture.intervening.changes import Cut, Put, What, Zero
from attnscope.capture.intervening.experiments import Experiments
from attnscope.capture.intervening.passing import gradients
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results.claims.effect import HeadEffect, Predicted

FEWEST = 3  # heads whose order can be compared


def estimated(experiments: Experiments, ids: Sequence[int], what: What) -> tuple[Predicted, ...]:
    """The foretold change of the answer's log probability for every head, the largest first."""
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
    """The effects with what was foretold of them, and Spearman's correlation of both; None of too few."""
    foretold = {(each.layer, each.head): each.change for each in estimates}
    both = tuple(replace(each, predicted=foretold[each.layer, each.head]) for each in heads)
    if len(both) < FEWEST:
        return both, None
    rho = spearmanr([each.change for each in both], [each.predicted for each in both]).statistic
    return both, None if rho != rho else float(rho)


def measured_estimates(
    experiments: Experiments, ids: Ids, by: str, heads: Sequence[tuple[int, int]]
) -> tuple[Predicted, ...]:
    """The change without each of `heads` as the measure `by` foretells it, the largest size first.

    Importance with its sign, -output . gradient; the others with theirs turned round. `InputError` where the
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
