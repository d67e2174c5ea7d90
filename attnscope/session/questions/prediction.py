"""What the model itself makes of what it read, alone and beside one head in a report."""

from dataclasses import replace

from attnscope.analysis import prediction
from attnscope.analysis.heads import report as analysis
from attnscope.capture import provenance_of
from attnscope.capture.running import if_it_runs
from attnscope.errors import CertificateError, InputError
from attnscope.model.loading.answering import Judging, class_names, judging
from attnscope.results import HeadAttention, MapSettings, Prediction, Report
from attnscope.results.claims.effect import Asks
from attnscope.session.looking import look_at, map_head
from attnscope.session.questions.claims.answers import finds, tags
from attnscope.session.questions.claims.rows import fused_where_long
from attnscope.session.questions.claims.spoken import with_answer
from attnscope.session.reading import Reading, read_target
from attnscope.session.wanted import Looking
from attnscope.vocabulary import Kind

TOP = 5  # guesses
ONE_QUERY = "a report is of one query, whose scores and output it takes apart"


def predict(reading: Reading, top: int = TOP, answer: str | None = None) -> Prediction:
    """What the model answers: its masks filled, the next token, a text, a verdict on a pair, classes, tags,
    an answer within a text, a score.

    Where an `answer` is named how likely it is, its tokens multiplied. `InputError` for a model that has no
    head to answer with, and for a text that asks for nothing.
    """
    if top < 1:
        raise InputError(f"--top {top}: it is how many answers are shown, 1 or more")
    with fused_where_long(reading) as told:
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
    provenance = provenance_of(model.module, tokens, {**model.origin(), "route": "untouched"})
    with reading.listener.working("predicting"), if_it_runs(model.module, whole.inputs, model.name):
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
    origin = {**model.origin(), "route": "untouched"}
    provenance = provenance_of(model.module, tokens, origin)
    paired = reading.asked.paired
    if paired and told is None and reading.task != "masked":
        reading.listener.notice(
            f"{model.name} has no next-sentence head: it reads the two texts as one input"
        )
    common = (model.module, reading.inputs, tokens, provenance)
    with reading.listener.working("predicting"), if_it_runs(model.module, reading.inputs, model.name):
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


def check_looking(looking: Looking) -> None:
    """Raises `InputError` for sentences and passages: a report is of one token, and of what it looks at."""
    if looking.unit.is_long:
        raise InputError(f"a report is of one token: leave --by {looking.unit} out (heads and find have it)")


def report_head(
    reading: Reading,
    head: HeadAttention,
    query: str | None = None,
    looking: Looking = Looking(),  # noqa: B008 - frozen
    settings: MapSettings = MapSettings(),  # noqa: B008
) -> Report:
    """The report on one query of `head`, by default the `default_query` of its weights."""
    check_looking(looking)
    view, tokens = look_at(head, looking), head.query_tokens
    position = (
        analysis.default_query(head, reading.encoded.mask_id)
        if query is None
        else tokens.span(query).one(f"{ONE_QUERY}, choose one of these")
    )
    projection = map_head(head, settings, reading.listener)
    return analysis.compose_report(projection, position, predict_beside(reading, head.kind), view)
