"""What to read of a run (`Selection`, `Labels`), and the ladder of routes to it: the best way first.

Takeover, custom name and traced operations are the rungs that a module allows (`attnscope.model.anatomy.
sites` says which is its best). A layer that the best of them does not see is looked for once more: in the
modules that the model put in as it ran, or else by tracing its operations. What the model returns of itself
is the last rung, which `attnscope.capture.returned` takes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from attnscope.attention import AttentionCall
from attnscope.capture.following.describe import kernel_of
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.sites import Site, find_sites
from attnscope.model.anatomy.towers import Tower, choose_tower, find_towers, without_attention
from attnscope.results import Kind, Route
from attnscope.tokens import Tokens


@dataclass(frozen=True)
class Selection:
    """Which attention to read, and how.

    `layers` (default all; negatives count from the end) and `heads` (whose own weights are kept; default
    all) say what to record, `kind` and `tower` which attention of a model that has several, `route` how it
    is to be read instead of the way that is best, `row` which entry of a batch. Of a long text `queries` are
    the rows that are asked about (None: some are drawn, by which a head is certified). With `projections` it
    is also looked for what takes the heads' outputs to the hidden state, with `circuits` also for what makes
    their values.
    """

    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    kind: Kind | None = None
    tower: str | None = None
    route: Route | None = None
    row: int = 0
    queries: Sequence[int] | None = None
    projections: bool = False
    circuits: bool = False


@dataclass(frozen=True, eq=False)
class Labels:
    """What positions stand for, and where the model comes from, as far as somebody knows better than it.

    `tokens` stand for its `input_ids`, `target` for its `decoder_input_ids`, where their text is known.
    Without `tokens`, `texts` is the text or the pair that a tokenizer of the tokenizers library made the
    inputs of: labels are then cut from it, with its own capitals, else they are the vocabulary's pieces.
    `source` are fields of the provenance (as `Model.origin` gives them), `read` the tokens that provenance
    lists where these are not `tokens`.
    """

    tokens: Tokens | None = None
    target: Tokens | None = None
    source: Mapping[str, Any] | None = None
    read: Tokens | None = None
    texts: tuple[str, ...] = ()


class NothingSeenError(InputError):
    """The model ran, and made no dense softmax attention where it was looked for."""


@dataclass(frozen=True, eq=False)
class Rung:
    """One way to read the attention of `tower`: its modules, each with the route that it is read by."""

    tower: Tower
    watched: tuple[Site, ...]


def rungs(model: nn.Module, selection: Selection) -> Iterator[Rung]:
    """The ways to read the selected attention, the best first; ask for the next where a layer was not seen.

    Raises `InputError` where there is no such attention, or the route that is asked for cannot read it.
    """
    chosen = tower_of(model, selection.kind, selection.tower)
    yield Rung(chosen, forced(chosen.sites, selection.route))
    swapped = tower_of(model, selection.kind, selection.tower)  # some models put in other modules as they run
    if _modules(swapped) != _modules(chosen):
        yield Rung(swapped, forced(swapped.sites, selection.route))
    elif selection.route is None and (traced := traced_instead(chosen.sites)):
        yield Rung(chosen, traced)


def traced_instead(watched: Sequence[Site]) -> tuple[Site, ...]:
    """The modules whose code asks for a kernel, read by their operations; none where that cannot be."""
    asking = [site for site in watched if site.route is not Route.TRACED]
    return forced(asking, Route.TRACED) if can_be_traced(asking) else ()


def forced(watched: Sequence[Site], route: Route | None) -> tuple[Site, ...]:
    """The sites read by `route`; `InputError` where that cannot be."""
    if route is None or all(site.route is route for site in watched):
        return tuple(watched)
    eager = can_be_traced(watched)
    if route is not Route.TRACED or not eager:
        can = " or ".join(dict.fromkeys([str(watched[0].route), *([str(Route.TRACED)] if eager else [])]))
        raise InputError(f"attention of {watched[0].path} cannot be read by {route}: it can by {can}")
    return tuple(replace(site, route=route) for site in watched)


def can_be_traced(watched: Sequence[Site]) -> bool:
    """Whether the attention is made by operations that pass by one by one."""
    return all(kernel_of(site) in ("eager", "the model's own code") for site in watched)


def tower_of(model: nn.Module, kind: Kind | None, name: str | None) -> Tower:
    """The model's tower of one kind and name; `InputError` that lists what there is where that is not one."""
    there = find_towers(find_sites(model))
    if not there:
        raise InputError(without_attention(model, type(model).__name__))
    return choose_tower(there, kind, name, type(model).__name__)


def wanted_layers(tower: Tower, layers: Sequence[int] | None) -> set[int]:
    """`layers` of the tower as numbers from 0, negatives counted from the end; None stands for all."""
    wanted = {*tower.layers} if layers is None else {_layer(each, tower.layers) for each in layers}
    if not wanted:
        raise InputError("no layer was asked for")
    return wanted


def _layer(layer: int, there: Sequence[int]) -> int:
    resolved = there[layer] if -len(there) <= layer < 0 else layer
    if resolved not in there:
        raise InputError(f"no layer {layer}: the model has attention in layers {listed(there)}")
    return resolved


def missing_layers(wanted: set[int], calls: Sequence[AttentionCall]) -> list[int]:
    """The wanted layers that no call is of."""
    return sorted(wanted - {call.layer for call in calls})


def nothing_seen(model: nn.Module, tower: Tower, missing: Sequence[int]) -> NothingSeenError:
    """What to raise where the last rung left layers unseen."""
    where = f"layer {listed(missing)} of {tower.pattern}"
    name = type(model).__name__
    return NothingSeenError(f"{name} made no dense softmax attention in {where} for this input")


def _modules(tower: Tower) -> list[nn.Module]:
    return [site.module for site in tower.sites]
