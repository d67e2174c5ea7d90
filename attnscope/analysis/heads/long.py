"""Long texts, computed in tiles: one head by blocks, top keys and one full row; an overview of heads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float

from attnscope.analysis.scores.dense import ENTROPY, absences, as_scores, unplaced
from attnscope.analysis.scores.supplies import beside, needs_of, of_long_calls, special, without_norms
from attnscope.attention import Capture
from attnscope.capture.following.describe import names_in
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need
from attnscope.reference import EXACT
from attnscope.results import Certificate, Kind, LongHead, Overview, SpecialMass
from attnscope.results.base.strongest import sink_of
from attnscope.tiles.collectors import (
    ByKey,
    Collector,
    Halt,
    Measured,
    OnKeys,
    Pooled,
    TopKeys,
    collect,
    collector_of,
    side_by_side,
)
from attnscope.tiles.softmax import Heads, certify_long, weights_of
from attnscope.tiles.stream import Stream
from attnscope.tiles.tiling import LongCall, sizes_for
from attnscope.tokens import Tokens
from attnscope.vocabulary import Pool


@dataclass(frozen=True)
class _Measured:
    """Results of one head; `mass` is its mean weight on each special key, the rest as in `Overview`."""

    values: tuple[float, ...]
    place: tuple[int, int]
    weight: float
    mass: tuple[float, ...]
    aside: float
    sink: int
    certificate: Certificate


def measure_long(
    captured: Capture,
    heads: Sequence[int] | None = None,
    block: int = 0,
    measures: Sequence[str] = ENTROPY,
    *,
    among_all: bool = False,
) -> Overview:
    """An `Overview` of long calls, as `attnscope.analysis.heads.overview.measure_heads` but without weights.

    The strongest links are those of ordinary tokens, or `among_all`.
    """
    layers = tuple(dict.fromkeys(call.layer for call in captured.calls))
    calls = [long_call_of(captured, layer, block) for layer in layers]
    first = calls[0]
    for call in calls[1:]:
        if (call.q.shape[1], call.k.shape[1]) != (first.q.shape[1], first.k.shape[1]):
            raise InputError("the layers differ in their numbers of queries and keys: show them one by one")
    assert first.sample is not None, "long calls hold a sample"
    chosen = tuple(first.sample.weights) if heads is None else tuple(heads)
    queries, keys = names_in(calls)
    placed = unplaced(first.kind, first.query_tokens, first.key_tokens)
    absent = absences(measures, placed, of_long_calls(calls, queries, keys))
    ordinary = not among_all and not (special(queries).all() or special(keys).all())
    there = tuple(name for name in measures if not absent[name])
    rows: list[list[_Measured]] = []
    for call in calls:
        computed = heads_of(call)
        look = partial(_head, call, computed, there, queries, keys, ordinary)
        rows.append(list(side_by_side(look, chosen, call.q.device)))
    values = np.array(
        [
            [
                [dict(zip(there, one.values, strict=True)).get(name, np.nan) for name in measures]
                for one in row
            ]
            for row in rows
        ]
    )
    notes = [*captured.remarks(layers)]
    if any(Need.NORMS in MEASURES[name].needs for name in measures):
        supplies = of_long_calls(calls, queries, keys)
        notes += without_norms(calls, supplies)
    return Overview(
        kind=first.kind,
        query_tokens=queries,
        key_tokens=keys,
        scores=as_scores(measures, values, layers, chosen, len(keys), absent),
        strongest=np.array([[one.place for one in row] for row in rows]),
        strongest_weight=np.array([[one.weight for one in row] for row in rows]),
        ordinary=ordinary,
        aside=np.array([[one.aside for one in row] for row in rows]),
        heaviest=np.array([[one.sink for one in row] for row in rows]),
        weights=None,
        certificates=tuple(tuple(one.certificate for one in row) for row in rows),
        provenance=captured.provenance,
        tower=captured.tower,
        sharing=tuple(call.heads // call.key_heads for call in calls),
        notes=tuple(dict.fromkeys((*notes, sampled_words(first)))),
        told_mass=special_mass(keys, [one.mass for row in rows for one in row]),
        told_shares=_shares(rows) if special(keys).any() else None,
    )


def long_call_of(captured: Capture, layer: int, block: int = 0) -> LongCall:
    """The long call of one layer; `InputError` where its tokens include padding."""
    call = captured.call(layer, block=block)
    assert isinstance(call, LongCall), "a long text is captured as such"
    if any(token.padding for tokens in (call.query_tokens, call.key_tokens) for token in tokens.items):
        raise InputError("a long text is read alone: leave the padding of the batch out")
    return call


def heads_of(call: LongCall) -> Heads:
    """The heads of a call for computing in tiles, on its device, in float64 only where the model is."""
    double = call.q.dtype == EXACT
    return Heads(call, sizes_for(call.q.device), EXACT if double else torch.float32)


def _head(
    call: LongCall,
    heads: Heads,
    names: Sequence[str],
    queries: Tokens,
    keys: Tokens,
    ordinary: bool,
    head: int,
    halt: Halt,
) -> _Measured:
    needs = needs_of(names)
    fields = beside(call, head, queries, keys, needs)
    one = heads.head(head)
    measures = [collector_of(MEASURES[name], *one.shape) for name in names]
    is_special, first = special(keys), call.kind is Kind.DECODER
    among = ~special(queries) if ordinary else torch.ones(len(queries), dtype=torch.bool)
    if first:  # it sees itself alone, and gives it 1 in every head
        among[0] = False
    found = ByKey(among, len(keys), apart=ordinary and call.kind is not Kind.CROSS)
    rows = collect(Stream(one, fields, needs), [*measures, found, halt])
    sink, left, aside = -1, torch.ones(len(keys), dtype=torch.bool), 0.0
    if ordinary:
        sink = sink_of(found.means.masked_fill(is_special, 0.0).numpy(), found.rows)
        left = ~is_special & (torch.arange(len(keys)) != sink)
        aside = float(found.means[~left].sum() + found.own[left].sum() / max(found.rows, 1))
    place, weight = found.strongest(left)
    mass = tuple(found.means[is_special].tolist())
    certificate = certify_long(call, head, rows)
    return _Measured(tuple(each.value for each in measures), place, weight, mass, aside, sink, certificate)


def special_mass(keys: Tokens, masses: Sequence[Sequence[float]]) -> SpecialMass | None:
    """The mean weight on special tokens over some heads, by name; None without special tokens."""
    special = [i for i, token in enumerate(keys.items) if token.special]
    if not special:
        return None
    by_name: dict[str, float] = {}
    for position, mass in zip(special, np.nanmean(np.array(masses), axis=0).tolist(), strict=True):
        by_name[keys.names[position]] = by_name.get(keys.names[position], 0.0) + mass
    return SpecialMass(sum(by_name.values()), by_name)


def _shares(rows: Sequence[Sequence[_Measured]]) -> np.ndarray:
    return np.array([[sum(one.mass) for one in row] for row in rows])


def sampled_words(call: LongCall) -> str:
    """The coverage of a tiled certificate as a phrase: rows compared in full, outputs, rows tried."""
    assert call.sample is not None, "long calls hold a sample"
    rows = f"{len(call.sample.rows)} rows in full and the output of all {call.q.shape[1]:,}"
    tried = f"; that row i is token i was tried {call.tried}" if call.tried else ""
    return f"in tiles: held against {rows}{tried}"


BLOCKS = 256  # of a heatmap in either direction, at most
_SHOWN = 1024  # queries or keys of a window that is shown pair by pair, at most
TOP = 5  # strongest keys of every query


def read_long_head(
    captured: Capture,
    layer: int,
    head: int,
    *,
    block: int = 0,
    zoom: tuple[range, range] | None = None,
    query: int | None = None,
    pool: Pool = Pool.MEAN,
) -> LongHead:
    """Head `head` of a long layer, by default in blocks of the whole text.

    A `zoom` of queries and keys is shown pair by pair as far as `_SHOWN` allows, else in blocks of its own; a
    `query` in full. `pool` is what its picture shows.
    """
    call = long_call_of(captured, layer, block)
    heads = heads_of(call)
    one = heads.head(head)
    queries, keys = zoom or (range(one.shape[0]), range(one.shape[1]))
    steps = step_of(len(queries), zoom is not None), step_of(len(keys), zoom is not None)
    pooled, top = Pooled(queries, keys, steps), TopKeys(min(TOP, one.shape[1]), one.shape[0])
    entropy, mass = Measured(MEASURES["entropy"]), OnKeys(special(call.key_tokens))
    any_special = bool(special(call.key_tokens).any())
    collectors: list[Collector] = [pooled, top, entropy, *([mass] if any_special else [])]
    rows = collect(Stream(one, needs=(Need.ALLOWED,)), collectors)
    mean, largest = pooled.mean.numpy(), pooled.maximum.numpy()
    if steps == (1, 1) and zoom is not None:
        mean = largest = weights_of(heads.in_double().head(head), queries, keys).numpy()
    assert call.sample is not None, "long calls hold a sample"
    return LongHead(
        layer=layer,
        head=head,
        kind=call.kind,
        heads=call.heads,
        layers=captured.layers,
        query_tokens=call.query_tokens,
        key_tokens=call.key_tokens,
        first=(queries.start, keys.start),
        size=(len(queries), len(keys)),
        steps=steps,
        pool=pool,
        mean=mean,
        largest=largest,
        pairs=pooled.counts.long().numpy(),
        entropy=torch.cat(entropy.blocks).cpu().numpy(),
        top_keys=top.keys.numpy(),
        top_weights=top.weights.numpy(),
        module=call.module,
        certificate=certify_long(call, head, rows),
        sampled=len(call.sample.rows),
        provenance=captured.provenance,
        special_mass=special_mass(call.key_tokens, [mass.means.tolist()]) if any_special else None,
        query=query,
        row=None if query is None else _row(heads, head, query),
        tower=captured.tower,
        block=call.block,
        blocks=captured.blocks(layer),
        notes=tuple(dict.fromkeys((*captured.notes(layer), sampled_words(call)))),
    )


def step_of(length: int, zoomed: bool) -> int:
    """Positions per block: a power of two that gives 128 to 256 blocks; 1 for a short text or window."""
    if length <= (_SHOWN if zoomed else BLOCKS):
        return 1
    return int(2 ** math.ceil(math.log2(length / BLOCKS)))


def _row(heads: Heads, head: int, query: int) -> Float[np.ndarray, " key"]:
    """The weights of one query in float64, 0 at masked keys."""
    one = heads.in_double().head(head)
    row = weights_of(one, range(query, query + 1), range(one.shape[1]))[0]
    return row.nan_to_num(0.0).numpy()
