"""The measures of every head and every text of a batch at once.

A measure is written once, for the tile of one head (`attnscope.measures`), and spread here over heads and
texts by `torch.vmap`. The few that finish otherwise than by the mean over queries have a twin here that
counts for all heads together; tests/analysis/corpus hold every one against the measure itself.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.corpus.facts import Facts
from attnscope.capture.weights import Passed
from attnscope.errors import InputError
from attnscope.measures import MEASURES, Need, Tile
from attnscope.measures import pattern as patterns
from attnscope.measures.measure import Measure, mean
from attnscope.measures.rows import most_frequent_offset, share_at_one_offset
from attnscope.reference import EXACT, brought, exact, place

_KNOWN = {Need.ALLOWED, Need.SPECIAL, Need.PUNCTUATION, Need.ALIKE, Need.NORMS}
LINEAR = frozenset(
    {"distance", "self", "previous", "next", "first", "sink", "special-tokens", "punctuation", "same"}
)
_OTHERS = {"moved", "pattern"}
_SORTS = (Need.SPECIAL, Need.PUNCTUATION, Need.ALIKE)
_SORTED = tuple(need.value for need in _SORTS)
Values = Float[Tensor, "row measure head"]


def measurable(names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that can be taken of a corpus, in their order."""
    return tuple(name for name in names if MEASURES[name].needs <= _KNOWN)


def check_measurable(names: Sequence[str]) -> None:
    """Raises `InputError` for a measure that is not taken of a corpus."""
    if others := [name for name in names if name not in measurable(names)]:
        there = ", ".join(measurable(tuple(MEASURES)))
        raise InputError(f"no {', '.join(others)} over a corpus: what can be measured is {there}")


def needs_norms(names: Sequence[str]) -> bool:
    """Whether one of them needs what takes the heads' outputs to the hidden state."""
    return any(Need.NORMS in MEASURES[name].needs for name in names)


def measured(
    passed: Passed,
    facts: Facts,
    names: Sequence[str],
    norms: Float[Tensor, "row head key"] | None,
) -> Values:
    """Every measure of every head and text; NaN where it has no meaning.

    `norms` are ||f(x)|| of every key, None where nothing is known of what is moved.
    """
    facts = facts.at(place(passed.weights.device))
    weights, allowed = _own(passed, facts)
    out = weights.new_full((len(weights), len(names), weights.shape[1]), math.nan)
    number = {name: i for i, name in enumerate(names)}
    for values, by_norm in ((weights, False), (None if norms is None else _shares(weights, norms), True)):
        mine = [MEASURES[name] for name in names if name.endswith("-norm") is by_norm and name not in _OTHERS]
        if values is None or not mine:
            continue
        plain = [MEASURES[each.name.removesuffix("-norm")] for each in mine]
        for measure, found in zip(mine, _of(values, allowed, facts, plain), strict=True):
            out[:, number[measure.name]] = found
    if "pattern" in number:
        out[:, number["pattern"]] = _classes(weights, allowed, facts.lengths)
    if "moved" in number and norms is not None:
        out[:, number["moved"]] = _moved(weights, norms)
    return _with_meaning(out, names, facts).cpu()


def _shares(weights: Tensor, norms: Float[Tensor, "row head key"]) -> Float[Tensor, "row head query key"]:
    """Twin of `Tile.by_norm`: the share of each key in what its query moves."""
    parts = weights * norms[:, :, None]
    moved = parts.sum(-1, keepdim=True)
    return parts / moved.masked_fill(moved == 0, math.nan)


def _moved(weights: Tensor, norms: Float[Tensor, "row head key"]) -> Float[Tensor, "row head"]:
    return (weights @ norms[..., None])[..., 0].nanmean(-1)


def _of(values: Tensor, allowed: Tensor, facts: Facts, wanted: Sequence[Measure]) -> list[Tensor]:
    """Each measure of all heads: of those that add weights up in one product, of others query by query."""
    linear = [each for each in wanted if each.name in LINEAR]
    others = [each for each in wanted if each.name not in LINEAR]
    found = dict(zip([each.name for each in linear], _added_up(values, facts, linear), strict=True))
    rows = _contributions(values, allowed, facts, others)
    found |= {each.name: _finished(each, rows[each.name], facts) for each in others}
    return [found[each.name] for each in wanted]


def _added_up(values: Tensor, facts: Facts, linear: Sequence[Measure]) -> list[Float[Tensor, "row head"]]:
    """Measures that are sums of weights: what each weight counts in them is their own derivative by it.

    So the measure says itself which pairs it adds up, once for a text and not for each head, and one product
    adds up all measures of all heads. Queries that do not count, as the first for a sink, are left out.
    """
    if not linear:
        return []
    rows, tokens = values.shape[0], values.shape[-1]
    names = tuple(each.name for each in linear)
    counts, pairs = facts.once(names, lambda: _counting(facts, linear))
    answered = ~values[..., 0].isnan() & facts.own[:, None]
    products = values.nan_to_num(0.0).flatten(2) @ pairs.reshape(rows, len(linear), tokens**2).mT
    number = exact(answered) @ exact(counts).mT
    found = products / number.masked_fill(number == 0, math.nan)
    return [found[..., i] for i in range(len(linear))]


def _counting(
    facts: Facts, linear: Sequence[Measure]
) -> tuple[Bool[Tensor, "row measure query"], Float[Tensor, "row measure query key"]]:
    """Which queries count in each measure, and what each of their weights counts."""
    tokens = facts.special.shape[1]
    places = torch.arange(tokens, device=facts.lengths.device)

    def of_text(
        weights: Tensor, special: Tensor, punctuation: Tensor, alike: Tensor
    ) -> tuple[Tensor, Tensor]:
        tile = Tile(weights, places, places, special=special, punctuation=punctuation, alike=alike)
        rows = torch.stack([measure.contribution(tile) for measure in linear])
        return rows.nan_to_num(0.0), rows

    def derived(*sorts: Tensor) -> tuple[Tensor, Tensor]:
        even = torch.full((tokens, tokens), 1.0 / tokens, dtype=EXACT, device=places.device)
        by, rows = torch.func.jacrev(lambda each: _of_queries(of_text(each, *sorts)), has_aux=True)(even)
        return ~rows.isnan(), by

    counts, by = torch.vmap(derived)(*(getattr(facts, name) for name in _SORTED))
    own = facts.own
    return counts & own[:, None], by * (own[:, None, :, None] & own[:, None, None, :])


def _of_queries(made: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The sum over queries of each measure, and its queries."""
    return made[0].sum(-1), made[1]


def _own(passed: Passed, facts: Facts) -> tuple[Float[Tensor, "row head query key"], Bool[Tensor, "..."]]:
    """The weights in float64 and where queries may look, both without what fills up.

    A query that may look nowhere has no weights, whatever the model makes of it: NaN.
    """
    weights = exact(passed.weights.detach())
    queries, keys = weights.shape[-2:]
    if (queries, keys) != tuple(facts.alike.shape[1:]):
        tokens = facts.alike.shape[1]
        raise InputError(f"attention of {queries} queries on {keys} keys is not among {tokens} tokens")
    own = facts.own
    pairs = (own[:, :, None] & own[:, None, :])[:, None]
    allowed = pairs if passed.allowed is None else brought(passed.allowed) & pairs
    seen = allowed.any(-1, keepdim=True)
    if not math.isfinite(float(weights.sum())) and not bool(
        (weights.isfinite() | ~own[:, None, :, None]).all()
    ):
        raise InputError("weights of its attention are not numbers: its checkpoint may be damaged")
    return weights.masked_fill(~pairs, 0.0).masked_fill_(~seen, math.nan), allowed


def leaking(passed: Passed, facts: Facts) -> float:
    """The largest weight that a query of a text gives to what fills up: 0 where that is harmless."""
    own, shortest = facts.at(passed.weights.device).own, int(facts.lengths.min())
    if shortest == own.shape[1]:
        return 0.0
    out = (own[:, :, None] & ~own[:, None, shortest:])[:, None]
    return float(passed.weights.detach()[..., shortest:].masked_fill(~out, 0.0).abs().max())


def _contributions(
    values: Tensor, allowed: Tensor, facts: Facts, wanted: Sequence[Measure]
) -> dict[str, Tensor]:
    """What every query contributes to each measure, `row head query`, or `row head 2 query`."""
    if not wanted:
        return {}
    places = torch.arange(values.shape[-1], device=values.device)
    visible = allowed.sum(-1)

    def of_head(weights: Tensor, see: Tensor, many: Tensor) -> list[Tensor]:
        tile = Tile(weights, places, places, allowed=see, visible=many)
        return [tile.once(measure.contribution) for measure in wanted]

    by_head = 0 if allowed.shape[1] > 1 else None
    if by_head is None:
        allowed, visible = allowed[:, 0], visible[:, 0]
    spread: Callable[..., Any] = torch.vmap(torch.vmap(of_head, (0, by_head, by_head)))
    made = spread(values, allowed, visible)
    return {measure.name: each for measure, each in zip(wanted, made, strict=True)}


def _finished(measure: Measure, rows: Tensor, facts: Facts) -> Float[Tensor, "row head"]:
    """One number of all queries of a text."""
    beyond = ~facts.own[:, None]
    if measure.finish is mean:
        return rows.masked_fill(beyond, math.nan).nanmean(-1)
    if measure.finish in (share_at_one_offset, most_frequent_offset):
        shares, offsets = _most(rows[:, :, 0].masked_fill(beyond, math.nan), rows[:, :, 1])
        return shares if measure.finish is share_at_one_offset else offsets
    raise InputError(f"no {measure.name} over a corpus")


def _most(strongest: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Twin of `measures.rows._most_frequent`: of several offsets the shortest, then the first."""
    beyond = offsets.shape[-1] - 1
    counted = ~strongest.isnan()
    places = (offsets + beyond).long()
    counts = strongest.new_zeros(*offsets.shape[:2], 2 * beyond + 1)
    counts.scatter_add_(-1, places, exact(counted))
    every = torch.arange(-beyond, beyond + 1, dtype=EXACT, device=counts.device)
    rank = 2 * every.abs() + (every > 0)  # the shorter before the longer, before the query before behind it
    best = (counts * (4 * beyond + 4) - rank).argmax(-1)
    total = counts.sum(-1)
    none = total == 0
    shares = counts.gather(-1, best[..., None])[..., 0] / total
    return shares.masked_fill(none, math.nan), every[best].masked_fill(none, math.nan)


def _classes(weights: Tensor, allowed: Tensor, lengths: Tensor) -> Float[Tensor, "row head"]:
    """Twin of `measures.pattern` for texts that stand alone: the number of each head's class."""
    allowed = allowed.expand(-1, weights.shape[1], -1, -1)
    answered = allowed.any(-1)
    rows = exact(answered.sum(-1))
    real = weights.masked_fill(~answered[..., None], 0.0)
    even = exact(allowed / allowed.sum(-1, keepdim=True).clamp_min(1))
    vertical = _over(*((each.sum(-2).amax(-1) / rows) for each in (real, even)))
    block = _over(*((each.sum((-2, -1)) / rows) for each in (real, even)))
    diagonal = torch.zeros_like(vertical)
    tokens = weights.shape[-1]
    for step in range(-2, 3):
        if abs(step) >= tokens:
            continue
        inside = torch.arange(tokens, device=weights.device) + step
        valid = (inside >= 0) & (inside < lengths[:, None, None]) & answered
        count = exact(valid.sum(-1))
        sums = [_at(each, step, valid) / count for each in (real, even)]
        diagonal = torch.where(count > 1, torch.maximum(diagonal, _over(*sums).nan_to_num(0.0)), diagonal)
    return _named(vertical, diagonal, block, rows)


def _at(weights: Tensor, step: int, valid: Tensor) -> Tensor:
    """The sum of what valid queries give to the key `step` behind them."""
    line = weights.diagonal(step, -2, -1)
    first = max(-step, 0)
    return (line * valid[..., first : first + line.shape[-1]]).sum(-1)


def _over(real: Tensor, even: Tensor) -> Tensor:
    return torch.where(even < patterns.ALL, (real - even) / (1 - even), torch.zeros_like(real))


def _named(vertical: Tensor, diagonal: Tensor, block: Tensor, rows: Tensor) -> Tensor:
    number = {name: float(i) for i, name in enumerate(patterns.CLASSES)}
    found = torch.full_like(vertical, number["mixed"])
    for name, each in (("block", block), ("diag", diagonal), ("vert", vertical)):  # the first named wins
        found = torch.where(each >= patterns.ALONE, number[name], found)
    both = torch.minimum(vertical, diagonal) >= patterns.BESIDE
    found = torch.where(both, number["v+d"], found)
    return found.masked_fill((rows == 0) | vertical.isnan(), math.nan)


def _with_meaning(values: Values, names: Sequence[str], facts: Facts) -> Values:
    """NaN where a text has no key of the sort that a measure is about."""
    sought: Mapping[str, list[Need]] = {
        name: [need for need in _SORTS if need in MEASURES[name].needs] for name in names
    }
    if any(sought.values()):
        missing = facts.once("missing", lambda: facts.missing)
        for i, name in enumerate(names):
            for need in sought[name]:
                values[missing[need.value], i] = math.nan
    return values
