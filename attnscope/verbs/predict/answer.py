"""Answers `predict`: the model's own predictions, named answers, and the logit lens by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis import prediction
from attnscope.analysis.controls import ControlTexts, control_texts
from attnscope.analysis.prediction import Spell, best, chances_of, last_of, masks_of, vocabulary_of
from attnscope.analysis.prompts import OnePrompt, Seen, Spans
from attnscope.capture.intervening.changes import AnswerRows
from attnscope.capture.layer_answers import answers_by_layer
from attnscope.errors import CertificateError, InputError
from attnscope.model.loading.answering import Judging, class_names, judging
from attnscope.results import Prediction, Provenance
from attnscope.results.claims.effect import Asks
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.session.questions.answers import finds, tags, with_answer
from attnscope.session.questions.rows import fused_where_long
from attnscope.session.reading import Reading, read_target
from attnscope.verbs.predict.question import Predict, PredictLayers
from attnscope.verbs.predict.result import LayerAnswer, LayeredPlace, LayeredPrediction
from attnscope.vocabulary import Kind

_TOP = 5  # default number of guesses


def predict(reading: Reading, asked: Predict = Predict()) -> Prediction:  # noqa: B008 - frozen
    """Predict with the model's own head: masks, next token, a text, a verdict on a pair, classes, tags, a
    span, a score.

    For a named answer, its probability, multiplied over its tokens. `InputError` for a model without such a
    head, and for a text without anything to predict.
    """
    with fused_where_long(reading) as told:
        top, answer = asked.top or _TOP, asked.answer
        made = _predicted(reading, top) if answer is None else _named(reading, answer)
        return replace(made, provenance=told(made.provenance), notes=reading.notes)


def _named(reading: Reading, answer: str) -> Prediction:
    model, tokens = reading.model, reading.encoded.tokens
    if reading.task is None:
        instead = ", ablate takes it" if judging(type(model.module)) is not None else ""
        raise InputError(f"{model.name} has no head that predicts words: leave --answer out{instead}")
    answer = reading.filled({"answer": answer}).get("answer", answer)
    whole, question, _ = with_answer(reading, answer, None)
    if question.asks is Asks.PAIR:
        raise InputError("the verdict on a pair has its probability without --answer: leave it out")
    provenance = reading.untouched
    with whole.running("predicting"):
        return prediction.named(
            model.module, whole.inputs, tokens, provenance, question=question, spell=model.spell
        )


def predict_beside(reading: Reading, kind: Kind) -> Prediction | None:
    """Prediction to show beside attention of one kind; None where the model cannot predict here.

    For encoder attention of an encoder-decoder the model first generates its text.
    """
    if reading.task is None and not tags(reading) and not finds(reading):
        return None
    if kind is Kind.ENCODER and reading.captured is None:
        reading = replace(reading, target=read_target(reading))
    try:
        return predict(reading)
    except (InputError, CertificateError) as error:
        reading.listener.notice(f"no prediction: {error}")
        return None


def _predicted(reading: Reading, top: int) -> Prediction:
    model, target, tokens = reading.model, reading.target, reading.encoded.tokens
    told = judging(type(model.module))
    if reading.task is None and told is None:
        raise InputError(f"{model.name} has no head that predicts words, and none that tells classes")
    paired = reading.asked.paired
    if paired and told is None and reading.task != "masked":
        reading.listener.notice(
            f"{model.name} has no next-sentence head: it reads the two texts as one input"
        )
    common = (model.module, reading.inputs, tokens, reading.untouched)
    with reading.running("predicting"):
        if told is Judging.SPAN and reading.task is None:
            return prediction.found(*common, top=top)
        if reading.task is None:
            predicted = prediction.tagged if told is Judging.TAGS else prediction.classified
            return predicted(*common, name=class_names(model.module).__getitem__, top=top)
        if target is not None:
            return prediction.written(
                *common,
                target=target.tokens,
                spell=model.spell,
                top=top,
                finished=target.finished,
                own=target.written,
                step_chances=target.chances,
                given=target.given,
            )
        if reading.task == "next":
            return prediction.continued(*common, spell=model.spell, top=top)
        return prediction.filled(
            *common, mask_id=model.tokenizer.mask_token_id, spell=model.spell, top=top, pair=paired
        )


_IDS = "input_ids"
_HIGH = 0.95


def predict_layers(reading: Reading, asked: PredictLayers) -> LayeredPrediction:
    """Logit lens at every mask, after the last token, or for the class of the whole input.

    `InputError` for models that write a text of their own, judge pairs or give classes that do not exclude
    one another, and for models whose head reads more than the last layer.
    """
    with fused_where_long(reading) as told:
        made = _layered(reading, asked)
        return replace(made, provenance=told(made.provenance))


def _layered(reading: Reading, asked: PredictLayers) -> LayeredPrediction:
    task, positions, spell = _asked(reading)
    model, tokens = reading.model, reading.encoded.tokens
    provenance = reading.untouched
    with reading.running("predicting from each layer"):
        places, read_back = layered_places(model.module, reading.inputs, positions, provenance, spell)
    texts, how = _controls(reading, positions, asked)
    if texts is not None:
        with reading.listener.working(f"reading {len(texts)} controls"):
            answers, given, seen = [place.answer.id for place in places], reading.inputs[_IDS], list[Tensor]()
            for each in texts.ids:
                inputs = {**reading.inputs, _IDS: given.new_tensor(each[None].tolist())}
                seen.append(probabilities_of(model.module, inputs, positions, provenance, answers))
        places = _beside(places, torch.stack(seen).cpu().numpy())
    ids = np.zeros((0, 0), dtype=int) if texts is None else texts.ids
    return LayeredPrediction(task, tokens, places, read_back, provenance, how, asked.seed, ids, reading.notes)


def _asked(reading: Reading) -> tuple[str, list[int | None], Spell]:
    model, tokens = reading.model, reading.encoded.tokens
    if reading.asked.paired:
        raise InputError("--layers tells words and classes, and no verdict on a pair: leave --pair away")
    if reading.task is None:
        if judging(type(model.module)) is not Judging.CLASS:
            raise InputError(f"{model.name} has no head that predicts words, and none that tells classes")
        if model.module.config.problem_type in ("regression", "multi_label_classification"):
            raise InputError("--layers needs classes of which one is meant: this model judges each by itself")
        return "class", [None], class_names(model.module).__getitem__
    if reading.task == "generated":
        raise InputError(
            f"--layers asks one place of a text, and {model.name} writes a text of its own: it works for "
            "models that fill a [MASK], go on with a text or name a class"
        )
    if reading.task == "next":
        return "next", [last_of(tokens)], model.spell
    masks: list[int | None] = [*masks_of(tokens, model.tokenizer.mask_token_id)]
    if not masks:
        raise InputError("the text has no [MASK] to fill: put one in")
    return "masked", masks, model.spell


def _controls(
    reading: Reading, positions: list[int | None], asked: PredictLayers
) -> tuple[ControlTexts | None, str]:
    if not asked.controls:
        return None, "no shuffled texts were asked for"
    if reading.perceived is not None or _IDS not in reading.inputs:
        return None, "no control: what was read is no text alone"
    kept = [each for each in positions if each is not None]
    mask = getattr(reading.model.tokenizer, "mask_token_id", None)
    drawn = asked.controls, asked.seed
    try:
        texts = control_texts(reading.encoded.tokens, mask_id=mask, count=drawn[0], seed=drawn[1], kept=kept)
    except InputError as error:
        return None, f"no control: {error}"
    return texts, texts.how


def _beside(
    places: tuple[LayeredPlace, ...], seen: Float[np.ndarray, "control layer place"]
) -> tuple[LayeredPlace, ...]:
    mean, high = seen.mean(axis=0), np.quantile(seen, _HIGH, axis=0, method="higher")
    return tuple(
        replace(
            place,
            layers=tuple(
                replace(each, control=float(mean[j, i]), control_high=float(high[j, i]))
                for j, each in enumerate(place.layers)
            ),
        )
        for i, place in enumerate(places)
    )


Positions = Sequence[int | None]  # None for the class of the whole input
_LEAST_TOLERANCE, _STEPS = 1e-4, 16  # total variation distance; multiples of the dtype's eps


def layered_places(
    model: nn.Module, inputs: Mapping[str, Any], positions: Positions, provenance: Provenance, spell: Spell
) -> tuple[tuple[LayeredPlace, ...], float]:
    """Logit lens at each position, and the distance of its last layer from the model's own answer.

    `InputError` where earlier states cannot replace the last, or the head also reads something else: then
    the last layer does not reproduce the model's own answer.
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
    """Logit-lens probability of one given answer at each position, by layer."""
    seen = answers_by_layer(model, inputs, asked_at(model, inputs, positions))
    chances = chances_of(seen.answers, provenance)
    return torch.stack([chances[:, i, answer] for i, answer in enumerate(answers)], dim=1)


def asked_at(model: Any, inputs: Mapping[str, Any], positions: Positions) -> AnswerRows:
    """Rows of the model's output to read: those of the positions, or the single row of a classifier."""

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
    """Most total variation distance that batching may cause in the model's precision."""
    kind = getattr(torch, provenance.dtype, torch.float32)
    return max(_LEAST_TOLERANCE, _STEPS * torch.finfo(kind).eps)


def _answer(
    layer: int, chances: Float[Tensor, " choice"], own: int, apart: float, spell: Spell
) -> LayerAnswer:
    mine = chances[own]
    return LayerAnswer(
        layer, best(chances, spell, 1)[0], float(mine), int((chances > mine).sum()) + 1, min(1.0, apart)
    )


def figures(result: LayeredPrediction, spans: Spans) -> OnePrompt:
    """Logit-lens probability of the model's answer in each layer, at the first place."""
    found = dict[Figure, Seen]()
    for each in result.places[0].layers:
        name = "embeddings" if each.layer < 0 else f"layer {each.layer}"
        figure = Figure(name, "probability", None if each.layer < 0 else each.layer)
        found[figure] = Seen(each.probability, each.control, stands=each.rank == 1)
    return OnePrompt(Asked.LAYERS, found)
