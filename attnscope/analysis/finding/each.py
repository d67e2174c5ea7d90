"""The attention of a batch of texts, each of them by itself: what `attnscope.capture.record` does for one.

Nothing here is certified; the text that the batch belongs to is, by a `Capture` of its own.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from torch import nn

from attnscope.attention import AttentionCall
from attnscope.capture import Labels, Selection
from attnscope.capture.evaluation_mode import evaluating
from attnscope.capture.following.describe import Sides, sides_of
from attnscope.capture.following.recorder import Recorder
from attnscope.capture.routes import Rung, missing_layers, rungs, wanted_layers
from attnscope.capture.run import batch_size

Calls = tuple[AttentionCall, ...]


class _Enough(Exception):
    """Raised inside the forward pass once everything that was asked for has been recorded."""


class _EveryRow(Recorder):
    """Records all rows of a batch, where a recorder takes those of one."""

    def _mine(self, entries: int) -> range:
        return range(entries)


def record_each(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, labels: Labels
) -> list[Calls] | None:
    """For every row of a batch of texts of one length the calls of its layers, in their order.

    None where a layer does not make exactly one attention for a row: these have to be run one by one.
    """
    sides = sides_of(model, inputs, labels.tokens, labels.target)
    for rung in rungs(model, selection):
        wanted = wanted_layers(rung.tower, selection.layers)
        calls = _recorded(model, inputs, rung, wanted, sides)
        if not missing_layers(wanted, calls):
            return _by_row(calls, batch_size(inputs))
    return None


def _recorded(
    model: nn.Module, inputs: Mapping[str, Any], rung: Rung, wanted: set[int], sides: Sides
) -> list[AttentionCall]:
    calls: list[AttentionCall] = []
    finished: set[int] = set()

    def after(layer: int) -> None:
        finished.add(layer)
        if finished >= wanted:
            raise _Enough

    # of the model's own weights the least that can be kept: they are computed here from queries and keys
    recorder = _EveryRow(rung.watched, wanted, calls.append, sides, [0], 0, batch_size(inputs))
    with suppress(_Enough), evaluating(model), recorder.watching(after):
        model(**inputs)
    return calls


def _by_row(calls: list[AttentionCall], rows: int) -> list[Calls] | None:
    of_layer: defaultdict[int, list[AttentionCall]] = defaultdict(list)
    for call in calls:
        of_layer[call.layer].append(call)
    if any(len(each) != rows for each in of_layer.values()):
        return None
    return [tuple(of_layer[layer][row] for layer in sorted(of_layer)) for row in range(rows)]
