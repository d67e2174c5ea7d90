"""Queries and keys of one head in one plane, beside how far that plane can be trusted.

A picture shows the map, a terminal the numbers behind it: the keys of the chosen queries by weight, or one
key as several queries see it, or of every query the strongest and the nearest key.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import alike_texts, counted, weight
from attnscope.render.kit.stage import NOTHING_LEFT
from attnscope.render.sheet.blocks import Beside, Ranking
from attnscope.render.sheet.said import (
    attention,
    certified,
    features,
    limits,
    numbered,
    of_head,
    read,
    setting,
)
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.render.sheets.map import (
    DISCLAIMER,
    Map,
    centring_words,
    correlation_words,
    elsewhere_words,
    keyless_words,
    points_words,
    settings_words,
    token_name,
    trust_words,
)
from attnscope.results import Projection

MOST_KEYS = 60  # that are listed of one query
_LISTED_NAME = 14  # cells
_SETTINGS = ("metric", "centred", "perplexity", "wanted_perplexity", "seed", "max_iter")
_FIGURES = (
    *("iterations", "settled", "divergence", "trustworthiness", "neighbours"),
    *("correlation", "otherwise", "apart"),
)


def sheet(result: Projection, focus: Focus = WHOLE) -> Sheet:
    head, queries, key = result.head, focus.queries, focus.key
    maps = tuple(Map(result, query, key) for query in queries or (None,))
    tables = [] if queries else [_nearest(result)]
    if queries and (key is None or len(queries) == 1):
        tables += [_ranked(result, query) for query in queries]
    if queries and key is not None:
        tables.append(_compared(result, queries, key))
    by = " by words" if result.view is not None and result.view.words else ""
    sides = f"{counted(len(result.queries), 'query')} x {counted(len(result.keys), 'key')}"
    answer = correlation_words(result)
    lists = settings_words(result), points_words(result)
    return Sheet(
        title=f"t-SNE map of {head.name}{by}{'' if result.settled else ' that DID NOT SETTLE'}",
        setting=setting(head),
        origins=(head.provenance,),
        answer=f"{answer[0].upper()}{answer[1:]}.",
        blocks=(Beside(maps), *tables),
        table=lambda: Table.of("side position token x y", _points(result)),
        texts=read(head.kind, head.query_tokens, head.key_tokens),
        notes=tuple(each for each in (trust_words(result), DISCLAIMER, *limits(head)) if each),
        legend=tuple(each for each in (centring_words(result), *features(head)) if each),
        details=tuple(filter(None, map(" · ".join, lists))),
        proof=certified(head.certificate, focus.verbose),
        main=maps[0],
        summary=(attention(head.kind, head.tower), sides),
        record=(
            *of_head(head),
            *((name, getattr(result, name)) for name in _SETTINGS + _FIGURES),
            *(("points", phrase) for phrase in points_words(result)),
        ),
    )


def _points(result: Projection) -> Iterator[tuple[object, ...]]:
    """A row a point."""
    sides = {"query": (result.query_tokens, result.queries), "key": (result.key_tokens, result.keys)}
    for side, (tokens, points) in sides.items():
        for position, label, (x, y) in zip(tokens.positions, tokens.labels, points.tolist(), strict=True):
            yield side, position, label, x, y


def _ranked(result: Projection, query: int) -> Ranking:
    """The keys that a query may look at, the largest weight first."""
    keys = result.ranked_keys(query)
    listed = keys[:MOST_KEYS]
    return Ranking(
        title=f"query {token_name(result.query_tokens, query)}",
        of="key",
        names=numbered(result.key_tokens, listed.tolist(), _LISTED_NAME),
        table=Table(
            _column("weight", result.weights[query, listed]),
            _column("scaled", result.scaled[query, listed]),
            _column("distance", result.distance[query, listed]),
        ),
        says=" · ".join(_remarks(result, query)),
    )


def _remarks(result: Projection, query: int) -> list[str]:
    """What the rows leave out: further keys, masked keys, the share of a sink and of special tokens."""
    keys, remarks = result.ranked_keys(query), []
    if not keys.size:
        return [keyless_words(result, query)]
    if (further := keys[MOST_KEYS:]).size:
        share = weight(float(result.weights[query, further].sum()))
        remarks.append(f"{counted(len(further), 'more key')} share {share}")
    if masked := len(result.key_tokens) - len(keys):
        remarks.append(f"{counted(masked, 'key')} masked")
    if elsewhere := elsewhere_words(result):
        remarks.append(f"{elsewhere} {weight(float(1 - result.weights[query, keys].sum()))}")
    return remarks


def _compared(result: Projection, queries: Sequence[int], key: int) -> Ranking:
    """One key as each of the queries sees it, and whether weight and distance agree."""
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
    """Whether, of two queries, the one that is nearer to `key` gives it the larger weight."""
    if len(set(queries)) != 2 or any(result.rank(query, key) is None for query in queries):
        return ""
    first, second = queries
    weights, distances = result.weights[:, key], result.distance[:, key]
    if weights[first] == weights[second] or not abs(distances[first] - distances[second]) > 0:
        return ""
    heavier, lighter = (first, second) if weights[first] > weights[second] else (second, first)
    names = [settled(result.query_tokens.named(query)) for query in (heavier, lighter)]
    if distances[heavier] < distances[lighter]:
        return f"{names[0]} gives it the larger weight, and is nearer to it"
    return f"{names[0]} gives it the larger weight, although {names[1]} is nearer to it"


def _nearest(result: Projection) -> Ranking:
    """Of every query the key with the largest weight and the key at the smallest distance."""
    queries = np.flatnonzero(result.answered).tolist()
    shown = np.where(result.allowed, result.distance, np.inf)
    strongest = [int(result.ranked_keys(query)[0]) for query in queries]
    nearest = [int(shown[query].argmin()) for query in queries]
    apart = ["" if one == other else "≠" for one, other in zip(strongest, nearest, strict=True)]
    emptied = result.view.emptied if result.view else 0
    without = len(result.answered) - len(queries) - emptied
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
    )


def _column(name: str, values: np.ndarray) -> Column:
    """Numbers of pairs under their usual heading; distances are those of the full space."""
    texts = alike_texts(values, 2 if name == "scaled" else 3).tolist()
    if name == "weight":
        texts = [weight(each, 3) for each in values]
    told = ["" if np.isnan(value) else text for value, text in zip(values, texts, strict=True)]
    says = "in the full space" if name == "distance" else ""
    return Column(name, values.tolist(), name, says=says, told=told)
