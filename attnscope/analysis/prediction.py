"""Reads predictions off the logits of one unhooked run: words, classes, tags, spans, texts."""

import inspect
import math
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.answers.question import Question, ends
from attnscope.capture.running import evaluating
from attnscope.errors import CertificateError, InputError
from attnscope.reference import exact
from attnscope.results import (
    AnswerSpan,
    Blank,
    Classes,
    Generated,
    Guess,
    NextSentence,
    Prediction,
    Provenance,
)
from attnscope.tokens import Tokens

Spell = Callable[[int], str]
_MANY = 1024  # tokens of a text of which not all are asked what follows them


def filled(
    model: Any,
    inputs: Mapping[str, Any],
    tokens: Tokens,
    provenance: Provenance,
    *,
    mask_id: int | None,
    spell: Spell,
    top: int,
    pair: bool,
) -> Prediction:
    """The `top` likeliest tokens at every mask, and with `pair` the verdict on the second text.

    Raises `InputError` when there is nothing to predict, or no head that judges pairs.
    """
    masks = masks_of(tokens, mask_id)
    if not masks and not pair:
        raise InputError("the text has no [MASK] to fill: put one in, or judge a second text with --pair")
    output = _run(model, inputs)
    words = vocabulary_of(output, model)
    verdict = _verdict(output, provenance) if pair else None
    if masks and words is None:
        raise InputError(f"{provenance.model} has no head that predicts words, it only judges pairs")
    if not masks and verdict is None:
        raise InputError(
            f"{provenance.model} has no next-sentence head, and the texts have no [MASK] to fill"
        )
    chances = {} if words is None else {i: chances_of(words[0, i], provenance) for i in masks}
    blanks = tuple(Blank(i, best(chances[i], spell, top)) for i in chances)
    return Prediction("masked", tokens, blanks, None, verdict, provenance)


def continued(
    model: Any, inputs: Mapping[str, Any], tokens: Tokens, provenance: Provenance, *, spell: Spell, top: int
) -> Prediction:
    """The `top` likeliest next tokens after the text's own last token."""
    position = last_of(tokens)
    asked, row = _asking_at(position, len(tokens), model, inputs)
    logits = _run(model, asked).logits[0, row]
    guesses = best(chances_of(logits, provenance), spell, top)
    return Prediction("next", tokens, (Blank(position, guesses),), None, None, provenance)


def written(
    model: Any,
    inputs: Mapping[str, Any],
    tokens: Tokens,
    provenance: Provenance,
    *,
    target: Tokens,
    spell: Spell,
    top: int,
    finished: bool,
    own: bool = True,
    step_chances: Float[Tensor, "step word"] | None,
    given: int = 1,
) -> Prediction:
    """The probability of each token of an encoder-decoder's text, generated or (not `own`) given.

    The whole decoder input is read at once: row i decides about token i + 1. Special tokens in front of the
    text, which settings force, are not written. `step_chances` are the probabilities under which the model
    wrote what follows the first `given` tokens, step by step with a cache: the two must agree.
    """
    logits = _run(model, inputs).logits[0]
    chances = chances_of(logits, provenance)
    forced = len([*takewhile(lambda token: token.special, target.items[given:])])
    tokens_written = tuple(
        Guess(token, spell(token), float(chances[row, token]))
        for row, token in enumerate(target.ids[given + forced :], start=given + forced - 1)
    )
    blanks = tuple(Blank(row, best(chances[row], spell, top)) for row in range(len(target)))
    error = None
    if step_chances is not None:
        read = chances[given - 1 :]
        steps = min(len(step_chances), len(read))
        error = float((step_chances[:steps].to(chances.device) - read[:steps]).abs().max())
    generated = Generated(target.sentence, tokens_written, error, finished, own)
    return Prediction("generated", tokens, blanks, generated, None, provenance)


def named(
    model: Any,
    inputs: Mapping[str, Any],
    tokens: Tokens,
    provenance: Provenance,
    *,
    question: Question,
    spell: Spell,
) -> Prediction:
    """The named answer, and each of its tokens' probability given those before."""
    assert question.ids is not None, "an answer is named"
    chances = chances_of(question.asked.of(_run(model, inputs))[0], provenance)
    guesses = tuple(
        Guess(token, spell(token), float(chances[row, token])) for row, token in enumerate(question.ids)
    )
    text = question.text or question.name(question.ids[0])
    return Prediction("generated", tokens, (), Generated(text, guesses, None, True, False), None, provenance)


def classified(
    model: Any, inputs: Mapping[str, Any], tokens: Tokens, provenance: Provenance, *, name: Spell, top: int
) -> Prediction:
    """The `top` likeliest classes of the input, named by `name`; for a single-output model its number.

    `InputError` for a model that answers with several numbers, which are no classes.
    """
    logits = _run(model, inputs)["logits"]
    if logits.shape[-1] == 1:
        score = float(logits[0, 0])
        if not math.isfinite(score):
            raise CertificateError(f"{provenance.model} answers with no number (broken weights)")
        return Prediction("score", tokens, (), None, None, provenance, score=score)
    if model.config.problem_type == "regression":
        raise InputError(f"{provenance.model} answers with {logits.shape[-1]} numbers and tells no classes")
    exclusive = model.config.problem_type != "multi_label_classification"
    chances = chances_of(logits[0], provenance, exclusive)
    classes = Classes(best(chances, name, top), exclusive)
    return Prediction("class", tokens, (), None, None, provenance, classes=classes)


def tagged(
    model: Any, inputs: Mapping[str, Any], tokens: Tokens, provenance: Provenance, *, name: Spell, top: int
) -> Prediction:
    """The `top` likeliest tags of each token of the text, named by `name`; added tokens have none.

    `InputError` for a model that gives every token a number, which is no tag.
    """
    logits = _run(model, inputs)["logits"][0]
    if logits.shape[-1] == 1:
        raise InputError(f"{provenance.model} gives every token a number and tells no tags")
    chances = chances_of(logits, provenance)
    blanks = tuple(Blank(i, best(chances[i], name, top)) for i in tagged_places(tokens))
    return Prediction("tags", tokens, blanks, None, None, provenance)


def found(
    model: Any, inputs: Mapping[str, Any], tokens: Tokens, provenance: Provenance, *, top: int
) -> Prediction:
    """The `top` likeliest answer spans in the second text for the question in the first."""
    chances = chances_of(ends(_run(model, inputs))[0], provenance)
    spans = tuple(likeliest_spans(chances, tokens, top))
    return Prediction("span", tokens, (), None, None, provenance, spans=spans)


def likeliest_spans(chances: Float[Tensor, "end position"], tokens: Tokens, top: int) -> list[AnswerSpan]:
    """The `top` spans of the second text, best first; the first token, if added, stands for no answer.

    `InputError` where there is no second text.
    """
    there = [i for i, token in enumerate(tokens.items) if token.part == 1 and token.span is not None]
    if not there:
        raise InputError(
            "an answer is looked for in a text: give the question first, and the text with --pair"
        )
    start, end = (each[there].cpu().numpy() for each in chances)
    together = np.triu(np.outer(start, end))
    best = np.argsort(-together, axis=None, kind="stable")[:top]
    places = zip(*np.unravel_index(best, together.shape), strict=True)
    spans = [
        span_at(tokens, there[first], there[last], float(together[first, last]))
        for first, last in places
        if first <= last
    ]
    if tokens.items[0].added:
        spans.append(AnswerSpan(0, 0, "", float(chances[0, 0] * chances[1, 0])))
    return sorted(spans, key=lambda each: -each.probability)[:top]


def span_at(tokens: Tokens, first: int, last: int, probability: float) -> AnswerSpan:
    """The answer span from one token of the second text to another."""
    begin, behind = tokens.items[first].span, tokens.items[last].span
    assert begin is not None, "tokens of the text"
    assert behind is not None, "tokens of the text"
    return AnswerSpan(first, last, tokens.texts[1][begin[0] : behind[1]], probability)


def chances_at(
    model: Any,
    inputs: Mapping[str, Any],
    position: int | None,
    provenance: Provenance,
    *,
    exclusive: bool = True,
) -> Float[np.ndarray, " choice"]:
    """Probabilities of all choices at a position, or (None) of all classes of a classifier."""
    output = _run(model, inputs)
    words = None if position is None else vocabulary_of(output, model)
    scores = output["logits"] if words is None else words
    logits = scores[0] if position is None else scores[0, position]
    return np.asarray(chances_of(logits, provenance, exclusive).cpu().numpy())


def masks_of(tokens: Tokens, mask_id: int | None) -> list[int]:
    """The positions of the masks."""
    return [i for i, token in enumerate(tokens.items) if token.id == mask_id]


def tagged_places(tokens: Tokens) -> list[int]:
    """Positions of the tokens to tag: neither added nor padding."""
    return [i for i, token in enumerate(tokens.items) if not (token.added or token.padding)]


def last_of(tokens: Tokens) -> int:
    """Position of the text's last token that the tokenizer did not add."""
    spoken = [i for i, token in enumerate(tokens.items) if not token.added]
    return spoken[-1] if spoken else len(tokens) - 1


def best(chances: Float[Tensor, " word"], spell: Spell, top: int) -> tuple[Guess, ...]:
    """The `top` likeliest entries of the vocabulary, best first."""
    likeliest = chances.topk(min(top, len(chances)))
    pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
    return tuple(Guess(index, spell(index), chance) for index, chance in pairs)


def chances_of(
    logits: Float[Tensor, "*place choice"], provenance: Provenance, exclusive: bool = True
) -> Float[Tensor, "*place choice"]:
    """Probabilities of the choices in float64, softmax or sigmoid; `CertificateError` if not finite.

    Softmax where the choices are `exclusive`, else sigmoid.
    """
    chances = torch.softmax(exact(logits), dim=-1) if exclusive else torch.sigmoid(exact(logits))
    if not bool(chances.isfinite().all()):
        raise CertificateError(
            f"{provenance.model} predicts nothing: its probabilities are not numbers (broken weights, or too "
            f"large for {provenance.dtype})"
        )
    return chances


def _asking_at(
    position: int, count: int, model: Any, inputs: Mapping[str, Any]
) -> tuple[Mapping[str, Any], int]:
    """The inputs and the row to read; of a long text only the last logits are computed, if possible."""
    known = "logits_to_keep" in inspect.signature(model.forward).parameters
    if not known or count <= _MANY:
        return inputs, position
    return {**inputs, "logits_to_keep": count - position}, position - count


def _run(model: Any, inputs: Mapping[str, Any]) -> Any:
    with evaluating(model):
        return model(**inputs)


def vocabulary_of(output: Any, model: Any) -> Float[Tensor, "text token word"] | None:
    """Vocabulary logits at every position; None for a model whose head predicts no words."""
    logits: Tensor = output["prediction_logits"] if "prediction_logits" in output else output["logits"]
    return logits if logits.ndim == 3 and model.get_output_embeddings() is not None else None


def _verdict(output: Any, provenance: Provenance) -> NextSentence | None:
    """The verdict on a text pair: class 0 says that the second text follows the first."""
    for name, order in (("seq_relationship_logits", False), ("sop_logits", True), ("logits", False)):
        if name in output and output[name].ndim == 2:
            chances = chances_of(output[name][0], provenance)
            return NextSentence(float(chances[0]), order)
    return None
