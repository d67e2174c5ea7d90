"""Running a model under the takeover and recording the calls that were asked for."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.describe import provenance_of, sides_of, tokens_of
from attnscope.capture.kernel_call import KernelCall, attention_call
from attnscope.capture.takeover import KernelInputs, takeover
from attnscope.capture.unrotated import unrotated_keys
from attnscope.errors import InputError, listed
from attnscope.model.anatomy import Site, layers_of, sites
from attnscope.results import Kind, Provenance
from attnscope.tokens import Tokens

Keep = Callable[[AttentionCall], None]


class _Enough(Exception):
    """Raised inside the forward pass once everything that was asked for has been recorded."""


def capture(
    model: nn.Module,
    inputs: Mapping[str, Any],
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    kind: Kind | None = None,
    tokens: Tokens | None = None,
    target: Tokens | None = None,
    provenance: Provenance | None = None,
    row: int = 0,
) -> Capture:
    """What the attention layers of `model` were given and returned for `inputs`.

    `inputs` is what the model is called with, usually `tokenizer(text, return_tensors="pt")`. `layers`
    (default all; negatives count from the end) and `heads` (whose own weights are kept; default all) say
    what to record, `kind` which attention of an encoder-decoder, `row` which entry of a batch. `tokens` stand
    for its `input_ids`, `target` for its `decoder_input_ids`, where their text is known. The
    forward pass ends after the last layer that is needed. The model runs as it is, in evaluation mode and
    without gradients, and is left as it was (registries, attention implementation, hooks, train/eval
    mode), also after an exception or Ctrl-C.

    Raises `InputError` when there is no such layer, head or row, or no attention that can be read.
    """
    if not isinstance(inputs, Mapping):
        raise InputError("inputs are a mapping of names to tensors, as a tokenizer returns them")
    if heads is not None and not heads:
        raise InputError("no head was asked for")
    if kind is not None and kind not in list(Kind):
        raise InputError(f"no kind of attention '{kind}': {', '.join(Kind)}")
    row = chosen_row(row, inputs)
    tokens = tokens or tokens_of(inputs, row)
    found = sites_of_kind(model, None if kind is None else Kind(kind))
    depth = layers_of(found, found[0].kind)
    wanted = {chosen_layer(layer, depth) for layer in layers} if layers is not None else set(depth)
    if not wanted:
        raise InputError("no layer was asked for")
    calls: list[AttentionCall] = []

    def keep(call: AttentionCall) -> None:
        calls.append(call)
        if {call.layer for call in calls} == wanted:
            raise _Enough

    with suppress(_Enough):
        run_watched(model, inputs, found, wanted, keep, tokens=tokens, target=target, heads=heads, row=row)
    calls.sort(key=lambda call: call.layer)
    return Capture(tuple(calls), len(depth), provenance or provenance_of(model, tokens))


def run_watched(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    wanted: set[int],
    keep: Keep,
    *,
    tokens: Tokens,
    target: Tokens | None = None,
    heads: Sequence[int] | None = None,
    row: int = 0,
) -> Any:
    """One forward pass of `model`; `keep` gets the calls of the `wanted` layers as they happen.

    Returns what the model returns, or passes on what `keep` raises.
    """
    site_of = {site.module: site for site in watched}
    sides = sides_of(model, inputs, tokens, target, row)
    called: Counter[nn.Module] = Counter()

    with unrotated_keys(site.module for site in watched) as unrotated, evaluating(model):

        def watch(given: KernelInputs) -> tuple[Tensor, Tensor | None]:
            output, weights = given.answer()
            site, number = site_of[given.module], called[given.module]
            called[given.module] += 1
            if number >= site.repeats:
                raise InputError(f"{site.path} runs more than once per layer: such models cannot be read yet")
            layer = site.layer + number
            if layer in wanted:
                seen = KernelCall(given, output, weights, unrotated.get(given.module))
                keep(attention_call(seen, site, layer, number, sides, heads, row))
            return output, weights

        with takeover(site_of, watch):
            return model(**inputs)


def sites_of_kind(model: nn.Module, kind: Kind | None) -> tuple[Site, ...]:
    """The model's attention modules of one kind: `kind`, or the only kind that it has."""
    found = sites(model)
    if not found:
        raise InputError(f"{type(model).__name__} has no attention that goes through transformers' interface")
    kinds = sorted({site.kind for site in found})
    if kind is None and len(kinds) > 1:
        raise InputError(
            f"{type(model).__name__} has several kinds of attention: choose one of {', '.join(kinds)}"
        )
    mine = tuple(site for site in found if site.kind is (kind or kinds[0]))
    if not mine:
        raise InputError(f"{type(model).__name__} has no {kind} attention: it has {', '.join(kinds)}")
    return mine


def chosen_row(row: int, inputs: Mapping[str, Any]) -> int:
    """`row` as a number from 0, negatives counted from the end of the batch."""
    batch = next((len(value) for value in inputs.values() if isinstance(value, Tensor)), 1)
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
