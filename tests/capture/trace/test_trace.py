"""The tracer reads what models computed: against what untouched copies return, and with things taken away."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from bypassing import BATCH, MODELS, REBUILT, TOKENS, bypassing
from torch import Tensor, nn

from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.model.anatomy.bypass import looks_traceable

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
    "blip text": ("query", "key", "value", 1.0, 1.0),
    "lxmert": ("query", "key", "value", 1.0, 1.0),
    "deberta-v2": ("query_proj", "key_proj", "value_proj", 1.0, (3 * 8) ** -0.5),
    "xglm": ("q_proj", "k_proj", "v_proj", 8**-0.5, 1.0),
    "fsmt": ("q_proj", "k_proj", "v_proj", 8**-0.5, 1.0),
    "speecht5": ("q_proj", "k_proj", "v_proj", 8**-0.5, 1.0),
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


def test_queries_of_wavlm_are_what_its_projection_would_return():
    model, inputs = bypassing("wavlm")
    given: list[Tensor] = []
    layer = model.encoder.layers[0].attention
    layer.register_forward_pre_hook(
        lambda _m, args, kwargs: given.append(kwargs.get("hidden_states", *args[:1])), with_kwargs=True
    )
    one = trace(model, inputs)[0][0]
    for read, projection, factor in ((one.query, layer.q_proj, 8**-0.5), (one.key, layer.k_proj, 1)):
        expected = (projection(given[0]) * factor).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        torch.testing.assert_close(read, expected, rtol=1e-5, atol=1e-5)


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


def test_only_the_modules_asked_for_are_watched_and_the_innermost_is_named():
    model, inputs = bypassing("mpnet")
    inner = model.encoder.layer[1].attention.attn
    found: list[TracedAttention] = []
    with torch.no_grad(), traced([model.encoder.layer[1], inner], found.append):
        model(**inputs)
    assert [one.module for one in found] == [inner]
    with torch.no_grad(), traced([], found.append):
        model(**inputs)
    assert len(found) == 1
