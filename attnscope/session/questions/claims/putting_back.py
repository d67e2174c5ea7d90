"""What a tuned model answers with the old outputs of some of its heads put back, beside other heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attnscope.analysis.claims.ablation.experiment import head_counts, others_drawn
from attnscope.analysis.claims.ablation.question import word_at
from attnscope.analysis.claims.comparison.drift import distances
from attnscope.analysis.prediction import masks_of
from attnscope.capture import Selection
from attnscope.capture.evaluation_mode import evaluating
from attnscope.capture.faults import if_it_runs
from attnscope.capture.intervening.changes import AnswerRows, Change, Logits, Put, Variant
from attnscope.capture.intervening.reached import experiments_on, heard
from attnscope.results.claims.drift import PutBack
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.answers import question_of
from attnscope.session.reading import Reading

OTHERS = 3  # heads of each layer, drawn by lot
Head = tuple[int, int]


@dataclass(frozen=True)
class _Answer:
    """How far the tuned model's answer to one text lies from the old one's, and with heads put back."""

    vectors: bool
    tuned: float
    alone: list[float]
    others: list[float]
    every: float
    floor: float


def put_back(
    readings: Sequence[tuple[Reading, Reading]],
    chosen: tuple[Chosen, Chosen],
    heads: tuple[Head, ...],
    places: tuple[int, ...],
    seed: int,
    rounded: Any | None,
) -> PutBack:
    """Each of the heads put back by itself in every text; `InputError` where the model has no answer.

    `readings` are what the old and the tuned model read of the texts at `places`; `rounded` is the old model
    in another precision, where there is one.
    """
    found = [_in_one(old, new, chosen, heads, seed, rounded) for old, new in readings]
    return PutBack(
        measured="1 less the cosine of both vectors" if found[0].vectors else "divergence in nats",
        texts=places,
        heads=heads,
        tuned=np.array([each.tuned for each in found]),
        alone=np.array([each.alone for each in found]).T,
        others=np.array([each.others for each in found]).T,
        every=np.array([each.every for each in found]),
        floor=np.array([each.floor for each in found]),
    )


def _in_one(
    old: Reading,
    new: Reading,
    chosen: tuple[Chosen, Chosen],
    heads: Sequence[Head],
    seed: int,
    rounded: Any | None,
) -> _Answer:
    asks, asked = _asked(old)
    with if_it_runs(new.model.module, new.inputs, new.model.name):
        before = heard(old.model.module, old.inputs, _whole(chosen[0]), asked)
        after = experiments_on(new.model.module, new.inputs, _whole(chosen[1]), asked)
        counts = head_counts(after)
        drawn = _few(others_drawn(heads, counts, seed))
        every = [(layer, head) for layer, count in counts.items() for head in range(count)]
        put = Put(before.answers)
        groups = [*([head] for head in (*heads, *drawn)), every]
        variants: list[Variant] = [tuple(Change(*head, put) for head in group) for group in groups]
        outcomes = after.run(variants)
        again = None if rounded is None else _answer_of(rounded, old.inputs, asked)
    vectors = asks is Asks.VECTOR
    answers = [after.untouched, *(each.scores for each in outcomes), *([] if again is None else [again])]
    tuned, *far = distances(before.untouched, answers, vectors)
    floor = float("nan") if again is None else far.pop()
    others = dict(zip(drawn, far[len(heads) :], strict=False))
    beside = [[value for (layer, _), value in others.items() if layer == mine] for mine, _ in heads]
    return _Answer(
        vectors,
        tuned,
        far[: len(heads)],
        [float(np.mean(each)) if each else float("nan") for each in beside],
        far[-1],
        floor,
    )


def _answer_of(module: Any, inputs: dict[str, Any], asked: AnswerRows) -> Logits:
    with torch.no_grad(), evaluating(module):
        return asked.of(module(**inputs))


def _few(drawn: Sequence[Head]) -> list[Head]:
    """The first of each layer."""
    layers = dict.fromkeys(layer for layer, _ in drawn)
    return [head for layer in layers for head in [each for each in drawn if each[0] == layer][:OTHERS]]


def _whole(chosen: Chosen) -> Selection:
    """All heads: those that stand beside may be others than were looked at."""
    return Selection(kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route)


def _asked(reading: Reading) -> tuple[Asks, AnswerRows]:
    """Where the answer stands; of a text without a mask every token is asked for."""
    tokens = reading.encoded.tokens
    if reading.task == "masked" and not masks_of(tokens, reading.model.tokenizer.mask_token_id):
        asked = word_at(Asks.MASK, 0, len(tokens), None, reading.model.spell).asked
        return Asks.MASK, replace(asked, rows=tuple(range(len(tokens))))
    question = question_of(reading, None, vectors=True)
    return question.asks, question.asked
