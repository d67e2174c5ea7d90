"""Heads in full for a page of many: those whose queries and keys it holds beside the weights of all."""

from dataclasses import replace

from attnscope.analysis import recompute_head
from attnscope.capture.returned import Returned
from attnscope.results import HeadAttention, Overview
from attnscope.session.choosing import Chosen
from attnscope.session.reading import Reading

MOST_HEADS, MOST_NUMBERS = 16, 400_000  # up to so many heads, queries, keys and weights all are there in full
Places = tuple[tuple[int, int], ...]


def heads_in_full(reading: Reading, chosen: Chosen, overview: Overview) -> tuple[HeadAttention, ...]:
    """Every head where they are few and not long, else the one with the strongest link; it comes first.

    None where they cannot be recomputed.
    """
    places = _strongest_first(overview)
    first = _of(reading, chosen, places[:1])
    if not first or len(places) > MOST_HEADS or _numbers(first[0]) * len(places) > MOST_NUMBERS:
        return first
    return first + _of(reading, chosen, places[1:])


def _strongest_first(overview: Overview) -> Places:
    i, j = divmod(int(overview.strongest_weight.argmax()), len(overview.heads))
    first = overview.layers[i], overview.heads[j]
    every = ((layer, head) for layer in overview.layers for head in overview.heads)
    return (first, *(place for place in every if place != first))


def _of(reading: Reading, chosen: Chosen, places: Places) -> tuple[HeadAttention, ...]:
    """These heads, read in one run that ends behind the last of their layers."""
    if not places:
        return ()
    layers, heads = (tuple(sorted({place[axis] for place in places})) for axis in (0, 1))
    captured = reading.attention(replace(chosen, layers=layers, heads=heads))
    if isinstance(captured, Returned):
        return ()
    return tuple(recompute_head(captured, layer, head, block=chosen.block) for layer, head in places)


def _numbers(head: HeadAttention) -> int:
    return head.q.size + head.k.size + head.weights.size * (1 + len(head.terms))
