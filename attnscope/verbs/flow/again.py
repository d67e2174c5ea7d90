"""Rollout from one token to the input (Abnar and Zuidema 2020), and the effect of replacing each token.

The effect is the log probability that the answer at the query loses, or, for a model that answers nothing,
1 less the cosine of the query's last vector before and after.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from attnscope.render.script.again import SHOWN, Figures, Given, attention, inputs, load, report


def rollout(weights: list[Tensor]) -> Tensor:
    """Rollout share of every token for the query: each layer is half its mean attention, half its input."""
    reached = torch.eye(weights[0].shape[-1], dtype=torch.float64)
    for layer in weights[: SHOWN["layers"]]:
        mixed = layer[SHOWN["heads"]].nan_to_num().mean(0) + torch.eye(len(reached), dtype=torch.float64)
        reached = mixed / mixed.sum(-1, keepdim=True) @ reached
    return reached[SHOWN["query"]]


@torch.no_grad()
def at_query(model: Any, given: Given) -> Tensor:
    """Log probabilities of all answers at the query, or the last vector of a model without answers."""
    output = model(**given)
    if SHOWN["answer"] is not None:
        scores = output["prediction_logits"] if "prediction_logits" in output else output["logits"]
        found: Tensor = scores[0, SHOWN["query"]].double().log_softmax(-1)
        return found
    two = SHOWN["kind"] == "encoder" and model.config.is_encoder_decoder
    vectors: Tensor = output.encoder_last_hidden_state if two else output[0]
    return vectors[0, SHOWN["query"]].double()


@contextmanager
def emptied(model: Any, place: int) -> Iterator[None]:
    """Context manager: the input embedding at one position is zero."""

    def empty(_: Any, given: Any, made: Tensor) -> Tensor:
        changed = made.clone()
        changed[:, place] = 0
        return changed

    handle = model.get_input_embeddings().register_forward_hook(empty)
    try:
        yield
    finally:
        handle.remove()


def replaced(model: Any, place: int) -> Tensor:
    """Log probabilities or last vector at the query, with one token replaced."""
    name, instead = SHOWN["replaced in"], SHOWN["replacement id"]
    if instead is None:
        with emptied(model, place):
            return at_query(model, inputs())
    ids = SHOWN["inputs"][name]
    return at_query(model, inputs(**{name: [*ids[:place], instead, *ids[place + 1 :]]}))


def figures() -> Figures:
    model = load()
    for place, (shown, now) in enumerate(
        zip(SHOWN["rollout"], rollout(attention(model, inputs())).tolist(), strict=True)
    ):
        yield f"rollout {place} {SHOWN['tokens'][place]}", shown, now
    before, answer = at_query(model, inputs()), SHOWN["answer"]
    if answer is not None:
        yield "the answer's probability", SHOWN["probability"], math.exp(float(before[answer]))
    for place, shown in SHOWN["effects"]:
        after = replaced(model, place)
        lost = (
            1 - torch.cosine_similarity(before, after, dim=0) if answer is None else (before - after)[answer]
        )
        yield f"without {place} {SHOWN['tokens'][place]}", shown, float(lost)


if __name__ == "__main__":
    report(figures())
