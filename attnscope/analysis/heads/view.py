"""Regroups a head's weights: by words, without special tokens, or by named spans; its strongest links.

Weights are summed over the tokens of a key, and averaged over those tokens of a query that have a key (Clark
et al. 2019), so that row sums stay. Weights are regrouped, never recomputed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.errors import InputError
from attnscope.results import (
    HeadAttention,
    HeadScores,
    HeadView,
    HeadWeights,
    Kind,
    MeasureDescription,
    Overview,
    PictureAttention,
    Result,
    SoundAttention,
    Special,
)
from attnscope.results.base.groups import Groups, joined, members, regrouped, taken_together, units_of_text
from attnscope.results.base.strongest import rest_of
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

Name = str | int  # of tokens: their text or their position
Places = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Units:
    """The row and column groups of a view, their labels, and the named ones among them.

    `query` and `key` are the row and the column that were named, None where none was; `beside` is a second
    row.
    """

    queries: Groups
    keys: Groups
    query_tokens: Tokens
    key_tokens: Tokens
    query: int | None = None
    key: int | None = None
    beside: int | None = None

    @property
    def plain(self) -> bool:
        """Whether every group is a single token."""
        return all(len(group) == 1 for group in (*self.queries, *self.keys))


def units_of(
    queries: Tokens,
    keys: Tokens,
    *,
    by: Unit = Unit.TOKEN,
    special: Special = Special.SHOW,
    query: Name | None = None,
    key: Name | None = None,
    beside: Name | None = None,
) -> Units:
    """The row and column groups by unit; each named `query`, `key` and `beside` is one group.

    `beside` is a second query. `InputError` where nothing is left, where a name fits nothing or several
    places, and for two spans of one text that share a part of their tokens.
    """
    rows, columns = groups_of(queries, "query", by, special), groups_of(keys, "key", by, special)
    same = queries is keys or queries == keys
    asked = _as_units(queries, rows, by)
    given = asked if same else _as_units(keys, columns, by)
    row, second = (None if name is None else asked.span(name) for name in (query, beside))
    column = None if key is None else given.span(key)
    for one, other in combinations(filter(None, (row, second, column) if same else (row, second)), 2):
        shared = sorted({*one.positions} & {*other.positions})
        if shared and one.positions != other.positions:
            named = ", ".join(asked.named(i) for i in shared)
            raise InputError(f"'{one.name}' and '{other.name}' share {named}: take spans that lie apart")
    places = [() if each is None else each.positions for each in (row, column, second)]
    return _taken(queries, keys, (rows, columns), (places[0], places[1], places[2]), by)


def units_around(
    queries: Tokens, keys: Tokens, span: Sequence[int], by: Unit = Unit.TOKEN, special: Special = Special.SHOW
) -> Units:
    """The groups with one query: all units that contain a token of `span`, joined."""
    rows, columns = groups_of(queries, "query", by, special), groups_of(keys, "key", by, special)
    row = tuple(i for i, group in enumerate(rows) if {*group} & {*span})
    return _taken(queries, keys, (rows, columns), (row, (), ()), by)


def _taken(
    queries: Tokens,
    keys: Tokens,
    groups: tuple[Groups, Groups],
    places: tuple[Places, Places, Places],
    by: Unit,
) -> Units:
    """The groups with the units at each of `places` (query, key, second query) joined into one."""
    (rows, columns), (row, column, second) = groups, places
    same = queries is keys or queries == keys
    ours, theirs = ([*dict.fromkeys(filter(None, each))] for each in ((row, second), (column,)))
    both = [*ours, *(each for each in theirs if each not in ours)] if same else []
    joined_rows = taken_together(rows, *(both or ours))
    joined_columns = joined_rows if same else taken_together(columns, *theirs)
    asked = _as_units(queries, joined_rows, by)
    return Units(
        joined_rows,
        joined_columns,
        asked,
        asked if same else _as_units(keys, joined_columns, by),
        _holding(joined_rows, rows[row[0]][0]) if row else None,
        _holding(joined_columns, columns[column[0]][0]) if column else None,
        _holding(joined_rows, rows[second[0]][0]) if second else None,
    )


def _as_units(tokens: Tokens, groups: Groups, by: Unit) -> Tokens:
    single = len(groups) == len(tokens) and all(len(group) == 1 for group in groups)
    return tokens if single else joined(tokens, groups, by)


def _holding(groups: Groups, position: int) -> int:
    return next(i for i, group in enumerate(groups) if position in group)


def viewed(
    head: HeadWeights,
    *,
    by: Unit = Unit.TOKEN,
    special: Special = Special.SHOW,
    units: Units | None = None,
) -> HeadView:
    """The weights of `head` regrouped by `by`, with special tokens as `special` says.

    `units` are its rows and columns where more is taken together than words. `InputError` where nothing is
    left to show, or the tokens do not say which words they belong to.
    """
    units = units or units_of(head.query_tokens, head.key_tokens, by=by, special=special)
    queries, keys = units.queries, units.keys
    rows, columns = members(queries, len(head.query_tokens)), members(keys, len(head.key_tokens))
    return HeadView(
        head=head,
        by=by,
        special=special,
        query_tokens=units.query_tokens,
        key_tokens=units.key_tokens,
        query_groups=queries,
        key_groups=keys,
        weights=regrouped(head.weights, queries, keys, renormalise=special is Special.RENORMALISE),
        allowed=rows @ head.allowed @ columns.T,
    )


def groups_of(tokens: Tokens, side: str, by: Unit, special: Special) -> Groups:
    """The tokens of each unit, without units of special tokens alone unless they are shown."""
    groups = units_of_text(tokens, by)
    if special is Special.SHOW:
        return groups
    left = tuple(group for group in groups if not all(tokens.items[i].special for i in group))
    if not left:
        raise InputError(f"every {side} is a special token: without them nothing is left to show")
    return left


Weights = Sequence[Sequence[Float[np.ndarray, "query key"]]]


def links(
    weights: Weights, queries: Tokens, keys: Tokens, kind: Kind, *, ordinary: bool = True
) -> dict[str, Any]:
    """The strongest link of each head and its weight, as fields of `Overview`.

    Where no query has a key, the link is at (-1, -1) and its weight NaN. If not `ordinary`, or if no head has
    another pair left, links to special tokens count too.

    """
    shape, crosses = (len(weights), len(weights[0])), kind is Kind.CROSS
    every = [
        rest_of(each, queries, keys, crosses=crosses, every=not ordinary) for row in weights for each in row
    ]
    places = np.array([rest.strongest for rest in every])
    sizes = [np.nan if at < 0 else rest.weights[at, to] for rest, (at, to) in zip(every, places, strict=True)]
    return {
        "strongest": places.reshape(*shape, 2),
        "strongest_weight": np.array(sizes, dtype=float).reshape(shape),
        "ordinary": not all(rest.whole for rest in every),
        "aside": np.array([rest.aside for rest in every]).reshape(shape),
        "heaviest": np.array([rest.sink for rest in every]).reshape(shape),
    }


def among_all(overview: Overview) -> Overview:
    """The overview with each strongest link chosen among all tokens, special ones too."""
    best = links(
        overview.dense_weights, overview.query_tokens, overview.key_tokens, overview.kind, ordinary=False
    )
    return replace(overview, **best)


def with_units(overview: Overview, units: Units) -> Overview:
    """The overview with named spans joined; its measures are still those before joining.

    `units` are of its own tokens.
    """
    weights = tuple(
        tuple(regrouped(each, units.queries, units.keys) for each in row) for row in overview.dense_weights
    )
    sides = (
        (units.queries, units.query, overview.query_tokens),
        (units.keys, units.key, overview.key_tokens),
    )
    spans = tuple(
        tuple(tokens.positions[i] for i in groups[place])
        for groups, place, tokens in sides
        if place is not None
    )
    return replace(
        overview,
        query_tokens=units.query_tokens,
        key_tokens=units.key_tokens,
        weights=weights,
        tokens=overview.tokens or overview,
        aim_spans=spans,
    )


def aimed(overview: Overview, query: int, key: int | None = None, beside: Sequence[str] = ()) -> Overview:
    """The overview of one weight per head: that of a query and a key, or the largest of the query's row.

    Without a key the largest weight of the row is taken, among ordinary keys unless the overview's links are
    among all or the query is special itself. `beside` names the measures to keep. A head where the query has
    no key is NaN.
    """
    keys = overview.key_tokens
    ordinary = overview.ordinary and not overview.query_tokens.items[query].special
    left = [i for i, token in enumerate(keys.items) if not (ordinary and token.special)]
    columns = np.array(left if key is None else [key])
    rows = np.array([[each[query, columns] for each in row] for row in overview.dense_weights])
    there = ~np.isnan(rows).any(axis=2)
    found = np.where(there, np.nan_to_num(rows).argmax(axis=2), 0)
    sizes = np.where(there, np.take_along_axis(rows, found[..., None], axis=2)[..., 0], np.nan)
    places = np.where(there[..., None], np.stack([np.full_like(found, query), columns[found]], axis=2), -1)
    described = _described(overview, query, key)
    aim = HeadScores(described, overview.layers, overview.heads, sizes)
    kept = {name: overview.scores[name] for name in beside}
    return replace(
        overview,
        scores={aim.measure: aim, **kept},
        strongest=places,
        strongest_weight=sizes,
        ordinary=ordinary and key is None,
        aside=None,
        heaviest=None,
        aim=(query, key),
    )


def _described(overview: Overview, query: int, key: int | None) -> MeasureDescription:
    asked = overview.query_tokens.named(query)
    if key is None:
        label, strongest = f"largest weight of {asked}", "heads in which it looks hardest at one key"
        return MeasureDescription(
            name="row", unit="weight", meaning=label, label=label, strongest=strongest, low="spread thin",
            high="all on one key",
        )  # fmt: skip
    label = f"weight of {asked} → {overview.key_tokens.named(key)}"
    return MeasureDescription(
        name="pair", unit="weight", meaning=label, label=label, strongest="heads in which it is largest"
    )


def pair_of(head: HeadAttention, query: str | int | None, key: str | int | None) -> tuple[int, int]:
    """Positions of a query and a key, by default those of the strongest link; `InputError` if masked."""
    if query is None and key is not None:
        raise InputError("a key goes with a query: name a query")
    queries, keys = head.query_tokens, head.key_tokens
    rest = rest_of(head.weights, queries, keys, crosses=head.kind is Kind.CROSS)
    row = rest.strongest[0] if query is None else queries.position(query)
    if row < 0 or not head.answered[row]:
        raise InputError(f"query {queries.named(max(row, 0))} has no key that it may look at")
    if key is None:
        among = rest.pairs[row] if query is None else head.allowed[row] & ~rest.special[row]
        among = among if among.any() else head.allowed[row]
        return row, int(np.where(among, head.weights[row], -1.0).argmax())
    column = keys.position(key)
    if not head.allowed[row, column]:
        raise InputError(f"key {keys.named(column)} is masked for query {queries.named(row)}")
    return row, column


Kept = tuple[list[int], list[int]]


def kept(query_tokens: Tokens, key_tokens: Tokens, weights: Iterable[Tensor]) -> Kept | None:
    """Positions of queries and keys to keep (no padding, unless a weighted key); None if all are kept."""
    queries, keys = (
        [i for i, token in enumerate(tokens.items) if not token.padding]
        for tokens in (query_tokens, key_tokens)
    )
    if (len(queries), len(keys)) == (len(query_tokens), len(key_tokens)):
        return None
    seen = torch.zeros(len(key_tokens), dtype=torch.bool)
    for each in weights:
        seen |= (each[queries].nan_to_num() != 0).any(0)
    seen[keys] = True
    return queries, seen.nonzero().flatten().tolist()


def cut_tokens(query_tokens: Tokens, key_tokens: Tokens, rest: Kept) -> tuple[Tokens, Tokens]:
    """Query and key tokens at the positions left; one object where both sides were equal."""
    queries, keys = rest
    left = query_tokens.only(queries)
    same = (query_tokens is key_tokens or query_tokens == key_tokens) and queries == keys
    return left, left if same else key_tokens.only(keys)


def without_padding(call: AttentionCall) -> AttentionCall:
    """The attention call cut to tokens that are no padding."""
    rest = kept(call.query_tokens, call.key_tokens, call.weights.values())
    if rest is None:
        return call
    queries, keys = rest
    query_tokens, key_tokens = cut_tokens(call.query_tokens, call.key_tokens, rest)

    def pairs(values: Tensor) -> Tensor:
        return values[..., queries, :][..., keys]

    by_query = call.sinks is not None and call.sinks.numel() > len(call.sinks)
    return replace(
        call,
        query_tokens=query_tokens,
        key_tokens=key_tokens,
        q=call.q[:, queries],
        k=call.k[:, keys],
        v=call.v[:, keys],
        terms=tuple(replace(term, values=pairs(term.values)) for term in call.terms),
        allowed=None if call.allowed is None else pairs(call.allowed),
        sinks=call.sinks[:, queries] if call.sinks is not None and by_query else call.sinks,
        output=call.output[:, queries],
        weights={head: pairs(each) for head, each in call.weights.items()},
        unrotated_k=None if call.unrotated_k is None else call.unrotated_k[:, keys],
        remainder=None if call.remainder is None else pairs(call.remainder),
        reweighted=None if call.reweighted is None else {h: pairs(w) for h, w in call.reweighted.items()},
    )


def place_in_text(call: AttentionCall, position: int) -> int:
    """The index of the query at `position` once padding is left out; `InputError` where it is padding."""
    there = [i for i, token in enumerate(call.query_tokens.items) if not token.padding]
    if position not in there:
        raise InputError(f"position {position} is padding: the text stands at {there[0]}-{there[-1]}")
    return there.index(position)


def head_in(result: Result) -> HeadWeights | None:
    """The one head a result is about; None for several heads, none, or a picture or sound."""
    held = result if isinstance(result, HeadWeights) else getattr(result, "head", None)
    over = isinstance(result, PictureAttention | SoundAttention)
    return held if isinstance(held, HeadWeights) and not over else None
