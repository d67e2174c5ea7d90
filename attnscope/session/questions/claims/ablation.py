"""What a model's answer becomes without some of its heads, or with what they answer to another text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attnscope.analysis.claims.ablation import replacing
from attnscope.analysis.claims.ablation.estimates import estimated, held_against, measured_estimates
from attnscope.analysis.claims.ablation.experiment import (
    Head,
    check_heads,
    head_counts,
    intervention,
    taken_away,
)
from attnscope.analysis.claims.ablation.question import Question, effect, log_chances
from attnscope.analysis.claims.ablation.replacing import Replacement
from attnscope.capture import Selection, provenance_of
from attnscope.capture.faults import if_it_runs
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.errors import InputError
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Asks, Effect, Predicted
from attnscope.session.choosing import Chosen
from attnscope.session.effects import CONTROLS, PATCHING, TOP, Ablating
from attnscope.session.entering import encode_inputs
from attnscope.session.opening import Opened
from attnscope.session.prompts import NONE, Prompt, with_fields
from attnscope.session.questions.claims.answers import question_of
from attnscope.session.reading import Reading
from attnscope.spans import Span
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Route


def ablate(reading: Reading, chosen: Chosen, asked: Ablating) -> Ablation:
    """The chosen heads ranked by what the answer becomes without each of them, and without all at once.

    `reading` has what the decoder reads in full. Raises `InputError` for an answer, a link or a text that
    cannot be.
    """
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: nothing can be put in the place of an output")
    if chosen.block:
        raise InputError("a head is changed in all blocks of its layer: leave --block out")
    asked = replace(asked, **reading.filled(vars(asked), chosen))
    question = question_of(reading, asked.answer)
    other = None if asked.text is None else read_other(reading, asked.text)
    if asked.to is not None and other is not None and not _same_place(question, reading, other):
        there = "" if question.position is None else other.encoded.tokens.named(question.position)
        mine = "" if question.position is None else reading.encoded.tokens.named(question.position)
        raise InputError(f"--to needs the answer at the same place in both texts: {mine} here, {there} there")
    module, inputs, name = reading.model.module, reading.inputs, reading.model.name
    selection = Selection(
        kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route, layers=chosen.layers
    )
    with reading.listener.working("ablating heads"), if_it_runs(module, inputs, name):
        experiments = experiments_on(module, inputs, selection, question.asked)
        return _ablated(reading, chosen, asked, question, experiments, other)


def _ablated(
    reading: Reading,
    chosen: Chosen,
    asked: Ablating,
    question: Question,
    experiments: Experiments,
    other: Reading | None,
) -> Ablation:
    answer = question.answered(experiments.untouched)
    replacement, link = _replacement(reading, chosen, asked, experiments, other)
    every = [(layer, head) for layer in chosen.layers for head in chosen.heads]
    heads: Sequence[Head] = chosen.apart or every
    check_heads(heads, head_counts(experiments))
    predicted = _estimates(experiments, answer.ids, replacement, heads, asked.by) if asked.rank else ()
    if asked.rank:
        heads = [(each.layer, each.head) for each in predicted[: asked.top or TOP]]
    together = not (asked.each or asked.rank or asked.to is not None)
    removals = taken_away(
        experiments,
        answer.ids,
        heads,
        replacement.what,
        together=together,
        seed=asked.seed,
        name=question.name,
    )
    effects, correlation = removals.heads, None
    if asked.rank:
        effects, correlation = held_against(effects, predicted)
    total = None if other is None else _total(question, experiments, replacement, answer.ids, reading, other)
    model = reading.model
    provenance = provenance_of(
        model.module, reading.encoded.tokens, model.origin(), experiments.sites, reading.inputs
    )
    return Ablation(
        tokens=reading.encoded.tokens,
        target=None if reading.target is None else reading.target.tokens,
        kind=chosen.kind,
        answer=answer,
        method=replacement.method,
        how=replacement.how,
        heads=effects,
        group=removals.group,
        floor=removals.floor,
        intervention=intervention(experiments),
        provenance=provenance,
        tower=chosen.tower.distinct_name,
        link=None if link is None else (link[0].positions[0], link[1].positions[0]),
        link_spans=() if link is None else several(*link),
        other=None if other is None else other.encoded.tokens,
        total=total,
        predicted=predicted,
        rank_correlation=correlation,
        predicted_by=asked.by or PATCHING,
        mean_over=replacement.mean_over,
        modules={str(layer): site.path for site in experiments.sites for layer in site.layers},
        notes=reading.notes,
    )


def several(query: Span, key: Span) -> tuple[tuple[int, ...], ...]:
    """The positions of both ends of a link; none where each is a single token."""
    return (query.positions, key.positions) if len(query) + len(key) > 2 else ()


def _estimates(
    experiments: Experiments,
    ids: tuple[int, ...],
    replacement: Replacement,
    heads: Sequence[Head],
    by: str | None,
) -> tuple[Predicted, ...]:
    """What is foretold of the heads that are looked at, the largest first."""
    if by in (None, PATCHING):
        every = estimated(experiments, ids, replacement.what)
    else:
        every = measured_estimates(experiments, ids, by, heads)
    return tuple(each for each in every if (each.layer, each.head) in set(heads))


def _replacement(
    reading: Reading, chosen: Chosen, asked: Ablating, experiments: Experiments, other: Reading | None
) -> tuple[Replacement, tuple[Span, Span] | None]:
    """What stands in the place of outputs, and the ends of the link where one is cut."""
    if asked.method == "link":
        link = _link(reading, chosen, asked, experiments)
        return replacing.without_link(*link), link
    if other is not None:
        return replacing.of_text(experiments.model, other.inputs, experiments.sites), None
    if asked.method == "zero":
        return replacing.zeros(), None
    sides = {"input_ids": reading.encoded.tokens}
    if reading.target is not None:
        sides["decoder_input_ids"] = reading.target.tokens
    if "input_ids" not in experiments.inputs or reading.perceived is not None:
        raise InputError("--with mean is over texts of other words: what is read here is no text alone")
    mask = None if reading.model.tokenizer is None else reading.model.tokenizer.mask_token_id
    return replacing.means(
        experiments.model,
        experiments.inputs,
        experiments.sites,
        sides,
        mask_id=mask,
        count=asked.controls or CONTROLS,
        seed=asked.seed,
    ), None


def _link(reading: Reading, chosen: Chosen, asked: Ablating, experiments: Experiments) -> tuple[Span, Span]:
    """Both ends of the links that are cut."""
    if reading.perceived is not None:
        raise InputError("--link is between tokens of a text: what is read here is none")
    queries = reading.tokens_of(chosen.kind)
    lengths = {answer.shape[2] for answer in experiments.answers.values()}
    keys = reading.encoded.tokens if chosen.kind is Kind.CROSS else queries
    found = link_ends(chosen, queries, keys, asked=asked)
    if lengths != {len(queries)}:
        raise InputError("--link needs attention from token to token: this one reads in windows")
    return found


def link_ends(
    chosen: Chosen, queries: Tokens | None, keys: Tokens, *, asked: Ablating, prompt: Prompt = NONE
) -> tuple[Span, Span]:
    """What the ends of a link name; `InputError` for tokens that are not there, or only follow the queries.

    Where the queries are not known yet the keys stand for both.
    """
    asked = replace(asked, **with_fields(vars(asked), prompt, queries, keys))
    query_name, key_name = asked.link_names
    key = keys.span(key_name)
    query = key if queries is None else queries.span(query_name)
    if chosen.kind is Kind.DECODER and min(key.positions) > max(query.positions):
        ends = f"{query.name} cannot look at {key.name}"
        raise InputError(f"--link: in causal attention {ends}, which follows it")
    return query, key


def read_other(reading: Reading, text: str) -> Reading:
    """The same model with another text, as long as the first one; `InputError` that names both lengths."""
    asked = reading.asked
    if asked.sensed or asked.ids is not None:
        raise InputError("outputs of another text go into a text: what is read here is none")
    inputs = replace(asked, text=text, words=None, split=False)
    encoded = encode_inputs(Opened(reading.model, reading.task), inputs, reading.listener)
    mine, its = len(reading.encoded.tokens), len(encoded.encoded.tokens)
    if mine != its:
        lengths = f"the texts have {mine} and {its} tokens"
        raise InputError(f"{lengths}: an output can only stand in the place of one at the same position")
    return replace(encoded, target=reading.target)


def _total(
    question: Question,
    experiments: Experiments,
    replacement: Replacement,
    ids: Sequence[int],
    reading: Reading,
    other: Reading,
) -> Effect | None:
    """How probable the answer is in the other text; None where that asks for none at the same place."""
    if not _same_place(question, reading, other):
        return None
    output: Any = replacement.output
    before, after = experiments.untouched[0], question.asked.of(output)[0]
    return effect(log_chances(before), log_chances(after), ids)


def _same_place(question: Question, reading: Reading, other: Reading) -> bool:
    """Whether both texts ask at the answer's place: of a mask that there is one in the other as well."""
    if question.asks is not Asks.MASK or question.position is None:
        return True
    here, there = (side.encoded.tokens.items[question.position] for side in (reading, other))
    return here.id == there.id
