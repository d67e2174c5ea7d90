"""Queries and keys of one head in one plane, beside how far that plane can be trusted.

A picture shows the map, a terminal the numbers behind it: the keys of the chosen queries by weight, or one
key as several queries see it, or of every query the strongest and the nearest key.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from attnscope.errors import listed
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import alike_texts, counted, parameter, weight
from attnscope.render.kit.stage import NOTHING_LEFT
from attnscope.render.kit.words.command import looked_at, opening_head
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import (
    attention,
    certified,
    departures,
    features,
    in_sentence,
    limits,
    numbered,
    of_head,
    read,
    setting,
)
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.render.sheets.map import (
    DISCLAIMER,
    Map,
    elsewhere_words,
    keyless_words,
    points_words,
    said,
    token_name,
)
from attnscope.results import MapSettings, Projection

_FEW = 15  # rows of a first screen
MOST_KEYS = 60  # that -v lists of one query
_LISTED_NAME = 14  # cells
_SETTINGS = ("metric", "perplexity", "wanted_perplexity", "seed", "max_iter")
_FIGURES = (
    *("iterations", "settled", "divergence", "trustworthiness", "neighbours"),
    *("correlation", "apart"),
)


def sheet(result: Projection, focus: Focus = WHOLE) -> Sheet:
    head, queries, key = result.head, focus.queries, focus.key
    maps = tuple(Map(result, query, key) for query in queries or (None,))
    tables = [] if queries else [_nearest(result, focus.verbose)]
    if queries and (key is None or len(queries) == 1):
        tables += [_ranked(result, query, MOST_KEYS if focus.verbose else _FEW) for query in queries]
    if queries and key is not None:
        tables.append(_compared(result, queries, key))
    sides = f"{counted(len(result.queries), 'query')} x {counted(len(result.keys), 'key')}"
    say = said(result)
    lists = say.lines("settings"), points_words(result)
    return Sheet(
        title=say("title"),
        setting=setting(head),
        origins=(head.provenance,),
        answer=say(result.case),
        blocks=(Beside(maps), *tables),
        table=lambda: Table.of("side position token x y", _points(result)),
        texts=read(head.kind, head.query_tokens, head.key_tokens),
        control=say("control"),
        notes=(*_spans(result), *limits(head)),
        legend=(say("trust_says"), say("correlation_says"), DISCLAIMER, *features(head)),
        details=tuple(filter(None, map(" · ".join, lists))),
        departs=tuple(_departures(result)),
        proof=certified(head.certificate, focus.verbose),
        main=maps[0],
        summary=(attention(head.kind, head.tower), sides),
        record=(
            *of_head(head),
            *((name, getattr(result, name)) for name in _SETTINGS + _FIGURES),
            *(("points", phrase) for phrase in points_words(result)),
        ),
        next=_next(result, queries),
    )


def _spans(result: Projection) -> Iterator[str]:
    view = result.view
    if view is None or view.by.joins:
        return
    sides = (view.query_tokens, view.query_groups), (view.key_tokens, view.key_groups)
    named = {group: tokens.names[i] for tokens, groups in sides for i, group in enumerate(groups)}
    for group, name in named.items():
        if len(group) > 1:
            told = f"{settled(name)} is tokens {listed(group)}: its vectors are their means, weights from it "
            yield f"{told}their mean, weights to it their sum"


def _departures(result: Projection) -> Iterator[str]:
    usual = MapSettings()
    if result.view is not None:
        yield from departures(result.view.by, result.view.special)
    if result.metric != usual.metric:
        yield f"{result.metric} distance"
    if result.perplexity != usual.perplexity:
        yield f"perplexity {parameter(result.perplexity, 3)}"
    if result.seed != usual.seed:
        yield f"seed {result.seed}"


def _next(result: Projection, queries: Sequence[int]) -> Next:
    head, view = result.head, result.view
    if view is not None:
        opened = opening_head(head, head.layer, head.head) + looked_at(view.by, view.special)
        return Next("what are the weights?", opened)
    surest = np.where(head.allowed, head.weights, -1.0).max(axis=1).argmax()
    query = queries[0] if queries else int(surest)
    return Next("what are the weights?", opening_head(head, head.layer, head.head, query))


def _points(result: Projection) -> Iterator[tuple[object, ...]]:
    sides = {"query": (result.query_tokens, result.queries), "key": (result.key_tokens, result.keys)}
    for side, (tokens, points) in sides.items():
        for position, label, (x, y) in zip(tokens.positions, tokens.labels, points.tolist(), strict=True):
            yield side, position, label, x, y


def _ranked(result: Projection, query: int, most: int) -> Ranking:
    listed = result.ranked_keys(query)[:most]
    return Ranking(
        title=f"query {token_name(result.query_tokens, query)}",
        of="key",
        names=numbered(result.key_tokens, listed.tolist(), _LISTED_NAME),
        table=Table(
            _column("weight", result.weights[query, listed]),
            _column("scaled", result.scaled[query, listed]),
            _column("distance", result.distance[query, listed]),
        ),
        says=" · ".join(_remarks(result, query, most)),
    )


def _remarks(result: Projection, query: int, most: int) -> list[str]:
    keys, remarks = result.ranked_keys(query), []
    if not keys.size:
        return [keyless_words(result, query)]
    if (further := keys[most:]).size:
        share = weight(float(result.weights[query, further].sum()))
        remarks.append(f"{counted(len(further), 'more key')} share {share}")
    if masked := len(result.key_tokens) - len(keys):
        remarks.append(f"{counted(masked, 'key')} masked")
    if elsewhere := elsewhere_words(result):
        remarks.append(f"{elsewhere} {weight(float(1 - result.weights[query, keys].sum()))}")
    return remarks


def _compared(result: Projection, queries: Sequence[int], key: int) -> Ranking:
    ranks, chosen = [result.rank(query, key) for query in queries], list(queries)
    seen = np.array([rank is not None for rank in ranks])
    told = [
        f"{rank} of {len(result.ranked_keys(query))}"
        if rank is not None
        else "-"
        if result.allowed[query, key]
        else "masked"
        for query, rank in zip(queries, ranks, strict=True)
    ]
    return Ranking(
        title=f"key {token_name(result.key_tokens, key)}",
        of="query",
        names=numbered(result.query_tokens, chosen, _LISTED_NAME),
        table=Table(
            _column("weight", np.where(seen, result.weights[chosen, key], np.nan)),
            Column("rank", told, "rank", as_written),
            _column("scaled", np.where(seen, result.scaled[chosen, key], np.nan)),
            _column("distance", result.distance[chosen, key]),
        ),
        says=_agreement(result, queries, key),
    )


def _agreement(result: Projection, queries: Sequence[int], key: int) -> str:
    if len(set(queries)) != 2 or any(result.rank(query, key) is None for query in queries):
        return ""
    first, second = queries
    weights, distances = result.weights[:, key], result.distance[:, key]
    if weights[first] == weights[second] or not abs(distances[first] - distances[second]) > 0:
        return ""
    heavier, lighter = (first, second) if weights[first] > weights[second] else (second, first)
    names = [in_sentence(result.query_tokens, query) for query in (heavier, lighter)]
    if distances[heavier] < distances[lighter]:
        return f"{names[0]} gives it the larger weight, and is nearer to it"
    return f"{names[0]} gives it the larger weight, although {names[1]} is nearer to it"


def _nearest(result: Projection, whole: bool) -> Ranking:
    every = np.flatnonzero(result.answered)
    surest = np.argsort(-np.where(result.allowed, result.weights, -1.0).max(axis=1)[every], kind="stable")
    queries = (every if whole else np.sort(every[surest[:_FEW]])).tolist()
    hidden = len(every) - len(queries)
    shown = np.where(result.allowed, result.distance, np.inf)
    strongest = [int(result.ranked_keys(query)[0]) for query in queries]
    nearest = [int(shown[query].argmin()) for query in queries]
    apart = ["" if one == other else "≠" for one, other in zip(strongest, nearest, strict=True)]
    emptied = result.view.emptied if result.view else 0
    without = len(result.answered) - len(every) - emptied
    lacking = (without, "without a valid key"), (emptied, f"with {NOTHING_LEFT}")
    return Ranking(
        title="",
        of="query",
        names=numbered(result.query_tokens, queries, _LISTED_NAME),
        table=Table(
            Column("strongest", numbered(result.key_tokens, strongest, _LISTED_NAME), "strongest key"),
            _column("weight", result.weights[queries, strongest]),
            Column("nearest", numbered(result.key_tokens, nearest, _LISTED_NAME), "nearest key"),
            _column("distance", result.distance[queries, nearest]),
            Column("apart", apart, "≠", says="another key is the nearest"),
        ),
        says=" · ".join(f"{counted(count, 'query')} {what}" for count, what in lacking if count),
        hidden=hidden,
        unshown=f"{counted(hidden, 'query')} less sure of a key are not shown: -v, -o FILE.json"
        if hidden
        else "",
    )


def _column(name: str, values: np.ndarray) -> Column:
    texts = alike_texts(values, 2 if name == "scaled" else 3).tolist()
    if name == "weight":
        texts = [weight(each, 3) for each in values]
    told = ["" if np.isnan(value) else text for value, text in zip(values, texts, strict=True)]
    says = "in the full space" if name == "distance" else ""
    return Column(name, values.tolist(), name, says=says, told=told)
