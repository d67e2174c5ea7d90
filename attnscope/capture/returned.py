"""Last route: the attentions that a model returns itself, where no dense softmax can be recomputed.

`read` takes the first route that gives any attention, this one at last. Nothing of it is certified. What is
returned is tied to the modules that made it, never to its place in a list, and is refused where it cannot be
weights; keys are called after tokens only where hiding a token from the model empties its column.
"""

import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.attention import Capture
from attnscope.capture.following.describe import as_read, kernel_of, numbered, sides_of, tokens_of
from attnscope.capture.run import (
    Labels,
    NothingSeenError,
    Selection,
    batch_size,
    chosen_row,
    record,
    tower_of,
    wanted_layers,
)
from attnscope.capture.running import EncodedOnce, evaluating, hooked
from attnscope.capture.trace.operations import tensors_in
from attnscope.errors import InputError
from attnscope.model.anatomy.towers import Tower
from attnscope.reference import exact
from attnscope.results import Kind, Provenance, Route
from attnscope.tokens import Tokens

SPARSE = "sparse layout, no dense Q and K: what the model returned"
ASKED = "what the model returned, as asked"
_NUMBERED = "its keys are not the tokens: columns are numbered"
_TOLERANCE = 1e-3  # of sums of weights, which a model may have made in half precision


@dataclass(frozen=True, eq=False)
class ReturnedLayer:
    """Attention weights that one layer's module made and the model returned; `notes` say what is odd."""

    layer: int
    module: str
    weights: Float[Tensor, "head query key"]
    query_tokens: Tokens
    key_tokens: Tokens
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Returned:
    """Attention weights that a model returned for the wanted layers, of the `depth` that its tower has."""

    layers: tuple[ReturnedLayer, ...]
    kind: Kind
    depth: int
    reason: str
    provenance: Provenance
    tower: str = ""

    def layer(self, number: int) -> ReturnedLayer:
        return next(each for each in self.layers if each.layer == number)


def ask_for_weights(
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection = Selection(),  # noqa: B008 - frozen
    labels: Labels = Labels(),  # noqa: B008
    *,
    reason: str = SPARSE,
) -> Returned:
    """Attention weights that `model` returns for `inputs` with `output_attentions`; otherwise like `record`.

    Raises `InputError` where it returns none, or what it returns is not weights by head, query and key.
    """
    chosen, row = tower_of(model, selection.kind, selection.tower), chosen_row(selection.row, inputs)
    wanted = sorted(wanted_layers(chosen, selection.layers))
    tokens = labels.tokens or tokens_of(inputs, row, labels.texts)
    sides = sides_of(model, inputs, tokens, labels.target, row)
    made = _made(model, inputs, chosen)
    layers = []
    for layer in wanted:
        weights = _checked(made.get(layer), chosen, layer, batch_size(inputs))[row]
        queries, keys = sides.of(chosen.kind, weights.shape[1], weights.shape[2], chosen.pattern)
        if not _keys_are_tokens(model, inputs, chosen, layer, made[layer], row):
            keys = numbered(weights.shape[2])
        notes = (_NUMBERED,) if keys.names == numbered(len(keys)).names else ()
        path = next(site.path for site in chosen.sites if layer in site.layers)
        layers.append(ReturnedLayer(layer, path, weights.detach().cpu(), queries, keys, notes))
    read = tokens if labels.read is None else labels.read
    origin = as_read(model, chosen, [], read, labels.source, inputs, row)
    return Returned(tuple(layers), chosen.kind, len(chosen.layers), reason, origin, chosen.distinct_name)


def _made(model: nn.Module, inputs: Mapping[str, Any], tower: Tower) -> dict[int, Tensor]:
    """By layer, the returned attention tensor that the layer's own module made."""
    takes = inspect.signature(model.forward).parameters
    if "output_attentions" not in takes and not any(each.kind == each.VAR_KEYWORD for each in takes.values()):
        raise InputError(f"{type(model).__name__} cannot be asked for its attentions")
    with _hooks_restored(model), evaluating(model), _watching(tower) as seen:
        output = model(**inputs, output_attentions=True)
    handed_on = {_storage(each): each for each in _attentions(output)}
    return {
        layer: handed_on[_storage(each)]
        for layer, tensors in seen.items()
        for each in tensors
        if _storage(each) in handed_on
    }


def _attentions(output: Any) -> Iterator[Tensor]:
    for name, value in output.items() if isinstance(output, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _attentions(value)
        elif "attentions" in name:
            yield from tensors_in(value)


def _storage(tensor: Tensor) -> int:
    """Address of the tensor's memory: equal for a tensor and any slice or transposition of it."""
    return tensor.untyped_storage().data_ptr()


@contextmanager
def _watching(tower: Tower) -> Iterator[dict[int, list[Tensor]]]:
    seen: dict[int, list[Tensor]] = defaultdict(list)
    calls: Counter[nn.Module] = Counter()
    site_of = {site.module: site for site in tower.sites}

    def keep(module: nn.Module, _inputs: Any, output: Any) -> None:
        layer = site_of[module].layer_of(calls[module])
        calls[module] += 1
        seen[layer] += list(tensors_in(output))[1:]

    with hooked(module.register_forward_hook(keep) for module in site_of):
        yield seen


@contextmanager
def _hooks_restored(model: nn.Module) -> Iterator[None]:
    """Context manager: removes the hooks that transformers leaves behind after `output_attentions`."""
    before = {module: dict(module._forward_hooks) for module in model.modules()}
    marked = {module for module in before if "_output_capturing_hooks_installed" in vars(module)}
    try:
        yield
    finally:
        for module in model.modules():
            hooks = before.get(module, {})
            for key in [key for key in module._forward_hooks if key not in hooks]:
                del module._forward_hooks[key]
            if module not in marked and "_output_capturing_hooks_installed" in vars(module):
                del module._output_capturing_hooks_installed


def _checked(
    made: Tensor | None, tower: Tower, layer: int, batch: int
) -> Float[Tensor, "batch head query key"]:
    where = f"layer {layer} of {tower.pattern}"
    if made is None:
        kernel = kernel_of(tower.sites[0])
        hint = "" if kernel in ("eager", "the model's own code") else f" under kernel {kernel}: --attn eager"
        raise InputError(f"the model returns no attention that was made in {where}{hint}")
    shape = " x ".join(map(str, made.shape))
    if made.ndim != 4 or made.shape[0] != batch or tower.heads[layer] not in (0, made.shape[1]):
        expected = f"1 x {tower.heads[layer] or 'heads'} x queries x keys"
        raise InputError(f"what {where} returns is {shape} numbers, not {expected}: it cannot be shown")
    sums = exact(made).sum(-1)
    if not made.isfinite().all() or made.min() < 0 or sums.max() > 1 + _TOLERANCE:
        numbers = (
            f"least {float(made.min()):.2g}, rows sum to {float(sums.min()):.2g} to {float(sums.max()):.2g}"
        )
        raise InputError(f"what {where} returns is no weights ({numbers}): it cannot be shown")
    return made


def _keys_are_tokens(
    model: nn.Module, inputs: Mapping[str, Any], tower: Tower, layer: int, made: Tensor, row: int
) -> bool:
    """Whether column i is token i: certain for takeover routes, else if hiding a token empties its column.

    False where that cannot be found out.
    """
    if tower.route in (Route.TAKEOVER, Route.CUSTOM):
        return True
    decoding = tower.kind is Kind.DECODER and "decoder_input_ids" in inputs
    ids, name = (
        ("decoder_input_ids", "decoder_attention_mask") if decoding else ("input_ids", "attention_mask")
    )
    keys = made.shape[3]
    takes = name in inspect.signature(model.forward).parameters
    if not takes or ids not in inputs or inputs[ids].shape[1] != keys or keys < 3:
        return False
    mask = inputs[name] if inputs.get(name) is not None else torch.ones_like(inputs[ids])
    hidden = mask.clone()
    hidden[row, keys // 2] = 0
    again = _made(model, {**inputs, name: hidden}, tower).get(layer)
    others = torch.arange(made.shape[2]) != keys // 2
    if again is None or again.shape != made.shape:
        return False
    before, after = (each[row, :, others, keys // 2].abs().max() for each in (made, again))
    return bool(before > _TOLERANCE and after < _TOLERANCE / 100)


def read(
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection,
    labels: Labels,
    notice: Callable[[str], None],
    once: EncodedOnce | None = None,
) -> Capture | Returned:
    """The selected attention: recomputable where a route allows that, else the returned weights.

    `notice` gets a line in the second case. A route that is asked for is not replaced by another: then
    `InputError` says what it cannot read.
    """
    if selection.route is Route.RETURNED:
        return ask_for_weights(model, inputs, selection, labels, reason=ASKED)
    try:
        return record(model, inputs, selection, labels, once=once)
    except NothingSeenError as error:
        if selection.route is not None:
            raise
        weights = ask_for_weights(model, inputs, selection, labels, reason=SPARSE)
        notice(f"{error}: showing what it returns")
        return weights
