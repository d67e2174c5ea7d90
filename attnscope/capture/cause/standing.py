"""Whether position i of a layer stands for token i, as a run with some of the tokens exchanged tells.

    standings = standings_of(model, inputs, rung.watched, layers, sides)
    call = standings.settled(call)

A layer hands its kernel a row of queries and a row of keys, and nothing says that the i-th of them is made
of token i: code may sort its tokens first. Nor that the value which the weight of a key brings is made of the
key's token. So tokens are exchanged for others, a set of them at a time; with all attention muted, the
queries, keys and values that change must be those of the exchanged tokens. It is what
`attnscope.model.media.patches` does with the pixels of a picture.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.cause.exchange import AT_ONCE, Change, Exchanged, apart, exchanged, runs
from attnscope.capture.cause.muted import Handed, Seen, handed_over
from attnscope.capture.following.describe import Sides, numbered
from attnscope.capture.running import Refused
from attnscope.model.anatomy.sites import Site
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Standing

DISORDERED = "queries and keys are in different orders"
APART = "keys and values are not those of the same tokens"
_IDS = "input_ids", "decoder_input_ids"
# opens the hooks that hand on rows as they pass by, with the layer that they are of
Rows = Callable[[Callable[[int, Tensor], None]], AbstractContextManager[None]]


@dataclass(frozen=True)
class CallStanding:
    """Whether the queries, keys and values of one attention stand for the tokens of their positions.

    `apart` says that some key and its value are not of one and the same token.
    """

    query: Standing = Standing.UNKNOWN
    key: Standing = Standing.UNKNOWN
    value: Standing = Standing.UNKNOWN
    apart: bool = False

    @property
    def worst(self) -> Standing:
        return max(self.query, self.key, self.value, key=lambda each: each.rank)


@dataclass(frozen=True, eq=False)
class Standings:
    """The standing of every attention, by the module's path and its call.

    `tried` says on which tokens it was tried where not every one was told from every other. `handed_on` is
    the same of the rows that layers hand on, where these were asked for.
    """

    found: Mapping[tuple[str, int], CallStanding]
    tried: str = ""
    handed_on: Mapping[int, Standing] = field(default_factory=dict)

    def of(self, module: str, call: int) -> CallStanding:
        """The standing of one attention, all unknown where it was not seen."""
        return self.found.get((module, call), CallStanding())

    @property
    def disordered(self) -> set[tuple[str, int]]:
        """The attentions whose queries are not those of the tokens in their place."""
        return {name for name, one in self.found.items() if one.query is Standing.OTHER}

    @property
    def placed(self) -> set[tuple[str, int]]:
        """The attentions whose queries are those of the tokens in their place."""
        return {name for name, one in self.found.items() if one.query is Standing.OWN}

    def settled(self, call: AttentionCall) -> AttentionCall:
        """The call with what is known of its positions, numbered where they are not the tokens they seem."""
        one = self.of(call.module, call.call)
        if one.query is Standing.OTHER:
            call = replace(call, query_tokens=numbered(len(call.query_tokens)))
        if Standing.OTHER in (one.key, one.value):
            call = replace(call, key_tokens=numbered(len(call.key_tokens)))
        if one.apart:
            call = replace(call, reservation=call.reservation or APART)
        mixed_up = {one.query, one.key} == {Standing.OWN, Standing.OTHER}
        if mixed_up and call.kind is not Kind.CROSS:
            call = replace(call, reservation=call.reservation or DISORDERED)
        return replace(call, standing=one.worst, tried="" if one.worst is Standing.UNKNOWN else self.tried)


def standings_of(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    layers: Iterable[int] | None,
    sides: Sides,
    row: int = 0,
    most: int | None = AT_ONCE,
    rows: Rows | None = None,
) -> Standings:
    """What can be told of the positions of the `watched` modules that serve one of `layers` (None: all).

    And of the `rows` that layers hand on, which are as many as the queries of their modules.

    The model runs once more, on a batch of the text and its changed copies; one by one where its inputs
    cannot be repeated. Of a text for which that is more than `most` tokens in all, some halves are exchanged
    and not each token (None: each, however many). Nothing is known where it does not run on a changed text,
    and of positions that are not called by the tokens of one text.
    """
    serving = None if layers is None else set(layers)
    times = {site.module: often for site in watched if (often := site.runs_for(serving))}
    texts = dict(zip(_IDS, (sides.source, sides.target), strict=True))
    changed = exchanged(inputs, texts, model.config, row, most)
    if not changed or not times:
        return Standings({})
    try:
        seen, moved_rows = _changes(model, runs(inputs, changed, row), watched, times, rows)
    except Refused:
        return Standings({})
    found, site_of = {}, {site.module: site for site in watched}
    for (module, number), handed in seen.items():
        site = site_of[module]
        tokens = sides.of(site.kind, handed.query.positions, handed.key.positions, site.tower)
        convolved = any(isinstance(part, nn.Conv1d) for part in module.modules())
        found[site.path, number] = _judged(handed, tokens, tuple(changed.values()), convolved)
    kinds = {layer: (site.kind, site.tower) for site in watched for layer in site.layers}
    handed_on = {}
    for layer, moved in moved_rows.items():
        kind, tower = kinds[layer]
        own = sides.of(kind, moved.positions, moved.positions, tower)[0]
        handed_on[layer] = moved.stands(_expected(own, tuple(changed.values())))
    halves = max(each.halves for each in changed.values())
    plural = "half" if halves == 1 else "halves"
    return Standings(found, f"on {halves} random {plural} of the text" if halves else "", handed_on)


def _judged(
    handed: Handed[Change], tokens: tuple[Tokens, Tokens], changed: Sequence[Exchanged], convolved: bool
) -> CallStanding:
    """What it tells that these queries, keys and values changed, which should be those of `tokens`.

    Those of a module that convolves them are mixed by design, however much of them is of which token.
    """
    queries, keys = (_expected(side, changed) for side in tokens)
    words = None if any(each.halves for each in changed) else torch.cat([each.sets for each in changed], 1)
    mixing = None if convolved else words
    return CallStanding(
        handed.query.stands(queries, mixing),
        handed.key.stands(keys, mixing),
        handed.value.together.stands(keys, mixing),  # heads of one key may bring values of several tokens
        apart(handed.key, handed.value, keys, words),
    )


def _changes(
    model: nn.Module,
    inputs: Iterable[Mapping[str, Any]],
    watched: Sequence[Site],
    times: Mapping[nn.Module, int],
    rows: Rows | None,
) -> tuple[Seen[Change], dict[int, Change]]:
    pieces: list[Seen[Tensor]] = []
    kept = defaultdict[int, list[Tensor]](list)
    if rows is not None:
        times = {module: often + 1 for module, often in times.items()}  # the run goes on to its end

    def keep(layer: int, tensor: Tensor) -> None:
        kept[layer].append(tensor.detach().clone().reshape(count, -1, tensor.shape[-1]))

    for each in inputs:
        count = len(next(value for name, value in each.items() if name in _IDS))
        make: Callable[[Tensor], Any] = Change.of if count > 1 else Tensor.clone
        with nullcontext() if rows is None else rows(keep):
            pieces.append(handed_over(model, each, watched, times, make))
    handed_on = {layer: Change.of(torch.cat(each)[:, None]) for layer, each in kept.items()}
    if count > 1:
        return cast(Seen[Change], pieces[0]), handed_on
    return {place: Handed(*map(Change.of, whole)) for place, whole in _joined(pieces).items()}, handed_on


def _joined(pieces: Sequence[Seen[Tensor]]) -> Seen[Tensor]:
    joined = {}
    for place in pieces[0]:
        handed = [piece[place] for piece in pieces if place in piece]
        shapes = {tuple(each.shape for each in one) for one in handed}
        if len(handed) == len(pieces) and len(shapes) == 1:
            joined[place] = Handed(*map(torch.cat, zip(*handed, strict=True)))
    return joined


def _expected(tokens: Tokens, changed: Iterable[Exchanged]) -> Bool[Tensor, "set position"] | None:
    """Which positions should change with each set, where they are called by the tokens of one text."""
    return next((each.sets for each in changed if each.tokens is tokens), None)
