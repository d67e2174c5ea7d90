"""Weights that a matrix mixes before they meet the values are not certified with another product's output."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from families import DIM, TOKENS, ids
from own_attention import OwnAttention, with_own_attention
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.capture import Selection, record
from attnscope.capture.routes import NothingSeenError
from attnscope.results import Verdict
from attnscope.verify import certify

Meet = Callable[[OwnAttention, Tensor, Tensor], Tensor]
LENGTHS = pytest.mark.parametrize("tokens", [TOKENS, DIM], ids=["oblong", "as many keys as dimensions"])


def read(meet: Meet, tokens: int) -> tuple[list[AttentionCall], list[Tensor]]:
    """What is recorded of each layer, and what the layers' own code made of it, `head query dim`."""
    model, made = with_own_attention(meet, tokens=tokens), []
    for layer in model.encoder.layer:
        layer.attention.self.register_forward_hook(
            lambda _, inputs, result: made.append(result[0][0].unflatten(-1, (-1, DIM)).transpose(0, 1))
        )
    with torch.no_grad():
        plain = model(**ids(tokens)).last_hidden_state
        made.clear()
        calls = list(record(model, ids(tokens)).calls)
        seen = list(made)
        assert torch.equal(model(**ids(tokens)).last_hidden_state, plain)
    return calls, seen


MIXED: dict[str, tuple[Meet, Callable[[OwnAttention, Tensor], Tensor]]] = {
    "keys, by @": (lambda own, w, v: w @ own.keys @ v, lambda own, w: w @ own.keys),
    "keys, by bmm": (
        lambda own, w, v: torch.bmm(
            torch.bmm(w.flatten(0, 1), own.keys.expand(w.shape[0] * w.shape[1], -1, -1)), v.flatten(0, 1)
        ).view(v.shape),
        lambda own, w: w @ own.keys,
    ),
    "keys, by einsum": (
        lambda own, w, v: torch.einsum("bhqk,bhkd->bhqd", torch.einsum("bhqk,kl->bhql", w, own.keys), v),
        lambda own, w: w @ own.keys,
    ),
    "keys, by an einsum with an ellipsis": (
        lambda own, w, v: torch.einsum("...qk,kl->...ql", w, own.keys) @ v,
        lambda own, w: w @ own.keys,
    ),
    "keys, by a constant": (lambda own, w, v: w @ own.constant @ v, lambda own, w: w @ own.constant),
    "keys, by a tensor that the module does not own up to": (
        lambda own, w, v: w @ own.attribute[0] @ v,
        lambda own, w: w @ own.attribute[0],
    ),
    "keys, by a matrix made of the values": (
        lambda own, w, v: w @ (v @ v.mT / 9) @ v,
        None,
    ),
    "keys, twice": (
        lambda own, w, v: w @ own.keys @ own.constant @ v,
        lambda own, w: w @ own.keys @ own.constant,
    ),
    "keys, then scaled": (lambda own, w, v: (0.5 * (w @ own.keys)) @ v, lambda own, w: 0.5 * (w @ own.keys)),
    "queries": (lambda own, w, v: own.keys @ w @ v, lambda own, w: own.keys @ w),
    "heads, by @": (
        lambda own, w, v: (w.permute(0, 2, 3, 1) @ own.heads).permute(0, 3, 1, 2) @ v,
        lambda own, w: torch.einsum("bhqk,hg->bgqk", w, own.heads),
    ),
    "heads, by einsum": (
        lambda own, w, v: torch.einsum("bhqk,hg->bgqk", w, own.heads) @ v,
        lambda own, w: torch.einsum("bhqk,hg->bgqk", w, own.heads),
    ),
    "heads, by F.linear": (
        lambda own, w, v: F.linear(w.permute(0, 2, 3, 1), own.heads.T).permute(0, 3, 1, 2) @ v,
        lambda own, w: torch.einsum("bhqk,hg->bgqk", w, own.heads),
    ),
}


@LENGTHS
@pytest.mark.parametrize("name", MIXED)
def test_the_output_is_the_product_with_the_values_and_the_verdict_partial(name, tokens, read_once):
    meet, mixing = MIXED[name]
    calls, made = read(meet, tokens)
    assert len(calls) == 3
    assert len(made) == 2 * 3  # once to read, once to try whose rows they are
    for call, output in zip(calls, made[:3], strict=True):
        certificate = certify(call, 4)
        assert certificate.verdict is Verdict.PARTIAL, certificate
        assert "before they meet the values" in certificate.reason
        torch.testing.assert_close(call.output, output, rtol=0, atol=1e-5)
        if mixing is not None:
            own = with_own_attention(meet, tokens=tokens).encoder.layer[0].attention.self
            weights = torch.stack([call.weights[head] for head in range(6)])[None]
            torch.testing.assert_close(call.reweighted[4], mixing(own, weights)[0, 4].detach())


@LENGTHS
def test_a_product_of_weights_that_only_looks_like_mixing_is_certified(tokens):
    plain: dict[str, Meet] = {
        "values": lambda own, w, v: w @ v,
        "values that the model learned": lambda own, w, v: w @ own.memory,
        "an output that is projected by a product": lambda own, w, v: w @ v @ own.memory[0, :DIM],
        "an output that is compared with keys in a further softmax": lambda own, w, v: (
            (w @ v @ v.mT).softmax(-1) @ v
        ),
    }
    for name, meet in plain.items():
        calls, _ = read(meet, tokens)
        assert len(calls) == (6 if "further" in name else 3), name
        verdicts = {certify(call, 4).verdict for call in calls if call.block == 0}
        assert verdicts == {Verdict.CERTIFIED}, name


def test_keys_that_are_brought_to_other_places_before_the_values_leave_nothing_to_certify():
    with pytest.raises(NothingSeenError):
        record(with_own_attention(lambda own, w, v: w @ own.fewer @ v[:, :, :5]), ids())


@LENGTHS
def test_values_that_are_mixed_before_the_weights_meet_them_are_not_those_of_the_tokens(tokens):
    for mixed in (
        lambda own, w, v: w @ (own.keys @ v),
        lambda own, w, v: w @ torch.einsum("kl,bhld->bhkd", own.keys, v),
        lambda own, w, v: w @ (own.constant.expand(1, 6, -1, -1) @ v),
    ):
        calls, made = read(mixed, tokens)
        for call, output in zip(calls, made[:3], strict=True):
            certificate = certify(call, 4)
            assert certificate.verdict is Verdict.PARTIAL, certificate
            assert "values" in certificate.reason
            torch.testing.assert_close(call.output, output, rtol=0, atol=1e-5)


def test_one_layer_of_several_is_numbered_as_if_nothing_had_been_taken_back():
    def two(own: OwnAttention, w: Tensor, v: Tensor) -> Tensor:
        return w @ own.keys @ v + (v @ (v @ own.memory[0]).mT).softmax(-1) @ v

    calls = record(with_own_attention(two, tokens=DIM), ids(DIM), Selection(layers=[1])).calls
    assert [(call.block, call.call) for call in calls] == [(0, 0), (1, 1)]
    assert {certify(call, 2).verdict for call in calls} == {Verdict.PARTIAL, Verdict.CERTIFIED}
