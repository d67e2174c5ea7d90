"""What a tuned model answers with the old outputs of some of its heads put back, beside other heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from attnscope.analysis.claims.ablation.experiment import head_counts, others_drawn
from attnscope.analysis.claims.ablation.question import word_at
from attnscope.analysis.claims.comparison.drift import distances
from attnscope.analysis.prediction import masks_of, tagged_places
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import AnswerRows, Change, Logits, Put, Variant
from attnscope.capture.intervening.experiments import experiments_on, heard
from attnscope.errors import InputError
from attnscope.results.claims.drift import PutBack
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.answers import question_of, tags
from attnscope.session.reading import Reading

OTHERS = 3  # heads of each layer, drawn by lot
Head = tuple[int, int]


@dataclass(frozen=True)
class _Answer:
    tuned: float
    alone: list[float]
    others: list[float]
    every: float


@dataclass(frozen=True)
class Asked:
    """Where the answer of two models stands, which is a vector or probabilities."""

    rows: AnswerRows
    vectors: bool

    @property
    def measured(self) -> str:
        return "1 less the cosine of both vectors" if self.vectors else "divergence in nats"

    def distances(self, before: Logits, *others: Logits) -> list[float]:
        """How far each of the others lies from the answer before; `InputError` where it has other choices."""
        for each in others:
            if each.shape[1:] != before.shape[1:]:
                counts = f"{before.shape[-1]:,} and {each.shape[-1]:,}"
                raise InputError(f"the models choose their answers among {counts}: they can't be compared")
        return distances(before, others, self.vectors)


def put_back(
    readings: Sequence[tuple[Reading, Reading]],
    chosen: tuple[Chosen, Chosen],
    heads: tuple[Head, ...],
    places: tuple[int, ...],
    seed: int,
) -> PutBack:
    """Each of the heads put back by itself in every text, of those at `places` what both models read."""
    found = [_in_one(old, new, chosen, heads, seed) for old, new in readings]
    return PutBack(
        texts=places,
        heads=heads,
        tuned=np.array([each.tuned for each in found]),
        alone=np.array([each.alone for each in found]).T,
        others=np.array([each.others for each in found]).T,
        every=np.array([each.every for each in found]),
    )


def _in_one(
    old: Reading,
    new: Reading,
    chosen: tuple[Chosen, Chosen],
    heads: Sequence[Head],
    seed: int,
) -> _Answer:
    asked = asked_of(old, new)
    with new.running():
        before = heard(old.model.module, old.inputs, _whole(chosen[0]), asked.rows)
        after = experiments_on(new.model.module, new.inputs, _whole(chosen[1]), asked.rows)
        counts = head_counts(after)
        drawn = _few(others_drawn(heads, counts, seed))
        every = [(layer, head) for layer, count in counts.items() for head in range(count)]
        put = Put(before.answers)
        groups = [*([head] for head in (*heads, *drawn)), every]
        variants: list[Variant] = [tuple(Change(*head, put) for head in group) for group in groups]
        outcomes = after.run(variants)
    tuned, *far = asked.distances(before.untouched, after.untouched, *(each.scores for each in outcomes))
    others = dict(zip(drawn, far[len(heads) :], strict=False))
    beside = [[value for (layer, _), value in others.items() if layer == mine] for mine, _ in heads]
    return _Answer(
        tuned,
        far[: len(heads)],
        [float(np.mean(each)) if each else float("nan") for each in beside],
        far[-1],
    )


def _few(drawn: Sequence[Head]) -> list[Head]:
    layers = dict.fromkeys(layer for layer, _ in drawn)
    return [head for layer in layers for head in [each for each in drawn if each[0] == layer][:OTHERS]]


def _whole(chosen: Chosen) -> Selection:
    return Selection(kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route)


def asked_of(old: Reading, new: Reading) -> Asked:
    """Where the answer of both stands; `InputError` where one of them has none, or they answer otherwise."""
    (asks, rows), (other, _) = map(_asked, (old, new))
    if asks is not other:
        raise InputError(
            f"{old.model.name} and {new.model.name} are asked for different answers ({asks} and {other})"
        )
    return Asked(rows, asks is Asks.VECTOR)


def _asked(reading: Reading) -> tuple[Asks, AnswerRows]:
    """Of a text without a mask, and of a tagger, every token is asked for."""
    tokens = reading.encoded.tokens
    if tags(reading):
        asked = word_at(Asks.TAG, 0, len(tokens), None, str).asked
        return Asks.TAG, replace(asked, rows=tuple(tagged_places(tokens)))
    if reading.task == "masked" and not masks_of(tokens, reading.model.tokenizer.mask_token_id):
        asked = word_at(Asks.MASK, 0, len(tokens), None, reading.model.spell).asked
        return Asks.MASK, replace(asked, rows=tuple(range(len(tokens))))
    question = question_of(reading, None, vectors=True)
    return question.asks, question.asked
