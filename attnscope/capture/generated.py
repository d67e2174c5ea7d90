"""Generated text: the attention of all that a model reads while it writes, its cache switched on.

    captured, written = record_written(model, tokenizer(text, return_tensors="pt"), 20)

`model.generate` runs as it always does: the model reads the prompt, then each token that it has written but
the last, while its cache hands the keys of earlier steps over. Every step is recorded, and what one layer did
in all of them becomes one attention over the whole text (`following.joined`), which can be held against one
recomputation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.standing import standings_of
from attnscope.capture.following.describe import Sides, as_read, sides_of, tokens_by_id, tokens_of
from attnscope.capture.following.joined import JoinedCall
from attnscope.capture.following.projected import OutputProjections, projections_of
from attnscope.capture.following.recorder import Recorder
from attnscope.capture.routes import (
    Labels,
    Selection,
    missing_layers,
    nothing_seen,
    rungs,
    tower_of,
    wanted_layers,
)
from attnscope.capture.running import evaluating, if_it_writes
from attnscope.errors import InputError
from attnscope.model.anatomy.placed import device_of
from attnscope.model.anatomy.sites import Site
from attnscope.model.inputs.generation import Written, write
from attnscope.results import Kind
from attnscope.tokens import Tokens

Spell = Callable[[Written], Tokens]


def record_written(
    model: nn.Module,
    inputs: Mapping[str, Any],
    most: int,
    selection: Selection = Selection(),  # noqa: B008 - frozen
    labels: Labels = Labels(),  # noqa: B008
    *,
    spell: Spell | None = None,
) -> tuple[Capture, Written]:
    """The attention of the decoder of `model` while it writes `most` tokens on from `inputs`, and these.

    Rows and keys are counted from the start of the text, also where a cache slides. `spell` makes the tokens
    of what was read; the rest is as in `attnscope.capture.record`. Raises `InputError` also for
    attention that reads no written text, more than one input, and keys that are not those of the text.
    """
    if tower_of(model, selection.kind, selection.tower).kind is Kind.ENCODER:
        raise InputError(f"encoder attention of {type(model).__name__} reads nothing of what is generated")
    if any(isinstance(value, Tensor) and value.ndim and len(value) > 1 for value in inputs.values()):
        raise InputError("one text at a time is gone on with: the inputs hold several")
    for rung in rungs(model, selection):
        wanted = wanted_layers(rung.tower, selection.layers)
        sought = projections_of(model, rung.watched, wanted) if selection.projections else None
        steps = Steps(model, rung.watched, wanted, selection.heads, sought)
        name = type(model).__name__
        with if_it_writes(model, inputs, most, name), evaluating(model), steps.recording():
            written = write(model, inputs, most, name)
        calls = steps.calls(written)
        if not (missing := missing_layers(wanted, calls)):
            break
    else:
        raise InputError(str(nothing_seen(model, rung.tower, missing)))
    tokens = labels.tokens or tokens_of(inputs, texts=labels.texts)
    read = tokens_by_id(list(written.read)) if spell is None else spell(written)
    sides = sides_of(model, inputs, tokens, read)
    whole = _at_once(model, inputs, written)
    found = standings_of(model, whole, rung.watched, wanted, sides)
    reaches = reaches_of(model, whole, rung.watched, wanted, found.placed, found.disordered)
    for i, call in enumerate(calls):
        queries, keys = sides.of(call.kind, call.q.shape[1], call.k.shape[1], call.tower)
        calls[i] = reaches.settled(found.settled(replace(call, query_tokens=queries, key_tokens=keys)))
    origin = as_read(model, rung.tower, calls, tokens, labels.source)
    if not getattr(model.config, "is_encoder_decoder", False):
        origin = replace(origin, token_ids=written.read)
    return Capture(tuple(calls), len(rung.tower.layers), origin, rung.tower.distinct_name), written


def _at_once(model: nn.Module, inputs: Mapping[str, Any], written: Written) -> dict[str, Any]:
    """What the model is called with to read all that it has read while it wrote, in one run."""
    ids = torch.tensor([written.read], device=device_of(model))
    if getattr(model.config, "is_encoder_decoder", False):
        return {**inputs, "decoder_input_ids": ids}
    given = inputs["input_ids"].shape
    grown = {
        name: value.new_ones(ids.shape)
        for name, value in inputs.items()
        if name == "attention_mask" and value.shape == given
    }
    others = {name: value for name, value in inputs.items() if getattr(value, "shape", None) != given}
    return {**others, **grown, "input_ids": ids}


class Steps:
    """The forward passes of one `generate`: which tokens each was given, and what the layers did in it."""

    def __init__(
        self,
        model: nn.Module,
        watched: Sequence[Site],
        wanted: set[int],
        heads: Sequence[int] | None,
        projections: OutputProjections | None = None,
    ) -> None:
        self.model, self.projections = model, projections
        self.recorder = Recorder(watched, wanted, self._keep, Sides(None), heads, 0, 1, projections)
        self.module_of = {site.path: site.module for site in watched}
        self.read: list[int] = []
        self.joined: dict[tuple[int, int], JoinedCall] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        beginning = self.model.register_forward_pre_hook(self._begin, with_kwargs=True)
        with beginning, self.recorder.watching(lambda layer: None):
            yield

    def _begin(self, _model: nn.Module, _positional: Any, given: Mapping[str, Any]) -> None:
        ids = given.get("decoder_input_ids")
        ids = given.get("input_ids") if ids is None else ids
        if ids is None:
            raise InputError(f"{type(self.model).__name__} does not say which tokens it reads in each step")
        self.read += ids[0].tolist()
        self.recorder.restart()

    def _keep(self, call: AttentionCall) -> None:
        place = call.layer, call.block
        if place not in self.joined:
            self.joined[place] = JoinedCall(call)
        self.joined[place].add(call, self.recorder.unrotated.get(self.module_of[call.module]))

    def calls(self, written: Written) -> list[AttentionCall]:
        """One call for each layer and block; `InputError` where the steps do not make up the text."""
        if tuple(self.read) == written.ids:
            # on some devices the library learns a step late that the text has ended, and goes one too far
            self.read.pop()
            for each in self.joined.values():
                each.take_back()
        rows = {each.read for each in self.joined.values()} or {len(written.read)}
        if tuple(self.read) != written.read or rows != {len(written.read)}:
            raise InputError(
                f"{type(self.model).__name__} did not read its text token by token: its attention cannot be "
                "put in the order of the text"
            )
        joined = [self.joined[place] for place in sorted(self.joined)]
        sought = self.projections
        return [each.call() if sought is None else sought.of(each.call(), each.first) for each in joined]
