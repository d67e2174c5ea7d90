"""The scores of one head taken apart: what each part adds, and how the weights are without it."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.head import recompute_head
from attnscope.analysis.padding import without_padding
from attnscope.attention import Capture
from attnscope.results import Certificate, HeadTerms, Influence
from attnscope.results.terms import CAP, CONTENT, MASK, SINK
from attnscope.sdpa import Operands, Stages, attend


def head_terms(
    captured: Capture, layer: int, head: int, block: int = 0, certificate: Certificate | None = None
) -> HeadTerms:
    """Head `head` of a captured layer with its scores taken apart; `InputError` when it was not captured.

    The `certificate` is made here unless that of this very head is given.
    """
    call = without_padding(captured.call(layer, block=block))
    operands, added = call.operands(head), call.added(head)
    stages, allowed = attend(operands), call.allowed_matrix(head)
    without = _without(operands, added)
    contributions: dict[str, Tensor] = {CONTENT: stages.scaled[0][allowed]}
    if operands.softcap is not None:
        contributions[CAP] = (stages.capped - stages.scaled)[0][allowed]
    contributions |= {name: values[allowed] for name, values in added.items()}
    if not allowed.all():
        contributions[MASK] = torch.empty(0)
    sinks = None
    if operands.sinks is not None:
        sinks = operands.sinks.reshape(-1).expand(len(allowed))
        contributions[SINK] = sinks[allowed.any(-1)]
    return HeadTerms(
        head=recompute_head(captured, layer, head, block=block, certificate=certificate),
        scaled=stages.scaled[0].numpy(),
        capped=stages.capped[0].numpy(),
        sinks=None if sinks is None else sinks.numpy(),
        normaliser=_normaliser(stages, sinks).numpy(),
        influences=tuple(
            _influence(name, values, _moved(stages, attend(without[name])))
            for name, values in contributions.items()
        ),
    )


def _without(operands: Operands, added: dict[str, Float[Tensor, "query key"]]) -> dict[str, Operands]:
    """The operands that lack one part each, by the part's name."""
    parts = {
        CONTENT: operands.but(scale=0.0),
        CAP: operands.but(softcap=None),
        MASK: operands.but(allowed=None),
        SINK: operands.but(sinks=None),
    }
    for name in added:
        others = [values for other, values in added.items() if other != name]
        parts[name] = operands.but(bias=torch.stack(others).sum(0)[None] if others else None)
    return parts


def _normaliser(stages: Stages, sinks: Float[Tensor, " query"] | None) -> Float[Tensor, " query"]:
    """Log of the sum of exp(score) over the keys and the sink; NaN for a query without any key."""
    total = torch.logsumexp(stages.masked[0], -1)
    silent = total == -torch.inf
    total = total if sinks is None else torch.logaddexp(total, sinks)
    return total.masked_fill(silent, torch.nan)


def _moved(stages: Stages, without: Stages) -> Float[Tensor, " query"]:
    """Total variation between the weights of both, for every query that has a key."""
    answered = ~stages.weights[0].isnan().any(-1)
    one, other = stages.weights[0][answered], without.weights[0][answered]
    unspent = (one.sum(-1) - other.sum(-1)).abs()  # what a sink takes, more or less
    return ((one - other).abs().sum(-1) + unspent) / 2


def _influence(name: str, values: Tensor, moved: Tensor) -> Influence:
    told = (values.mean(), values.min(), values.max()) if len(values) else (np.nan,) * 3
    changes = (moved.mean(), moved.max()) if len(moved) else (np.nan,) * 2
    return Influence(name, *map(float, told), *map(float, changes))
