"""Gradient measures of an answer, head by head, beside the same measures of other answers."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import spearmanr
from torch import Tensor

from attnscope.analysis.answers.question import Ids, log_probabilities, logits_over_mean
from attnscope.analysis.scores.dense import scores_of
from attnscope.capture.arithmetic import epsilon_of, sums_of
from attnscope.capture.intervening.experiments import Experiments
from attnscope.capture.intervening.gradients import Direct, direct_gradients
from attnscope.capture.intervening.passing import Observed, Slopes, slopes
from attnscope.measures import MEASURES, Need, Tile
from attnscope.reference import EXACT, exact
from attnscope.results import HeadScores
from attnscope.verify import apart

MIXED = "what its heads answer is not their weights times their values"
OF_ANSWERS = frozenset({Need.SLOPE, Need.GRADIENT, Need.DIRECT})


@dataclass(frozen=True, eq=False)
class HeadGradients:
    """Gradients by head: `slopes` of ln p, and `direct` effects on the logit or why there are none.

    `mixed` are layers whose outputs are not their weights times their values.
    """

    slopes: Slopes
    direct: Direct | str | None
    mixed: tuple[int, ...]


def attributed(
    experiments: Experiments,
    every: Sequence[Ids],
    names: Sequence[str],
    layers: Sequence[int],
    heads: Sequence[int],
) -> dict[str, HeadScores]:
    """Gradient measures by name of the first of `every` answer; the control is the median of the others.

    The second answer, where there is one, is the runner-up and no control. A measure without meaning here
    says why.

    """
    needs = {need for name in names for need in MEASURES[name].needs}
    gradients = _gradients(experiments, every, needs)
    absent = _absent(gradients, names, layers)
    there = [name for name in names if not absent.get(name)]
    wanted = {need for name in there for need in MEASURES[name].needs}
    scored = []
    for answer in range(len(every)):
        tiles = (
            ([_tile(experiments, gradients, layer, head, answer, wanted)] for head in heads)
            for layer in layers
        )
        scored.append(scores_of(names, tiles, tuple(layers), tuple(heads), 1, absent))
    scores = {}
    for name, first in scored[0].items():
        others = np.array([one[name].values for one in scored[2:]]).reshape(-1, *first.values.shape)
        control = np.median(np.abs(others), axis=0) if len(others) and not first.absent else None
        words = (
            ""
            if first.absent or len(scored) < 2
            else _in_words(first, scored[1][name].values, others, gradients)
        )
        described = replace(first.description, apart=words or first.description.apart)
        scores[name] = replace(first, control=control, description=described)
    return scores


def _gradients(experiments: Experiments, every: Sequence[Ids], needs: Collection[Need]) -> HeadGradients:
    model, inputs, sites = experiments.model, experiments.inputs, experiments.sites
    asked = experiments.asked
    weighed = Need.GRADIENT in needs
    if weighed or Need.SLOPE in needs:
        of_chances = slopes(model, inputs, sites, log_probabilities(asked, every), weights=weighed)
    else:
        of_chances = Slopes((), {})
    direct = None
    if Need.DIRECT in needs:
        scores = logits_over_mean(every)
        direct = direct_gradients(model, inputs, sites, asked, experiments.untouched, scores)
    mixed = [place[0] for place, seen in of_chances.seen.items() if weighed and not makes_output(seen)]
    return HeadGradients(of_chances, direct, tuple(dict.fromkeys(mixed)))


def _absent(gradients: HeadGradients, names: Sequence[str], layers: Sequence[int]) -> dict[str, str]:
    reasons = {}
    for name in names:
        needs = MEASURES[name].needs
        if Need.DIRECT in needs and isinstance(gradients.direct, str):
            reasons[name] = gradients.direct
        elif Need.GRADIENT in needs and set(layers) <= set(gradients.mixed):
            reasons[name] = MIXED
    return reasons


def _tile(
    experiments: Experiments,
    gradients: HeadGradients,
    layer: int,
    head: int,
    answer: int,
    needs: Collection[Need],
) -> Tile:
    """One head's weights and gradients in all attentions of its layer, rows stacked."""
    places = sorted(place for place in experiments.answers if place[0] == layer)
    outputs = torch.cat([_rows(experiments.answers[place], head) for place in places])
    queries = torch.arange(len(outputs))
    facts: dict[str, Any] = {"output": outputs}
    weights = torch.zeros(len(outputs), 1, dtype=EXACT)
    if Need.SLOPE in needs or Need.GRADIENT in needs:
        of_chances = gradients.slopes.by_score[answer]
        facts["slope"] = torch.cat([_rows(of_chances[place], head) for place in places])
    if Need.GRADIENT in needs:
        pairs = [
            weights_and_slopes(gradients.slopes.seen[place], gradients.slopes.by_score[answer][place], head)
            for place in places
        ]
        weights, facts["gradient"] = (_below(each) for each in zip(*pairs, strict=True))
        if layer in gradients.mixed:
            facts["gradient"] = torch.full_like(facts["gradient"], math.nan)
    if Need.DIRECT in needs and isinstance(gradients.direct, Direct):
        facts["direct"] = torch.cat([_rows(gradients.direct.slopes[answer][place], head) for place in places])
    return Tile(weights, queries, torch.arange(weights.shape[1]), **facts)


def _rows(of_heads: Float[Tensor, "batch head query value_dim"], head: int) -> Float[Tensor, "row value_dim"]:
    return exact(of_heads[:, head].flatten(0, 1).detach().cpu())


def weights_and_slopes(
    seen: Observed, slope: Float[Tensor, "batch head query value_dim"], head: int
) -> tuple[Float[Tensor, "row key"], Float[Tensor, "row key"]]:
    """Weights of a head and the answer's slope along each: the output's gradient times the key's value."""
    values = exact(seen.value[:, head // (slope.shape[1] // seen.value.shape[1])].cpu())
    gradient = exact(slope[:, head].cpu()) @ values.transpose(1, 2)
    weights = torch.zeros_like(gradient) if seen.weights is None else exact(seen.weights[:, head].cpu())
    return weights.flatten(0, 1), gradient.flatten(0, 1)


def _below(parts: Sequence[Float[Tensor, "_ _"]]) -> Float[Tensor, "row key"]:
    """Matrices stacked row-wise, padded with zeros to the widest."""
    widest = max(each.shape[1] for each in parts)
    return torch.cat([torch.nn.functional.pad(each, (0, widest - each.shape[1])) for each in parts])


def makes_output(seen: Observed) -> bool:
    """Whether the output of every head is its weights times its values, up to rounding."""
    if seen.weights is None:
        return False
    values = exact(seen.value).repeat_interleave(seen.output.shape[1] // seen.value.shape[1], 1)
    weights = exact(seen.weights)
    off = (weights @ values - exact(seen.output)).abs()
    off = off.masked_fill(weights.isnan().all(-1, keepdim=True), 0.0).max()  # queries without any key
    tensors = seen.output, seen.value
    tolerance = apart(values.shape[2], epsilon_of(*tensors), sums_of(*tensors))
    return bool(off <= tolerance * values.abs().max())


def _in_words(
    scores: HeadScores,
    beside: Float[np.ndarray, "layer head"],
    others: Float[np.ndarray, "answer layer head"],
    gradients: HeadGradients,
) -> str:
    sizes = np.abs(scores.values)
    if np.isnan(sizes).all():
        return ""
    i, j = np.unravel_index(int(np.nanargmax(sizes)), sizes.shape)
    count = f"{sizes.size} heads" if sizes.size > 1 else "1 head"
    words = f"the largest of {count} is L{scores.layers[i]} H{scores.heads[j]} {scores.values[i, j]:.3g}"
    words += f", for the runner-up {beside[i, j]:.3g}"
    if len(others):
        there = np.abs(others[:, i, j])
        words += f", size for the others {np.median(there):.3g}"
        words += f" in the median ({int((there < sizes[i, j]).sum())} of {len(others)} less)"
        words += _alike(sizes, np.median(np.abs(others), axis=0))
    if Need.DIRECT in MEASURES[scores.measure].needs and isinstance(gradients.direct, Direct):
        norms = f"{gradients.direct.norms} norms" if gradients.direct.norms != 1 else "1 norm"
        words += f"; {norms} held on the way, all parts add up to the logit"
    if Need.GRADIENT in MEASURES[scores.measure].needs and gradients.mixed:
        words += f"; L{', L'.join(map(str, gradients.mixed))}: {MIXED}"
    return words


def _alike(mine: Float[np.ndarray, "layer head"], theirs: Float[np.ndarray, "layer head"]) -> str:
    if mine.size < 3:
        return ""
    rho = float(spearmanr(mine.ravel(), theirs.ravel(), nan_policy="omit").statistic)
    return "" if math.isnan(rho) else f"; rank correlation with those for others {rho:.2f}".replace("-", "−")
