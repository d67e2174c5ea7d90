"""A whole model on one input: every head certified, and its results held against an untouched run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.record import evaluating, run_watched
from attnscope.model.anatomy import sites
from attnscope.results import LayerCheck, OutputCheck, Provenance, Verification
from attnscope.tokens import Tokens
from attnscope.verify import certify


def verification(
    model: nn.Module,
    inputs: Mapping[str, Any],
    tokens: Tokens,
    provenance: Provenance,
    target: Tokens | None = None,
) -> Verification:
    """The certificates of every layer and head of `model`, made while it runs, layer by layer.

    `tokens` stand for the `input_ids`, `target` for the `decoder_input_ids` of an encoder-decoder.

    The model first runs untouched; what it then returns under the takeover must be the same to the bit.
    """
    with evaluating(model), final_hidden_states(model) as before:
        untouched = model(**inputs)
    found = sites(model)
    checks: list[LayerCheck] = []

    def keep(call: AttentionCall) -> None:
        certificates = tuple(certify(call, head) for head in range(call.heads))
        place = (call.tower, str(call.route), call.block)
        checks.append(LayerCheck(call.layer, call.kind, call.module, certificates, *place))

    with final_hidden_states(model) as after:
        watched = run_watched(model, inputs, found, None, keep, tokens=tokens, target=target)
    outputs = compared({**before, **untouched}, {**after, **watched})
    return Verification(tokens, tuple(checks), outputs, provenance)


@contextmanager
def final_hidden_states(model: nn.Module) -> Iterator[dict[str, Any]]:
    """While open, holds what the headless model inside `model` returned last as its final hidden states.

    Asking the model for all its hidden states would leave the library's own hooks behind on it.
    """
    states: dict[str, Any] = {}

    def remember(_base: nn.Module, _inputs: object, output: Any) -> None:
        states["last_hidden_state"] = output[0]

    handle = getattr(model, "base_model", model).register_forward_hook(remember)
    try:
        yield states
    finally:
        handle.remove()


def compared(untouched: Mapping[str, Any], watched: Mapping[str, Any]) -> tuple[OutputCheck, ...]:
    """Every tensor of numbers in the results of both runs."""
    names = [name for name, value in untouched.items() if isinstance(value, Tensor)]
    return tuple(_output_check(name, untouched[name], watched[name]) for name in names)


def _output_check(name: str, untouched: Tensor, watched: Tensor) -> OutputCheck:
    """What is not a number in both runs counts as the same: such a model is unusable, but not changed."""
    same = bool(((untouched == watched) | (untouched.isnan() & watched.isnan())).all())
    difference = (untouched.double() - watched.double()).abs().nan_to_num(0 if same else torch.inf).max()
    return OutputCheck(name, float(difference), same)
