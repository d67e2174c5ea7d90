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
    """Every tensor of numbers that the model returned, from both runs."""
    names = [name for name, value in untouched.items() if isinstance(value, Tensor)]
    return tuple(_output_check(name, untouched[name], watched[name]) for name in names)


def _output_check(name: str, untouched: Tensor, watched: Tensor) -> OutputCheck:
    difference = (untouched.double() - watched.double()).abs().max()
    return OutputCheck(name, float(difference), torch.equal(untouched, watched))
