"""Heads in numbers: measures of dense weights, and why some of them have no meaning for some heads."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.scores.supplies import Supplies
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Measure, Need, Tile, mean_on_keys, whole
from attnscope.results import HeadScores, Kind
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

ENTROPY = ("entropy",)
NONE: Mapping[str, str] = {}
NOTHING = Supplies(dict.fromkeys(Need, "of these heads nothing but weights is known"), lambda *_: {})


def unplaced(kind: Kind, query_tokens: Tokens, key_tokens: Tokens) -> str:
    """Why queries and keys have no positions in common, in one phrase; empty where they have."""
    same = query_tokens is key_tokens or query_tokens == key_tokens
    if kind is Kind.CROSS or not same:
        return "queries and keys are not the same tokens"
    return ""


def apply_measures(
    weights: Sequence[Sequence[Float[Tensor, "query key"]]],
    names: Sequence[str],
    *,
    layers: tuple[int, ...],
    heads: tuple[int, ...],
    unplaced: str,
    by: Unit = Unit.TOKEN,
    supplies: Supplies = NOTHING,
) -> dict[str, HeadScores]:
    """The measures `names` of every head, `weights` by layer and head; positions count the units (`by`).

    Where `unplaced` says why positions mean nothing, positional measures are NaN and say so, and so are those
    that need what is not among the `supplies`; `InputError` where there are no others among `names`.
    """
    absent = absences(names, unplaced, supplies)
    needs = {need for name in names if not absent[name] for need in MEASURES[name].needs}
    heads_of = (
        (whole(each, **supplies.fields(i, j, each, needs)) for j, each in enumerate(row))
        for i, row in enumerate(weights)
    )
    return scores_of(names, heads_of, layers, heads, weights[0][0].shape[1], absent, by)


def absences(names: Sequence[str], unplaced: str, supplies: Supplies) -> dict[str, str]:
    """Why each of the measures has no meaning here, empty for one that has; `InputError` where none has."""
    absent = {name: _absent(MEASURES[name], unplaced, supplies) for name in names}
    if all(absent.values()):
        there = [name for name, each in MEASURES.items() if not _absent(each, unplaced, supplies)]
        why = "; ".join(dict.fromkeys(absent.values()))
        raise InputError(f"no {', '.join(names)} here: {why}; what can be measured is {', '.join(there)}")
    return absent


def _absent(measure: Measure, unplaced: str, supplies: Supplies) -> str:
    named = supplies.absent.get(measure.name.removesuffix("-norm"), "")
    return (unplaced if measure.positional else "") or next(
        (supplies.missing[need] for need in Need if need in measure.needs and need in supplies.missing), named
    )


def scores_of(
    names: Sequence[str],
    heads_of: Iterable[Iterable[Sequence[Tile]]],
    layers: tuple[int, ...],
    heads: tuple[int, ...],
    keys: int,
    absent: Mapping[str, str] = NONE,
    by: Unit = Unit.TOKEN,
) -> dict[str, HeadScores]:
    """The measures of heads of so many `keys`, whose tiles come by layer and head; NaN where one is `absent`.

    One head after the other, so that what is known of them never stands in memory at once.
    """
    measures = [MEASURES[name] for name in names]
    values = np.array(
        [
            [[math.nan if absent.get(each.name) else each(tiles) for each in measures] for tiles in row]
            for row in heads_of
        ]
    )
    return as_scores(names, values, layers, heads, keys, absent, by)


def as_scores(
    names: Sequence[str],
    values: Float[np.ndarray, "layer head measure"],
    layers: tuple[int, ...],
    heads: tuple[int, ...],
    keys: int,
    absent: Mapping[str, str] = NONE,
    by: Unit = Unit.TOKEN,
) -> dict[str, HeadScores]:
    """Numbers that have been measured, by measure, with what is said of each."""
    found = {}
    for i, name in enumerate(names):
        measure, own = MEASURES[name], values[..., i].copy()
        described, why = measure.description, absent.get(name, "")
        if by.joins and described.unit == "tokens":
            described = replace(described, unit=by.several)
        if not why and measure.finish is mean_on_keys and np.isnan(own).all():
            why = "no query may look there"
        limits = measure.limits_of(own, keys)
        found[name] = HeadScores(described, layers, heads, own, limits, absent=why)
    return found


def evenly_spread(allowed: Bool[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    """The same weight on each key that a query may look at; NaN where it may look at none."""
    counts = allowed.sum(axis=1, keepdims=True)
    even: Float[np.ndarray, "query key"] = np.where(counts > 0, allowed / np.maximum(counts, 1), np.nan)
    return even
