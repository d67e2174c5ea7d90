"""Applies measures to dense weights, and says why some have no meaning for some heads."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.scores.supplies import Supplies
from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall, Capture
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Measure, Need, Tile, mean_on_keys, whole
from attnscope.reference import EXACT, exact
from attnscope.results import HeadScores, Kind
from attnscope.results.base.origin import worst
from attnscope.tokens import Tokens
from attnscope.verify import certify_heads
from attnscope.vocabulary import Unit

ENTROPY = ("entropy",)
NONE: Mapping[str, str] = {}
NOTHING = Supplies(dict.fromkeys(Need, "of these heads nothing but weights is known"), lambda *_: {})


def unplaced(kind: Kind, query_tokens: Tokens, key_tokens: Tokens) -> str:
    """Why queries and keys share no positions, as a phrase; empty where they do."""
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
    """The measures `names` of every head, from `weights` by layer and head; positions count the units (`by`).

    Where `unplaced` says why positions mean nothing, positional measures are NaN and say so; so are those
    that need fields missing from `supplies`. `InputError` where none of `names` is left.
    """
    absent = absences(names, unplaced, supplies)
    needs = {need for name in names if not absent[name] for need in MEASURES[name].needs}
    heads_of = (
        (whole(each, **supplies.fields(i, j, each, needs)) for j, each in enumerate(row))
        for i, row in enumerate(weights)
    )
    return scores_of(names, heads_of, layers, heads, weights[0][0].shape[1], absent, by)


def absences(names: Sequence[str], unplaced: str, supplies: Supplies) -> dict[str, str]:
    """Why each measure has no meaning here (empty if it has); `InputError` where none has."""
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
    """Scores of heads with so many `keys` from tiles by layer and head; NaN where a measure is `absent`.

    Heads are read one after the other, so that only one is in memory at a time.

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
    """Measured values as `HeadScores` by measure, with descriptions and limits."""
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
    """Uniform attention over the keys each query may attend to; NaN where there are none."""
    counts = allowed.sum(axis=1, keepdims=True)
    even: Float[np.ndarray, "query key"] = np.where(counts > 0, allowed / np.maximum(counts, 1), np.nan)
    return even


SEED, MOST, LEAST = 0, 50, 3  # tokens that stand twice


@dataclass(frozen=True)
class Twice:
    """`period` random tokens twice over, behind the tokens `before`, drawn with `seed`."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    seed: int

    @property
    def period(self) -> int:
        return len(self.ids)

    @property
    def read(self) -> tuple[int, ...]:
        return (*self.before, *self.ids, *self.ids)


def drawn(vocabulary: Sequence[int], before: tuple[int, ...], limit: int | None, seed: int = SEED) -> Twice:
    """Random distinct tokens of `vocabulary`, as many (up to `MOST`) as fit twice into `limit`."""
    room = MOST if limit is None else min(MOST, (limit - len(before)) // 2)
    order = torch.randperm(len(vocabulary), generator=torch.Generator().manual_seed(seed)).tolist()
    return Twice(before, tuple(vocabulary[i] for i in order[: max(room, 0)]), seed)


def repeated_scores(
    captured: Capture, heads: Sequence[int], names: Sequence[str], twice: Twice, after: str
) -> dict[str, HeadScores]:
    """The measures `names` of every captured layer over repeated random tokens, described with their verdict.

    `after` names the tokens before the random ones.

    """
    layers = tuple(dict.fromkeys(call.layer for call in captured.calls))
    calls = [captured.call(layer) for layer in layers]
    places = torch.arange(len(twice.read)) - len(twice.before)
    tiles = (
        (
            [Tile(attend(call.operands(head)).weights[0], places, places, period=twice.period)]
            for head in heads
        )
        for call in calls
    )
    verdict = worst(proof.verdict for call in calls for proof in certify_heads(call, heads))
    said = f"{described(twice, after)} ({verdict})"
    found = scores_of(names, tiles, layers, tuple(heads), len(twice.read))
    return {name: _said(each, said) for name, each in found.items()}


def described(twice: Twice, after: str) -> str:
    """Names the repeated random tokens: `2 x 20 random tokens, seed 0`."""
    start = f" after {after}" if after else ""
    return f"2 x {twice.period} random tokens{start}, seed {twice.seed}"


def _said(scores: HeadScores, said: str) -> HeadScores:
    return replace(scores, description=replace(scores.description, apart=said))


def copying_scores(
    captured: Capture,
    heads: Sequence[int],
    embedding: Float[Tensor, "token hidden"],
    unembedding: Float[Tensor, "token hidden"],
) -> HeadScores | str:
    """The copying score of every captured head, NaN without its matrices; or why there is none at all."""
    layers = tuple(dict.fromkeys(call.layer for call in captured.calls))
    calls = [captured.call(layer) for layer in layers]
    if all(call.projection is None or call.value_projection is None for call in calls):
        return "no matrix alone makes its values, or reads its heads' outputs"
    hidden = embedding.shape[1]
    if not all(_fits(call, hidden) and unembedding.shape[1] == hidden for call in calls):
        return "its embeddings are not of the size of what its heads read and write"
    between = exact(unembedding.T.float() @ embedding.float())  # once for all heads
    tiles = (([_tile(_circuit(call, head, between))] for head in heads) for call in calls)
    return scores_of(["copying"], tiles, layers, tuple(heads), 1)["copying"]


def _fits(call: AttentionCall, hidden: int) -> bool:
    if call.projection is None or call.value_projection is None:
        return True
    return call.projection.shape[2] == call.value_projection.shape[1] == hidden


def _circuit(
    call: AttentionCall, head: int, between: Float[Tensor, "hidden hidden"]
) -> Float[Tensor, "value_dim value_dim"]:
    """The circuit matrix W_O W_U W_E W_V of one head; grouped-query heads use their group's W_V."""
    if call.projection is None or call.value_projection is None:
        return torch.full((call.v.shape[2],) * 2, torch.nan, dtype=EXACT)
    values = exact(call.value_projection[call.key_head(head)])
    return exact(call.projection[head]) @ between @ values


def _tile(circuit: Float[Tensor, "value_dim value_dim"]) -> Tile:
    return Tile(torch.ones(1, 1), torch.arange(1), torch.arange(1), circuit=circuit)
