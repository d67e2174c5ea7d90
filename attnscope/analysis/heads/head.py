"""One head, every stage of it, with its certificate; and its scores taken apart, by what each part adds."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.padding import without_padding
from attnscope.arithmetic import Operands, Stages, attend
from attnscope.attention import AttentionCall, Capture
from attnscope.results import HeadAttention, HeadTerms, Influence
from attnscope.results.score import CAP, CONTENT, MASK, SINK
from attnscope.verify import certify


def recompute_head(captured: Capture, layer: int, head: int, block: int = 0) -> HeadAttention:
    """Head `head` of a captured layer, recomputed in float64; `InputError` when it was not captured.

    `block` chooses among the separate attentions of a layer that makes several.
    """
    whole = captured.call(layer, block=block)
    call = without_padding(whole)
    operands = call.operands(head)
    stages = attend(operands)
    allowed = call.allowed_matrix(head)
    return HeadAttention(
        layer=layer,
        head=head,
        kind=call.kind,
        key_head=call.key_head(head),
        heads=call.heads,
        key_heads=call.key_heads,
        layers=captured.layers,
        query_tokens=call.query_tokens,
        key_tokens=call.key_tokens,
        q=operands.q[0].numpy(),
        k=operands.k[0].numpy(),
        v=operands.v[0].numpy(),
        scores=stages.scores[0].numpy(),
        scaled=stages.masked[0].masked_fill(~allowed, torch.nan).numpy(),
        weights=stages.weights[0].numpy(),
        output=stages.output[0].numpy(),
        allowed=allowed.numpy(),
        scale=call.scale,
        softcap=call.softcap,
        sink=None if operands.sinks is None else float(operands.sinks.mean()),
        sink_by_query=operands.sinks is not None and operands.sinks.numel() > 1,
        window=call.window if _is_held(call, allowed) else None,
        module=call.module,
        certificate=certify(whole, head),
        provenance=captured.provenance,
        terms={name: added.numpy() for name, added in call.added(head).items()},
        tower=captured.tower,
        block=call.block,
        blocks=captured.blocks(layer),
        notes=captured.notes(layer),
    )


def _is_held(call: AttentionCall, allowed: Bool[Tensor, "query key"]) -> bool:
    """Whether no query looks beyond the window: a kernel may be told of one that no mask holds."""
    queries, keys = allowed.shape
    if call.window is None or queries != keys:
        return call.window is not None
    places = torch.arange(keys)
    return not (allowed & ((places[:, None] - places).abs() >= call.window)).any()


def head_terms(captured: Capture, layer: int, head: int, block: int = 0) -> HeadTerms:
    """Head `head` of a captured layer with its scores taken apart; `InputError` when it was not captured."""
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
        head=recompute_head(captured, layer, head, block=block),
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
