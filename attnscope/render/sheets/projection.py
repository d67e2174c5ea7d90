"""Sheet of a head's t-SNE map, with measures of how far to trust it.

A picture shows the map, a terminal its numbers: the keys of the chosen queries by weight, one key for several
queries, or every query's strongest and nearest key.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnscope.errors import listed
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import looked_at, opening_head
from attnscope.render.kit.numbers import alike_texts, counted, number, parameter, weight
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.words import divides, joined_words, view_words
from attnscope.render.sheet.blocks import Beside, Drawing, Ranking
from attnscope.render.sheet.said import (
    attention,
    certified,
    departures,
    features,
    in_sentence,
    limits,
    numbered,
    of_head,
)
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Table, as_written
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import MapSettings, Projection
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

DISCLAIMER = "the axes have no unit, and distances in the plane are not attention"
LEAST_LINK = 0.01  # the weight of a link that is seen, and the smallest that is written as a number
_LINKS = 5  # from one query
_WIDEST_NAME = 24  # cells
_GOES_ON = 20_000  # iterations after which a map that does not settle no longer visibly changes


@dataclass(frozen=True, eq=False)
class Map(Drawing):
    """The map: links from `query` to its strongest keys, rings around it and around `key`."""

    result: Projection
    query: int | None = None
    key: int | None = None
    links: int = _LINKS

    @cached_property
    def linked(self) -> tuple[int, ...]:
        """The query's strongest keys, and `key` where the query may look at it.

        Too thin links are left out, except that of the strongest key.
        """
        if self.query is None:
            return ()
        ranked = self.result.ranked_keys(self.query).tolist()
        weights = self.result.weights[self.query]
        seen = [each for each in ranked[: self.links] if weights[each] >= LEAST_LINK] or ranked[:1]
        return (*seen, *(each for each in ranked[len(seen) :] if each == self.key))

    def chosen(self, side: str) -> int | None:
        return self.query if side == "query" else self.key

    def stands_out(self, side: str, position: int) -> bool:
        return position == self.chosen(side) or (side == "key" and position in self.linked)

    @property
    def title(self) -> str:
        """Names of the query and the key."""
        if self.query is None:
            return ""
        named = f"query {token_name(self.result.query_tokens, self.query)}"
        if self.key is None or not len(self.result.ranked_keys(self.query)):
            return named
        return f"{named} → key {token_name(self.result.key_tokens, self.key)}"

    @property
    def says(self) -> str:
        """Phrase for the links, or for the query and key: weight, rank, distance."""
        if self.query is None:
            return ""
        result, keys = self.result, len(self.result.ranked_keys(self.query))
        if not keys:
            return keyless_words(result, self.query)
        if self.key is None:
            linked = len(self.linked)
            strongest = "strongest" if linked == 1 else f"{linked} strongest"
            return f"linked to its {'only key' if keys == 1 else f'{strongest} of {keys} keys'}"
        seen, rank = "masked", result.rank(self.query, self.key)
        if rank is not None:
            found = weight(result.weights[self.query, self.key], 3)
            seen = f"weight {found} · rank {rank} of {keys}"
            seen += f" · scaled score {number(float(result.scaled[self.query, self.key]))}"
        return f"{seen} · {result.metric} distance {number(result.distance[self.query, self.key], 3)}"


def token_name(tokens: Tokens, position: int) -> str:
    """The token's position and name, cut to `_WIDEST_NAME` cells."""
    return settled(fit(tokens.named(position), _WIDEST_NAME))


def said(result: Projection) -> Said:
    """Sentences about this map."""
    (agreeing, asked), view = result.agreeing, result.view
    looked_at = (result.allowed & result.answered[:, None]).sum(axis=1)
    correlation, trust = result.correlation, result.trustworthiness
    return Said(
        "map",
        result,
        {
            "head": result.head.name,
            "by": view.by.several if view is not None and view.by.joins else None,
            "agreeing": agreeing,
            "asked": asked,
            "few": result.misses,
            "luck": (1 / looked_at[looked_at > 0]).sum(),
            "correlation": None if math.isnan(correlation) else correlation,
            "size": abs(correlation),
            "trust": None if math.isnan(trust) else trust,
            "goes_on": _GOES_ON if result.iterations < _GOES_ON else None,
            "one_point": not result.iterations,
            "perplexity": parameter(result.perplexity, 3),
            "wanted": None
            if result.perplexity == result.wanted_perplexity
            else parameter(result.wanted_perplexity, 3),
        },
    )


def points_words(result: Projection) -> list[str]:
    """Phrases for joined points and left-out tokens; empty for a map of all tokens."""
    view = result.view
    if view is None:
        return []
    of = "pieces" if view.by is Unit.WORD else "tokens"
    told = f"points are {view.by.several}: mean vectors and mean scores of their {of}"
    points = [told] if view.by.joins else []
    if _leaves_out(result, "query") or _leaves_out(result, "key"):
        left_out = "special tokens left out"
        if divides(view):
            left_out += ", rows divided by what remains"
        elif _leaves_out(result, "key"):
            holding = "they and the sink hold" if result.head.sink is not None else "they hold"
            left_out += f": {holding} the rest of each row"
        points.append(left_out)
    return [
        *points,
        *(f"weights by {each}" if each == joined_words(view.by) else each for each in view_words(view)),
    ]


def _leaves_out(result: Projection, side: str) -> bool:
    view = result.view
    if view is None:
        return False
    if side == "query":
        return sum(map(len, view.query_groups)) < len(result.head.query_tokens)
    return sum(map(len, view.key_groups)) < len(result.head.key_tokens)


def elsewhere_words(result: Projection) -> str:
    """Subject and verb for the rest of a row, `the sink takes`; empty where rows are complete."""
    if result.view is not None and divides(result.view):
        return ""
    sink = result.head.sink is not None
    if _leaves_out(result, "key"):
        return "special tokens and the sink take" if sink else "special tokens take"
    return "the sink takes" if sink else ""


def keyless_words(result: Projection, query: int) -> str:
    """Reason why a query has no key: none visible, or all left out by the view."""
    view = result.view
    emptied = view is not None and bool(result.head.answered[list(view.query_groups[query])].any())
    return f"has {NOTHING_LEFT if emptied else NO_KEY}"


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
    return saying(
        say,
        head,
        blocks=(Beside(maps), *tables),
        table=lambda: Table.of("side position token x y", _points(result)),
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
