"""Each way of writing attention down is followed, and what is not understood is said to be a remainder.

The modules here are written for the purpose; every one states in plain terms what it computes.
"""

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.capture.trace.steps import forbids
from attnscope.capture.trace.tracer import TracedAttention, traced

BATCH, HEADS, QUERIES, KEYS, DIM, VALUE_DIM = 2, 3, 5, 7, 4, 6
SCALE = DIM**-0.5


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


Q = 2 * normal(BATCH, HEADS, QUERIES, DIM)
K = 2 * normal(BATCH, HEADS, KEYS, DIM)
V = normal(BATCH, HEADS, KEYS, VALUE_DIM)
BIAS = normal(1, HEADS, QUERIES, KEYS)
ALLOWED = normal(BATCH, 1, QUERIES, KEYS) > -0.8
FOLDED = BATCH * HEADS


class Attention(nn.Module):
    """A module whose forward is the given function of query, key and value."""

    num_heads = HEADS

    def __init__(self, steps: Callable[..., Tensor]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.steps(*inputs)


def follow(steps: Callable[..., Tensor], *inputs: Tensor) -> list[TracedAttention]:
    """What is traced in `steps`, which compute the same to the bit as without."""
    module, found = Attention(steps), []
    inputs = tuple(each.clone() for each in inputs or (Q, K, V))
    with torch.no_grad():
        plain = module(*(each.clone() for each in inputs))
        with traced([module], found.append):
            followed = module(*inputs)
    assert torch.equal(plain, followed)
    return found


def expected(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    return (scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)).softmax(-1)


def assert_read(one: TracedAttention, weights: Tensor, value: Tensor = V) -> None:
    """`one` has these weights and values, and its parts make them up."""
    torch.testing.assert_close(one.weights.float(), weights, rtol=0, atol=1e-6)
    torch.testing.assert_close(one.output, weights @ value, rtol=0, atol=1e-5)
    torch.testing.assert_close(rebuilt(one), weights.double(), rtol=0, atol=1e-6)
    assert one.remainder is None
    assert one.reweighted is None


def rebuilt(one: TracedAttention) -> Tensor:
    groups = one.query.shape[1] // one.key.shape[1]
    scores = one.query.double() @ one.key.double().repeat_interleave(groups, 1).mT * one.scale
    if one.softcap is not None:
        scores = one.softcap * torch.tanh(scores / one.softcap)
    scores = scores + sum(term.double() for _, term in one.terms)
    return expected(scores, one.allowed)


def fold(tensor: Tensor) -> Tensor:
    return tensor.reshape(FOLDED, *tensor.shape[2:])


def masked_in_place(scores: Tensor) -> Tensor:
    scores[~ALLOWED.expand_as(scores)] = torch.finfo(scores.dtype).min
    return scores


def doubled(scores: Tensor) -> Tensor:
    scores *= SCALE
    scores += BIAS
    return scores


PLAIN = expected(SCALE * Q @ K.mT)
BIASED = expected(SCALE * Q @ K.mT + BIAS)
MASKED = expected(SCALE * Q @ K.mT, ALLOWED)

SPELLINGS: dict[str, tuple[Callable[..., Tensor], Tensor]] = {
    "matmul and division by a tensor": (
        lambda q, k, v: F.softmax(torch.matmul(q, k.transpose(-1, -2)) / torch.tensor(DIM).sqrt(), -1) @ v,
        PLAIN,
    ),
    "einsum with the heads last and the softmax over the first key axis": (
        lambda q, k, v: torch.einsum(
            "ijbn,bnjd->bnid", torch.softmax(torch.einsum("bnid,bnjd->ijbn", q * SCALE, k), dim=1), v
        ),
        PLAIN,
    ),
    "bmm of folded heads": (
        lambda q, k, v: torch.bmm(
            nn.Softmax(dim=-1)(torch.bmm(fold(q) * SCALE, fold(k).transpose(1, 2))), fold(v)
        ),
        PLAIN,
    ),
    "baddbmm with beta and alpha": (
        lambda q, k, v: torch.bmm(
            torch.baddbmm(
                2 * fold(BIAS.expand(BATCH, -1, -1, -1)), fold(q), fold(k).mT, beta=0.5, alpha=SCALE
            ).softmax(-1),
            fold(v),
        ),
        BIASED,
    ),
    "keys times queries, turned": (
        lambda q, k, v: torch.softmax(((k @ q.mT) * SCALE).transpose(2, 3), -1) @ v,
        PLAIN,
    ),
    "values before weights, turned": (
        lambda q, k, v: (v.mT @ torch.softmax(SCALE * q @ k.mT, -1).mT).mT,
        PLAIN,
    ),
    "in place": (lambda q, k, v: torch.softmax(doubled(q @ k.mT), -1) @ v, BIASED),
    "aten by name": (
        lambda q, k, v: torch.ops.aten.softmax.int(torch.ops.aten.mul(q @ k.mT, SCALE), -1) @ v,
        PLAIN,
    ),
    "masked_fill": (lambda q, k, v: (SCALE * q @ k.mT).masked_fill(~ALLOWED, -1e9).softmax(-1) @ v, MASKED),
    "masked_fill on another shape": (
        lambda q, k, v: (
            (SCALE * fold(q) @ fold(k).mT)
            .view(BATCH, HEADS, QUERIES, KEYS)
            .masked_fill(~ALLOWED, -torch.inf)
            .view(FOLDED, QUERIES, KEYS)
            .softmax(-1)
            @ fold(v)
        ),
        MASKED,
    ),
    "where": (
        lambda q, k, v: torch.where(ALLOWED, SCALE * q @ k.mT, torch.tensor(-1e30)).softmax(-1) @ v,
        MASKED,
    ),
    "where the other way round": (
        lambda q, k, v: torch.where(~ALLOWED, -1e30, SCALE * q @ k.mT).softmax(-1) @ v,
        MASKED,
    ),
    "where as a method": (
        lambda q, k, v: (SCALE * q @ k.mT).where(ALLOWED, torch.tensor(-1e30)).softmax(-1) @ v,
        MASKED,
    ),
    "a mask of low numbers": (
        lambda q, k, v: (SCALE * q @ k.mT + (1.0 - ALLOWED.float()) * -10000.0).softmax(-1) @ v,
        MASKED,
    ),
    "a mask taken away": (
        lambda q, k, v: (SCALE * q @ k.mT - 1e30 * (~ALLOWED).float()).softmax(-1) @ v,
        MASKED,
    ),
    "a mask that multiplies": (
        lambda q, k, v: (SCALE * q @ k.mT * ALLOWED + -1e4 * (~ALLOWED).float()).softmax(-1) @ v,
        MASKED,
    ),
    "cells written over": (lambda q, k, v: masked_in_place(SCALE * q @ k.mT).softmax(-1) @ v, MASKED),
    "shifted by its maximum and clamped": (
        lambda q, k, v: (
            (
                (lambda scores: (scores - scores.amax(-1, keepdim=True)).clamp(min=-5e4))(SCALE * q @ k.mT)
            ).softmax(-1)
            @ v
        ),
        PLAIN,
    ),
    "a number less the scores": (
        lambda q, k, v: (0.5 - SCALE * q @ k.mT).softmax(-1) @ v,
        expected(-SCALE * Q @ K.mT),
    ),
    "a scale of its own for each head": (
        lambda q, k, v: (q @ k.mT * torch.tensor([0.3, 0.6, 0.9]).view(HEADS, 1, 1)).softmax(-1) @ v,
        expected(torch.tensor([0.3, 0.6, 0.9]).view(HEADS, 1, 1) * Q @ K.mT),
    ),
    "a cap": (
        lambda q, k, v: (torch.tanh(q @ k.mT * SCALE / 2.5) * 2.5 + BIAS).softmax(-1) @ v,
        expected(2.5 * torch.tanh(SCALE * Q @ K.mT / 2.5) + BIAS),
    ),
    "dropout that drops nothing, and weights cast and viewed": (
        lambda q, k, v: (
            F.dropout((SCALE * q @ k.mT).softmax(-1, dtype=torch.float64), 0.5, False)
            .to(v.dtype)
            .view(FOLDED, QUERIES, KEYS)
            @ fold(v)
        ),
        PLAIN,
    ),
    "rows of the weights that are set to zero where nothing was to be seen": (
        lambda q, k, v: (
            (SCALE * q @ k.mT)
            .masked_fill(~ALLOWED, torch.finfo(torch.float32).min)
            .softmax(-1)
            .masked_fill_(~ALLOWED, 0.0)
            @ v
        ),
        MASKED,
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_of_attention_is_followed(name):
    steps, weights = SPELLINGS[name]
    (one,) = follow(steps)
    assert one.weights.shape == (BATCH, HEADS, QUERIES, KEYS)
    assert_read(one, weights)


def test_the_scale_is_what_came_on_top_of_the_product():
    (on_query,) = follow(SPELLINGS["bmm of folded heads"][0])
    assert on_query.scale == 1
    torch.testing.assert_close(on_query.query, Q * SCALE)
    (on_top,) = follow(SPELLINGS["matmul and division by a tensor"][0])
    assert on_top.scale == pytest.approx(SCALE)
    assert torch.equal(on_top.query, Q)


def test_a_mask_is_no_term_and_a_term_is_no_mask():
    (masked,) = follow(SPELLINGS["a mask of low numbers"][0])
    assert masked.terms == ()
    assert torch.equal(masked.allowed.expand_as(masked.weights), ALLOWED.expand_as(masked.weights))
    (biased,) = follow(SPELLINGS["in place"][0])
    ((_, term),) = biased.terms
    assert torch.equal(term.expand_as(biased.weights), BIAS.expand_as(biased.weights))
    assert biased.allowed is None


@pytest.mark.parametrize(
    ("values", "low"), [((-1e4, -1e30), True), ((-1e30, 0.5), False), ((0.5, -1e30), False), ((), False)]
)
def test_only_what_is_low_in_every_cell_forbids(values: tuple[float, ...], low: bool):
    assert forbids(torch.tensor(values)) is low
    assert all(forbids(each) is (each < 0) for each in values)


def test_one_tensor_that_is_a_bias_and_a_mask_is_taken_apart():
    both = BIAS.masked_fill(~ALLOWED, torch.finfo(torch.float32).min)
    (one,) = follow(lambda q, k, v: (SCALE * q @ k.mT + both).softmax(-1) @ v)
    assert_read(one, expected(SCALE * Q @ K.mT + BIAS, ALLOWED))
    ((_, term),) = one.terms
    assert torch.equal(term != 0, ALLOWED.expand_as(term))


def test_keys_behind_each_other_are_one_product_of_the_same_queries():
    (one,) = follow(
        lambda q, k, v: torch.cat([q @ k[:, :, :4].mT, q @ k[:, :, 4:].mT], -1).mul(SCALE).softmax(-1) @ v
    )
    assert_read(one, PLAIN)
    assert torch.equal(one.query, Q)
    assert torch.equal(one.key, K)


REMAINDERS: dict[str, Callable[..., Tensor]] = {
    "a function of the scores": lambda q, k, v: (q @ k.mT * SCALE).masked_fill(~ALLOWED, 0.5).softmax(-1) @ v,
    "a mask inside of the cap": lambda q, k, v: (
        torch.tanh((q @ k.mT * SCALE).masked_fill(~ALLOWED, -torch.inf)).softmax(-1) @ v
    ),
    "a term inside of the cap": lambda q, k, v: torch.tanh(q @ k.mT * SCALE + BIAS).softmax(-1) @ v,
    "heads mixed by a matrix": lambda q, k, v: (
        F.linear((q @ k.mT).permute(0, 2, 3, 1), normal(HEADS, HEADS)).permute(0, 3, 1, 2).softmax(-1) @ v
    ),
}


def overwritten(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    bias = BIAS.clone()
    scores = q @ k.mT * SCALE + bias
    bias.zero_()
    return scores.softmax(-1) @ v


REMAINDERS["a term that is written over"] = overwritten


@pytest.mark.parametrize("name", REMAINDERS)
def test_what_does_not_add_up_is_a_remainder(name):
    (one,) = follow(REMAINDERS[name])
    assert one.remainder is not None
    assert one.remainder.abs().max() > 0.1
    assert one.allowed is None
    assert torch.equal(one.query, Q)
    assert torch.equal(one.key, K)
    scores = Q.double() @ K.double().mT * one.scale
    if one.softcap is not None:
        scores = one.softcap * torch.tanh(scores / one.softcap)
    torch.testing.assert_close(
        expected(scores + one.remainder).float(), one.weights, rtol=0, atol=1e-5
    )  # and with it, it does add up


def test_weights_changed_after_the_softmax_are_handed_on_as_such():
    gate = normal(HEADS, 1, 1).sigmoid()
    (one,) = follow(lambda q, k, v: ((SCALE * q @ k.mT).softmax(-1) * gate) @ v)
    torch.testing.assert_close(one.weights, PLAIN)
    torch.testing.assert_close(one.reweighted, PLAIN * gate)
    torch.testing.assert_close(one.output, (PLAIN * gate) @ V)


def test_heads_that_only_the_keys_share_are_not_merged():
    (one,) = follow(lambda q, k, v: (SCALE * q @ k[:, :1].mT).softmax(-1) @ v)
    assert one.key.shape[1] == one.value.shape[1] == HEADS


def test_what_is_no_attention_is_not_found():
    router = normal(DIM, KEYS)
    assert follow(lambda q, k, v: (q @ router).softmax(-1)) == []
    assert follow(lambda q, k, v: F.linear(q, normal(KEYS, DIM)).softmax(-1) @ v) == []
    assert follow(lambda q, k, v: (q @ k.mT).sigmoid() @ v) == []
    assert follow(lambda q, k, v: (q @ k.mT).softmax(-1)) == []


FUSED: dict[str, dict[str, Any]] = {
    "plain": {},
    "masked": {"attn_mask": ALLOWED},
    "biased": {"attn_mask": BIAS.expand(BATCH, -1, -1, -1)},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.9},
}


@pytest.mark.parametrize("name", FUSED)
def test_the_fused_kernel_is_opened(name):
    options = FUSED[name]
    (one,) = follow(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options))
    scores = Q @ K.mT * options.get("scale", SCALE)
    allowed = options.get("attn_mask") if name == "masked" else None
    if name == "biased":
        scores = scores + BIAS
    if name == "causal":
        allowed = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril()
    assert_read(one, expected(scores, allowed))


def test_the_fused_kernel_with_grouped_queries_is_opened():
    q, k, v = normal(BATCH, 6, QUERIES, DIM), normal(BATCH, 2, KEYS, DIM), normal(BATCH, 2, KEYS, DIM)
    (one,) = follow(lambda *each: F.scaled_dot_product_attention(*each, enable_gqa=True), q, k, v)
    assert torch.equal(one.key, k)
    assert torch.equal(one.value, v)
    torch.testing.assert_close(one.weights, expected(q @ k.repeat_interleave(3, 1).mT / 2), rtol=0, atol=1e-6)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_torchs_own_multi_head_attention_is_opened(need_weights, cross, masked):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(24, 4, batch_first=True).eval()
    nn.init.normal_(module.in_proj_weight, std=0.5)
    query = normal(BATCH, QUERIES, 24)
    key = normal(BATCH, KEYS, 24) if cross else query
    padding = torch.zeros(BATCH, key.shape[1], dtype=torch.bool)
    padding[1, -2:] = True
    options = {"need_weights": need_weights, "average_attn_weights": False}
    options["key_padding_mask"] = padding if masked else None
    found: list[TracedAttention] = []
    with torch.no_grad():
        plain = module(query, key, key, **options)
        shown = module(query, key, key, **{**options, "need_weights": True})[1]
        with traced([module], found.append):
            followed = module(query, key, key, **options)
    assert torch.equal(plain[0], followed[0])
    (one,) = found
    assert one.module is module
    torch.testing.assert_close(one.weights, shown, rtol=0, atol=1e-6)
    torch.testing.assert_close(rebuilt(one).float(), shown, rtol=0, atol=1e-6)
    weight, bias = module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3)
    for read, given, number, factor in (
        (one.query, query, 0, 1),
        (one.key, key, 1, 1),
        (one.value, key, 2, 1),
    ):
        made = F.linear(given, weight[number], bias[number]).unflatten(-1, (4, 6)).transpose(1, 2) * factor
        scaled_before = number == 0 and need_weights
        torch.testing.assert_close(read, made * (6**-0.5 if scaled_before else 1), rtol=1e-5, atol=1e-6)


def test_functions_compiled_by_torch_jit_are_seen_and_put_back(monkeypatch):
    source = types.ModuleType("modeling_scripted")

    def weigh(q: Tensor, k: Tensor) -> Tensor:
        return torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * 0.5, dim=-1)

    source.weigh = torch.jit.script(weigh)
    monkeypatch.setitem(sys.modules, source.__name__, source)

    class Scripted(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return source.weigh(q, k) @ v

    Scripted.__module__ = source.__name__
    module, found, compiled = Scripted(), [], source.weigh
    plain = module(Q, K, V)
    with traced([module], found.append):
        followed = module(Q, K, V)
    assert torch.equal(plain, followed)
    assert source.weigh is compiled
    assert_read(found[0], expected(0.5 * Q @ K.mT))
