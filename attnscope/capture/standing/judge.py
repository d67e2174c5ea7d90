"""Whether position i of a layer stands for token i, as a run with some of the tokens exchanged tells.

    standings = standings_of(model, inputs, rung.watched, layers, sides)
    call = standings.settled(call)

A layer hands its kernel a row of queries and a row of keys, and nothing says that the i-th of them is made
of token i: code may sort its tokens first. So tokens are exchanged for others, a set of them at a time; with
all attention muted, the queries and keys that change must be those of the exchanged tokens. It is what
`attnscope.model.media.patches` does with the pixels of a picture.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.describe import Sides, numbered
from attnscope.capture.standing.exchange import Exchanged, exchanged, runs
from attnscope.capture.standing.muted import Seen, queries_and_keys
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site
from attnscope.tokens import Tokens
from attnscope.vocabulary import Standing

_LEAST = 1e-5  # change of a query or key, relative to it, below which it is taken for rounding
_REFUSALS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    InputError,
)  # what a model may raise for a text that it cannot read: then nothing is known
_UNKNOWN = Standing.UNKNOWN, Standing.UNKNOWN
_IDS = "input_ids", "decoder_input_ids"


@dataclass(frozen=True, eq=False)
class Standings:
    """What was found of the queries and of the keys of every attention, by the module's path and its call."""

    found: Mapping[tuple[str, int], tuple[Standing, Standing]]

    def settled(self, call: AttentionCall) -> AttentionCall:
        """The call with what is known of its positions, numbered where they are not the tokens they seem."""
        queries, keys = self.found.get((call.module, call.call), _UNKNOWN)
        if queries is Standing.OTHER:
            call = replace(call, query_tokens=numbered(len(call.query_tokens)))
        if keys is Standing.OTHER:
            call = replace(call, key_tokens=numbered(len(call.key_tokens)))
        return replace(call, standing=max(queries, keys, key=lambda each: each.rank))


def standings_of(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    layers: Iterable[int] | None,
    sides: Sides,
    row: int = 0,
) -> Standings:
    """What can be told of the positions of the `watched` modules that serve one of `layers` (None: all).

    The model runs once more, on a batch of the text and its changed copies; one by one where its inputs
    cannot be repeated. Nothing is known where it does not run on a changed text, and of positions that
    are not called by the tokens of one text.
    """
    serving = None if layers is None else set(layers)
    wanted = {site.module: site for site in watched if serving is None or serving & {*site.layers}}
    texts = dict(zip(_IDS, (sides.source, sides.target), strict=True))
    changed = exchanged(inputs, texts, model.config, row)
    if not changed or not wanted:
        return Standings({})
    times = {module: _runs_of(site, serving) for module, site in wanted.items()}
    try:
        seen = _changes(model, runs(inputs, changed, row), watched, times)
    except _REFUSALS:
        return Standings({})
    found = {}
    for place, (query, key) in seen.items():
        site, number = wanted[place[0]], place[1]
        tokens = sides.of(site.kind, query.positions, key.positions, site.tower)
        expected = [_expected(side, changed.values()) for side in tokens]
        found[site.path, number] = _judged(query, expected[0]), _judged(key, expected[1])
    return Standings(found)


def _changes(
    model: nn.Module,
    inputs: Iterable[Mapping[str, Any]],
    watched: Sequence[Site],
    times: Mapping[nn.Module, int],
) -> Seen["Change"]:
    """What changed of all queries and keys, found while they pass by; of single runs, after the last."""
    pieces: list[Seen[Tensor]] = []
    for each in inputs:
        if len(next(value for name, value in each.items() if name in _IDS)) > 1:
            return queries_and_keys(model, each, watched, times, Change.of)
        pieces.append(queries_and_keys(model, each, watched, times, Tensor.clone))
    whole = _joined(pieces).items()
    return {place: (Change.of(query), Change.of(key)) for place, (query, key) in whole}


def _runs_of(site: Site, layers: set[int] | None) -> int:
    """How often a module runs until it has served the last of these layers; once where it serves only one."""
    return max(i + 1 for i, layer in enumerate(site.layers) if layers is None or layer in layers)


def _joined(pieces: Sequence[Seen[Tensor]]) -> Seen[Tensor]:
    """What was seen in all of the runs, one behind the other."""
    first, *others = pieces
    return {
        place: (
            torch.cat([piece[place][0] for piece in pieces]),
            torch.cat([piece[place][1] for piece in pieces]),
        )
        for place in first
        if all(place in other for other in others)
    }


def _expected(tokens: Tokens, changed: Iterable[Exchanged]) -> Bool[Tensor, "set position"] | None:
    """Which positions should change with each set, where they are called by the tokens of one text."""
    return next((each.sets for each in changed if each.tokens is tokens), None)


def standing(
    rows: Float[Tensor, "run head position dim"], expected: Bool[Tensor, "set position"] | None
) -> Standing:
    """What queries (or keys) tell: of the text as it is, with each set exchanged, and as it is again."""
    return _judged(Change.of(rows), expected)


def _judged(change: "Change", expected: Bool[Tensor, "set position"] | None) -> Standing:
    """What it tells that these positions changed with these sets.

    A single position that answers to nothing (as a sink may) can only be the one token that is left.
    """
    if expected is None or change.runs != len(expected) + 2 or not expected.any():
        return Standing.UNKNOWN
    moved = change.moved
    if not moved.any():
        return Standing.UNKNOWN
    silent = expected.any(0) & ~moved.any(0)
    if silent.sum() < 2 and torch.equal(moved, expected & ~silent):
        return Standing.OWN
    if not (expected & ~moved).any():
        return Standing.MIXED
    return Standing.OTHER if (moved & ~expected).any() else Standing.UNKNOWN


@dataclass(frozen=True, eq=False)
class Change:
    """Which positions of a layer's queries, or keys, changed with each set of tokens in so many runs."""

    runs: int
    positions: int
    moved: Bool[Tensor, "set position"]

    @classmethod
    def of(cls, rows: Float[Tensor, "run head position dim"]) -> "Change":
        """Of the text as it is, with each set exchanged, and as it is again, one behind the other."""
        return cls(rows.shape[0], rows.shape[2], _moved(rows).cpu())


def _moved(rows: Float[Tensor, "run head position dim"]) -> Bool[Tensor, "set position"]:
    """Which positions changed by more than rounding: by more than those of the same text do at another place.

    Nothing is said to have changed where a number is none.
    """
    if rows.shape[0] < 2:
        return torch.zeros(0, rows.shape[2], dtype=torch.bool)
    size = rows[0].abs().float().amax((0, 2))
    change = (rows[1:].float() - rows[0].float()).abs_().amax((1, 3))
    numbers = bool(size.isfinite().all() & change.isfinite().all())  # of each row: a NaN is the largest
    change /= size.clamp_min(torch.finfo(torch.float32).tiny)
    least = max(_LEAST, 4 * torch.finfo(rows.dtype).eps, 10 * float(change[-1].max()))
    return (change[:-1] > least) & numbers
