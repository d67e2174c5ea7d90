"""Where in a model's output an answer stands, and which other answers there could be.

the word of a mask, the token after the text     scores of the vocabulary at one position
the tag of a token                               scores of a few choices at one position
an answer within the text                        scores of all positions, for its start and for its end
the verdict on a pair, a class                    scores of a few choices, for the text as a whole
a text that was written, or given as target       scores at every position, each for the token that follows

The nearest other answer is the runner-up; the rest are drawn at random from the same choices. A head with as
large an effect on them acts on any answer.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.capture.intervening.changes import AnswerRows, Logits
from attnscope.errors import CertificateError, InputError
from attnscope.reference import EXACT, exact
from attnscope.results.claims.effect import Answer, Asks, Effect, Measured

Ids = tuple[int, ...]  # an answer: a choice for each of its rows
LogChances = Float[Tensor, "row choice"]
_VERDICTS = ("seq_relationship_logits", "sop_logits", "logits")


@dataclass(frozen=True, eq=False)
class Question:
    """A question to the model: where in its output the answer stands, and the names of its choices.

    `ids` are the answer's choices, row by row (None: the likeliest), `against` those of another answer,
    `beside` a vector to compare this model's vector with.

    """

    asks: Asks
    asked: AnswerRows
    position: int | None
    ids: tuple[int, ...] | None
    name: Callable[[int], str]
    text: str = ""
    against: tuple[int, ...] = ()
    against_text: str = ""
    beside: Float[Tensor, " choice"] | None = None

    @property
    def measured(self) -> Measured:
        """The quantity measured of the answer: probability, logit difference, or cosine."""
        if self.asks is Asks.VECTOR:
            return Measured.TURN if self.beside is None else Measured.SIMILARITY
        return Measured.DIFFERENCE if self.against else Measured.CHANCE

    def answered(self, scores: Logits) -> Answer:
        """The answer of an unchanged run; `CertificateError` where its probabilities are NaN."""
        if self.asks is Asks.VECTOR:
            return Answer(self.asks, self.text, (), None, self.telling(scores, ())(scores).before)
        chances = log_chances(scores[0])
        likeliest = tuple(chances.argmax(-1).tolist())
        ids = self.ids or likeliest
        text = self.text or self.name(ids[0])
        return Answer(self.asks, text, ids, self.position, probability(chances, ids), ids == likeliest)

    def rival(self, scores: Logits) -> Answer | None:
        """The answer or vector that the answer is compared with, in an unchanged run; None without one."""
        if self.beside is not None:
            return Answer(self.asks, self.against_text, (), None, 1.0, likeliest=False)
        if not self.against:
            return None
        chances = log_chances(scores[0])
        likely = probability(chances, self.against)
        likeliest = tuple(chances.argmax(-1).tolist()) == self.against
        return Answer(self.asks, self.against_text, self.against, self.position, likely, likeliest)

    def chosen(self, scores: Float[Tensor, "row choice"]) -> tuple[int, ...]:
        """The choice at each row of the answer: the named one, else the likeliest."""
        found = self.ids or tuple(log_chances(scores).argmax(-1).tolist())
        if found == self.against:
            raise InputError(f"--against '{self.against_text}' is the answer itself: name another one")
        return found

    def level(self, scores: Float[Tensor, "entry row choice"], answer: Ids) -> Float[Tensor, " entry"]:
        """By batch entry, the answer's log probability, or its logit less that of `against`; rows summed."""
        if not self.against:
            return of_rows(log_chances(scores), answer)
        logits: Tensor = exact(scores.detach().cpu())
        return of_rows(logits, answer) - of_rows(logits, self.against)

    def telling(self, before: Logits, ids: Sequence[int], named: bool = True) -> "Tell":
        """A function from the scores of another run to the effect on the answer, compared with `before`."""
        if self.measured is Measured.CHANCE:
            chances = log_chances(before[0])
            return lambda after: effect(chances, log_chances(after[0]), ids, self.name if named else None)
        if self.measured is Measured.DIFFERENCE:
            return lambda after: differing(
                before[0], after[0], ids, self.against, self.name if named else None
            )
        return lambda after: turning(before[0], after[0], self.beside)


Tell = Callable[[Logits], Effect]


def word_at(
    asks: Asks, position: int, length: int, ids: tuple[int, ...] | None, name: Callable[[int], str]
) -> Question:
    """The question for the word at a mask, the token after `position`, or the tag of the token there."""
    return Question(asks, AnswerRows(_words, (position,), length), position, ids, name)


def text_written(ids: Sequence[int], first: int, text: str, name: Callable[[int], str]) -> Question:
    """The question about a written text: each token from number `first` on, given those before."""
    rows = tuple(range(first - 1, len(ids) - 1))
    if not rows:
        raise InputError("the model wrote nothing: there is no answer that could change")
    return written_at(rows, len(ids), tuple(ids[first:]), name, text)


def written_at(
    rows: Sequence[int], length: int, ids: Sequence[int], name: Callable[[int], str], text: str = ""
) -> Question:
    """The question about tokens `ids` of a continuation, each predicted at a row of its own."""
    return Question(Asks.WRITTEN, AnswerRows(_words, tuple(rows), length), None, tuple(ids), name, text)


def verdict_on_pair(chosen: int | None, name: Callable[[int], str]) -> Question:
    """The question whether the second text follows the first: class 0 says that it does."""
    ids = None if chosen is None else (chosen,)
    return Question(Asks.PAIR, AnswerRows(_verdict, (0,), 1), None, ids, name)


def class_of_text(chosen: int | None, name: Callable[[int], str]) -> Question:
    """The question which class a classifier puts the input in."""
    ids = None if chosen is None else (chosen,)
    return Question(Asks.CLASS, AnswerRows(_classes, (0,), 1), None, ids, name)


def span_of_text(ids: tuple[int, int], name: Callable[[int], str], text: str) -> Question:
    """The question for an answer span, by the positions of its first and last token."""
    return Question(Asks.SPAN, AnswerRows(ends, (0, 1), 2), None, ids, name, text)


def log_chances(scores: Float[Tensor, "*place choice"]) -> Float[Tensor, "*place choice"]:
    """Log softmax of the scores in float64; `CertificateError` where it is NaN."""
    chances = torch.log_softmax(exact(scores.detach().cpu()), dim=-1)
    if bool(chances.isnan().any()):
        raise CertificateError(
            "the model answers nothing: its probabilities are not numbers (broken weights, or too large for "
            "its precision)"
        )
    return chances


def log_probability(chances: LogChances, ids: Sequence[int]) -> float:
    """The log probability of a whole answer: the sum over its rows."""
    return float(chances[torch.arange(len(ids)), list(ids)].sum())


def probability(chances: LogChances, ids: Sequence[int]) -> float:
    return float(torch.tensor(log_probability(chances, ids), dtype=EXACT).exp())


def effect(
    before: LogChances, after: LogChances, ids: Sequence[int], name: Callable[[int], str] | None = None
) -> Effect:
    """The change of the answer's log probability, and KL(before || after) of the distribution, in nats.

    KL is 0 only where nothing changed, and is summed over rows. `name` names the likeliest choice after, if
    it is a new one; not for answers of several rows.
    """
    chances = before.exp()
    apart = torch.where(chances > 0, chances * (before - after), 0.0).sum()
    one, other = log_probability(before, ids), log_probability(after, ids)
    chosen = [int(chances[0].argmax()) for chances in (before, after)]
    instead = name(chosen[1]) if name and len(ids) == 1 and chosen[0] != chosen[1] else ""
    chance, then = probability(before, ids), probability(after, ids)
    return Effect(chance, then, other - one, max(float(apart), 0.0), instead=instead)


def differing(
    before: Float[Tensor, "row choice"],
    after: Float[Tensor, "row choice"],
    ids: Sequence[int],
    against: Sequence[int],
    name: Callable[[int], str] | None = None,
) -> Effect:
    """The change of the answer's logit less the logit of `against`, summed over rows."""
    of_chance = effect(log_chances(before), log_chances(after), ids, name)
    one, other = (logit_difference(each, ids, against) for each in (before, after))
    return Effect(one, other, other - one, of_chance.kl, instead=of_chance.instead)


def logit_difference(
    scores: Float[Tensor, "row choice"], ids: Sequence[int], against: Sequence[int]
) -> float:
    """The logit of the answer less that of another answer, summed over rows."""
    rows = torch.arange(len(ids))
    logits = exact(scores.detach().cpu())
    return float((logits[rows, list(ids)] - logits[rows, list(against)]).sum())


def turning(
    before: Float[Tensor, "1 dim"], after: Float[Tensor, "1 dim"], beside: Float[Tensor, " dim"] | None
) -> Effect:
    """The change of a vector's cosine with itself before, or with the vector `beside`."""
    was, now = (unit(each[0]) for each in (before, after))
    held = was if beside is None else unit(beside)
    first, then = 1.0 if beside is None else float(was @ held), float(now @ held)
    return Effect(first, then, then - first, max(1.0 - float(was @ now), 0.0))


def unit(vector: Float[Tensor, "*row dim"]) -> Float[Tensor, "*row dim"]:
    """The vector scaled to length 1; `CertificateError` where it is zero or not finite."""
    own: Tensor = exact(vector.detach().cpu())
    length = own.norm(dim=-1, keepdim=True)
    if not bool((length > 0).all()) or not bool(length.isfinite().all()):
        raise CertificateError("the model's vector of this text is zero or no number: it has no direction")
    unit: Tensor = own / length
    return unit


def vector_of_text(there: Sequence[int] | None, text: str) -> Question:
    """The question about a text's vector: the mean last hidden state at `there` (None: everywhere)."""

    def read(output: Any) -> Tensor:
        vectors: Tensor = pooled(output, there)[:, None]
        return vectors

    return Question(Asks.VECTOR, AnswerRows(read, (0,), 1), None, (), str, text)


def pooled(output: Any, there: Sequence[int] | None) -> Float[Tensor, "entry dim"]:
    """The mean last hidden state over positions `there` (None: all); `InputError` where there are none."""
    vectors: Tensor | None = output.get("last_hidden_state")
    if vectors is None or vectors.ndim != 3:
        raise InputError("the model returns neither words nor classes nor a vector of each token")
    return (vectors if there is None else vectors[:, list(there)]).mean(1)


def _words(output: Any) -> Tensor:
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


def ends(output: Any) -> Float[Tensor, "entry end position"]:
    """Logits of every position as the start and as the end of an answer span."""
    if "start_logits" not in output or "end_logits" not in output:
        raise InputError("the model does not score every token as the start and as the end of an answer")
    return torch.stack([output["start_logits"], output["end_logits"]], 1)


def of_rows(choices: Float[Tensor, "entry row choice"], ids: Ids) -> Float[Tensor, " entry"]:
    """The score of the chosen ids, summed over rows, by batch entry."""
    found: Tensor = choices[:, range(len(ids)), list(ids)].sum(-1)
    return found


def other_answers(ids: Ids, choices: int, never: Collection[int], count: int, seed: int) -> tuple[Ids, ...]:
    """At most `count` random other answers, which differ from `ids` and from `never` in every row."""
    random = np.random.default_rng(seed)
    rows = []
    for mine in ids:
        left = [each for each in range(choices) if each != mine and each not in never]
        rows.append([int(each) for each in random.permutation(left)[:count]])
    return tuple(zip(*rows, strict=False))


def runner_up(chances: Float[Tensor, "row choice"], ids: Ids) -> Ids:
    """The second choice of each row: the likeliest without the answer's own."""
    others = chances.clone()
    others[torch.arange(len(ids)), list(ids)] = -torch.inf
    return tuple(others.argmax(-1).tolist())


def log_probabilities(asked: AnswerRows, every: Sequence[Ids]) -> Callable[[Any], Float[Tensor, " answer"]]:
    """A function from a model's output to the log probability of each answer, summed over its rows."""

    def scores(output: Any) -> Tensor:
        return _summed(_wide(asked.of(output)[0]).log_softmax(-1), every)

    return scores


def logits_over_mean(every: Sequence[Ids]) -> Callable[[Logits], Float[Tensor, " answer"]]:
    """A function from logits to each answer's logit less the mean logit, which no probability depends on."""

    def scores(logits: Logits) -> Tensor:
        rows = _wide(logits[0])
        return _summed(rows - rows.mean(-1, keepdim=True), every)

    return scores


def _wide(scores: Tensor) -> Tensor:
    return scores.float() if torch.finfo(scores.dtype).bits < 32 else scores


def _summed(of_choices: Float[Tensor, "row choice"], every: Sequence[Ids]) -> Float[Tensor, " answer"]:
    rows = torch.arange(len(of_choices), device=of_choices.device)
    return torch.stack([of_choices[rows, list(ids)].sum() for ids in every])
