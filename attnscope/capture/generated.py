"""Record attention while a model generates text with its cache: one capture over the whole text.

    captured, written = record_written(model, tokenizer(text, return_tensors="pt"), 20)

`model.generate` runs as it always does: the model reads the prompt, then each token that it has written but
the last, while its cache hands the keys of earlier steps over. Every step is recorded, and what one layer did
in all of them becomes one attention over the whole text (`JoinedCall`), to be compared with one
recomputation. In each step a layer is handed the queries of the new tokens and, out of its cache, the keys of
those before them: all of them, or the last few where the cache slides. The queries of step after step are the
rows; a key is taken from the first step that handed it over, and it must be the same in all later ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture, Term
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.standing import standings_of
from attnscope.capture.following.describe import Sides, as_read, sides_of, tokens_by_id, tokens_of
from attnscope.capture.following.projected import OutputProjections, projections_of
from attnscope.capture.following.recorder import Recorder, as_keys
from attnscope.capture.run import (
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
from attnscope.reference import exact
from attnscope.results import Kind
from attnscope.tokens import Tokens

_ROUNDINGS = 32  # machine epsilons by which a key that is made anew from a cache may differ, over the largest
_REMAINDER = ""  # stands for a term's name
Spell = Callable[[Written], Tokens]


@dataclass(frozen=True, eq=False)
class Rows:
    """Attention rows that one generation step adds: its queries over keys from position `start` on."""

    start: int
    q: Float[Tensor, "head query dim"]
    output: Float[Tensor, "head query value_dim"]
    allowed: Bool[Tensor, "#head query key"]
    added: Mapping[str, Float[Tensor, "#head query key"]]
    weights: Mapping[int, Float[Tensor, "query key"]]
    sinks: Float[Tensor, " head *rows"] | None


class JoinedCall:
    """Joins the calls of one attention, step by step, into one call over the whole text."""

    def __init__(self, first: AttentionCall) -> None:
        self.first, self.rows = first, list[Rows]()
        self.read = 0  # queries so far
        self.unread = 0  # the most softmaxes of one step that could not be read
        self.reservation = ""  # the first one of any step
        self.k, self.v = first.k[:, :0], first.v[:, :0]
        self.unrotated = None if first.unrotated_k is None else first.unrotated_k[:, :0]

    def add(self, call: AttentionCall, before: Tensor | None = None) -> None:
        """Append the next step; `before` is the key projection's last output for it, if that was seen.

        Raises `InputError` where the keys are not those of the text so far, or differ from earlier ones.
        """
        for name in ("scale", "softcap", "window", "route"):
            if getattr(call, name) != getattr(self.first, name):
                raise InputError(f"the {name} of {call.module} changes while the text grows")
        if call.reweighted is not None:
            instead = "its rows cannot be put together, read the text without generating"
            raise InputError(f"{call.module} changes its weights after the softmax: {instead}")
        start = self._start(call)
        known = self.k.shape[1] - start
        for so_far, now in ((self.k, call.k), (self.v, call.v)):
            _check_same(so_far[:, start:], now[:, :known], call)
        self._remember_unrotated(call, before, known)
        self.k = torch.cat([self.k, call.k[:, known:]], dim=1)
        self.v = torch.cat([self.v, call.v[:, known:]], dim=1)
        self.read += call.q.shape[1]
        self.unread = max(self.unread, call.unread)
        self.reservation = self.reservation or call.reservation
        self.rows.append(_rows(call, start))

    def take_back(self) -> None:
        """Remove the last step, and the keys that it brought."""
        step = self.rows.pop()
        self.read -= step.q.shape[1]
        if self.first.kind is not Kind.CROSS:
            self.k, self.v = self.k[:, : self.read], self.v[:, : self.read]
            self.unrotated = None if self.unrotated is None else self.unrotated[:, : self.read]

    def call(self) -> AttentionCall:
        """All steps as one call, like that of a model that reads the text at once."""
        rows, keys = self.rows, self.k.shape[1]
        names = dict.fromkeys(name for each in rows for name in each.added)
        added = {name: self._by_position([each.added.get(name) for each in rows], 0.0) for name in names}
        allowed = self._by_position([each.allowed for each in rows], False)
        by_query = self.first.sinks is not None and self.first.sinks.ndim > 1
        return replace(
            self.first,
            q=torch.cat([each.q for each in rows], dim=1),
            k=self.k,
            v=self.v,
            terms=tuple(Term(name, values) for name, values in added.items() if name != _REMAINDER),
            allowed=None if allowed.all() else allowed,
            sinks=torch.cat([each.sinks for each in rows], dim=1) if by_query else self.first.sinks,  # type: ignore[misc]
            output=torch.cat([each.output for each in rows], dim=1),
            weights={
                head: torch.cat([_placed(each.weights[head], each.start, keys, 0.0) for each in rows])
                for head in self.first.weights
            },
            unrotated_k=self.unrotated,
            unread=self.unread,
            reservation=self.reservation,
            remainder=added.get(_REMAINDER),
        )

    def _start(self, call: AttentionCall) -> int:
        """Position of the call's first key: the last key is the newest; cross-attention starts at 0."""
        queries, keys, known = call.q.shape[1], call.k.shape[1], self.k.shape[1]
        if call.kind is Kind.CROSS:
            if self.rows and keys != known:
                raise InputError(f"{call.module} looks at {known} keys first and at {keys} later")
            return 0
        if (start := self.read + queries - keys) < 0:
            raise InputError(
                f"{call.module} is handed {keys} keys after {self.read + queries} tokens: a cache of fixed "
                "size, or keys that are no tokens, cannot be shown while a text grows"
            )
        if start > known:
            raise InputError(f"{call.module} has dropped keys that it never looked at")
        return start

    def _remember_unrotated(self, call: AttentionCall, before: Tensor | None, known: int) -> None:
        if self.unrotated is None or call.k.shape[1] == known:
            return
        newest = None if before is None else as_keys(before[0].detach().cpu(), call.k[:, known:])
        self.unrotated = None if newest is None else torch.cat([self.unrotated, newest], dim=1)

    def _by_position(self, parts: Sequence[Tensor | None], missing: bool | float) -> Tensor:
        """`parts` of all steps over all positions, `missing` where a row had no key; a part None is 0."""
        keys, pieces = self.k.shape[1], []
        for each, values in zip(self.rows, parts, strict=True):
            values = torch.zeros_like(each.allowed, dtype=self.first.q.dtype) if values is None else values
            pieces.append(_placed(values, each.start, keys, missing))
        heads = max(len(piece) for piece in pieces)
        return torch.cat([piece.expand(heads, -1, -1) for piece in pieces], dim=1)


def _rows(call: AttentionCall, start: int) -> Rows:
    everywhere = torch.ones(1, call.q.shape[1], call.k.shape[1], dtype=torch.bool)
    added = {term.name: term.values for term in call.terms}
    added |= {} if call.remainder is None else {_REMAINDER: call.remainder}
    allowed = everywhere if call.allowed is None else call.allowed
    return Rows(start, call.q, call.output, allowed, added, call.weights, call.sinks)


def _placed(values: Tensor, start: int, keys: int, missing: bool | float) -> Tensor:
    placed = values.new_full((*values.shape[:-1], keys), missing)
    placed[..., start : start + values.shape[-1]] = values
    return placed


def _check_same(so_far: Tensor, now: Tensor, call: AttentionCall) -> None:
    """Raise `InputError` where keys or values out of a cache differ from those that went in."""
    if not so_far.numel():
        return
    changed = float((exact(so_far) - exact(now)).abs().max())
    if not changed <= _ROUNDINGS * call.epsilon * float(so_far.abs().max()):
        raise InputError(
            f"the cache of {call.module} does not keep its keys and values (one changes by {changed:.2g}): "
            "its rows cannot be shown over the same keys"
        )


def record_written(
    model: nn.Module,
    inputs: Mapping[str, Any],
    most: int,
    selection: Selection = Selection(),  # noqa: B008 - frozen
    labels: Labels = Labels(),  # noqa: B008
    *,
    spell: Spell | None = None,
) -> tuple[Capture, Written]:
    """Generate up to `most` tokens after `inputs`; returns the decoder's attention meanwhile, and the text.

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
    """Inputs with which the model reads the prompt and all but the last written token in one run."""
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
    """Collects the forward passes of one `generate`: the tokens read, and the attentions joined by place."""

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
        """One call per layer and block; `InputError` where the steps do not make up the text."""
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
