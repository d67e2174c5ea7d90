"""Parts of layers other than heads, or heads token by token: what the answer becomes without each of them.

What heads and other parts are asked alike is here too: what stands in their place, and the other text.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from torch import Tensor

from attnscope.analysis.answers import replacing
from attnscope.analysis.answers.experiment import check_heads, head_counts, intervention
from attnscope.analysis.answers.question import Question
from attnscope.analysis.answers.replacing import Replacement
from attnscope.attention import check_in_place
from attnscope.capture import provenance_of
from attnscope.capture.following.describe import sides_of
from attnscope.capture.intervening.changes import Tap
from attnscope.capture.intervening.experiments import Experiments
from attnscope.capture.intervening.taps import find_taps, tapping
from attnscope.capture.long.run import standings_of_beginning
from attnscope.errors import InputError
from attnscope.results.claims.effect import Answer, Asks, Effect, Method, Part, Path, PlaceEffect
from attnscope.session.choosing import Chosen, path_of, with_senders
from attnscope.session.reading import Reading
from attnscope.spans import Span
from attnscope.tokens import Tokens
from attnscope.verbs.ablate import parts as places
from attnscope.verbs.ablate.parts import along
from attnscope.verbs.ablate.question import EVERY_TOKEN, MEAN_OVER, Ablate
from attnscope.verbs.ablate.result import Ablation
from attnscope.vocabulary import Kind, Standing


def ablated_places(
    reading: Reading,
    chosen: Chosen,
    asked: Ablate,
    question: Question,
    experiments: Experiments,
    other: Reading | None,
    path: Path | None,
) -> Ablation:
    """What the answer becomes without the part that is asked for, layer by layer or token by token."""
    part = Part(asked.part)
    taps: dict[int, Tap] = {}
    if part not in (Part.HEAD, Part.ATTENTION):
        every = find_taps(experiments.model, experiments.inputs, experiments.sites, part)
        taps = {layer: tap for layer, tap in every.items() if layer in chosen.layers or part is Part.POSITION}
        model, inputs, sites = experiments.model, experiments.inputs, experiments.sites
        experiments = Experiments(model, inputs, sites, question.asked, tuple(taps.values()))
    wanted, ends = _wanted(reading, chosen, asked, part, taps, experiments)
    answer = question.answered(experiments.untouched)
    instead = _instead(reading, asked, part, experiments, other, taps, ends)
    tell = question.telling(experiments.untouched, answer.ids)
    length = len(reading.tokens_of(chosen.kind))
    found = places.changed_in_turn(
        experiments, taps, wanted, instead, tell, length=length, seed=asked.seed, path=path
    )
    effects = found.effects
    if other is not None:
        effects = _with_those_enough(
            question, along(experiments, path), other, taps, wanted, effects, answer.ids
        )
    return Ablation(
        **asked_of(reading, chosen, question, experiments, answer, instead, ends, other),
        heads=(),
        group=None,
        floor=found.floor,
        part=part,
        places=effects,
        beside=found.beside,
        path=found.path,
    )


def _wanted(
    reading: Reading,
    chosen: Chosen,
    asked: Ablate,
    part: Part,
    taps: dict[int, Tap],
    experiments: Experiments,
) -> tuple[places.Asked, tuple[Span, Span] | None]:
    layers = tuple(sorted(taps)) if taps else chosen.layers
    heads: tuple[tuple[int, int], ...] = ()
    if part is Part.HEAD:
        heads = tuple(chosen.apart or ((layer, head) for layer in chosen.layers for head in chosen.heads))
        check_heads(heads, head_counts(experiments))
    if asked.link is not None:
        check_token_by_token(reading, chosen, experiments, "--link")
        queries = reading.named_of(chosen.kind)
        keys = reading.encoded.tokens if chosen.kind is Kind.CROSS else queries
        ends = link_ends(chosen, queries, keys, asked)
        sets: tuple[places.Tokens, ...] = (ends[1].positions,)
        if asked.link_names[1] == EVERY_TOKEN:
            last = max(ends[0].positions) if chosen.kind is Kind.DECODER else len(keys)
            sets = tuple((key,) for key in ends[1].positions if key <= last)
        return places.Asked(part, layers, sets, heads, ends[0].positions), ends
    each = asked.at == EVERY_TOKEN or (part is Part.POSITION and asked.at is None)
    if each:
        count = len(check_token_by_token(reading, chosen, experiments, "--at", part))
        return places.Asked(part, layers, tuple((place,) for place in range(count)), heads), None
    at = () if asked.at is None else _token_set(reading, chosen, asked.at, experiments, part)
    return places.Asked(part, layers, (at,), heads), None


def _token_set(
    reading: Reading, chosen: Chosen, name: str, experiments: Experiments, part: Part
) -> tuple[int, ...]:
    check_token_by_token(reading, chosen, experiments, "--at", part)
    return reading.named_of(chosen.kind).span(name).positions


def check_token_by_token(
    reading: Reading, chosen: Chosen, experiments: Experiments, option: str, part: Part | None = None
) -> Tokens:
    """The tokens at which a part hands something on, or without one those that look and are looked at.

    `InputError` where positions are no tokens of a text, and where rows are not those of the tokens there.
    """
    if reading.perceived is not None:
        raise InputError(f"{option} names tokens of a text: what is read here is none")
    queries = reading.tokens_of(chosen.kind)
    if {answer.shape[2] for answer in experiments.answers.values()} != {len(queries)}:
        raise InputError(f"{option} needs attention from token to token: this one reads in windows")
    if part is not Part.POSITION:  # those are of the input itself
        check_in_place(_displaced(reading, chosen, experiments, part), f"{option} names tokens")
    return queries


def _displaced(
    reading: Reading, chosen: Chosen, experiments: Experiments, part: Part | None
) -> Iterator[int]:
    """The layers whose rows are of other tokens than those in their place, where the part hands on."""
    module, inputs, labels = reading.model.module, experiments.inputs, reading.labels(chosen)
    sides, layers = sides_of(module, inputs, labels.tokens, labels.target), set(chosen.layers)
    taps = experiments.taps

    def rows(keep: Callable[[int, Tensor], None]) -> AbstractContextManager[None]:
        return tapping(taps, lambda tap, tensor: keep(tap.layer, tensor), lambda tap, made: None)

    found = standings_of_beginning(
        module, inputs, experiments.sites, layers, sides, rows=rows if taps else None
    )
    yield from (layer for layer, standing in found.handed_on.items() if standing is Standing.OTHER)
    served = {site.path: site.layers for site in experiments.sites if not taps}
    for (path, number), one in found.found.items():
        several = served.get(path, ())
        layer = several[number] if number < len(several) > 1 else next(iter(several), None)
        if layer in layers and Standing.OTHER in (one.query, *(() if part else (one.key, one.value))):
            yield layer


def _instead(
    reading: Reading,
    asked: Ablate,
    part: Part,
    experiments: Experiments,
    other: Reading | None,
    taps: dict[int, Tap],
    ends: tuple[Span, Span] | None,
) -> Replacement:
    if ends is not None:
        query, key = ends
        if asked.link_names[1] == EVERY_TOKEN:
            key = replace(key, name="each key by itself")
        return replacing.without_link(query, key)
    if part is Part.POSITION:
        if any(len(rows) < 2 for rows in experiments.written.values()):
            raise InputError("the text is one token: there are no other positions whose vectors have a mean")
        return replacing.others(experiments.written)
    return instead_of(reading, asked, experiments, other, tuple(taps.values()))


def instead_of(
    reading: Reading,
    asked: Ablate,
    experiments: Experiments,
    other: Reading | None,
    taps: Sequence[Tap] = (),
) -> Replacement:
    """What stands in the place of what heads answer, or of what is handed on at the taps."""
    if other is not None:
        return replacing.of_text(experiments.model, other.inputs, experiments.sites, taps)
    if asked.method == "zero":
        return replacing.zeros(taps)
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
        count=asked.controls or MEAN_OVER,
        seed=asked.seed,
        taps=taps,
    )


def _with_those_enough(
    question: Question,
    experiments: Experiments,
    other: Reading,
    taps: dict[int, Tap],
    wanted: places.Asked,
    effects: Sequence[PlaceEffect],
    ids: tuple[int, ...],
) -> tuple[PlaceEffect, ...]:
    model, sites = experiments.model, experiments.sites
    there = Experiments(model, other.inputs, sites, question.asked, experiments.taps)
    there.via = experiments.via
    if experiments.taps:
        mine = Replacement(Method.TEXT, replacing.zeros().what, "", rows=experiments.written)
    else:
        mine = replacing.of_text(model, experiments.inputs, sites)
    tell = question.telling(there.untouched, ids)
    changes = places.brought_back(there, taps, wanted, mine, tell)
    experiments.tally.add(there.tally)
    return tuple(replace(one, enough=change) for one, change in zip(effects, changes, strict=True))


def asked_of(
    reading: Reading,
    chosen: Chosen,
    question: Question,
    experiments: Experiments,
    answer: Answer,
    instead: Replacement,
    link: tuple[Span, Span] | None,
    other: Reading | None,
) -> dict[str, Any]:
    """What every ablation says: the text, the answer, where it was read from, what was put in its place."""
    model = reading.model
    provenance = provenance_of(
        model.module, reading.encoded.tokens, reading.origin(chosen), experiments.sites, reading.inputs
    )
    total = None if other is None else total_of(question, experiments, instead, answer.ids, reading, other)
    return {
        "tokens": reading.encoded.tokens,
        "target": None if reading.target is None else reading.target.tokens,
        "kind": chosen.kind,
        "answer": answer,
        "provenance": provenance,
        "tower": chosen.tower.distinct_name,
        "measured": question.measured,
        "against": question.rival(experiments.untouched),
        "modules": {str(layer): site.path for site in experiments.sites for layer in site.layers},
        "notes": reading.notes,
        "method": instead.method,
        "how": instead.how,
        "intervention": intervention(experiments),
        "link": None if link is None else (link[0].positions[0], link[1].positions[0]),
        "link_spans": () if link is None or max(map(len, link)) < 2 else tuple(one.positions for one in link),
        "other": None if other is None else other.encoded.tokens,
        "total": total,
        "mean_over": instead.mean_over,
    }


def names_of(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Ablate) -> None:
    """Raises `InputError` for tokens that are named and are not there, and for paths that there are not."""
    if asked.via is not None:
        with_senders(chosen, asked.part, path_of(chosen, asked.via))
    if asked.link is not None:
        link_ends(chosen, queries, keys, asked)
    if asked.at not in (None, EVERY_TOKEN) and queries is not None:
        queries.span(asked.at)
    if asked.query is not None and queries is not None:
        queries.span(asked.query)


def link_ends(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Ablate) -> tuple[Span, Span]:
    """What the ends of a link name; `InputError` for tokens that are not there, or only follow the queries.

    Where the queries are not known yet the keys stand for both.
    """
    query_name, key_name = asked.link_names
    key = keys.span("pos:all" if key_name == EVERY_TOKEN else key_name)
    query = key if queries is None else queries.span(query_name)
    if chosen.kind is Kind.DECODER and min(key.positions) > max(query.positions):
        ends = f"{query.name} cannot look at {key.name}"
        raise InputError(f"--link: in causal attention {ends}, which follows it")
    return query, key


def total_of(
    question: Question,
    experiments: Experiments,
    replacement: Replacement,
    ids: Sequence[int],
    reading: Reading,
    other: Reading,
) -> Effect | None:
    """What the answer is in the other text; None where that asks for none at the same place."""
    if not same_place(question, reading, other):
        return None
    output: Any = replacement.output
    return question.telling(experiments.untouched, ids, named=False)(question.asked.of(output))


def same_place(question: Question, reading: Reading, other: Reading) -> bool:
    """Whether both texts ask at the answer's place: of a mask that there is one in the other as well."""
    if question.asks is not Asks.MASK or question.position is None:
        return True
    here, there = (side.encoded.tokens.items[question.position] for side in (reading, other))
    return here.id == there.id
