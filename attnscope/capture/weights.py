"""Attention weights of all rows of a batch, layer by layer as they are made: for corpora, which keep none.

`Weights` uses the same routes as `attnscope.capture.run` (takeover, custom name, traced operations)
and takes only the model's own weights, which are handed on at once; `Passing` also
takes the values, and where queries may look, and of `OneText` of the batch the whole call. A run ends with
the last layer that is wanted, unless `end` is given, which gets the model's output. Nothing here is
certified: callers certify a sample by such calls, or by a `Capture`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnscope.attention import AttentionCall, of_heads
from attnscope.capture.following.recorder import (
    KernelCall,
    of_kernel,
    of_trace,
    terms_and_allowed,
    unrotated_keys,
)
from attnscope.capture.following.takeover import STAND_INS, KernelInputs, kernel_weights
from attnscope.capture.run import Rung, Selection, batch_size, nothing_seen, rungs, wanted_layers
from attnscope.capture.running import evaluating
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.errors import InputError
from attnscope.results import Route
from attnscope.tokens import Tokens
from attnscope.vocabulary import Standing

Made = TypeVar("Made")
Make = Callable[[int, Any], Made]  # gets the weights, `row head query key`, or what a reader hands on of them
Source = KernelInputs | TracedAttention
Seen = list[tuple[Source, Tensor | None, AttentionCall | None]]
Take = Callable[[int, Seen], None]
End = Callable[[Any], object]  # gets what the model returns
_OF_ANY_TEXT = ("module", "call", "layer", "kind", "route", "tower", "block")
_PROVED = ("unread", "standing", "tried", "reach")  # by other runs
DISPLACED = "its positions are not the tokens in their place"


class _Enough(Exception):
    """Raised inside the forward pass to end it once the last of the wanted layers is through."""


@dataclass(frozen=True, eq=False)
class OneText:
    """A batch row whose calls are wanted, with the batch's `tokens`; `keys` if keys are other tokens.

    `like` are calls of the same layers for another text, whose text-independent fields are taken over: the
    place in the model, whether positions are the tokens in place, whether heads' outputs have an effect.
    """

    row: int
    tokens: Tokens
    like: Mapping[int, AttentionCall]
    heads: tuple[int, ...]
    keys: Tokens | None = None

    def call(self, layer: int, source: Source | KernelCall) -> AttentionCall:
        """The call of this row in a layer, copied into memory of its own."""
        like = self.like[layer]
        tokens = {"query_tokens": self.tokens, "key_tokens": self.tokens if self.keys is None else self.keys}
        place = {name: getattr(like, name) for name in _OF_ANY_TEXT} | tokens
        if isinstance(source, TracedAttention):
            made = of_trace(source, self.row, heads=self.heads, **place)
        else:
            assert isinstance(source, KernelCall), "it has been answered"
            made = of_kernel(source, self.row, heads=self.heads, **place)
        reservation = made.reservation or like.reservation
        if like.standing is Standing.OTHER:
            reservation = reservation or DISPLACED
        return replace(made, reservation=reservation, **{name: getattr(like, name) for name in _PROVED})


class Weights:
    """Reads the selected attention of one model in batch after batch; rows must all be of one length.

    `block` chooses among the separate attentions of a layer that makes several for one input.
    """

    def __init__(self, model: nn.Module, selection: Selection, block: int = 0) -> None:
        self.model, self.selection, self.block = model, selection, block
        self.rung: Rung | None = None  # the one that saw all layers

    def read(
        self,
        inputs: Mapping[str, Any],
        make: Make[Made],
        text: OneText | None = None,
        end: End | None = None,
    ) -> dict[int, Made]:
        """Results of `make` by layer, called with the layer's number and the weights of all rows.

        Raises `InputError` where a layer does not make them row by row.
        """
        for rung in rungs(self.model, self.selection) if self.rung is None else (self.rung,):
            wanted = wanted_layers(rung.tower, self.selection.layers)
            made = self._made(inputs, rung, wanted, make, text, end)
            if not (missing := sorted(wanted - made.keys())):
                self.rung = rung
                return dict(sorted(made.items()))
        raise nothing_seen(self.model, rung.tower, missing)

    def _made(
        self,
        inputs: Mapping[str, Any],
        rung: Rung,
        wanted: set[int],
        make: Make[Made],
        text: OneText | None,
        end: End | None,
    ) -> dict[int, Made]:
        made: dict[int, Made] = {}

        def take(layer: int, seen: Seen) -> None:
            there = -len(seen) <= self.block < len(seen)
            source, weights, call = seen[self.block] if there else (None, None, None)
            if layer in wanted and source is not None and weights is not None:
                own = self._of_heads(weights, batch_size(inputs), layer)
                made[layer] = make(layer, self._handed(source, own, call))
            if end is None and made.keys() >= wanted:
                raise _Enough

        with suppress(_Enough), evaluating(self.model), _watching(rung, wanted, take, text):
            said = self.model(**inputs)
            if end is not None:
                end(said)
        return made

    def _handed(self, source: Source, weights: Tensor, call: AttentionCall | None) -> Any:
        return weights

    def _of_heads(self, weights: Tensor, rows: int, layer: int) -> Tensor:
        if weights.shape[0] != rows:
            raise InputError(
                f"layer {layer} reads {rows} texts as {weights.shape[0]} pieces: its heads see no whole text"
            )
        heads = self.selection.heads
        return weights if heads is None else of_heads(weights.transpose(0, 1), heads).transpose(0, 1)


@contextmanager
def _watching(rung: Rung, wanted: set[int], take: Take, text: OneText | None) -> Iterator[None]:
    passing = _Passing(rung, wanted, take, text)
    sites = rung.watched
    with ExitStack() as stack:
        if text is not None:
            passing.unrotated = stack.enter_context(unrotated_keys(passing.site_of))
        for route, stand_in in STAND_INS.items():
            if mine := [site.module for site in sites if site.route is route]:
                stack.enter_context(stand_in(mine, passing.of_kernel))
        if mine := [site.module for site in sites if site.route is Route.TRACED]:
            stack.enter_context(traced(mine, passing.of_trace, taken_back=passing.taken_back))
        for site in sites:  # after the tracer's own hooks, so that it has taken back what it will
            stack.enter_context(site.module.register_forward_hook(passing.leave))
        yield


class _Passing:
    def __init__(self, rung: Rung, wanted: set[int], take: Take, text: OneText | None) -> None:
        self.site_of = {site.module: site for site in rung.watched}
        self.wanted, self.take, self.text = wanted, take, text
        self.entered: Counter[nn.Module] = Counter()
        self.waiting: defaultdict[nn.Module, Seen] = defaultdict(list)
        self.unrotated: dict[nn.Module, Tensor] = {}

    def _layer(self, module: nn.Module) -> int:
        return self.site_of[module].layer_of(self.entered[module])

    def of_kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        output, returned = given.answer()
        layer, weights, call = self._layer(given.module), None, None
        if layer in self.wanted:
            weights = _own(given, returned)
            if self.text is not None:
                seen = KernelCall(given, output, weights, self.unrotated.get(given.module))
                call = self.text.call(layer, seen)
        self.waiting[given.module].append((given, weights, call))
        return output, returned

    def of_trace(self, seen: TracedAttention) -> None:
        layer, text = self._layer(seen.module), self.text
        call = None if text is None or layer not in self.wanted else text.call(layer, seen)
        self.waiting[seen.module].append((seen, seen.weights, call))

    def taken_back(self, seen: TracedAttention) -> None:
        waiting = self.waiting[seen.module]
        waiting[:] = [each for each in waiting if each[0] is not seen]

    def leave(self, module: nn.Module, _inputs: Any, _output: Any) -> None:
        layer = self._layer(module)
        self.entered[module] += 1
        self.unrotated.pop(module, None)
        self.take(layer, self.waiting.pop(module, []))


def _own(given: KernelInputs, returned: Tensor | None) -> Float[Tensor, "row head query key"]:
    """The kernel's own weights, from its result, or by identity values if it returns none or has sinks."""
    lengths = (given.query.shape[2], given.key.shape[2])
    there = returned is not None and returned.ndim == 4 and returned.shape[2:] == lengths
    if returned is not None and there and not given.has_sinks:
        return returned.detach()
    return torch.stack([kernel_weights(given, row) for row in range(given.query.shape[0])])


@dataclass(frozen=True, eq=False)
class Passed:
    """One layer's attention over all rows of a batch, for the selected heads.

    `allowed` is None where every query may look everywhere. `values` are by key head, of which `shared` heads
    read each; `heads` are the numbers of the selected ones. `call` is that of the one text that is wanted.
    """

    weights: Float[Tensor, "row head query key"]
    allowed: Bool[Tensor, "row mask_head query key"] | None
    values: Float[Tensor, "row kv_head key value_dim"]
    heads: tuple[int, ...]
    shared: int
    call: AttentionCall | None = None


class Passing(Weights):
    """Like `Weights`, but `make` gets a `Passed` for each layer."""

    _mask: tuple[Tensor, Bool[Tensor, "row mask_head query key"] | None] | None = None

    def _handed(self, source: Source, weights: Tensor, call: AttentionCall | None) -> Any:
        count = source.query.shape[1]
        chosen = self.selection.heads
        heads = tuple(range(count)) if chosen is None else tuple(head % count for head in chosen)
        allowed = self._allowed(source)
        if allowed is not None and allowed.shape[1] > 1:
            allowed = allowed[:, list(heads)]
        return Passed(weights, allowed, source.value.detach(), heads, count // source.value.shape[1], call)

    def _allowed(self, source: Source) -> Bool[Tensor, "row mask_head query key"] | None:
        if not isinstance(source, KernelInputs):
            return None if source.allowed is None else _four_axes(source.allowed, source.query.shape[0])
        mask = source.mask if isinstance(source.mask, Tensor) and source.mask.ndim == 4 else None
        if mask is not None and self._mask is not None and _equal(self._mask[0], mask):
            return self._mask[1]  # one mask serves most layers; some narrow it in its place
        rows = source.query.shape[0]
        each = [terms_and_allowed(source, row)[1] for row in range(rows)]
        found = None if all(one is None for one in each) else _stacked(each)
        self._mask = None if mask is None else (mask.clone(), found)
        return found


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and one.device == other.device and torch.equal(one, other)


def _four_axes(allowed: Tensor, rows: int) -> Bool[Tensor, "row mask_head query key"]:
    full = allowed.detach().reshape((1,) * (4 - allowed.ndim) + tuple(allowed.shape))
    return full.expand(rows, -1, -1, -1)


def _stacked(each: list[Tensor | None]) -> Bool[Tensor, "row mask_head query key"]:
    """Masks of all rows, stacked; None stands for a row that may look everywhere."""
    known = next(one for one in each if one is not None)
    return torch.stack([torch.ones_like(known) if one is None else one for one in each])
