"""What each layer would answer if it were the last, beside texts with the words in other orders."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.controls import ControlTexts, control_texts
from attnscope.analysis.prediction import Spell, last_of, masks_of
from attnscope.errors import InputError
from attnscope.model.loading.answering import Judging, class_names, judging
from attnscope.session.questions.rows import fused_where_long
from attnscope.session.reading import Reading
from attnscope.verbs.predict.layered import layered_places, probabilities_of
from attnscope.verbs.predict.question import PredictLayers
from attnscope.verbs.predict.result import LayeredPlace, LayeredPrediction

_IDS = "input_ids"
_HIGH = 0.95


def predict_layers(reading: Reading, asked: PredictLayers) -> LayeredPrediction:
    """The logit lens at every mask, after the last token, or at the class of the whole input.

    `InputError` for a model that writes a text of its own, judges pairs or tells classes that do not exclude
    one another, and for one whose head reads more than its last layer.
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
            answers = [place.answer.id for place in places]
            seen = [
                probabilities_of(model.module, inputs, positions, provenance, answers)
                for inputs in ({**reading.inputs, _IDS: ids} for ids in _ids(reading, texts))
            ]
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


def _ids(reading: Reading, texts: ControlTexts) -> list[Tensor]:
    given = reading.inputs[_IDS]
    return [torch.as_tensor(each[None], dtype=given.dtype, device=given.device) for each in texts.ids]


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
