"""The logit lens read: what each layer would answer, and how near that is to what the model answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.prediction import Spell, best, chances_of, vocabulary_of
from attnscope.capture.intervening.changes import AnswerRows
from attnscope.capture.layer_answers import answers_by_layer
from attnscope.errors import InputError
from attnscope.results import Provenance
from attnscope.verbs.predict.result import LayerAnswer, LayeredPlace

Positions = Sequence[int | None]  # None for the class of the whole input
_LEAST_TOLERANCE, _STEPS = 1e-4, 16  # of a probability distribution; of the model's own rounding


def layered_places(
    model: nn.Module, inputs: Mapping[str, Any], positions: Positions, provenance: Provenance, spell: Spell
) -> tuple[tuple[LayeredPlace, ...], float]:
    """What all layers would answer at each position, and how far the last is from the model's own answer.

    `InputError` where no earlier state can stand in the place of the last, or something else than that is
    read by the head: then the model's own answer does not come out again.
    """
    seen = answers_by_layer(model, inputs, asked_at(model, inputs, positions))
    own, layers = (chances_of(each, provenance) for each in (seen.own, seen.answers))
    apart = 0.5 * (layers - own).abs().sum(-1)
    read_back = float(apart[-1].max())
    if read_back > tolerance(provenance):
        raise InputError(
            f"the word head of {provenance.model} reads more than what its last layer leaves (the answer "
            f"moves by {read_back:.2g} when that alone is kept): earlier layers cannot be asked"
        )
    return tuple(
        LayeredPlace(
            position,
            best(own[i], spell, 1)[0],
            tuple(
                _answer(layer, layers[j, i], int(own[i].argmax()), float(apart[j, i]), spell)
                for j, layer in enumerate(seen.layers)
            ),
        )
        for i, position in enumerate(positions)
    ), read_back


def probabilities_of(
    model: nn.Module,
    inputs: Mapping[str, Any],
    positions: Positions,
    provenance: Provenance,
    answers: Sequence[int],
) -> Float[Tensor, "layer place"]:
    """What every layer would give, at each position, to the one answer that is asked about there."""
    seen = answers_by_layer(model, inputs, asked_at(model, inputs, positions))
    chances = chances_of(seen.answers, provenance)
    return torch.stack([chances[:, i, answer] for i, answer in enumerate(answers)], dim=1)


def asked_at(model: Any, inputs: Mapping[str, Any], positions: Positions) -> AnswerRows:
    """The places in a model's output; of a classifier the one that is everywhere."""

    def classes(output: Any) -> Tensor:
        return torch.as_tensor(output["logits"])[:, None]

    def words(output: Any) -> Tensor:
        logits = vocabulary_of(output, model)
        if logits is None:
            raise InputError("it has no head that predicts words")
        return logits

    rows = [position for position in positions if position is not None]
    if not rows:
        return AnswerRows(classes, (0,), 1)
    return AnswerRows(words, tuple(rows), inputs["input_ids"].shape[1])


def tolerance(provenance: Provenance) -> float:
    """How far the model's own answer may move when it is computed again among others, in its precision."""
    kind = getattr(torch, provenance.dtype, torch.float32)
    return max(_LEAST_TOLERANCE, _STEPS * torch.finfo(kind).eps)


def _answer(
    layer: int, chances: Float[Tensor, " choice"], own: int, apart: float, spell: Spell
) -> LayerAnswer:
    mine = chances[own]
    return LayerAnswer(
        layer, best(chances, spell, 1)[0], float(mine), int((chances > mine).sum()) + 1, min(1.0, apart)
    )
