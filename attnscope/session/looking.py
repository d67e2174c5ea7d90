"""Heads of a text as they can be asked, and how weights are looked at: by words, by the name of a token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from attnscope.analysis.heads.view import Name, Units, aimed, units_of, viewed, with_units
from attnscope.results import (
    HeadAttention,
    HeadView,
    HeadWeights,
    MapSettings,
    Overview,
    Projection,
)
from attnscope.session.listener import Listener
from attnscope.session.wanted import Looking

ENTROPY = ("entropy",)


def overview_aimed(
    overview: Overview, query: Name, key: Name | None, measures: Sequence[str], looking: Looking
) -> Overview:
    """What one query, named by text or position, gives to one key, or to its strongest, in every chosen head.

    `measures` of the heads stand beside it.
    """
    units = units_of(overview.query_tokens, overview.key_tokens, query=query, key=key)
    assert units.query is not None, "that is what was asked for"
    seen = overview if units.plain else with_units(overview, units)
    if overview.by.joins and overview.tokens is not None:
        seen = replace(seen, aim_spans=_spans(overview.tokens, units, looking))
    return aimed(seen, units.query, units.key, beside=measures)


def _spans(tokens: Overview, units: Units, looking: Looking) -> tuple[tuple[int, ...], ...]:
    how: dict[str, Any] = {"by": looking.unit, "special": looking.treatment}
    whole = units_of(tokens.query_tokens, tokens.key_tokens, **how)
    sides = (units.queries, whole.queries, units.query), (units.keys, whole.keys, units.key)
    return tuple(
        tuple(token for each in groups[place] for token in unit[each])
        for groups, unit, place in sides
        if place is not None
    )


def look_at(head: HeadWeights, looking: Looking) -> HeadView | None:
    """The weights of `head` looked at otherwise; None where that is as they are."""
    return viewed(head, by=looking.unit, special=looking.treatment) if looking.changes else None


@dataclass(frozen=True)
class Seen:
    """One head as it is looked at, and the row and the column that are meant, if any, and a second row."""

    shown: HeadWeights | HeadView
    query: int | None = None
    key: int | None = None
    beside: int | None = None


def aim_at(
    head: HeadWeights,
    looking: Looking,
    query: Name | None = None,
    key: Name | None = None,
    beside: Name | None = None,
) -> Seen:
    """`head` with what `query` and `key` name as one row and one column each, of however many tokens.

    `beside` names a second query.

    Raises `InputError` for names that fit nothing or several places, and for spans that share tokens.
    """
    how: dict[str, Any] = {"by": looking.unit, "special": looking.treatment}
    units = units_of(head.query_tokens, head.key_tokens, query=query, key=key, beside=beside, **how)
    as_it_is = units.plain and not looking.changes
    return Seen(head if as_it_is else viewed(head, units=units, **how), units.query, units.key, units.beside)


def map_head(
    head: HeadAttention,
    settings: MapSettings,
    listener: Listener,
    view: HeadView | None = None,
) -> Projection:
    """The map of a head, or of a view of it; what was done other than asked is told."""
    from attnscope.analysis.heads.projection import project_head  # loads what reduces dimensions

    with listener.working("drawing the map"):
        result = project_head(head, settings, view)
    if result.perplexity < result.wanted_perplexity:
        points = len(result.queries) + len(result.keys)
        lowered = f"perplexity lowered from {result.wanted_perplexity:g} to {result.perplexity:.3g}"
        listener.notice(f"{lowered}, a third of the {points} points less one")
    if not result.settled:
        listener.notice(
            f"the map had not settled after {result.iterations} iterations: --max-iter goes on for longer"
        )
    return result
