"""Answers `why`: splits an attention score, or an answer's logit, into a sum over parts of the model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attnscope.analysis.prompts import OnePrompt, Seen, Spans
from attnscope.analysis.rows import certificates_of, rows_of
from attnscope.attention import Capture
from attnscope.errors import InputError
from attnscope.results.claims.prompts import Asked, Figure
from attnscope.session.choosing import Chosen
from attnscope.session.questions.answers import question_of
from attnscope.session.questions.rows import captured_long, fused_where_long, may_read_rows, sample_with
from attnscope.session.reading import Reading, read_other
from attnscope.tokens import Tokens
from attnscope.verbs.why.contributions_result import Contributions
from attnscope.verbs.why.logit import contributions
from attnscope.verbs.why.question import WhyAnswers, WhyLooks
from attnscope.verbs.why.reasons import Question, explain
from attnscope.verbs.why.result import Part, Why
from attnscope.vocabulary import Kind

MOST = 1024  # most tokens where whole attention matrices are held


def why(reading: Reading, chosen: Chosen, link: WhyLooks) -> Why:
    """Split the score of one head for this link into parts, with the effect of replacing the largest.

    Raises `InputError` for several heads, a masked link, and a model whose parts miss the score.
    """
    layer, head = chosen.only()
    link = replace(link, **reading.filled(vars(link)))
    if reading.captured is not None:
        raise InputError("why reads a text at once: leave --generate out")
    captured = _captured(reading, chosen, link)
    call = captured.call(layer, block=chosen.block)
    queries, keys = call.query_tokens, call.key_tokens
    query, key, against = _places(link, queries, keys)
    _check(query, key, against, chosen.kind, queries, keys)
    other = None if link.patch_from is None else read_other(reading, link.patch_from)
    model, inputs = reading.model.module, reading.inputs
    with reading.running("taking the score apart"), fused_where_long(reading):
        weight = float(rows_of(call, [head], [query])[0, 0, key])
        certificate = certificates_of(call, [head])[0]
        found = explain(
            model,
            inputs,
            reading.model.sites,
            call,
            Question(head, call.heads, query, key, against),
            None if other is None else other.inputs,
        )
    return Why(
        **vars(found),
        layer=layer,
        head=head,
        kind=call.kind,
        query_tokens=queries,
        key_tokens=keys,
        query=query,
        key=key,
        against=against,
        weight=weight,
        certificate=certificate,
        provenance=captured.provenance,
        other_tokens=None if other is None else other.encoded.tokens,
        tower=captured.tower,
        notes=(*captured.notes(layer), *reading.notes),
    )


def _captured(reading: Reading, chosen: Chosen, link: WhyLooks) -> Capture:
    queries, keys = reading.sides(chosen.kind)
    with reading.listener.working("reading the attention"):
        if may_read_rows(reading, chosen):
            query, _, _ = _places(link, queries, keys)
            return captured_long(reading, chosen, queries=sample_with(len(queries), query))
        if (longest := max(len(queries), len(keys))) > MOST:
            raise InputError(
                f"why holds whole layers where rows cannot be read alone: up to {MOST:,} tokens, here are "
                f"{longest:,}"
            )
        return reading.capture(chosen)


def check_link(chosen: Chosen, queries: Tokens | None, keys: Tokens, link: WhyLooks) -> None:
    """Raise `InputError` for a link that is missing, ambiguous or masked, before weights load."""
    chosen.only()
    if queries is None:
        _places(replace(link, query=0), keys, keys)
    else:
        _check(*_places(link, queries, keys), chosen.kind, queries, keys)


def _places(link: WhyLooks, queries: Tokens, keys: Tokens) -> tuple[int, int, int | None]:
    single = "why takes one token each for --from and --to, choose one of these"
    against = None if link.against is None else keys.span(link.against).one(single)
    return queries.span(link.query).one(single), keys.span(link.key).one(single), against


def _check(query: int, key: int, against: int | None, kind: Kind, queries: Tokens, keys: Tokens) -> None:
    if against == key:
        raise InputError(f"--against {keys.labels[key]} is what --to names: name another key")
    for each in (key, against):
        if kind is Kind.DECODER and each is not None and each > query:
            raise InputError(f"{queries.named(query)} may not look at {keys.named(each)}, which follows it")


def why_answer(reading: Reading, asked: WhyAnswers) -> Contributions:
    """Split an answer's logit, or its lead over another answer's, into a sum over parts of the model.

    Raises `InputError` for an answer that the model cannot give, and for a model whose parts miss the logit.
    """
    model, tokens = reading.model, reading.encoded.tokens
    if reading.asked.goes_on or reading.captured is not None:
        raise InputError("why reads a text at once: leave --generate out")
    if reading.task == "generated":
        raise InputError(
            f"why --answer asks one place of a text, and {model.name} writes a text of its own: it works for "
            "models that fill a [MASK], go on with a text or name a class, tags or an answer within the text"
        )
    asked = replace(asked, **reading.filled(vars(asked)))
    question = question_of(reading, asked.answer, asked.against, query=asked.query)
    if len(tokens) > MOST:
        raise InputError(f"why holds all of a run at once: up to {MOST} tokens, here are {len(tokens)}")
    other = None if asked.patch_from is None else read_other(reading, asked.patch_from)
    with reading.running("taking the answer apart"):
        told = contributions(
            model.module,
            reading.inputs,
            model.sites,
            question,
            None if other is None else other.inputs,
        )
    return Contributions(
        **vars(told),
        tokens=tokens,
        position=question.position,
        provenance=reading.untouched,
        other_tokens=None if other is None else other.encoded.tokens,
        notes=reading.notes,
    )


def figures(result: Why, spans: Spans) -> OnePrompt:
    """Share of the contrast of each part, by side."""
    return OnePrompt(Asked.WHY, dict(_sides(result)))


def figures_of_answer(result: Contributions, spans: Spans) -> OnePrompt:
    """Direct contribution of each part to the logit, beside the loss without it."""
    return OnePrompt(Asked.ANSWER, dict(_parts(result)), result, _summed)


def _parts(result: Contributions) -> Iterator[tuple[Figure, Seen]]:
    for part in result.parts:
        figure = Figure(part.name, "logits", part.layer, part.head)
        if part.removed is None or not part.controls:
            yield figure, Seen(part.direct)
        else:
            most = max(map(abs, part.controls))
            yield figure, Seen(part.direct, most, -part.removed.total, part.stands)


def _sides(result: Why) -> Iterator[tuple[Figure, Seen]]:
    for part in result.parts:
        figure = Figure(f"{part.name} on the {part.side} side", "share", part.layer, part.head)
        yield figure, _of_part(result, part)


def _of_part(result: Why, part: Part) -> Seen:
    if part.removed is None or not part.controls:
        return Seen(part.contrast)
    most = max(map(abs, part.controls))
    return Seen(part.contrast, most, -part.removed.total, result.is_reason(part))


def _summed(every: Sequence[Contributions]) -> str:
    what = "logit" if every[0].against is None else "difference of logits"
    mean, told = (float(np.mean([getattr(each, name) for each in every])) for name in ("summed", "logit"))
    off = max(each.residual for each in every)
    return (
        f"in the mean all parts sum to {mean:+.5g}, and the {what} of the untouched model is {told:+.5g}; in "
        f"no prompt are they more than {off:.1g} of it apart"
    )
