"""Running a model and recording the attention that was asked for, by the route that each module takes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.standing import standings_of
from attnscope.capture.encoded_once import EncodedOnce
from attnscope.capture.following.describe import Sides, as_read, sides_of, tokens_of
from attnscope.capture.following.projected import OutputProjections, projections_of
from attnscope.capture.following.recorder import Keep, Recorder
from attnscope.capture.routes import (
    Labels,
    Rung,
    Selection,
    missing_layers,
    nothing_seen,
    rungs,
    wanted_layers,
)
from attnscope.capture.running import evaluating
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.sites import Site
from attnscope.reference import place

Seek = Callable[[nn.Module, Sequence[Site], set[int]], OutputProjections]


def record(
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection = Selection(),  # noqa: B008 - frozen
    labels: Labels = Labels(),  # noqa: B008
    seek: Seek | None = None,
    once: EncodedOnce | None = None,
) -> Capture:
    """What the selected attention layers of `model` were given and returned for `inputs`.

    `inputs` is what the model is called with, usually `tokenizer(text, return_tensors="pt")`. The forward
    pass ends after the last layer that is needed. The model runs as it is, in evaluation mode and without
    gradients, and is left as it was (registries, attention implementation, hooks, train/eval mode), also
    after an exception or Ctrl-C. `seek` makes what looks for the heads' matrices in this run; `once` knows
    what the encoder answered as the model wrote what is read, and forgets it.

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
    """For every row of a batch of texts of one length the calls of its layers, in their order.

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
    labels: Labels = Labels(),  # noqa: B008
    row: int = 0,
) -> Any:
    """One whole forward pass of `model`; `keep` gets the calls of all watched layers as they happen.

    Each call lies where it can be computed with, which is its own device if that has float64.

    Returns what the model returns, or passes on what `keep` raises.
    """
    sides = sides_of(model, inputs, labels.tokens, labels.target, row)
    recorder = Recorder(watched, None, keep, sides, None, row, batch_size(inputs), where=place)
    with evaluating(model), recorder.watching(lambda layer: None):
        return model(**inputs)


def batch_size(inputs: Mapping[str, Any]) -> int:
    return next((len(value) for value in inputs.values() if isinstance(value, Tensor) and value.ndim), 1)


def chosen_row(row: int, inputs: Mapping[str, Any]) -> int:
    """`row` as a number from 0, negatives counted from the end of the batch."""
    batch = batch_size(inputs)
    if not -batch <= row < batch:
        raise InputError(f"no row {row} in the inputs: rows are {listed(range(batch))}")
    return row % batch
