"""What is asked of the model: where in its result the answer stands, and which of the choices it is.

the word of a mask, the token after the text     scores of the vocabulary at one position
the verdict on a pair, a class                    scores of a few choices, for the text as a whole
a text that was written, or given as target       scores at every position, each for the token that follows
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.capture.intervening.changes import AnswerRows, Logits
from attnscope.errors import CertificateError, InputError
from attnscope.reference import EXACT, exact
from attnscope.results.claims.ablation import Answer, Asks, Effect

LogChances = Float[Tensor, "row choice"]
_VERDICTS = ("seq_relationship_logits", "sop_logits", "logits")


@dataclass(frozen=True, eq=False)
class Question:
    """Where the answer stands, and how what is chosen there is called.

    `ids` are the choices that are the answer, row by row; where they are None it is the likeliest.
    """

    asks: Asks
    asked: AnswerRows
    position: int | None
    ids: tuple[int, ...] | None
    name: Callable[[int], str]
    text: str = ""

    def answered(self, scores: Logits) -> Answer:
        """The answer in an untouched run; `CertificateError` where its probabilities are no numbers."""
        chances = log_chances(scores[0])
        ids = self.ids or tuple(chances.argmax(-1).tolist())
        told = self.text or self.name(ids[0])
        return Answer(self.asks, told, ids, self.position, probability(chances, ids))


def word_at(
    asks: Asks, position: int, length: int, ids: tuple[int, ...] | None, name: Callable[[int], str]
) -> Question:
    """The word at a mask, or the token that follows `position`."""
    return Question(asks, AnswerRows(_words, (position,), length), position, ids, name)


def text_written(ids: Sequence[int], text: str, name: Callable[[int], str]) -> Question:
    """All of a text, its decoder's first token first, each token given those before."""
    rows = tuple(range(len(ids) - 1))
    if not rows:
        raise InputError("the model wrote nothing: there is no answer that could change")
    return Question(Asks.WRITTEN, AnswerRows(_words, rows, len(ids)), None, tuple(ids[1:]), name, text)


def verdict_on_pair(chosen: int | None, name: Callable[[int], str]) -> Question:
    """Whether the second text follows the first: class 0 says that it does."""
    ids = None if chosen is None else (chosen,)
    return Question(Asks.PAIR, AnswerRows(_verdict, (0,), 1), None, ids, name)


def class_of_text(chosen: int | None, name: Callable[[int], str]) -> Question:
    """The class that a model trained to tell classes puts the input in."""
    ids = None if chosen is None else (chosen,)
    return Question(Asks.CLASS, AnswerRows(_classes, (0,), 1), None, ids, name)


def log_chances(scores: Float[Tensor, "row choice"]) -> LogChances:
    """Log probabilities in float64; `CertificateError` where they are none."""
    chances = torch.log_softmax(exact(scores.detach().cpu()), dim=-1)
    if bool(chances.isnan().any()):
        raise CertificateError(
            "the model answers nothing: its probabilities are not numbers (broken weights, or too large for "
            "its precision)"
        )
    return chances


def log_probability(chances: LogChances, ids: Sequence[int]) -> float:
    """Of the whole answer: the sum over its rows."""
    return float(chances[torch.arange(len(ids)), list(ids)].sum())


def probability(chances: LogChances, ids: Sequence[int]) -> float:
    return float(torch.tensor(log_probability(chances, ids), dtype=EXACT).exp())


def effect(before: LogChances, after: LogChances, ids: Sequence[int]) -> Effect:
    """How the answer changes from one run to another, and how far its distribution moves, in nats.

    KL(before || after), which is 0 only where nothing changed; of several rows the sum.
    """
    chances = before.exp()
    apart = torch.where(chances > 0, chances * (before - after), 0.0).sum()
    one, other = log_probability(before, ids), log_probability(after, ids)
    return Effect(probability(before, ids), probability(after, ids), other - one, max(float(apart), 0.0))


def _words(output: Any) -> Tensor:
    """Scores of the vocabulary at every position."""
    scores = output["prediction_logits"] if "prediction_logits" in output else output["logits"]
    if scores.ndim != 3:
        raise InputError("the model has no head that predicts words")
    return scores  # type: ignore[no-any-return]


def _verdict(output: Any) -> Tensor:
    for name in _VERDICTS:
        if name in output and output[name].ndim == 2:
            return output[name][:, None]  # type: ignore[no-any-return]
    raise InputError("the model has no head that judges pairs")


def _classes(output: Any) -> Tensor:
    scores = output["logits"]
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise InputError("the model answers with no classes: there is no probability that could change")
    return scores[:, None]  # type: ignore[no-any-return]
