"""Run a model and record the selected attention, by the best route that each module allows.

What to read of a run is a `Selection`, with `Labels`. Takeover, custom name and traced operations are the
rungs of a ladder (`attnscope.model.anatomy.sites` says which is the best of a module). A layer that the best
of them does not see is looked for once more: in the modules that the model put in as it ran, or else by
tracing its operations. What the model returns of itself is the last rung, which `attnscope.capture.returned`
takes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.standing import standings_of
from attnscope.capture.following.describe import Sides, as_read, kernel_of, sides_of, tokens_of
from attnscope.capture.following.projected import OutputProjections, projections_of
from attnscope.capture.following.recorder import Keep, Recorder
from attnscope.capture.running import EncodedOnce, evaluating
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.sites import Site, find_sites
from attnscope.model.anatomy.towers import Tower, choose_tower, find_towers, without_attention
from attnscope.reference import place
from attnscope.results import Kind, Route
from attnscope.tokens import Tokens

Seek = Callable[[nn.Module, Sequence[Site], set[int]], OutputProjections]


@dataclass(frozen=True)
class Selection:
    """Options that say which attention of a model to read, and how.

    `layers` (default all; negatives count from the end) and `heads` (whose own weights are kept; default
    all) say what to record, `kind` and `tower` which attention of a model that has several, `route` how it
    is to be read instead of the way that is best, `row` which entry of a batch. Of a long text `queries` are
    the rows that are asked about (None: some are drawn, by which a head is certified). With `projections` the
    output projections of the heads are looked for as well, with `circuits` also their value projections.
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
    """Token labels and source given by the caller; else they are derived from model and inputs.

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
    """Raised where a model ran, but made no dense softmax attention in the wanted layers."""


@dataclass(frozen=True, eq=False)
class Rung:
    """One way to read the attention of `tower`: its modules, each with its route."""

    tower: Tower
    watched: tuple[Site, ...]


def rungs(model: nn.Module, selection: Selection) -> Iterator[Rung]:
    """Ways to read the selected attention, the best first; the next one is for layers not seen so far.

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
    """Takeover modules that can be traced too, with the traced route; empty if they cannot."""
    asking = [site for site in watched if site.route is not Route.TRACED]
    return forced(asking, Route.TRACED) if can_be_traced(asking) else ()


def forced(watched: Sequence[Site], route: Route | None) -> tuple[Site, ...]:
    """The sites with `route` as their route; `InputError` where they cannot be read by it."""
    if route is None or all(site.route is route for site in watched):
        return tuple(watched)
    eager = can_be_traced(watched)
    if route is not Route.TRACED or not eager:
        can = " or ".join(dict.fromkeys([str(watched[0].route), *([str(Route.TRACED)] if eager else [])]))
        raise InputError(f"attention of {watched[0].path} cannot be read by {route}: it can by {can}")
    return tuple(replace(site, route=route) for site in watched)


def can_be_traced(watched: Sequence[Site]) -> bool:
    """Whether the attention is made by separate torch operations: eager kernels or the model's own code."""
    return all(kernel_of(site) in ("eager", "the model's own code") for site in watched)


def tower_of(model: nn.Module, kind: Kind | None, name: str | None) -> Tower:
    """The model's tower of this kind and name; otherwise `InputError` that lists the towers there are."""
    there = find_towers(find_sites(model))
    if not there:
        raise InputError(without_attention(model, type(model).__name__))
    return choose_tower(there, kind, name, type(model).__name__)


def wanted_layers(tower: Tower, layers: Sequence[int] | None) -> set[int]:
    """The layers of the tower to read, as numbers from 0; None: all, negatives count from the end."""
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
    """The wanted layers of which there is no call, sorted."""
    return sorted(wanted - {call.layer for call in calls})


def nothing_seen(model: nn.Module, tower: Tower, missing: Sequence[int]) -> NothingSeenError:
    """`NothingSeenError` for layers that the last rung left unseen."""
    where = f"layer {listed(missing)} of {tower.pattern}"
    name = type(model).__name__
    return NothingSeenError(f"{name} made no dense softmax attention in {where} for this input")


def _modules(tower: Tower) -> list[nn.Module]:
    return [site.module for site in tower.sites]


def record(
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection = Selection(),
    labels: Labels = Labels(),
    seek: Seek | None = None,
    once: EncodedOnce | None = None,
) -> Capture:
    """Run `model` on `inputs` and record the inputs and outputs of its selected attention layers.

    `inputs` is what the model is called with, usually `tokenizer(text, return_tensors="pt")`. The forward
    pass ends after the last layer that is needed. The model runs as it is, in evaluation mode and without
    gradients, and is left as it was (registries, attention implementation, hooks, train/eval mode), also
    after an exception or Ctrl-C. `seek` makes the finder of the heads' matrices in this run; `once` keeps
    the encoder's output from the generation of the text that is read, and forgets it here.

    Raises `InputError` when there is no such layer, head or row, or no attention that can be read.
    """
    if not isinstance(inputs, Mapping):
        raise InputError("inputs are a mapping of names to tensors, as a tokenizer returns them")
    if selection.heads is not None and not selection.heads:
        raise InputError("no head was asked for")
    row = chosen_row(selection.row, inputs)
    tokens = labels.tokens or tokens_of(inputs, row, labels.texts)
    once = once or EncodedOnce(model)
    for rung in rungs(model, selection):
        wanted = wanted_layers(rung.tower, selection.layers)
        sides = sides_of(model, inputs, tokens, labels.target, row)
        asked = [site.module for site in rung.watched if site.runs_for(wanted)]
        with once.beside(asked):
            calls = _recorded(model, inputs, rung, wanted, sides, selection, row, seek)
        if not (missing := missing_layers(wanted, calls)):
            break
    else:
        raise nothing_seen(model, rung.tower, missing)
    with once.beside(asked):
        found = standings_of(model, inputs, rung.watched, wanted, sides, row)
        reaches = reaches_of(model, inputs, rung.watched, wanted, found.placed, found.disordered)
    once.forget()
    calls = [reaches.settled(found.settled(call)) for call in calls]
    calls.sort(key=lambda call: (call.layer, call.block))
    read = tokens if labels.read is None else labels.read
    origin = as_read(model, rung.tower, calls, read, labels.source, inputs, row)
    return Capture(tuple(calls), len(rung.tower.layers), origin, rung.tower.distinct_name)


def _recorded(
    model: nn.Module,
    inputs: Mapping[str, Any],
    rung: Rung,
    wanted: set[int],
    sides: Sides,
    selection: Selection,
    row: int,
    seek: Seek | None,
) -> list[AttentionCall]:
    calls: list[AttentionCall] = []
    found = None
    if seek is not None:
        found = seek(model, rung.watched, wanted)
    elif selection.projections or selection.circuits:
        found = projections_of(model, rung.watched, wanted, selection.circuits)
    batch, heads = batch_size(inputs), selection.heads
    recorder = Recorder(rung.watched, wanted, calls.append, sides, heads, row, batch, found)
    with evaluating(model), recorder.until(wanted):
        model(**inputs)
    return calls if found is None else [found.of(call) for call in calls]


def record_rows(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, labels: Labels
) -> list[tuple[AttentionCall, ...]] | None:
    """Calls of all layers, in order, for every row of a batch of texts of one length.

    Nothing of it is proved by cause, as it is in `record`. None where a layer does not make exactly one
    attention for a row: these have to be run one by one.
    """
    sides, rows = sides_of(model, inputs, labels.tokens, labels.target), batch_size(inputs)
    for rung in rungs(model, selection):
        wanted = wanted_layers(rung.tower, selection.layers)
        calls: list[AttentionCall] = []
        # of the model's own weights the least that can be kept: they are computed from queries and keys
        recorder = Recorder(rung.watched, wanted, calls.append, sides, [0], None, rows)
        with evaluating(model), recorder.until(wanted):
            model(**inputs)
        if not missing_layers(wanted, calls):
            by_layer = [[call for call in calls if call.layer == layer] for layer in sorted(wanted)]
            whole = all(len(of_rows) == rows for of_rows in by_layer)
            return list(zip(*by_layer, strict=True)) if whole else None
    return None


def run_watched(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    keep: Keep,
    labels: Labels = Labels(),
    row: int = 0,
) -> Any:
    """Run one whole forward pass of `model`; `keep` gets the calls of all watched layers as they happen.

    Each call lies where it can be computed with, which is its own device if that has float64.
    Returns what the model returns, or passes on what `keep` raises.
    """
    sides = sides_of(model, inputs, labels.tokens, labels.target, row)
    recorder = Recorder(watched, None, keep, sides, None, row, batch_size(inputs), where=place)
    with evaluating(model), recorder.watching(lambda layer: None):
        return model(**inputs)


def batch_size(inputs: Mapping[str, Any]) -> int:
    """Length of the first input tensor's batch axis; 1 if there is none."""
    return next((len(value) for value in inputs.values() if isinstance(value, Tensor) and value.ndim), 1)


def chosen_row(row: int, inputs: Mapping[str, Any]) -> int:
    """`row` as a number from 0, negatives counted from the end of the batch."""
    batch = batch_size(inputs)
    if not -batch <= row < batch:
        raise InputError(f"no row {row} in the inputs: rows are {listed(range(batch))}")
    return row % batch
