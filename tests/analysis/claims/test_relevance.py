"""AttnLRP against its rules written out one by one, relevance divided by what each result was."""

import math

import families
import numpy as np
import pytest
import torch
import transformers as hf
from torch import Tensor, nn

import attnscope as at
from attnscope.capture.parts.relevance import Relevance, entry_by_entry
from attnscope.capture.parts.run import ruled
from attnscope.results.claims.flow import LRP

IDS, QUERY = [3, 20, 31, 42, 13, 5], 4
HEADS, KEY_HEADS, DIM = families.HEADS, families.KEY_HEADS, families.DIM


def double(model: nn.Module) -> nn.Module:
    torch.manual_seed(5)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.06)
    return model.double().eval()


def linear(x: Tensor, weight: Tensor, made: Tensor, relevance: Tensor) -> Tensor:
    """What x has of the relevance of made = x @ weight.T + bias: the bias keeps its own."""
    return x * ((relevance / made) @ weight)


def centred(x: Tensor, relevance: Tensor) -> Tensor:
    """Through x - mean(x)."""
    matrix = torch.eye(x.shape[-1], dtype=x.dtype) - 1 / x.shape[-1]
    return linear(x, matrix, x - x.mean(-1, keepdim=True), relevance)


def layer_norm(x: Tensor, norm: nn.LayerNorm, relevance: Tensor) -> Tensor:
    """y = scale * weight * centred + bias: the scale is fixed, and the bias keeps its own."""
    made = norm(x)
    without_bias = made - norm.bias
    return centred(x, relevance * without_bias / made)


def added(first: Tensor, second: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    total = first + second
    return relevance * first / total, relevance * second / total


def multiplied(first: Tensor, second: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Through first @ second, half to each."""
    shared = relevance / (2 * (first @ second))
    return first * (shared @ second.mT), second * (first.mT @ shared)


def softmaxed(scores: Tensor, weights: Tensor, relevance: Tensor) -> Tensor:
    finite = torch.where(scores.isfinite(), scores, 0.0)
    return finite * (relevance - weights * relevance.sum(-1, keepdim=True))


def attended(q: Tensor, k: Tensor, v: Tensor, causal: bool, relevance: Tensor) -> tuple[Tensor, ...]:
    """Relevance of queries, keys and values, `head position dim`, of that of their attention."""
    products = q @ k.mT
    scores = products / math.sqrt(q.shape[-1])
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    weights = scores.softmax(-1)
    of_weights, of_values = multiplied(weights, v, relevance)
    of_queries, of_keys = multiplied(q, k.mT, softmaxed(scores, weights, of_weights))
    return of_queries, of_keys.mT, of_values


def split(x: Tensor, heads: int) -> Tensor:
    return x.view(len(x), heads, -1).transpose(0, 1)


def joined(x: Tensor) -> Tensor:
    return x.transpose(0, 1).flatten(1)


def attention_output(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1) @ v


def turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def turned_back(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([second, -first], -1)


def of_llama(model: nn.Module) -> Tensor:
    """The relevance of each embedding, position by position, by hand through the whole model."""
    inner = model.model
    x = inner.embed_tokens(torch.tensor(IDS))
    cos, sin = (each[0] for each in inner.rotary_emb(x[None], torch.arange(len(IDS))[None]))
    kept = []
    for layer in inner.layers:
        own, ahead = layer.self_attn, layer.mlp
        normed = layer.input_layernorm(x)
        plain = [split(each(normed), n) for each, n in ((own.q_proj, HEADS), (own.k_proj, KEY_HEADS))]
        q, k = (each * cos + turned(each) * sin for each in plain)
        v = split(own.v_proj(normed), KEY_HEADS)
        groups = HEADS // KEY_HEADS
        mixed = attention_output(
            q, k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0), causal=True
        )
        out = own.o_proj(joined(mixed))
        middle = x + out
        second = layer.post_attention_layernorm(middle)
        gate, up = ahead.gate_proj(second), ahead.up_proj(second)
        both = torch.nn.functional.silu(gate) * up
        down = ahead.down_proj(both)
        kept.append((x, normed, plain, q, k, v, mixed, out, middle, second, gate, up, both, down))
        x = middle + down
    final = inner.norm(x)
    logits = model.lm_head(final)
    relevance = torch.zeros_like(logits)
    answer = int(logits[QUERY].argmax())
    relevance[QUERY, answer] = logits[QUERY, answer]
    relevance = linear(final, model.lm_head.weight, logits, relevance)  # and through the norm as it is
    for layer, one in zip(reversed(inner.layers), reversed(kept), strict=True):
        x, normed, plain, q, k, v, mixed, out, middle, second, gate, up, both, down = one
        own, ahead = layer.self_attn, layer.mlp
        of_middle, of_down = added(middle, down, relevance)
        of_both = linear(both, ahead.down_proj.weight, down, of_down)
        of_second = linear(second, ahead.gate_proj.weight, gate, of_both / 2)
        of_second = of_second + linear(second, ahead.up_proj.weight, up, of_both / 2)
        of_x, of_out = added(x, out, of_middle + of_second)
        of_mixed = split(linear(joined(mixed), own.o_proj.weight, out, of_out), HEADS)
        groups = HEADS // KEY_HEADS
        of_q, of_k, of_v = attended(
            q, k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0), True, of_mixed
        )
        of_k, of_v = (each.view(KEY_HEADS, groups, *each.shape[1:]).sum(1) for each in (of_k, of_v))
        of_normed = torch.zeros_like(normed)
        for projection, before, rotated, its in (
            (own.q_proj, plain[0], q, of_q),
            (own.k_proj, plain[1], k, of_k),
        ):
            shared = its / rotated
            of_before = before * (shared * cos + turned_back(shared * sin))
            of_normed += linear(normed, projection.weight, joined(before), joined(of_before))
        of_normed += linear(normed, own.v_proj.weight, joined(v), joined(of_v))
        relevance = of_x + of_normed
    return relevance.sum(-1)


def of_bert(model: nn.Module) -> Tensor:
    """The same of word embeddings, where norms stand behind every sum."""
    inner, head = model.bert, model.cls.predictions
    tables = inner.embeddings
    words = tables.word_embeddings(torch.tensor(IDS))
    others = tables.position_embeddings.weight[: len(IDS)] + tables.token_type_embeddings.weight[0]
    x = tables.LayerNorm(words + others)
    kept = []
    for layer in inner.encoder.layer:
        own = layer.attention.self
        q, k, v = (split(each(x), HEADS) for each in (own.query, own.key, own.value))
        mixed = attention_output(q, k, v, causal=False)
        out = layer.attention.output.dense(joined(mixed))
        middle = layer.attention.output.LayerNorm(x + out)
        before = layer.intermediate.dense(middle)
        active = torch.nn.functional.gelu(before)
        down = layer.output.dense(active)
        kept.append((x, q, k, v, mixed, out, middle, before, active, down))
        x = layer.output.LayerNorm(middle + down)
    dense = head.transform.dense(x)
    normed = head.transform.LayerNorm(torch.nn.functional.gelu(dense))
    logits = head.decoder(normed)
    relevance = torch.zeros_like(logits)
    answer = int(logits[QUERY].argmax())
    relevance[QUERY, answer] = logits[QUERY, answer]
    relevance = linear(normed, head.decoder.weight, logits, relevance)
    relevance = layer_norm(torch.nn.functional.gelu(dense), head.transform.LayerNorm, relevance)
    relevance = linear(x, head.transform.dense.weight, dense, relevance)
    for layer, one in zip(reversed(inner.encoder.layer), reversed(kept), strict=True):
        x, q, k, v, mixed, out, middle, before, active, down = one
        own = layer.attention.self
        relevance = layer_norm(middle + down, layer.output.LayerNorm, relevance)
        of_middle, of_down = added(middle, down, relevance)
        of_before = linear(active, layer.output.dense.weight, down, of_down)
        of_middle = of_middle + linear(middle, layer.intermediate.dense.weight, before, of_before)
        relevance = layer_norm(x + out, layer.attention.output.LayerNorm, of_middle)
        of_x, of_out = added(x, out, relevance)
        of_mixed = split(linear(joined(mixed), layer.attention.output.dense.weight, out, of_out), HEADS)
        of_q, of_k, of_v = attended(q, k, v, False, of_mixed)
        for projection, its, part in ((own.query, of_q, q), (own.key, of_k, k), (own.value, of_v, v)):
            of_x = of_x + linear(x, projection.weight, joined(part), joined(its))
        relevance = of_x
    relevance = layer_norm(words + others, tables.LayerNorm, relevance)
    return (relevance * words / (words + others)).sum(-1)


def of_gpt2(model: nn.Module) -> Tensor:
    """The same with norms before, one weight for queries, keys and values, and an activation written out."""
    inner = model.transformer
    words, places = inner.wte(torch.tensor(IDS)), inner.wpe.weight[: len(IDS)]
    x, kept = words + places, []
    for block in inner.h:
        normed = block.ln_1(x)
        together = block.attn.c_attn(normed)
        q, k, v = (split(each, HEADS) for each in together.chunk(3, -1))
        mixed = attention_output(q, k, v, causal=True)
        out = block.attn.c_proj(joined(mixed))
        middle = x + out
        second = block.ln_2(middle)
        before = block.mlp.c_fc(second)
        active = block.mlp.act(before)
        down = block.mlp.c_proj(active)
        kept.append((x, normed, together, q, k, v, mixed, out, middle, second, before, active, down))
        x = middle + down
    final = inner.ln_f(x)
    logits = model.lm_head(final)
    relevance = torch.zeros_like(logits)
    answer = int(logits[QUERY].argmax())
    relevance[QUERY, answer] = logits[QUERY, answer]
    relevance = layer_norm(x, inner.ln_f, linear(final, model.lm_head.weight, logits, relevance))
    for block, one in zip(reversed(inner.h), reversed(kept), strict=True):
        x, normed, together, q, k, v, mixed, out, middle, second, before, active, down = one
        of_middle, of_down = added(middle, down, relevance)
        of_before = linear(active, block.mlp.c_proj.weight.mT, down, of_down)
        of_second = linear(second, block.mlp.c_fc.weight.mT, before, of_before)
        of_middle = of_middle + layer_norm(middle, block.ln_2, of_second)
        of_x, of_out = added(x, out, of_middle)
        of_mixed = split(linear(joined(mixed), block.attn.c_proj.weight.mT, out, of_out), HEADS)
        of_three = torch.cat([joined(each) for each in attended(q, k, v, True, of_mixed)], -1)
        of_normed = linear(normed, block.attn.c_attn.weight.mT, together, of_three)
        relevance = of_x + layer_norm(x, block.ln_1, of_normed)
    return (relevance * words / (words + places)).sum(-1)


@pytest.mark.parametrize(
    ("family", "kind", "by_hand"),
    [
        ("llama", hf.LlamaForCausalLM, of_llama),
        ("bert", hf.BertForMaskedLM, of_bert),
        ("gpt2", hf.GPT2LMHeadModel, of_gpt2),
    ],
)
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_relevance_is_that_of_the_rules_written_out(
    family: str, kind: type, by_hand: object, kernel: str
) -> None:
    model = double(kind(families.CONFIGS[family]()))
    model.set_attn_implementation(kernel)
    found = at.wrap(model).read(ids=IDS).flow(QUERY)
    told = next(each for each in found.attributed if each.method == LRP)
    with torch.no_grad():
        expected = by_hand(model).numpy()
    assert told.values is not None, told.absent
    np.testing.assert_allclose(told.values, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    assert np.abs(expected[:QUERY]).max() > 1e-2, "else nothing is compared"


class Strange(nn.Module):
    """Of each number what is left of it when its neighbours are taken off, and of nothing one."""

    def __init__(self, plus: float) -> None:
        super().__init__()
        self.plus = plus

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x - x.mean(-1, keepdim=True) * self.plus) + self.plus


@pytest.mark.parametrize(
    ("module", "alone"), [(nn.GELU(), True), (nn.Softmax(-1), False), (Strange(1.0), False)]
)
def test_modules_are_known_to_work_entry_by_entry_by_what_they_do(module: nn.Module, alone: bool) -> None:
    torch.manual_seed(6)
    net = nn.Sequential(nn.Linear(5, 4, bias=False), module, nn.Linear(4, 3, bias=False)).double()
    given = torch.randn(1, 2, 5, dtype=torch.double, requires_grad=True)
    rule = Relevance(net)
    with entry_by_entry(net), ruled(rule, net, ()):
        score = net(given)[0, 1, 2]
    handed = rule.handed(score, given)
    kept = float(handed.entrance.sum()) == pytest.approx(float(score.detach()))
    assert kept is alone
    if alone:
        assert rule.stray(score) is None
        assert float(handed.entrance.abs().sum()) > 0.01


def test_a_function_without_a_rule_is_named_with_its_module() -> None:
    torch.manual_seed(7)
    net = nn.Sequential(nn.Linear(5, 4), Strange(0.5), nn.Linear(4, 3))
    given = torch.randn(1, 2, 5, requires_grad=True)
    rule = Relevance(net)
    with entry_by_entry(net), ruled(rule, net, ()):
        score = net(given)[0, 1, 2]
    assert rule.stray(score) == "sin of 1"
