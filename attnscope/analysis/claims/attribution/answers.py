"""The answer and others that could have been given: what is asked of a model's scores for each of them.

The runner-up is the nearest of them; the rest are drawn by lot from the same choices. A head that does as
much to them moves any answer.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.capture.intervening.changes import AnswerRows, Logits

Ids = tuple[int, ...]  # an answer: a choice for each of its rows


def other_answers(ids: Ids, choices: int, never: Collection[int], count: int, seed: int) -> tuple[Ids, ...]:
    """At most `count` others, in no row the answer itself nor one of `never`, drawn with `seed`."""
    random = np.random.default_rng(seed)
    rows = []
    for mine in ids:
        left = [each for each in range(choices) if each != mine and each not in never]
        rows.append([int(each) for each in random.permutation(left)[:count]])
    return tuple(zip(*rows, strict=False))


def runner_up(chances: Float[Tensor, "row choice"], ids: Ids) -> Ids:
    """What would be likeliest in each row if the answer's choice were not there."""
    others = chances.clone()
    others[torch.arange(len(ids)), list(ids)] = -torch.inf
    return tuple(others.argmax(-1).tolist())


def log_probabilities(asked: AnswerRows, every: Sequence[Ids]) -> Callable[[Any], Float[Tensor, " answer"]]:
    """What a model returns -> ln p of each answer, over all of its rows."""

    def scores(output: Any) -> Tensor:
        return _summed(_wide(asked.of(output)[0]).log_softmax(-1), every)

    return scores


def logits_over_mean(every: Sequence[Ids]) -> Callable[[Logits], Float[Tensor, " answer"]]:
    """The answer's scores -> the logit of each answer over the mean of all, which moves no probability."""

    def scores(logits: Logits) -> Tensor:
        rows = _wide(logits[0])
        return _summed(rows - rows.mean(-1, keepdim=True), every)

    return scores


def _wide(scores: Tensor) -> Tensor:
    """In float32 at least."""
    return scores.float() if torch.finfo(scores.dtype).bits < 32 else scores


def _summed(of_choices: Float[Tensor, "row choice"], every: Sequence[Ids]) -> Float[Tensor, " answer"]:
    rows = torch.arange(len(of_choices), device=of_choices.device)
    return torch.stack([of_choices[rows, list(ids)].sum() for ids in every])
