"""What the model itself makes of what it read, alone and beside one head in a report."""

from dataclasses import replace

from attnscope.analysis import prediction
from attnscope.errors import CertificateError, InputError
from attnscope.model.loading.answering import Judging, class_names, judging
from attnscope.results import Prediction
from attnscope.results.claims.effect import Asks
from attnscope.session.questions.answers import finds, tags, with_answer
from attnscope.session.questions.rows import fused_where_long
from attnscope.session.reading import Reading, read_target
from attnscope.verbs.predict.question import Predict
from attnscope.vocabulary import Kind

_TOP = 5  # guesses


def predict(reading: Reading, asked: Predict = Predict()) -> Prediction:  # noqa: B008 - frozen
    """What the model answers: its masks filled, the next token, a text, a verdict on a pair, classes, tags,
    an answer within a text, a score.

    Where an answer is named how likely it is, its tokens multiplied. `InputError` for a model that has no
    head to answer with, and for a text that asks for nothing.
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
    """The answer beside attention of one kind: None where the model has no head for it, or nothing is asked.

    Where the encoder was looked at and its decoder only opened, the model now writes.
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
