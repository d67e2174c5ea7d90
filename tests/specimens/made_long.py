"""Small attentions of every mechanism, as a long call keeps them and written out for plain arithmetic."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnscope.arithmetic import Operands
from attnscope.attention import Term
from attnscope.results import Kind
from attnscope.tiles.tiling import EVERYWHERE, LongCall, Symbolic
from attnscope.tokens import Token, Tokens

QUERIES, OTHERS, DIM, VALUE_DIM = 37, 53, 6, 5


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A long call, and the same with everything of queries by keys written out, all heads."""

    call: LongCall
    dense: Operands


def tokens(count: int) -> Tokens:
    """Some that stand twice, some special, some punctuation, of two texts."""
    words = [",", "the", "cat", "sat", "on", "a", "mat", "."]
    return Tokens(
        ("", ""),
        tuple(
            Token(
                1 if i == 0 else 100 + i * i % 8,
                words[i * i % 8],
                words[i * i % 8],
                None if i == 0 else (0, 1),
                None,
                special=i % 19 == 0,
                part=int(2 * i >= count),
            )
            for i in range(count)
        ),
    )


def _random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain(kind: Kind = Kind.ENCODER, keys: int = QUERIES, kv_heads: int = 4) -> LongCall:
    """No mechanism at all."""
    read = tokens(QUERIES)
    return LongCall(
        module="layers.2.attention",
        call=0,
        layer=2,
        kind=kind,
        query_tokens=read,
        key_tokens=read if keys == QUERIES else tokens(keys),
        q=2 * _random(4, QUERIES, DIM, seed=0),
        k=_random(kv_heads, keys, DIM, seed=1),
        v=_random(kv_heads, keys, VALUE_DIM, seed=2),
        scale=DIM**-0.5,
        softcap=None,
        terms=(),
        allowed=None,
        sinks=None,
        window=None,
        output=torch.zeros(4, QUERIES, VALUE_DIM, dtype=torch.float64),
        weights={},
        epsilon=torch.finfo(torch.float32).eps,
        precision="float32 on cpu",
    )


def ruled(call: LongCall, rule, per_head: bool = False) -> LongCall:
    return replace(call, rule=Symbolic(rule, per_head))


def causal(_head, q, k):
    return k[None, :] <= q[:, None]


def window(_head, q, k):
    return causal(_head, q, k) & (q[:, None] - k[None, :] < 9)


def around(_head, q, k):
    return (q[:, None] - k[None, :]).abs() <= 6


def left_padding(_head, q, k):
    return causal(_head, q, k) & (k[None, :] >= 11)  # the first rows have no key at all


def right_padding(_head, q, k):
    return (k < 30)[None, :].expand(len(q), -1)


def by_head(head, q, k):
    return (k[None, :] + q[:, None]) % (head + 2) != 1


def relative() -> Tensor:
    distance = torch.arange(QUERIES)[None, :] - torch.arange(QUERIES)[:, None]
    return torch.stack([torch.sin(distance * (head + 1) / 7) * 2 for head in range(4)]).double()


def calls() -> dict[str, LongCall]:
    decoder, encoder = plain(Kind.DECODER), plain()
    return {
        "plain": encoder,
        "causal": ruled(decoder, causal),
        "window": ruled(replace(decoder, window=9), window),
        "window both ways": ruled(encoder, around),
        "left padding": ruled(decoder, left_padding),
        "right padding": ruled(encoder, right_padding),
        "a mask by head": ruled(encoder, by_head, per_head=True),
        "relative position": replace(encoder, terms=(Term("relative position", relative()),)),
        "soft cap": replace(ruled(decoder, causal), softcap=1.5),
        "sink": replace(ruled(decoder, causal), sinks=_random(4, seed=3)),
        "sink by query": replace(ruled(decoder, causal), sinks=_random(4, QUERIES, seed=4)),
        "grouped queries": ruled(plain(Kind.DECODER, kv_heads=2), causal),
        "cross": plain(Kind.CROSS, OTHERS),
        "all at once": replace(
            ruled(plain(Kind.DECODER, kv_heads=2), window),
            terms=(Term("relative position", relative()),),
            softcap=2.5,
            sinks=_random(4, seed=3),
        ),
    }


def written_out(call: LongCall) -> Operands:
    """The same for plain arithmetic, one pair after the other where a rule is asked."""
    (heads, queries, _), keys = call.q.shape, call.k.shape[1]
    allowed = None
    if call.rule is not EVERYWHERE:
        allowed = torch.zeros(heads, queries, keys, dtype=torch.bool)
        for head in range(heads):
            allowed[head] = call.rule.block(head, torch.arange(queries), torch.arange(keys))
    return Operands(
        q=call.q,
        k=call.k,
        v=call.v,
        scale=call.scale,
        softcap=call.softcap,
        bias=call.bias,
        allowed=allowed,
        sinks=call.sinks,
    )


MECHANISMS = {name: Mechanism(call, written_out(call)) for name, call in calls().items()}
