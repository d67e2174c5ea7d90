"""The zoo itself: what it builds is repeatable, sharp, and has its mechanisms switched on."""

import pytest
import torch
from torch import Tensor, nn
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from . import NotBuildable, build, model_types
from .configs import config
from .rules import HEADS, KEY_HEADS, PADDING, TOKENS, WINDOW
from .sharpen import finite, peaks


def _weights(model: nn.Module, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    with torch.no_grad():
        return model(**inputs, output_attentions=True).attentions


def _peakedness(weights: tuple[Tensor, ...]) -> float:
    """How many times the largest weight of a row exceeds an even one, on average over rows with a choice."""
    choices = [(layer > 0).sum(-1) for layer in weights]
    largest = [layer.amax(-1) * count for layer, count in zip(weights, choices, strict=True)]
    rows = [value[count > 1] for value, count in zip(largest, choices, strict=True)]
    return float(torch.cat(rows).mean())


def test_the_same_type_and_seed_give_the_same_weights_inputs_and_output() -> None:
    one, two = build("llama"), build("llama")
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True))
    assert all(torch.equal(one.inputs[name], two.inputs[name]) for name in one.inputs)
    with torch.no_grad():
        assert torch.equal(one.model(**one.inputs)[0], two.model(**two.inputs)[0])


@pytest.mark.parametrize("model_type", ["llama", "vit"])
def test_attention_is_peaked_and_is_not_as_the_library_initialises_it(model_type: str) -> None:
    made = build(model_type)
    plain = type(made.model)._from_config(config(model_type), attn_implementation="eager").eval()
    assert _peakedness(_weights(made.model, made.inputs)) > 2
    assert _peakedness(_weights(plain, made.inputs)) < 1.5


def test_peaks_are_0_for_even_rows_and_1_for_one_hot_rows() -> None:
    with peaks() as found:
        torch.zeros(2, 3, 5).softmax(-1)
        torch.eye(5).expand(2, 5, 5).mul(100).softmax(-1)
        torch.tensor([0.0, 0.0, 0.0, torch.finfo().min, torch.finfo().min]).expand(2, 3, 5).softmax(-1)
        torch.zeros(3, 5).softmax(-1)  # no attention: too few axes
    assert found == pytest.approx([0, 1, 0])


def test_an_unknown_type_a_missing_package_and_a_mere_part_are_said_in_one_line() -> None:
    with pytest.raises(NotBuildable, match=r"^no model type qwen2_vlm in this transformers$"):
        build("qwen2_vlm")
    with pytest.raises(NotBuildable, match=r"^needs the package timm$"):
        build("timm_wrapper")
    with pytest.raises(NotBuildable, match="a part without a model class of its own") as refusal:
        build("sam_mask_decoder")
    assert "\n" not in str(refusal.value)


def test_every_type_of_auto_model_is_in_the_list() -> None:
    assert set(MODEL_MAPPING_NAMES) <= set(model_types())
    assert len(model_types()) == len(set(model_types()))


def test_heads_share_keys_and_windows_are_shorter_than_the_input() -> None:
    made = config("gemma2")
    assert (made.num_attention_heads, made.num_key_value_heads) == (HEADS, KEY_HEADS)
    assert made.sliding_window == WINDOW < TOKENS - PADDING
    assert set(made.layer_types) == {"sliding_attention", "full_attention"}
    assert made.attn_logit_softcapping == 3.0


def test_a_window_keeps_far_keys_out_of_its_layers_alone() -> None:
    made = build("gemma2")
    for kind, weights in zip(made.model.config.layer_types, _weights(made.model, made.inputs), strict=True):
        far = weights[0, :, TOKENS - 1, : TOKENS - WINDOW]
        assert bool((far == 0).all()) == (kind == "sliding_attention")


def test_a_prompt_holds_as_many_placeholders_as_the_picture_has_features() -> None:
    made = build("qwen2_vl")
    placeholder = made.model.config.image_token_id
    patches, merged = int(made.inputs["image_grid_thw"].prod(-1).sum()), 2 * 2
    assert int((made.inputs["input_ids"] == placeholder).sum()) == patches // merged
    short = {**made.inputs, "input_ids": made.inputs["input_ids"].clone()}
    short["input_ids"][0, int((short["input_ids"][0] == placeholder).nonzero()[0])] = 3
    with pytest.raises(ValueError, match="do not match"):
        made.model(**short)


def test_an_output_that_is_no_number_is_not_finite() -> None:
    assert finite({"logits": torch.tensor([0.0, -torch.inf]), "ids": torch.tensor([1])})
    assert not finite({"hidden": (torch.zeros(2), torch.tensor([torch.nan]))})
    assert not finite(torch.tensor([torch.inf]))
