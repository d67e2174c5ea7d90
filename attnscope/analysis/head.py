"""One head, every stage of it, with its certificate."""

import torch
from jaxtyping import Bool
from torch import Tensor

from attnscope.analysis.padding import without_padding
from attnscope.attention import AttentionCall, Capture
from attnscope.results import Certificate, HeadAttention, Kind
from attnscope.sdpa import attend
from attnscope.verify import certify


def recompute_head(
    captured: Capture,
    layer: int,
    head: int,
    kind: Kind | None = None,
    block: int = 0,
    certificate: Certificate | None = None,
) -> HeadAttention:
    """Head `head` of a captured layer, recomputed in float64; `InputError` when it was not captured.

    `block` chooses among the separate attentions of a layer that makes several. The `certificate` is made
    here unless that of this very head is given.
    """
    whole = captured.call(layer, kind, block)
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
        certificate=certify(whole, head) if certificate is None else certificate,
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
