"""Reference scaled dot-product attention, stage by stage, that all recomputed numbers come from.

    weights = softmax(mask(cap(scale * q.k) + bias)),  output = weights.v        (Vaswani et al. 2017)

Written out in plain tensor operations so that each stage can be shown and checked. It is the reference,
so it is run in float64; it is not fast and calls no fused kernel.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Operands:
    """The inputs of one attention: queries, keys, values, scale, cap, bias, mask and sinks.

    Query head `h` reads key/value head `h // (heads // kv_heads)`. `bias` is added after scale and cap;
    `allowed` is True where a query may look at a key (None: everywhere); `sinks` hold one extra logit per
    head, or per head and query, that takes part in the softmax and has no value.
    """

    q: Float[Tensor, "head query dim"]
    k: Float[Tensor, "kv_head key dim"]
    v: Float[Tensor, "kv_head key value_dim"]
    scale: float
    softcap: float | None = None
    bias: Float[Tensor, "#head query key"] | None = None
    allowed: Bool[Tensor, "#head query key"] | None = None
    sinks: Float[Tensor, "head ..."] | None = None

    def but(self, **changes: Any) -> "Operands":
        """A copy of the operands with some of them changed."""
        return Operands(**{**vars(self), **changes})


@dataclass(frozen=True, eq=False)
class Stages:
    """Attention after each step; `masked` holds -inf where a key is not allowed.

    A query without any allowed key has NaN weights and output: there is nothing it could have looked at.
    """

    scores: Float[Tensor, "head query key"]
    scaled: Float[Tensor, "head query key"]
    capped: Float[Tensor, "head query key"]
    biased: Float[Tensor, "head query key"]
    masked: Float[Tensor, "head query key"]
    weights: Float[Tensor, "head query key"]
    output: Float[Tensor, "head query value_dim"]


def attend(operands: Operands) -> Stages:
    """All stages of attention for `operands`, in their dtype."""
    heads = operands.q.shape[0]
    k, v = for_each_query_head(operands.k, heads), for_each_query_head(operands.v, heads)
    return weigh(
        operands.q @ k.transpose(-1, -2),
        v,
        scale=operands.scale,
        softcap=operands.softcap,
        bias=operands.bias,
        allowed=operands.allowed,
        sinks=operands.sinks,
    )


def weigh(
    scores: Float[Tensor, "head query key"],
    v: Float[Tensor, "head key value_dim"],
    *,
    scale: float = 1.0,
    softcap: float | None = None,
    bias: Float[Tensor, "#head query key"] | None = None,
    allowed: Bool[Tensor, "#head query key"] | None = None,
    sinks: Float[Tensor, "head ..."] | None = None,
) -> Stages:
    """All stages of attention, from given scores on; other arguments as in `Operands`."""
    scaled = scores * scale
    capped = soft_cap(scaled, softcap)
    biased = capped if bias is None else capped + bias
    masked = biased if allowed is None else biased.masked_fill(~allowed, -torch.inf)
    weights = softmax(masked, sinks)
    return Stages(scores, scaled, capped, biased, masked, weights, weights @ v)


def project(
    rows: Float[Tensor, "row dim"],
    matrix: Float[Tensor, "dim other"],
    bias: Float[Tensor, " other"] | None = None,
) -> Float[Tensor, "row other"]:
    """The product of rows with `matrix`, plus `bias`: rows are vectors, as in X Wq."""
    return rows @ matrix if bias is None else rows @ matrix + bias


def additive_scores(
    q: Float[Tensor, "head query hidden"],
    k: Float[Tensor, "head key hidden"],
    vector: Float[Tensor, " hidden"],
) -> Float[Tensor, "head query key"]:
    """Additive scores vector . tanh(q + k) of projected queries and keys (Bahdanau et al. 2015)."""
    return torch.tanh(q[:, :, None] + k[:, None]) @ vector


def for_each_query_head(
    shared: Float[Tensor, "kv_head key dim"], heads: int
) -> Float[Tensor, "head key dim"]:
    """Key or value heads repeated so that there is one per query head (Ainslie et al. 2023)."""
    return shared.repeat_interleave(heads // shared.shape[0], dim=0)


def soft_cap(scores: Float[Tensor, "*any"], cap: float | None) -> Float[Tensor, "*any"]:
    """Scores bent into (-cap, cap): cap * tanh(scores / cap) (Gemma Team 2024)."""
    return scores if cap is None else cap * torch.tanh(scores / cap)


def softmax(
    logits: Float[Tensor, "head query key"], sinks: Float[Tensor, "head ..."] | None = None
) -> Float[Tensor, "head query key"]:
    """Softmax over keys: rows sum to 1, or to less where a sink takes a share.

    A row of nothing but -inf is NaN, also with a sink.
    """
    peak = logits.amax(-1, keepdim=True)
    if sinks is None:
        unnormalised = torch.exp(logits - peak)
        return unnormalised / unnormalised.sum(-1, keepdim=True)
    unanswered = peak == -torch.inf
    sink = sinks.reshape(len(sinks), -1, 1).to(logits)
    peak = torch.maximum(peak, sink)
    unnormalised = torch.exp(logits - peak)
    weights = unnormalised / (unnormalised.sum(-1, keepdim=True) + torch.exp(sink - peak))
    return weights.masked_fill(unanswered, torch.nan)


def weights_alone(operands: Operands) -> Float[Tensor, "head query key"]:
    """The weights of `attend` for many heads, without keeping other stages."""
    k = for_each_query_head(operands.k, operands.q.shape[0])
    scores = operands.q @ k.transpose(-1, -2)
    logits = logits_over(scores, operands.scale, operands.softcap, operands.bias, operands.allowed)
    return softmax_over(logits, operands.sinks)


def logits_over(
    scores: Float[Tensor, "head query key"],
    scale: float,
    softcap: float | None,
    bias: Float[Tensor, "#head query key"] | None,
    allowed: Bool[Tensor, "#head query key"] | None,
    out: Float[Tensor, "head query key"] | None = None,
) -> Float[Tensor, "head query key"]:
    """The softmax input, as in `weigh`, in place (in `out` or over the scores)."""
    logits = torch.mul(scores, scale, out=scores if out is None else out)
    if softcap is not None:
        logits.div_(softcap).tanh_().mul_(softcap)
    if bias is not None:
        logits.add_(bias)
    return logits if allowed is None else logits.masked_fill_(~allowed, -torch.inf)


def softmax_over(
    logits: Float[Tensor, "head query key"], sinks: Float[Tensor, "head ..."] | None
) -> Float[Tensor, "head query key"]:
    """`softmax` in place over the logits."""
    peak = logits.amax(-1, keepdim=True)
    if sinks is None:
        unnormalised = logits.sub_(peak).exp_()
        return unnormalised.div_(unnormalised.sum(-1, keepdim=True))
    unanswered = peak == -torch.inf
    sink = sinks.reshape(len(sinks), -1, 1).to(logits)
    peak = torch.maximum(peak, sink)
    unnormalised = logits.sub_(peak).exp_()
    weights = unnormalised.div_(unnormalised.sum(-1, keepdim=True) + torch.exp(sink - peak))
    return weights.masked_fill_(unanswered, torch.nan)
