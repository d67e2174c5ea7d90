"""Attention calls made up of a few numbers, with weights and output by torch's own softmax."""

import math

import torch
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.results import Kind
from attnscope.tokens import Token, Tokens

STEP = 2.0**-23  # of float32


def tokens(count: int) -> Tokens:
    return Tokens((), tuple(Token(i, str(i), str(i), None, None) for i in range(count)))


def call_of(q: Tensor, k: Tensor, v: Tensor, **changes: object) -> AttentionCall:
    """A call of `head query dim` and so on, whose weights and output are torch's own."""
    heads, queries, keys = q.shape[0], q.shape[1], k.shape[1]
    shared = [head // (heads // len(k)) for head in range(heads)]
    terms = changes.get("terms", ())
    logits = (q @ k[shared].mT).double() + sum(term.values.double() for term in terms)
    if (allowed := changes.get("allowed")) is not None:
        logits = logits.masked_fill(~allowed, -math.inf)
    if (sinks := changes.get("sinks")) is not None:
        column = sinks.double()[:, None, None].expand(heads, queries, 1)
        weights = torch.cat([logits, column], -1).softmax(-1)[..., :-1]
    else:
        weights = logits.softmax(-1)
    made = {
        "module": "made up", "call": 0, "layer": 3, "kind": Kind.DECODER,
        "query_tokens": tokens(queries), "key_tokens": tokens(keys),
        "q": q, "k": k, "v": v, "scale": 1.0, "softcap": None, "terms": (), "allowed": None, "sinks": None,
        "window": None, "output": (weights @ v[shared].double()).float(), "epsilon": STEP,
        "weights": {head: weights[head].float() for head in range(heads)}, "precision": "float32",
    }  # fmt: skip
    return AttentionCall(**{**made, **changes})
