"""Kernels other than eager: what they were told, and the weights that they themselves used."""

import math

import pytest
import torch
from families import TOKENS, WINDOW, ids, padded, sharp
from torch import Tensor, nn
from transformers import AttentionInterface

from attnscope.capture import Selection, record
from attnscope.capture.cause.standing import APART
from attnscope.capture.long.run import record_long
from attnscope.errors import InputError
from attnscope.results import Route, Verdict
from attnscope.verify import certify


def running(model: nn.Module, kernel: str) -> nn.Module:
    """The model told to use a kernel without the library's check that it is installed."""
    for module in model.modules():
        if hasattr(module, "config"):
            module.config._attn_implementation_internal = kernel
    return model


def flash_stand_in(module, query, key, value, attention_mask, scaling=None, sliding_window=None, **options):
    """Attention by the documented conventions of flash attention, in an obvious loop over batch and query."""
    batch, heads, queries, dim = query.shape
    keys, output = key.shape[2], torch.zeros(batch, heads, queries, value.shape[-1])
    causal = options.get("is_causal")
    causal = module.is_causal if causal is None else causal
    for b in range(batch):
        for h in range(heads):
            group = h // (heads // key.shape[1])
            for i in range(queries):
                place = i + keys - queries
                seen = [
                    j
                    for j in range(keys)
                    if (attention_mask is None or attention_mask[b, j])
                    and not (causal and j > place)
                    and not (sliding_window and keys > sliding_window and abs(place - j) >= sliding_window)
                ]
                scores = query[b, h, i] @ key[b, group, seen].T * (scaling or 1 / math.sqrt(dim))
                output[b, h, i] = scores.softmax(-1) @ value[b, group, seen]
    return output.transpose(1, 2), None


@pytest.mark.parametrize(
    ("family", "inputs"), [("bert", padded("right")), ("mistral", ids())], ids=["padded", "one"]
)
def test_flash_attention_is_certified_by_the_weights_it_prints_itself(registries, family, inputs) -> None:
    AttentionInterface.register("flash_attention_2", flash_stand_in)
    model = running(sharp(family), "flash_attention_2")
    for call in record(model, inputs, Selection(row=-1)).calls:
        certificate = certify(call, 4)
        assert certificate.verdict is Verdict.CERTIFIED, certificate
        real = inputs.get("attention_mask", torch.ones(1, TOKENS))[-1].bool()
        forbidden = call.weights[4][:, ~real]
        assert (forbidden == 0).all()
        if family == "mistral":
            assert call.weights[4][-1, : TOKENS - WINDOW].max() == 0


def test_a_flash_kernel_that_looks_one_token_too_far_back_fails(registries) -> None:
    def too_far(*args, sliding_window=None, **options):
        return flash_stand_in(*args, sliding_window=sliding_window and sliding_window + 1, **options)

    AttentionInterface.register("flash_attention_2", too_far)
    model = running(sharp("mistral"), "flash_attention_2")
    verdicts = {certify(call, 4).verdict for call in record(model, ids()).calls}
    assert verdicts == {Verdict.FAILED}


def flex_rule(model: nn.Module, inputs: dict) -> Tensor:
    (call,) = record(running(model, "flex_attention"), inputs, Selection(layers=[0])).calls
    return call.allowed[0]


@pytest.mark.parametrize(("family", "back"), [("llama", TOKENS), ("mistral", WINDOW)])
def test_the_rule_that_flex_attention_is_given_is_read_as_a_mask(registries, family, back) -> None:
    AttentionInterface.register("flex_attention", without_compiling)
    allowed = flex_rule(sharp(family), ids())
    for i in range(TOKENS):
        assert [j for j in range(TOKENS) if allowed[i, j]] == list(range(max(0, i - back + 1), i + 1))


def without_compiling(module, query, key, value, attention_mask, scaling=None, **options):
    """torch's flex attention as it is, which transformers would compile first."""
    from torch.nn.attention.flex_attention import flex_attention

    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    return flex_attention(query, key, value, block_mask=attention_mask, scale=scaling).transpose(1, 2), None


def test_flex_attention_is_certified(registries) -> None:
    AttentionInterface.register("flex_attention", without_compiling)
    (call,) = record(running(sharp("mistral"), "flex_attention"), ids(), Selection(layers=[1])).calls
    assert certify(call, 5).verdict is Verdict.CERTIFIED


# code of the older style ---------------------------------------------------------------------------


def eager_attention_forward(module, query, key, value, attention_mask, scaling, **options):
    weights = (query @ key.transpose(2, 3) * scaling + attention_mask).softmax(-1)
    return (weights @ value).transpose(1, 2), weights


class OldStyle(nn.Module):
    """Attention that asks for other kernels by name, but calls its own eager one when told eager."""

    def __init__(self, config, inner):
        super().__init__()
        self.config, self.dim, self.num_heads, self.is_causal = config, inner.head_dim, 6, True
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            inner.q_proj,
            inner.k_proj,
            inner.v_proj,
            inner.o_proj,
        )

    def forward(self, hidden_states, attention_mask=None, **options):
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        attend = eager_attention_forward
        if self.config._attn_implementation != "eager":
            attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        split = (*hidden_states.shape[:2], -1, self.dim)
        query = self.q_proj(hidden_states).view(split).transpose(1, 2)
        key = self.k_proj(hidden_states).view(split).transpose(1, 2).repeat_interleave(3, 1)
        value = self.v_proj(hidden_states).view(split).transpose(1, 2).repeat_interleave(3, 1)
        output, weights = attend(self, query, key, value, attention_mask, scaling=0.3)
        return self.o_proj(output.reshape(*hidden_states.shape[:2], -1)), weights


@pytest.fixture
def old_style() -> nn.Module:
    model = sharp("llama")
    for layer in model.layers:
        layer.self_attn = OldStyle(model.config, layer.self_attn)
    return model


def test_code_of_the_older_style_is_not_said_to_ask_for_no_kernel(old_style) -> None:
    said = r"LlamaModel \(layers\.0\.self_attn\) chooses its kernel by itself: .* cannot be read in tiles"
    with pytest.raises(InputError, match=said):
        record_long(old_style, ids(), Selection(layers=[1]))


def test_code_of_the_older_style_is_read_under_a_name_of_our_own(old_style) -> None:
    with torch.no_grad():
        plain = old_style(**padded("right")).last_hidden_state
    own = []
    old_style.layers[1].self_attn.register_forward_hook(lambda _, args, out: own.append(out[1]))
    captured = record(old_style, padded("right"), Selection(layers=[1], row=1))
    (call,) = captured.calls
    assert (call.route, captured.provenance.route) == (Route.CUSTOM, "custom name")
    assert torch.equal(call.weights[2], own[0][1, 2])
    assert certify(call, 2).verdict is Verdict.CERTIFIED
    assert old_style.config._attn_implementation == "eager"
    with torch.no_grad():
        assert torch.equal(old_style(**padded("right")).last_hidden_state, plain)


def test_values_of_other_tokens_than_the_keys_are_seen_under_a_name_of_our_own(old_style) -> None:
    old_style.layers[1].self_attn.v_proj.register_forward_hook(lambda _, given, made: made.roll(1, 1))
    calls = record(old_style, ids()).calls
    assert {call.route for call in calls} == {Route.CUSTOM}
    assert [call.reservation == APART for call in calls] == [layer == 1 for layer in range(len(calls))]


def test_a_route_that_a_model_does_not_allow_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be read by custom name: it can by takeover"):
        record(sharp("llama"), ids(), Selection(route=Route.CUSTOM))
    with pytest.raises(InputError, match=r"cannot be read by traced operations: it can by takeover$"):
        record(running(sharp("llama"), "sdpa"), ids(), Selection(route=Route.TRACED))
