"""The tracer reads what models computed: against untouched copies, with things taken away, with mixtures."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from bypassing import BATCH, MODELS, REBUILT, TOKENS, bypassing
from families import DIM, ids
from own_attention import OwnAttention, with_own_attention
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture import Selection, record
from attnscope.capture.run import NothingSeenError
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.model.anatomy.sites import looks_traceable
from attnscope.results import Verdict
from attnscope.verify import certify

torch.set_num_threads(1)
HEADS = 6
FOUND = {"lxmert": 6, "fsmt": 3, "speecht5": 3, "prophetnet": 4}  # attentions; all others have two
SHOWN_OTHERWISE = {
    "deberta talking heads": 0,  # returns its weights after mixing the heads once more
    "hiera": 0,  # returns windows in another order
    "lxmert": 3,  # returns one of the four cross-attentions
    "prophetnet": 2,  # returns the n-gram stream and the cross-attention in another order
    "wavlm": 0,  # returns the mean over the heads
    "swinv2": 1,  # one per stage
}


def attention_modules(model: nn.Module) -> list[nn.Module]:
    """The modules whose code looks like attention; GPT-2 asks the interface, but not when it is to upcast."""
    upcasting = "GPT2Attention"
    return [
        each for each in model.modules() if looks_traceable(type(each)) or type(each).__name__ == upcasting
    ]


def trace(model: nn.Module, inputs: dict[str, Any]) -> tuple[list[TracedAttention], Any]:
    """Everything traced in one run, and what the run returned."""
    found: list[TracedAttention] = []
    torch.manual_seed(0)
    with torch.no_grad(), traced(attention_modules(model), found.append):
        return found, model(**inputs)


def untouched(model: nn.Module, inputs: dict[str, Any], **options: Any) -> Any:
    torch.manual_seed(0)
    with torch.no_grad():
        return model(**inputs, **options)


@dataclass(frozen=True)
class Run:
    """A model traced once: what was found, and what was returned traced, before, and by an untouched copy."""

    found: list[TracedAttention]
    traced: list[Tensor]
    before: list[Tensor]
    after: list[Tensor]
    attentions: list[Tensor]


@cache
def run(name: str) -> Run:
    model, inputs = bypassing(name)
    shown = untouched(model, inputs, output_attentions=True)
    before = tensors(untouched(model, inputs))
    found, output = trace(model, inputs)
    after = tensors(untouched(model, inputs))
    return Run(found, tensors(output), before, after, returned_attentions(shown))


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in tensors(part)] if isinstance(value, list | tuple) else []


def returned_attentions(output: Any) -> list[Tensor]:
    return [each for name, value in output.items() if "attentions" in name for each in tensors(value)]


def recomputed(found: TracedAttention, without: int | str | None = None) -> Tensor:
    """The weights by the plainest float64 arithmetic, without term number `without`, "mask" or "scale"."""
    heads = found.query.shape[1]
    key = found.key.repeat_interleave(heads // found.key.shape[1], dim=1).double()
    scores = torch.einsum("bhqd,bhkd->bhqk", found.query.double(), key)
    scores = scores * (1 if without == "scale" else found.scale)
    if found.softcap is not None:
        scores = found.softcap * torch.tanh(scores / found.softcap)
    for number, (_, term) in enumerate(found.terms):
        if number != without:
            scores = scores + term.double()
    if found.allowed is not None and without != "mask":
        scores = scores.masked_fill(~found.allowed, -torch.inf)
    return torch.softmax(scores, dim=-1)


def answered(found: TracedAttention) -> Tensor:
    """The rows with any key to look at, broadcast to batch head query."""
    rows = torch.ones(found.weights.shape[:3], dtype=torch.bool)
    return rows if found.allowed is None else rows & found.allowed.any(-1)


def error(found: TracedAttention, weights: Tensor) -> float:
    return float((weights - found.weights.double())[answered(found)].abs().max())


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_those_that_an_untouched_copy_returns(name):
    found, expected = run(name).found, run(name).attentions
    assert len(found) == FOUND.get(name, 2)
    flat = [one.weights.flatten() for one in found]  # some return batch and head folded
    seen = [any(torch.equal(each, returned.flatten()) for each in flat) for returned in expected]
    assert sum(seen) == SHOWN_OTHERWISE.get(name, len(expected))
    assert len(seen) >= 1


def test_weights_of_wavlm_are_by_head_what_the_model_averages():
    for one, mean in zip(run("wavlm").found, run("wavlm").attentions, strict=True):
        torch.testing.assert_close(one.weights.mean(1), mean[:, 0], rtol=0, atol=1e-6)
        assert (one.weights[:, 0] - one.weights[:, 1]).abs().max() > 0.1


@pytest.mark.parametrize("name", REBUILT)
def test_weights_recomputed_from_operands_are_those_of_the_untouched_model(name):
    for one in run(name).found:
        assert one.remainder is None
        assert one.reweighted is None
        assert error(one, recomputed(one)) < 5e-6
        assert (one.weights.amax(-1)[answered(one)] * one.weights.shape[-1]).mean() > 1.5, "too even to tell"


@pytest.mark.parametrize("name", MODELS)
def test_the_model_computes_to_the_bit_what_it_computes_untraced(name):
    same = run(name)
    assert len(same.traced) == len(same.after) == len(same.before) > 0
    assert all(map(torch.equal, same.traced, same.before))
    assert all(map(torch.equal, same.after, same.before)), "the model is not as it was"


@pytest.mark.parametrize("name", REBUILT)
def test_output_is_weights_times_value_and_nothing_else(name):
    for one in run(name).found:
        value = one.value.repeat_interleave(one.weights.shape[1] // one.value.shape[1], dim=1)
        torch.testing.assert_close(
            one.output.double(), one.weights.double() @ value.double(), rtol=0, atol=1e-5
        )
        shuffled = one.weights.double() @ value.double().flip(2)
        assert (one.output.double() - shuffled).abs().max() > 1e-2


TERMS = {
    "deberta": ["content to position", "position to content"],
    "deberta-v2": ["content to position", "position to content"],
    "deberta-v3": ["content to position", "position to content"],
    "mpnet": ["relative position"],
    "xlnet": ["relative position", "relative position 2"],
    "bloom": ["alibi"],
    "mpt": ["alibi"],
    "falcon alibi": ["alibi", "alibi 2"],  # transformers adds it twice under eager: read off, not assumed
    "sam": ["relative position"],
    "layoutlmv3": ["relative position"],
    "wavlm": ["relative position"],
    "sew-d": ["content to position", "position to content"],
}


@pytest.mark.parametrize("name", REBUILT)
def test_without_any_one_term_the_recomputation_misses(name):
    found = run(name).found
    if name in TERMS:
        assert [sorted(term for term, _ in one.terms) for one in found] == [TERMS[name]] * len(found)
    for one in found:
        for number in range(len(one.terms)):
            assert error(one, recomputed(one, without=number)) > 1e-3
        if one.allowed is not None:
            assert error(one, recomputed(one, without="mask")) > 1e-3
        if one.scale != 1:
            assert error(one, recomputed(one, without="scale")) > 1e-3


@pytest.mark.parametrize("name", ["mpnet", "bloom", "gpt_neo", "xlnet", "openai-gpt", "deberta-v2", "fsmt"])
def test_nobody_is_allowed_to_look_at_padding_and_all_at_the_rest(name):
    one = run(name).found[-1 if name == "fsmt" else 0]  # there the cross-attention
    allowed = torch.ones_like(one.weights, dtype=torch.bool) & one.allowed
    assert not allowed[1, :, : TOKENS - 3, -3:].any()
    if name in ("mpnet", "xlnet", "deberta-v2", "fsmt"):
        assert allowed[0].all() or name == "xlnet"
        assert allowed[1, :, : TOKENS - 3, :-3].all() or name == "xlnet"
    else:
        causal = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
        assert torch.equal(allowed[0], causal.expand(HEADS, -1, -1))


def test_a_local_layer_of_gpt_neo_looks_no_further_back_than_its_window():
    found = run("gpt_neo").found
    everywhere = torch.ones(TOKENS, TOKENS, dtype=torch.bool)
    for one, window in zip(found, (TOKENS, 4), strict=True):
        assert torch.equal(one.allowed[0, 0], everywhere.tril() & everywhere.triu(1 - window))


PROJECTIONS = {  # what the model multiplied: the projection times a number, if it scales before
    "mpnet": ("q", "k", "v", 1.0, 1.0),
    "deberta-v2": ("query_proj", "key_proj", "value_proj", 1.0, (3 * 8) ** -0.5),
    "fsmt": ("q_proj", "k_proj", "v_proj", 8**-0.5, 1.0),
}


@pytest.mark.parametrize("name", PROJECTIONS)
def test_query_key_and_value_are_what_the_models_own_projections_returned(name):
    model, inputs = bypassing(name)
    *names, query_factor, key_factor = PROJECTIONS[name]
    seen: dict[str, list[Tensor]] = {name: [] for name in names}
    for path, module in model.named_modules():
        if (last := path.split(".")[-1]) in seen:
            module.register_forward_hook(lambda _m, _i, out, kept=seen[last]: kept.append(out))
    found, _ = trace(model, inputs)
    for number, one in enumerate(found):
        traced_ones = (one.query / query_factor, one.key / key_factor, one.value)
        for each, read in zip(names, traced_ones, strict=True):
            made = seen[each][number]
            made = made.transpose(0, 1) if name == "fsmt" else made  # which has the tokens first
            by_head = made.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            torch.testing.assert_close(read, by_head, rtol=1e-5, atol=1e-6)


def test_key_heads_that_a_repeat_made_alike_are_held_once():
    for name, heads in (("falcon", 1), ("falcon grouped", 2), ("falcon alibi", HEADS)):
        for one in run(name).found:
            assert one.query.shape == (BATCH, HEADS, TOKENS, 8)
            assert one.key.shape == one.value.shape == (BATCH, heads, TOKENS, 8)


def test_alibi_of_bloom_is_the_papers_slope_times_the_position():
    one = run("bloom").found[0]
    bias = one.terms[0][1].expand_as(one.weights)[0]
    slopes = [2 ** -(8 / 4 * power) for power in (1, 2, 3, 4)] + [2 ** -(8 / 8 * power) for power in (1, 3)]
    expected = torch.tensor(slopes)[:, None, None] * torch.arange(TOKENS)
    torch.testing.assert_close(bias, expected.expand_as(bias))


def test_mixed_heads_leave_a_remainder_and_are_said_to_be_reweighted():
    for one in run("deberta talking heads").found:
        assert one.remainder is not None
        assert one.remainder.abs().max() > 0.1
        value = one.value.double()
        assert one.reweighted is not None
        torch.testing.assert_close(one.output.double(), one.reweighted.double() @ value, rtol=0, atol=1e-5)
        assert (one.output.double() - one.weights.double() @ value).abs().max() > 1e-2


def test_what_the_watcher_raises_passes_through_and_nothing_stays_behind():
    model, inputs = bypassing("mpnet")
    before = untouched(model, inputs).last_hidden_state
    seen = []

    def stop(found: TracedAttention) -> None:
        seen.append(found)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), traced(attention_modules(model), stop):
        untouched(model, inputs)
    assert len(seen) == 1
    assert torch.overrides._get_current_function_mode() is None
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.equal(untouched(model, inputs).last_hidden_state, before)


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
    "keys, by einsum": (
        lambda own, w, v: torch.einsum("bhqk,bhkd->bhqd", torch.einsum("bhqk,kl->bhql", w, own.keys), v),
        lambda own, w: w @ own.keys,
    ),
    "keys, by a tensor that the module does not own up to": (
        lambda own, w, v: w @ own.attribute[0] @ v,
        lambda own, w: w @ own.attribute[0],
    ),
    "keys, by a matrix made of the values": (
        lambda own, w, v: w @ (v @ v.mT / 9) @ v,
        None,
    ),
    "queries": (lambda own, w, v: own.keys @ w @ v, lambda own, w: own.keys @ w),
    "heads, by @": (
        lambda own, w, v: (w.permute(0, 2, 3, 1) @ own.heads).permute(0, 3, 1, 2) @ v,
        lambda own, w: torch.einsum("bhqk,hg->bgqk", w, own.heads),
    ),
    "heads, by einsum": (
        lambda own, w, v: torch.einsum("bhqk,hg->bgqk", w, own.heads) @ v,
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


@pytest.mark.parametrize("tokens", [TOKENS])
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


@pytest.mark.parametrize("tokens", [DIM])
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
