"""A whole model on one input: every head certified, and its results held against an untouched run."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.record import evaluating, run_watched
from attnscope.model.anatomy import layers_of, sites
from attnscope.results import LayerCheck, OutputCheck, Provenance, Verification
from attnscope.tokens import Tokens
from attnscope.verify import certify


def verification(
    model: nn.Module, inputs: Mapping[str, Any], tokens: Tokens, provenance: Provenance
) -> Verification:
    """The certificates of every layer and head of `model`, made while it runs, layer by layer.

    The model first runs untouched; what it then returns under the takeover must be the same to the bit.
    """
    inputs = {**inputs, "output_hidden_states": True}
    with evaluating(model):
        untouched = model(**inputs)
    found = sites(model)
    checks: list[LayerCheck] = []

    def keep(call: AttentionCall) -> None:
        certificates = tuple(certify(call, head) for head in range(call.heads))
        checks.append(LayerCheck(call.layer, call.kind, call.module, certificates))

    wanted = {layer for kind in {site.kind for site in found} for layer in layers_of(found, kind)}
    watched = run_watched(model, inputs, found, wanted, keep, tokens=tokens)
    return Verification(tokens, tuple(checks), compared(untouched, watched), provenance)


def compared(untouched: Mapping[str, Any], watched: Mapping[str, Any]) -> tuple[OutputCheck, ...]:
    """Every tensor that the model returned, and its final hidden states, from both runs."""
    before, after = _tensors(untouched), _tensors(watched)
    return tuple(_output_check(name, before[name], after[name]) for name in before)


def _tensors(outputs: Mapping[str, Any]) -> dict[str, Tensor]:
    named = {name: value for name, value in outputs.items() if isinstance(value, Tensor)}
    if "last_hidden_state" in named or not outputs.get("hidden_states"):
        return named
    return {"last_hidden_state": outputs["hidden_states"][-1], **named}


def _output_check(name: str, untouched: Tensor, watched: Tensor) -> OutputCheck:
    difference = (untouched.double() - watched.double()).abs().max()
    return OutputCheck(name, float(difference), torch.equal(untouched, watched))
