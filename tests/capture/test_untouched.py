"""Capturing leaves no trace: registries, hooks, modes and weights are as before, however the run ended."""

from collections.abc import Callable

import pytest
import torch
from families import eager_weights, full_run, ids, sharp, twin
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import eager_attention_forward

from attnscope.capture import Selection, record
from attnscope.errors import InputError

HOOKS = [name for name in vars(nn.Linear(1, 1)) if "hook" in name]


def state(model: nn.Module) -> dict[str, object]:
    """Everything that capture touches, or could."""
    modules = dict(model.named_modules())
    return {
        "global registry": dict(AttentionInterface._global_mapping),
        "local registry": dict(ALL_ATTENTION_FUNCTIONS._local_mapping),
        "kernel": {
            path: getattr(getattr(m, "config", None), "_attn_implementation", None)
            for path, m in modules.items()
        },
        "hooks": {path: [dict(getattr(m, name) or {}) for name in HOOKS] for path, m in modules.items()},
        "training": {path: module.training for path, module in modules.items()},
        "attributes": {path: sorted(vars(module)) for path, module in modules.items()},
        "weights": {name: (p.requires_grad, p._version, p.grad) for name, p in model.named_parameters()},
        "gradients": torch.is_grad_enabled(),
        "random numbers": torch.get_rng_state().numpy().tobytes(),
    }


def own_kernel(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options
):
    """A user's own attention function; it counts how often it is asked."""
    own_kernel.asked += 1
    return eager_attention_forward(module, query, key, value, attention_mask, **options)


@pytest.fixture(params=["eager", "sdpa", "own global function", "own local function"])
def model(request, registries) -> nn.Module:
    """BERT with dropout, mixed modes, one frozen weight, hooks of the user's; also with an own kernel."""
    model = twin(sharp("bert"), "sdpa" if "local" in request.param or request.param == "sdpa" else "eager")
    own_kernel.asked = 0
    if request.param == "own global function":
        AttentionInterface.register("eager", own_kernel)
    if request.param == "own local function":
        ALL_ATTENTION_FUNCTIONS["sdpa"] = own_kernel
    AttentionInterface.register("never used", own_kernel)
    model.train()
    model.encoder.layer[1].eval()
    model.encoder.layer[2].attention.self.training = False
    model.embeddings.word_embeddings.weight.requires_grad_(False)
    model.encoder.layer[0].attention.self.key.register_forward_hook(lambda *_: None)
    return model


def raising(error: BaseException) -> Callable[..., None]:
    def hook(*_: object) -> None:
        raise error

    return hook


@pytest.mark.parametrize("layers", [None, [0], [2]], ids=str)
def test_a_model_is_left_as_it_was_after_success(model, layers):
    before = state(model)
    record(model, ids(), Selection(layers=layers))
    assert state(model) == before


@pytest.mark.parametrize("error", [RuntimeError("inside"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("place", ["encoder.layer.1.attention.self.key", "embeddings"])
def test_a_model_is_left_as_it_was_after_an_exception_inside_a_layer(model, error, place):
    trap = model.get_submodule(place).register_forward_hook(raising(error))
    before = state(model)
    with pytest.raises(type(error)):
        record(model, ids())
    assert state(model) == before
    trap.remove()
    assert len(record(model, ids()).calls) == 3  # and can be captured again


def test_a_model_is_left_as_it_was_when_its_kernel_raises(model, registries, monkeypatch):
    def broken(module, query, key, value, attention_mask, **options):
        raise KeyboardInterrupt

    AttentionInterface.register(model.config._attn_implementation, broken)
    ALL_ATTENTION_FUNCTIONS._local_mapping.pop("sdpa", None)
    before = state(model)
    with pytest.raises(KeyboardInterrupt):
        record(model, ids())
    assert state(model) == before


@pytest.mark.parametrize("wrong", [{"layers": [7]}, {"heads": [9]}, {"row": 4}], ids=str)
def test_a_model_is_left_as_it_was_after_a_refusal(model, wrong):
    before = state(model)
    with pytest.raises(InputError):
        record(model, ids(), Selection(**wrong))
    assert state(model) == before


TRACES: dict[str, Callable[[nn.Module], object]] = {
    "a registered function": lambda model: AttentionInterface.register("eager", own_kernel),
    "a local function": lambda model: ALL_ATTENTION_FUNCTIONS.update({"sdpa": print}),
    "another kernel": lambda model: model.set_attn_implementation(
        "sdpa" if model.config._attn_implementation == "eager" else "eager"
    ),
    "a hook": lambda model: model.encoder.layer[0].attention.self.key.register_forward_hook(lambda *_: None),
    "a mode": lambda model: model.encoder.layer[1].train(),
    "a frozen weight": lambda model: model.encoder.requires_grad_(False),
    "a changed weight": lambda model: model.pooler.dense.weight.detach().add_(1),
    "a random number": lambda model: torch.rand(1),
    "an attribute": lambda model: setattr(model.encoder, "attnscope", 1),
    "gradients off": lambda model: torch.set_grad_enabled(False),
}


@pytest.mark.parametrize("trace", TRACES)
def test_any_trace_would_have_been_noticed(trace, registries):
    model = sharp("bert")
    before, gradients = state(model), torch.is_grad_enabled()
    try:
        TRACES[trace](model)
        assert state(model) != before
    finally:
        torch.set_grad_enabled(gradients)


@pytest.mark.parametrize("place", ["global", "local"])
def test_a_users_own_function_is_called_through_and_not_replaced(place, registries, read_once):
    own_kernel.asked = 0
    model = twin(sharp("bert"), "eager" if place == "global" else "sdpa")
    if place == "global":
        AttentionInterface.register("eager", own_kernel)
    else:
        ALL_ATTENTION_FUNCTIONS["sdpa"] = own_kernel
    captured = record(model, ids())
    # once a layer to read; to try whose rows they are the first alone asks it, whether it gives weights
    assert own_kernel.asked == 3 + 1
    assert torch.equal(captured.calls[2].weights[5], eager_weights(sharp("bert"), ids())[2][0, 5])


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_another_model_that_runs_in_the_meantime_is_not_captured(kernel):
    model, other = twin(sharp("llama"), kernel), twin(sharp("mistral"), kernel)
    alone, untouched = record(model, ids()), full_run(other, ids(5))
    meanwhile = []
    model.layers[1].self_attn.q_proj.register_forward_hook(
        lambda *_: meanwhile.append(full_run(other, ids(5)))
    )
    captured = record(model, ids())
    assert torch.equal(meanwhile[0], untouched)
    assert [call.module for call in captured.calls] == [f"layers.{i}.self_attn" for i in range(3)]
    for call, expected in zip(captured.calls, alone.calls, strict=True):
        assert torch.equal(call.q, expected.q)
        assert torch.equal(call.output, expected.output)
