"""The weights of whole batches, through the same doors as a capture: against what the models return."""

import pytest
import torch
import transformers as hf
from bypassing import bypassing
from families import FAMILIES, ids, sharp, twin
from torch import nn

from attnscope.capture import Selection
from attnscope.capture.weights import Passing, Weights
from attnscope.errors import InputError
from attnscope.results import Kind


def returned(model: nn.Module, inputs) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        return twin(model)(**inputs, output_attentions=True).attentions


def kept(layer: int, weights: torch.Tensor) -> torch.Tensor:
    return weights.clone()


@pytest.mark.parametrize("family", FAMILIES)
def test_all_rows_of_a_batch_are_what_the_model_itself_returns(family: str) -> None:
    model, inputs = sharp(family), ids(batch=3)
    found = Weights(model, Selection()).read(inputs, kept)
    expected = returned(model, inputs)
    assert list(found) == list(range(len(expected)))
    for layer, weights in found.items():
        assert weights.shape == (3, 6, 11, 11)
        torch.testing.assert_close(weights, expected[layer], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["deberta-v2", "gptj", "bloom", "mpnet", "gpt2 upcast"])
def test_models_that_make_their_attention_themselves_are_read_as_well(name: str) -> None:
    model, inputs = bypassing(name)
    found = Weights(model, Selection(layers=[1], heads=[4, 1])).read(inputs, kept)
    assert list(found) == [1]
    torch.testing.assert_close(found[1], returned(model, inputs)[1][:, [4, 1]], atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_kernel_that_returns_no_weights_prints_them(family: str) -> None:
    model = sharp(family)
    found = Weights(twin(model, "sdpa"), Selection(layers=[2])).read(ids(batch=3), kept)
    torch.testing.assert_close(found[2], returned(model, ids(batch=3))[2], atol=1e-5, rtol=0)


def test_the_run_ends_after_the_last_layer_and_leaves_the_model_as_it_was(registries) -> None:
    model = sharp("bert").train()
    tables = [dict(table) for table in registries]
    ran: list[int] = []
    for i, layer in enumerate(model.encoder.layer):
        layer.register_forward_hook(lambda *_, i=i: ran.append(i))
    Weights(model, Selection(layers=[1])).read(ids(), kept)
    assert ran == [0]
    assert model.training
    assert tables == [dict(table) for table in registries]
    assert not any(module._forward_hooks for module in model.modules() if module not in model.encoder.layer)


def test_a_layer_that_reads_in_windows_is_refused() -> None:
    config = hf.SwinConfig(
        image_size=32, patch_size=4, embed_dim=12, depths=[2], num_heads=[3], window_size=4
    )
    model = hf.SwinModel._from_config(config, attn_implementation="eager").eval()
    with pytest.raises(InputError, match="reads 2 texts as 8 pieces"):
        Weights(model, Selection()).read({"pixel_values": torch.rand(2, 3, 32, 32)}, kept)


def test_an_attention_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no cross"):
        Weights(sharp("bert"), Selection(kind=Kind.CROSS)).read(ids(), kept)
    with pytest.raises(InputError, match="no dense softmax attention in layer 0-2"):
        Weights(sharp("bert"), Selection(), block=1).read(ids(), kept)


def test_a_mask_that_layers_narrow_in_its_place_is_read_anew_in_each() -> None:
    model, lowest = sharp("bert"), torch.finfo(torch.float32).min
    far = (torch.arange(11)[:, None] - torch.arange(11)).abs()
    for i, layer in enumerate(model.encoder.layer):

        def narrow(_module: nn.Module, args: tuple, given: dict, reach: int = 4 - i) -> None:
            mask = next(each for each in (*args, *given.values()) if getattr(each, "ndim", 0) == 4)
            mask.masked_fill_(far > reach, lowest)

        layer.attention.self.register_forward_pre_hook(narrow, with_kwargs=True)
    inputs = ids(batch=2)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    inputs["attention_mask"][1, 8:] = 0
    seen = Passing(model, Selection()).read(inputs, lambda _layer, passed: passed)
    for i, passed in seen.items():
        assert passed.allowed is not None
        assert torch.equal(passed.allowed[0, 0], far <= 4 - i)
        assert torch.equal(passed.allowed[0, 0], (passed.weights[0] > 0).any(0))
        assert torch.equal(passed.allowed[1, 0, :8, :8], (far <= 4 - i)[:8, :8])
