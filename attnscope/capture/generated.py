"""Generated text: the attention of all that a model reads while it writes, its cache switched on.

    captured, written = capture_written(model, tokenizer(text, return_tensors="pt"), Settings(most=20))

`model.generate` runs as it always does: the model reads the prompt, then each token that it has written but
the last, while its cache hands the keys of earlier steps over. Every step is recorded, and what one layer did
in all of them becomes one attention over the whole text (`attnscope.capture.joined`), which can be held
against one recomputation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.describe import Sides, provenance_of, sides_of, tokens_by_id, tokens_of
from attnscope.capture.joined import Growing
from attnscope.capture.recorder import Recorder
from attnscope.capture.run import (
    as_read,
    can_be_traced,
    chosen_layer,
    evaluating,
    forced,
    missing_layers,
    nothing_seen,
    tower_of,
)
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site
from attnscope.model.inputs.generation import Settings, Written, write
from attnscope.results import Kind, Provenance, Route
from attnscope.tokens import Tokens

Spell = Callable[[Written], Tokens]


def capture_written(
    model: nn.Module,
    inputs: Mapping[str, Any],
    settings: Settings,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    kind: Kind | None = None,
    tower: str | None = None,
    route: Route | None = None,
    tokens: Tokens | None = None,
    spell: Spell | None = None,
    provenance: Provenance | None = None,
) -> tuple[Capture, Written]:
    """The attention of the decoder of `model` while it writes on from `inputs`, and what it wrote.

    Rows and keys are counted from the start of the text, also where a cache slides. `spell` makes the tokens
    of what was read; the rest is as in `attnscope.capture.capture`. Raises `InputError` also for
    attention that reads no written text, more than one input, and keys that are not those of the text.
    """
    name = type(model).__name__
    chosen = tower_of(model, kind, tower)
    if chosen.kind is Kind.ENCODER:
        raise InputError(f"encoder attention of {name} reads nothing of what is generated")
    if any(isinstance(value, Tensor) and value.ndim and len(value) > 1 for value in inputs.values()):
        raise InputError("one text at a time is gone on with: the inputs hold several")
    wanted = {chosen_layer(each, chosen.layers) for each in (chosen.layers if layers is None else layers)}
    calls, written = _recorded(model, inputs, settings, forced(chosen.sites, route), wanted, heads)
    if missing_layers(wanted, calls) and route is None and can_be_traced(chosen.sites):
        traced = forced(chosen.sites, Route.TRACED)  # they can ask the interface and do not
        calls, written = _recorded(model, inputs, settings, traced, wanted, heads)
    if missing := missing_layers(wanted, calls):
        raise InputError(nothing_seen(model, chosen, missing))
    tokens = tokens or tokens_of(inputs)
    read = tokens_by_id(list(written.read)) if spell is None else spell(written)
    sides = sides_of(model, inputs, tokens, read)
    for i, call in enumerate(calls):
        queries, keys = sides.of(call.kind, call.q.shape[1], call.k.shape[1], call.tower)
        calls[i] = replace(call, query_tokens=queries, key_tokens=keys)
    origin = provenance or provenance_of(model, tokens)
    if not getattr(model.config, "is_encoder_decoder", False):
        origin = replace(origin, token_ids=written.read)
    place = "" if chosen.alone else chosen.name
    return Capture(tuple(calls), len(chosen.layers), as_read(origin, calls, chosen), place), written


def _recorded(
    model: nn.Module,
    inputs: Mapping[str, Any],
    settings: Settings,
    watched: Sequence[Site],
    wanted: set[int],
    heads: Sequence[int] | None,
) -> tuple[list[AttentionCall], Written]:
    """The calls of the wanted layers while the model writes, and what it writes."""
    steps = Steps(model, watched, wanted, heads)
    with evaluating(model), steps.recording():
        written = write(model, inputs, settings, type(model).__name__)
    return steps.calls(written), written


class Steps:
    """The forward passes of one `generate`: which tokens each was given, and what the layers did in it."""

    def __init__(
        self, model: nn.Module, watched: Sequence[Site], wanted: set[int], heads: Sequence[int] | None
    ) -> None:
        self.model = model
        self.recorder = Recorder(watched, wanted, self._keep, Sides(None), heads, 0, 1)
        self.module_of = {site.path: site.module for site in watched}
        self.read: list[int] = []
        self.growing: dict[tuple[int, int], Growing] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        begin = self.model.register_forward_pre_hook(self._begin, with_kwargs=True)
        try:
            with self.recorder.watching(lambda layer: None):
                yield
        finally:
            begin.remove()

    def _begin(self, _model: nn.Module, _positional: Any, given: Mapping[str, Any]) -> None:
        ids = given.get("decoder_input_ids")
        ids = given.get("input_ids") if ids is None else ids
        if ids is None:
            raise InputError(f"{type(self.model).__name__} does not say which tokens it reads in each step")
        self.read += ids[0].tolist()
        self.recorder.restart()

    def _keep(self, call: AttentionCall) -> None:
        place = call.layer, call.block
        if place not in self.growing:
            self.growing[place] = Growing(call)
        self.growing[place].add(call, self.recorder.unrotated.get(self.module_of[call.module]))

    def calls(self, written: Written) -> list[AttentionCall]:
        """One call for each layer and block; `InputError` where the steps do not make up the text."""
        if tuple(self.read) == written.ids:
            # on some devices the library learns a step late that the text has ended, and goes one too far
            self.read.pop()
            for each in self.growing.values():
                each.take_back()
        rows = {each.read for each in self.growing.values()} or {len(written.read)}
        if tuple(self.read) != written.read or rows != {len(written.read)}:
            raise InputError(
                f"{type(self.model).__name__} did not read its text token by token: its attention cannot be "
                "put in the order of the text"
            )
        return [self.growing[place].call() for place in sorted(self.growing)]
