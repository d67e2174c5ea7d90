"""Running a model and recording the attention that was asked for, by the route that each module takes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.describe import kernel_of, provenance_of, sides_of, tokens_of
from attnscope.capture.recorder import Keep, Recorder
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.sites import Site, sites
from attnscope.model.anatomy.towers import Tower, choose_tower, towers
from attnscope.model.anatomy.without import without_attention
from attnscope.results import Kind, Provenance, Route
from attnscope.tokens import Tokens


class NothingSeenError(InputError):
    """The model ran, and made no dense softmax attention where it was looked for."""


class _Enough(Exception):
    """Raised inside the forward pass once everything that was asked for has been recorded."""


def capture(
    model: nn.Module,
    inputs: Mapping[str, Any],
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    kind: Kind | None = None,
    tower: str | None = None,
    route: Route | None = None,
    tokens: Tokens | None = None,
    target: Tokens | None = None,
    provenance: Provenance | None = None,
    row: int = 0,
) -> Capture:
    """What the attention layers of `model` were given and returned for `inputs`.

    `inputs` is what the model is called with, usually `tokenizer(text, return_tensors="pt")`. `layers`
    (default all; negatives count from the end) and `heads` (whose own weights are kept; default all) say
    what to record, `kind` and `tower` which attention of a model that has several, `route` how it is to be
    read instead of the way that is best, `row` which entry of a batch. `tokens` stand for its `input_ids`,
    `target` for its `decoder_input_ids`, where their text is known. The forward pass ends after the last
    layer that is needed. The model runs as it is, in evaluation mode and without gradients, and is left as
    it was (registries, attention implementation, hooks, train/eval mode), also after an exception or Ctrl-C.

    Raises `InputError` when there is no such layer, head or row, or no attention that can be read.
    """
    if not isinstance(inputs, Mapping):
        raise InputError("inputs are a mapping of names to tensors, as a tokenizer returns them")
    if heads is not None and not heads:
        raise InputError("no head was asked for")
    row = chosen_row(row, inputs)
    tokens = tokens or tokens_of(inputs, row)
    chosen = tower_of(model, kind, tower)
    wanted = (
        {chosen_layer(each, chosen.layers) for each in layers} if layers is not None else {*chosen.layers}
    )
    if not wanted:
        raise InputError("no layer was asked for")
    told = {"tokens": tokens, "target": target, "heads": heads, "row": row}
    calls = _recorded(model, inputs, forced(chosen.sites, route), wanted, **told)
    if missing_layers(wanted, calls):
        swapped = tower_of(model, kind, tower)  # some models put in other modules as they run
        if _modules(swapped) != _modules(chosen):
            chosen, calls = swapped, _recorded(model, inputs, forced(swapped.sites, route), wanted, **told)
        elif route is None and can_be_traced(chosen.sites):  # they can ask the interface and do not
            calls = _recorded(model, inputs, forced(chosen.sites, Route.TRACED), wanted, **told)
    if missing := missing_layers(wanted, calls):
        raise NothingSeenError(nothing_seen(model, chosen, missing))
    calls.sort(key=lambda call: (call.layer, call.block))
    origin = provenance or provenance_of(model, tokens)
    place = "" if chosen.alone else chosen.name
    return Capture(tuple(calls), len(chosen.layers), as_read(origin, calls, chosen), place)


def _recorded(
    model: nn.Module, inputs: Mapping[str, Any], watched: Sequence[Site], wanted: set[int], **told: Any
) -> list[AttentionCall]:
    """The calls of the wanted layers in a run that ends after the last of them."""
    calls: list[AttentionCall] = []
    finished: set[int] = set()

    def after(layer: int) -> None:
        finished.add(layer)
        if finished >= wanted:
            raise _Enough

    with suppress(_Enough):
        run_watched(model, inputs, watched, wanted, calls.append, after=after, **told)
    return calls


def missing_layers(wanted: set[int], calls: Sequence[AttentionCall]) -> list[int]:
    """The wanted layers that no call is of."""
    return sorted(wanted - {call.layer for call in calls})


def run_watched(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    wanted: set[int] | None,
    keep: Keep,
    *,
    after: Callable[[int], None] = lambda layer: None,
    tokens: Tokens | None = None,
    target: Tokens | None = None,
    heads: Sequence[int] | None = None,
    row: int = 0,
) -> Any:
    """One forward pass of `model`; `keep` gets the calls of the `wanted` layers (None: all) as they happen.

    `after` is told every layer whose module has returned. Returns what the model returns, or passes on
    what `keep` and `after` raise.
    """
    sides = sides_of(model, inputs, tokens, target, row)
    recorder = Recorder(watched, wanted, keep, sides, heads, row, batch_size(inputs))
    with evaluating(model), recorder.watching(after):
        return model(**inputs)


def forced(found: Sequence[Site], route: Route | None) -> tuple[Site, ...]:
    """The sites read by `route`; `InputError` where that cannot be."""
    if route is None or all(site.route is route for site in found):
        return tuple(found)
    eager = can_be_traced(found)
    if route is not Route.TRACED or not eager:
        can = " or ".join(dict.fromkeys([str(found[0].route), *([str(Route.TRACED)] if eager else [])]))
        raise InputError(f"attention of {found[0].path} cannot be read by {route}: it can by {can}")
    return tuple(replace(site, route=route) for site in found)


def can_be_traced(found: Sequence[Site]) -> bool:
    """Whether the attention is made by operations that pass by one by one."""
    return all(kernel_of(site) in ("eager", "the model's own code") for site in found)


def nothing_seen(model: nn.Module, tower: Tower, missing: Sequence[int]) -> str:
    where = f"layer {listed(missing)} of {tower.pattern}"
    return f"{type(model).__name__} made no dense softmax attention in {where} for this input"


def as_read(origin: Provenance, calls: Sequence[AttentionCall], tower: Tower) -> Provenance:
    """The provenance with the route and kernel of what was read."""
    return replace(
        origin,
        route=", ".join(dict.fromkeys(str(call.route) for call in calls)),
        kernel=", ".join(sorted({kernel_of(site) for site in tower.sites})),
    )


def tower_of(model: nn.Module, kind: Kind | None, name: str | None) -> Tower:
    """The model's tower of one kind and name; `InputError` that lists what there is where that is not one."""
    found = towers(sites(model))
    if not found:
        raise InputError(without_attention(model, type(model).__name__))
    return choose_tower(found, kind, name, type(model).__name__)


def _modules(tower: Tower) -> list[nn.Module]:
    return [site.module for site in tower.sites]


def batch_size(inputs: Mapping[str, Any]) -> int:
    return next((len(value) for value in inputs.values() if isinstance(value, Tensor) and value.ndim), 1)


def chosen_row(row: int, inputs: Mapping[str, Any]) -> int:
    """`row` as a number from 0, negatives counted from the end of the batch."""
    batch = batch_size(inputs)
    if not -batch <= row < batch:
        raise InputError(f"no row {row} in the inputs: rows are {listed(range(batch))}")
    return row % batch


def chosen_layer(layer: int, depth: Sequence[int]) -> int:
    """`layer` as a number from 0, negatives counted from the end of `depth`, the layers that there are."""
    resolved = depth[layer] if -len(depth) <= layer < 0 else layer
    if resolved not in depth:
        raise InputError(f"no layer {layer}: the model has attention in layers {listed(depth)}")
    return resolved


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every module has its own training flag back."""
    training = [module for module in model.modules() if module.training]
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        for module in training:
            module.training = True
