"""Which passage every sentence of an answer is from: taken away, looked at, followed back by gradients."""

from collections.abc import Iterator

import numpy as np

from attnscope.analysis.claims.ablation.question import written_at
from attnscope.analysis.claims.citing.looking import Looked, looked
from attnscope.analysis.claims.citing.taking import Groups, Taken, taken_away
from attnscope.analysis.claims.finding.rows import Layer
from attnscope.analysis.claims.flow.attributing import attributed
from attnscope.analysis.claims.flow.entrance import of_tokens
from attnscope.analysis.claims.flow.measured import Chance
from attnscope.analysis.claims.flow.replacing import Input
from attnscope.attention import Capture
from attnscope.capture import Selection
from attnscope.capture.returned import Returned
from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.results.claims.citation import (
    ATTENTION,
    BY_NORM,
    COPYING,
    Citation,
    Column,
    Method,
    Statement,
)
from attnscope.results.claims.flow import ByGradients
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.gradients import MOST
from attnscope.session.questions.claims.passages import (
    MOST_EACH,
    SUBSETS,
    Answers,
    answered,
    cut,
    text_of,
)
from attnscope.session.questions.claims.replacing import replacement
from attnscope.session.questions.claims.rows import (
    check_whole_fits,
    layers_of,
    may_read_rows,
    notes_of,
    sample_with,
)
from attnscope.session.questions.long import attention_of
from attnscope.session.reading import Reading
from attnscope.session.verbs.cite import Cite
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Route


def check_passages(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Cite) -> None:
    """`InputError` for a model that writes no text, and for a text without two passages."""
    _check_kind(chosen)
    cut(keys, asked)


def _check_kind(chosen: Chosen) -> None:
    if chosen.kind is Kind.ENCODER:
        raise InputError(
            "cite asks what a model wrote, and where its words are from: this one fills in blanks or tells "
            "classes or places (flow and ablate ask what those hang on)"
        )


def cite(reading: Reading, chosen: Chosen, asked: Cite) -> Citation:
    """The passages of the prompt, and what they are to every sentence of the answer.

    `InputError` where there are fewer than two passages or no answer, and for a model that writes no text.
    """
    _check_kind(chosen)
    parts = cut(reading.encoded.tokens, asked, reading.asked.prompt.fields)
    answers, passages = answered(reading, asked), [each.positions for each in parts.passages]
    taken = _taken(answers, passages, asked)
    attention, layers, certified = attention_behind(answers, chosen)
    told, tokens = answers.answered, answers.reading.encoded.tokens
    seen = looked(layers, chosen.heads, told.rows, told.ids, tokens.ids, passages, answers.sentences)
    return Citation(
        tokens=tokens,
        passages=parts.passages,
        answer=text_of(answers.tokens, answers.positions),
        statements=tuple(_statements(answers, taken)),
        columns=(*_by_attention(seen), *_by_gradients(answers, chosen, passages, asked.gradients)),
        lost=taken.lost,
        kept=parts.kept,
        how=answers.how,
        kind=chosen.kind,
        layers=chosen.layers,
        heads=chosen.heads,
        copying=seen.heads,
        floor=taken.floor,
        certified=certified,
        provenance=attention.provenance,
        by=parts.by,
        answer_tokens=answers.tokens if told.apart else None,
        subsets=taken.subsets,
        weights=taken.weights,
        seed=asked.seed,
        tower=attention.tower,
        notes=(*reading.notes, *notes_of(attention, layers)),
    )


def _statements(answers: Answers, taken: Taken) -> Iterator[Statement]:
    for i, sentence in enumerate(answers.sentences):
        positions = tuple(answers.positions[each] for each in sentence)
        said, before, gone = text_of(answers.tokens, positions), taken.before[i], taken.without_all[i]
        beside = taken.candidates[i], taken.controls[i], taken.r2[i]
        yield Statement(said, positions, float(before), float(gone), *beside)


def _taken(answers: Answers, passages: Groups, asked: Cite) -> Taken:
    subsets = asked.subsets or (SUBSETS if len(passages) > MOST_EACH else None)
    with answers.reading.running(f"removing {len(passages)} passages"):
        return taken_away(answers.answered, answers.sentences, passages, subsets, asked.seed)


def attention_behind(
    answers: Answers, chosen: Chosen
) -> tuple[Capture | Returned, list[Layer], dict[Verdict, int]]:
    """The attention of all layers, or of a long text the rows that write the answer."""
    reading, sampled = answers.reading, None
    if may_read_rows(reading, chosen):
        sampled = sample_with(len(answers.tokens), *answers.answered.rows)
    else:
        check_whole_fits(reading, chosen, "cite")
    attention = attention_of(reading, chosen, sampled)
    if isinstance(attention, Capture):
        attention.check_in_place("what heads look at is told by passages")
    return attention, *layers_of(attention, chosen)


def _by_attention(seen: Looked) -> tuple[Column, ...]:
    none = "no head's strongest key among the passages is the token that is written"
    unknown = "the way out of the heads is not known"
    return (
        Column(ATTENTION, seen.attention),
        Column(COPYING, seen.copying, "" if seen.copying is not None else none),
        Column(BY_NORM, seen.by_norm, "" if seen.by_norm is not None else unknown),
    )


def _by_gradients(answers: Answers, chosen: Chosen, passages: Groups, wanted: bool) -> tuple[Column, ...]:
    """What goes back to each passage from the log probability of a sentence, its tokens added up."""
    reading, told = answers.reading, answers.answered
    if not wanted or told.length > MOST:
        why = f"all of a run is kept for it: up to {MOST} positions" if wanted else "left out"
        return tuple(Column(Method(each), None, why) for each in ByGradients)
    model, places = reading.model.module, tuple(map(tuple, passages))
    selection: Selection | str = chosen.selection()
    if chosen.route is Route.RETURNED:
        selection = "weights that a model returns have no gradient here"
    elif told.apart:
        selection = "attention to another text is no square that could be multiplied"
    found = dict[str, list[np.ndarray]]()
    absent = dict[str, str]()
    with reading.running("following the answer back by gradients"):
        try:
            entrance = of_tokens(model, reading.inputs, Input(told.name, places, replacement(reading).id))
        except InputError as error:
            return tuple(Column(Method(each), None, str(error)) for each in ByGradients)
        for sentence in answers.sentences:
            rows, ids = ([each[i] for i in sentence] for each in (told.rows, told.ids))
            question = written_at(rows, len(answers.tokens), ids, reading.model.spell)
            measured = Chance(question, tuple(ids))
            for each in attributed(model, entrance, measured, selection, chosen.layers, chosen.heads):
                if each.values is None:
                    absent.setdefault(each.method, each.absent)
                else:
                    values = [float(np.nansum(each.values[list(group)])) for group in places]
                    found.setdefault(each.method, []).append(np.array(values))
    return tuple(
        Column(Method(each), None if each in absent else np.array(found[each]), absent.get(each, ""))
        for each in ByGradients
    )
