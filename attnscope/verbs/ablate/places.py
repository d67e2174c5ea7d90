"""Ablates parts of layers, or heads token by token, and sets each change beside controls.

Each change stands beside others and rounding. What heads and other parts share is here too: the replacements,
and the other text.

all tokens        layer by layer, beside the same part of the other layers
some tokens       layer by layer, beside as many other tokens of the same layer, drawn by lot
token by token    the grid of layers and tokens, each beside the other tokens of its layer
one path          what a change does along it, beside what it does by all, and along it to other heads
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from attnscope.analysis.answers import replacing
from attnscope.analysis.answers.experiment import (
    MOST_DRAWN,
    against,
    check_heads,
    floor_of,
    groups_drawn,
    head_counts,
    intervention,
    layers_drawn,
)
from attnscope.analysis.answers.question import Question, Tell
from attnscope.analysis.answers.replacing import Replacement
from attnscope.attention import check_in_place
from attnscope.capture import provenance_of
from attnscope.capture.following.describe import sides_of
from attnscope.capture.intervening.changes import Change, Cut, Rounded, Tap, Variant, Via, What, Write
from attnscope.capture.intervening.experiments import Experiments
from attnscope.capture.intervening.taps import find_taps, tapping
from attnscope.capture.long.run import standings_of_beginning
from attnscope.errors import InputError
from attnscope.results.claims.effect import (
    Answer,
    Asks,
    Beside,
    Effect,
    Floor,
    Group,
    Method,
    Part,
    Path,
    PlaceEffect,
    Receiver,
)
from attnscope.session.choosing import Chosen, path_of, with_senders
from attnscope.session.reading import Reading
from attnscope.spans import Span
from attnscope.tokens import Tokens
from attnscope.verbs.ablate.question import EVERY_TOKEN, MEAN_OVER, Ablate
from attnscope.verbs.ablate.result import Ablation
from attnscope.vocabulary import Kind, Standing

Positions = tuple[int, ...]


@dataclass(frozen=True)
class Asked:
    """Places to change, each by itself: a part of every layer, or heads, at sets of tokens.

    `tokens` are sets of positions; an empty set means all positions. Of a link they are the keys that
    `queries` do not look at.
    """

    part: Part
    layers: tuple[int, ...]
    tokens: tuple[Positions, ...] = ((),)
    heads: tuple[tuple[int, int], ...] = ()
    queries: tuple[int, ...] | None = None

    @property
    def rows(self) -> Sequence[tuple[int, int | None]]:
        """(layer, head) of each row of places; head is None for a part of a whole layer."""
        return self.heads or [(layer, None) for layer in self.layers]


@dataclass(frozen=True)
class Places:
    """Effects by layer and token, the name of their comparison, the noise floor, and the path."""

    effects: tuple[PlaceEffect, ...]
    beside: str
    floor: Floor
    path: Path | None


Cell = tuple[int, int | None, Positions]  # layer, head, positions


def changed_in_turn(
    experiments: Experiments,
    taps: Mapping[int, Tap],
    asked: Asked,
    instead: Replacement,
    tell: Tell,
    *,
    length: int,
    seed: int,
    path: Path | None = None,
) -> Places:
    """Changes every place by itself, by all ways or along `path`; `length` is the number of tokens."""
    cells = _cells(asked)
    drawn = [] if len(asked.tokens) > 1 else _others(asked, length, seed)
    make = _made(experiments, taps, asked, instead)
    *outcomes, rounded = along(experiments, path).run(
        [*map(make, (*cells, *drawn)), _rounding(experiments, taps, asked)]
    )
    effects = [tell(each.scores) for each in outcomes]
    several = dict(zip((*cells, *drawn), effects, strict=True))
    found = tuple(_beside(cell, several) for cell in cells)
    found = beside_all_ways(experiments, path, found, lambda one: make(_cell(one)), tell)
    best = make(_cell(max(found, key=lambda one: abs(one.change))))
    path = beside_other_receivers(experiments, path, best, tell, seed)
    return Places(found, _told(asked, drawn), floor_of(tell, outcomes, rounded, (), seed), path)


def _cell(one: PlaceEffect) -> Cell:
    return one.layer, one.head, one.positions


def brought_back(
    there: Experiments, taps: Mapping[int, Tap], asked: Asked, mine: Replacement, tell: Tell
) -> list[float]:
    """Change of the answer in the other text (`there`) for each place that alone gets this text's values."""
    make = _made(there, taps, asked, mine)
    return [tell(each.scores).change for each in there.run(list(map(make, _cells(asked))))]


def _cells(asked: Asked) -> list[Cell]:
    return [(layer, head, tokens) for layer, head in asked.rows for tokens in asked.tokens]


def _others(asked: Asked, length: int, seed: int) -> list[Cell]:
    """Control cells: as many adjacent other tokens of each row, drawn by lot; none if all tokens change."""
    (mine,) = asked.tokens
    if not mine:
        return []
    starts = [
        start for start in range(length - len(mine) + 1) if not {*range(start, start + len(mine))} & {*mine}
    ]
    some = sorted(np.random.default_rng(seed).permutation(starts)[:MOST_DRAWN].tolist())
    return [(*row, tuple(range(start, start + len(mine)))) for row in asked.rows for start in some]


def _made(
    experiments: Experiments, taps: Mapping[int, Tap], asked: Asked, instead: Replacement
) -> Callable[[Cell], Variant]:
    counts = head_counts(experiments)

    def make(cell: Cell) -> Variant:
        layer, head, tokens = cell
        if asked.part in (Part.HEAD, Part.ATTENTION):
            what: What = instead.what if asked.queries is None else Cut(asked.queries, tokens)
            at = tokens if tokens and asked.queries is None else None
            heads = range(counts[layer]) if head is None else [head]
            return tuple(Change(layer, each, what, at) for each in heads)
        tap = taps[layer]
        return (Write(tap, instead.rows[tap] if instead.rows else None, tokens or None),)

    return make


def _rounding(experiments: Experiments, taps: Mapping[int, Tap], asked: Asked) -> Variant:
    """A variant that moves every number of the first layer by its own precision, for the noise floor."""
    first = min((layer for layer, _ in asked.heads), default=min(asked.layers, default=0))
    if taps:
        return (Write(taps[min(taps) if first not in taps else first], rounded=True),)
    return tuple(Change(first, head, Rounded()) for head in range(head_counts(experiments)[first]))


def _beside(cell: Cell, several: Mapping[Cell, Effect]) -> PlaceEffect:
    """The effect at `cell` beside other tokens of its row, or beside other rows if it is at all tokens."""
    layer, head, tokens = cell
    row = [each for each in several if each[:2] == cell[:2] and each != cell]
    others = row if tokens else [each for each in several if each != cell]
    typical, below = against(several[cell], [several[each] for each in others])
    one = PlaceEffect(**vars(several[cell]), layer=layer, head=head, positions=tokens)
    return replace(one, typical=typical, below=below, controls=len(others))


def _told(asked: Asked, drawn: Sequence[Cell]) -> str:
    row = "head" if asked.heads else "layer"
    if asked.part is Part.POSITION:
        return "other positions"
    if len(asked.tokens) > 1:
        return f"other {'keys' if asked.queries is not None else 'tokens'} of the same {row}"
    if asked.tokens[0]:
        few = "tokens" if len(asked.tokens[0]) == 1 else f"stretches of {len(asked.tokens[0])} tokens"
        return f"other {few} of the same {row}, drawn by lot" if drawn else ""
    return f"the other {row}s"


One = TypeVar("One", bound=Beside)


def along(experiments: Experiments, path: Path | None) -> Experiments:
    """Experiments whose changes act along `path` alone; the given ones where `path` is None."""
    return experiments if path is None else experiments.along(Via(path.receivers, path.direct))


def beside_all_ways(
    experiments: Experiments,
    path: Path | None,
    effects: Sequence[One],
    made: Callable[[One], Variant],
    tell: Tell,
) -> tuple[One, ...]:
    """The effects along `path`, each with the effect of the same change by all ways as `whole`."""
    if path is None:
        return tuple(effects)
    outcomes = experiments.run([made(each) for each in effects])
    return tuple(
        replace(one, whole=tell(outcome.scores).change)
        for one, outcome in zip(effects, outcomes, strict=True)
    )


def beside_other_receivers(
    experiments: Experiments, path: Path | None, variant: Variant, tell: Tell, seed: int
) -> Path | None:
    """The path with effects of the same variant on as many other receivers of the same layers, as controls.

    Where all heads of the layers are receivers, the controls are as many later layers.
    """
    if path is None:
        return None
    mine = [(each.layer, each.head) for each in path.receivers]
    inputs, counts = [each.inputs for each in path.receivers], head_counts(experiments)
    groups = groups_drawn(mine, counts, seed) if mine else []
    if not groups and len({*inputs}) == 1:
        first = min(change.layer for change in variant)
        later = {layer: count for layer, count in counts.items() if layer > first}
        groups = layers_drawn(mine, later, seed) if {layer for layer, _ in mine} <= set(later) else []
    others = []
    for heads in groups:
        by_head = inputs if len(inputs) == len(heads) else inputs[:1] * len(heads)
        receivers = tuple(Receiver(*head, by) for head, by in zip(heads, by_head, strict=True))
        (outcome,) = experiments.along(Via(receivers, path.direct)).run([variant])
        others.append(Group(heads, tell(outcome.scores)))
    return replace(path, others=tuple(others))


@dataclass(frozen=True, eq=False)
class Run:
    """One ablation: the reading, its options and question, the experiments, the other text, and the path."""

    reading: Reading
    chosen: Chosen
    asked: Ablate
    question: Question
    experiments: Experiments
    other: Reading | None
    path: Path | None


def ablated_places(run: Run) -> Ablation:
    """Ablates a part of the model, layer by layer or token by token."""
    part, chosen, question, experiments = Part(run.asked.part), run.chosen, run.question, run.experiments
    taps: dict[int, Tap] = {}
    if part not in (Part.HEAD, Part.ATTENTION):
        every = find_taps(experiments.model, experiments.inputs, experiments.sites, part)
        taps = {layer: tap for layer, tap in every.items() if layer in chosen.layers or part is Part.POSITION}
        model, inputs, sites = experiments.model, experiments.inputs, experiments.sites
        experiments = Experiments(model, inputs, sites, question.asked, tuple(taps.values()))
        run = replace(run, experiments=experiments)
    wanted, ends = _wanted(run, part, taps)
    answer = question.answered(experiments.untouched)
    if ends is not None:
        each_key = run.asked.link_names[1] == EVERY_TOKEN
        key = replace(ends[1], name="each key by itself") if each_key else ends[1]
        instead = replacing.without_link(ends[0], key)
    elif part is Part.POSITION:
        if any(len(rows) < 2 for rows in experiments.written.values()):
            raise InputError("the text is one token: there are no other positions whose vectors have a mean")
        instead = replacing.others(experiments.written)
    else:
        instead = instead_of(run, tuple(taps.values()))
    tell = question.telling(experiments.untouched, answer.ids)
    length, seed = len(run.reading.tokens_of(chosen.kind)), run.asked.seed
    found = changed_in_turn(experiments, taps, wanted, instead, tell, length=length, seed=seed, path=run.path)
    effects = found.effects
    if run.other is not None:
        effects = _with_those_enough(run, run.other, taps, wanted, effects, answer.ids)
    return Ablation(
        **asked_of(run, answer, instead, ends),
        heads=(),
        group=None,
        floor=found.floor,
        part=part,
        places=effects,
        beside=found.beside,
        path=found.path,
    )


def _wanted(run: Run, part: Part, taps: dict[int, Tap]) -> tuple[Asked, tuple[Span, Span] | None]:
    chosen, asked = run.chosen, run.asked
    layers = tuple(sorted(taps)) if taps else chosen.layers
    heads: tuple[tuple[int, int], ...] = ()
    if part is Part.HEAD:
        heads = tuple(chosen.apart or ((layer, head) for layer in chosen.layers for head in chosen.heads))
        check_heads(heads, head_counts(run.experiments))
    if asked.link is not None:
        ends = cut_link(run)
        sets: tuple[Positions, ...] = (ends[1].positions,)
        if asked.link_names[1] == EVERY_TOKEN:
            last = max(ends[0].positions) if chosen.kind is Kind.DECODER else max(ends[1].positions)
            sets = tuple((key,) for key in ends[1].positions if key <= last)
        return Asked(part, layers, sets, heads, ends[0].positions), ends
    each = asked.at == EVERY_TOKEN or (part is Part.POSITION and asked.at is None)
    if each:
        count = len(check_token_by_token(run, "--at", part))
        return Asked(part, layers, tuple((place,) for place in range(count)), heads), None
    at: Positions = ()
    if asked.at is not None:
        check_token_by_token(run, "--at", part)
        at = run.reading.named_of(chosen.kind).span(asked.at).positions
    return Asked(part, layers, (at,), heads), None


def check_token_by_token(run: Run, option: str, part: Part | None = None) -> Tokens:
    """The query tokens, where `part` (without one, the attention) has one row for each of them in order.

    Raises `InputError` for input that is no text, for windowed attention, and for rows of other tokens.
    """
    if run.reading.perceived is not None:
        raise InputError(f"{option} names tokens of a text: what is read here is none")
    queries = run.reading.tokens_of(run.chosen.kind)
    if {answer.shape[2] for answer in run.experiments.answers.values()} != {len(queries)}:
        raise InputError(f"{option} needs attention from token to token: this one reads in windows")
    if part is not Part.POSITION:  # those are of the input itself
        check_in_place(_displaced(run, part), f"{option} names tokens")
    return queries


def _displaced(run: Run, part: Part | None) -> Iterator[int]:
    """Layers whose rows, at the part or in the attention, belong to other tokens than their position says."""
    experiments, labels, layers = run.experiments, run.reading.labels(run.chosen), {*run.chosen.layers}
    module, inputs, taps = run.reading.model.module, experiments.inputs, experiments.taps
    sides = sides_of(module, inputs, labels.tokens, labels.target)

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


def instead_of(run: Run, taps: Sequence[Tap] = ()) -> Replacement:
    """The replacement for head outputs, or for activations at the taps: another text's, zeros, or a mean."""
    reading, asked, experiments = run.reading, run.asked, run.experiments
    if run.other is not None:
        return replacing.of_text(experiments.model, run.other.inputs, experiments.sites, taps)
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
    run: Run,
    other: Reading,
    taps: dict[int, Tap],
    wanted: Asked,
    effects: Sequence[PlaceEffect],
    ids: tuple[int, ...],
) -> tuple[PlaceEffect, ...]:
    experiments = along(run.experiments, run.path)
    model, sites = experiments.model, experiments.sites
    there = Experiments(model, other.inputs, sites, run.question.asked, experiments.taps)
    there.via = experiments.via
    if experiments.taps:
        mine = Replacement(Method.TEXT, replacing.zeros().what, "", rows=experiments.written)
    else:
        mine = replacing.of_text(model, experiments.inputs, sites)
    tell = run.question.telling(there.untouched, ids)
    changes = brought_back(there, taps, wanted, mine, tell)
    experiments.tally.add(there.tally)
    return tuple(replace(one, enough=change) for one, change in zip(effects, changes, strict=True))


def asked_of(
    run: Run, answer: Answer, instead: Replacement, link: tuple[Span, Span] | None
) -> dict[str, Any]:
    """The `Ablation` fields of every method: texts, answer, provenance, replacement, intervention."""
    reading, question, experiments, other = run.reading, run.question, run.experiments, run.other
    module, origin = reading.model.module, reading.origin(run.chosen)
    tokens, sites = reading.encoded.tokens, experiments.sites
    total = None  # what the answer is in the other text, where that asks for one at that place
    if other is not None and same_place(question, reading, other):
        output: Any = instead.output
        total = question.telling(experiments.untouched, answer.ids, named=False)(question.asked.of(output))
    return {
        "tokens": tokens,
        "target": None if reading.target is None else reading.target.tokens,
        "kind": run.chosen.kind,
        "answer": answer,
        "provenance": provenance_of(module, tokens, origin, sites, reading.inputs),
        "tower": run.chosen.tower.distinct_name,
        "measured": question.measured,
        "against": question.rival(experiments.untouched),
        "modules": {str(layer): site.path for site in sites for layer in site.layers},
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
    """Raises `InputError` for named tokens, or a path, that do not exist."""
    if asked.via is not None:
        with_senders(chosen, asked.part, path_of(chosen, asked.via))
    if asked.link is not None:
        link_ends(chosen, queries, keys, asked)
    if asked.at not in (None, EVERY_TOKEN) and queries is not None:
        queries.span(asked.at)
    if asked.query is not None and queries is not None:
        queries.span(asked.query)


def cut_link(run: Run) -> tuple[Span, Span]:
    """The query and the key whose link is cut; `InputError` where rows are not those of tokens."""
    check_token_by_token(run, "--link")
    queries = run.reading.named_of(run.chosen.kind)
    keys = run.reading.encoded.tokens if run.chosen.kind is Kind.CROSS else queries
    return link_ends(run.chosen, queries, keys, run.asked)


def link_ends(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Ablate) -> tuple[Span, Span]:
    """The query and key spans of a link; `InputError` for unknown tokens, or keys that follow every query.

    Where the queries are not known yet the keys stand for both.
    """
    query_name, key_name = asked.link_names
    key = keys.span("pos:all" if key_name == EVERY_TOKEN else key_name)
    query = key if queries is None else queries.span(query_name)
    if chosen.kind is Kind.DECODER and min(key.positions) > max(query.positions):
        ends = f"{query.name} cannot look at {key.name}"
        raise InputError(f"--link: in causal attention {ends}, which follows it")
    return query, key


def same_place(question: Question, reading: Reading, other: Reading) -> bool:
    """Whether the other text has the same token at the answer's mask; True where no mask is asked about."""
    if question.asks is not Asks.MASK or question.position is None:
        return True
    here, there = (side.encoded.tokens.items[question.position] for side in (reading, other))
    return here.id == there.id
