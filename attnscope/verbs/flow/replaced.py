"""The flow beside what becomes of the answer where tokens are replaced."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from attnscope.analysis.answers.question import Question
from attnscope.analysis.heads.view import Units
from attnscope.analysis.inputs.attributing import Chance
from attnscope.analysis.inputs.replacing import SHUFFLES, trusted
from attnscope.analysis.prediction import last_of
from attnscope.errors import InputError
from attnscope.results.claims.effect import Asks
from attnscope.session.choosing import Chosen
from attnscope.session.questions.answers import behind, finds, meant_at, question_of, spoken_token
from attnscope.session.questions.replacing import Replacing, replaced_each, silent, word_of
from attnscope.session.reading import Reading
from attnscope.tokens import Patches
from attnscope.verbs.flow.gradients import by_gradients
from attnscope.verbs.flow.question import Follow
from attnscope.verbs.flow.result import Ablated, Flow


def beside_replacing(
    reading: Reading, chosen: Chosen, result: Flow, units: Units | None, meant: Follow
) -> Flow:
    """The flow with what replacing each of the `units` does, or with the reason why none could be.

    Without units each token is one, and none of them is the query.
    """
    question = None if result.query is None else word_of(reading, chosen, result.tokens, result.query)
    own = () if units is None else units.queries[units.query or 0]
    if meant.names_answer and finds(reading):
        question = question_of(reading, meant.answer, meant.against)
        if not {*(question.ids or ())} <= {*own}:
            raise InputError(f"a flow of an answer goes back from its own tokens: --from '{question.text}'")
    elif meant.names_answer:
        if question is None:
            raise InputError(f"{silent(reading)}: leave --answer and --against out")
        reading, question = meant_behind(reading, question, result, meant.answer, meant.against)
        result = replace(result, notes=(*result.notes, *reading.told))
    if result.tokens.stretches and result.pooled is not None:
        return replace(result, reason="parts of pictures and sounds are replaced for one query alone")
    layer = result.layers[-1]
    groups = units.keys if units is not None and result.by.joins else ()
    asked = Replacing(
        result.tokens, result.reached, result.query, layer, question, result.pooled, own, groups, result.by
    )
    found = replaced_each(reading, chosen, asked)
    if isinstance(found, str):
        return replace(result, reason=found)
    answer = None if question is None else Chance(question, found.effect.ids)
    result = by_gradients(reading, chosen, result, found.given, answer)
    effects = np.full(len(result.tokens), np.nan)
    for places, lost in zip(found.places, found.effect.lost, strict=True):
        effects[list(places)] = lost
    groups = found.places if found.together else ()
    near = _near(result, own)
    ablated = Ablated(
        effects,
        found.by,
        found.effect.answer,
        float("nan") if found.effect.against else found.effect.chance,
        *trusted(result.methods, effects, near, meant.seed, groups),
        SHUFFLES,
        meant.seed,
        groups,
        found.input,
        replacement_id=found.id,
        answer_ids=found.effect.ids,
        against=found.effect.against,
        lead=found.effect.chance if found.effect.against else float("nan"),
        tag=question is not None and question.asks in (Asks.TAG, Asks.SPAN),
    )
    return replace(result, ablated=ablated)


def _near(result: Flow, query: Sequence[int]) -> Float[np.ndarray, " key"]:
    """The closer to the query the more: along the text or in time, of a picture across its grid."""
    stretch = next(iter(result.tokens.stretches), None)
    if result.query is None:
        assert result.pooled is not None, "otherwise there is a query"
        weights = result.pooled.weights
        far = np.abs(np.arange(len(weights)) - int(np.argmax(weights))).astype(np.float64)
        return np.asarray(-far if weights.max() == 1 else np.zeros(len(far)))  # a mean is near to none
    if not isinstance(stretch, Patches):
        return np.asarray(-np.abs(np.arange(len(result.tokens)) - float(np.mean(query))))
    near, numbers = np.zeros(len(result.tokens)), {place: n for n, place in enumerate(stretch.positions)}
    if result.query not in numbers:
        return near  # nothing is nearer to a token that stands for no place
    row, column = divmod(numbers[result.query], stretch.columns)
    for place, number in numbers.items():
        if place >= 0:
            near[place] = -np.hypot(number // stretch.columns - row, number % stretch.columns - column)
    return near


def meant_behind(
    reading: Reading, question: Question, result: Flow, answer: str | None, against: str | None
) -> tuple[Reading, Question]:
    """What is asked at the query of a flow of the answer that is named, and what the model reads for it."""
    named = [each for each in (answer, against) if each is not None]
    single = all(spoken_token(reading, each) is not None for each in named)
    if answer is None or single or question.asks is not Asks.NEXT or reading.perceived is not None:
        return reading, meant_at(reading, question, answer, against)
    if question.position != last_of(result.tokens):
        raise InputError(
            f"--answer '{answer}' has several tokens, which follow the text: --from takes its last token, "
            f"{result.tokens.named(last_of(result.tokens))}"
        )
    prompt = result.tokens.only(range(last_of(result.tokens) + 1))
    whole, question, _ = behind(reading, prompt, question, answer, against)
    return whole, question
