"""Runs without weights, part by part: shapes of products, windows of rules, empty inputs, counts."""

import types
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.masking_utils import (
    AttentionMaskInterface,
    and_masks,
    causal_mask_function,
    sliding_window_overlay,
)

from attnscope.capture.dry_run import (
    Count,
    Products,
    Shapes,
    config_value,
    placeholder_inputs,
    window_of,
    windows_of_masks,
)

BLOCKS, HEADS, KEY_HEADS, QUERIES, KEYS, DIM, VALUE_DIM = 5, 6, 2, 4, 7, 8, 9
WHOLE = Shapes(BLOCKS, HEADS, KEY_HEADS, QUERIES, KEYS, DIM, VALUE_DIM)


def empty(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta")


# products -------------------------------------------------------------------------------------------


def written(query: Tensor, key: Tensor, value: Tensor, stated: int | None = None) -> list[Shapes]:
    """What is told of an attention that is written out: every product and softmax, as they pass by."""
    products, told = Products(stated), []

    def passing(function: Any, *args: Any, **kwargs: Any) -> Tensor:
        result = function(*args, **kwargs)
        told.extend(products.after(function, args, kwargs, result))
        return result

    repeat = len(query.shape) > 3 and query.shape[1] // key.shape[1]
    keys = key.repeat_interleave(repeat, 1) if repeat else key
    values = value.repeat_interleave(repeat, 1) if repeat else value
    scores = passing(torch.matmul, query, keys.mT)
    weights = passing(torch.softmax, scores, -1)
    passing(torch.matmul, weights, values)
    return told


@pytest.mark.parametrize(
    ("stated", "blocks", "heads"),
    [(HEADS, BLOCKS, HEADS), (None, 1, 30), (7, 1, 30), (30, 1, 30)],
)
def test_blocks_and_heads_on_one_axis_are_told_by_what_the_module_states(stated, blocks, heads) -> None:
    folded = [empty(BLOCKS * HEADS, *rest) for rest in ((QUERIES, DIM), (KEYS, DIM), (KEYS, VALUE_DIM))]
    assert written(*folded, stated) == [Shapes(blocks, heads, heads, QUERIES, KEYS, DIM, VALUE_DIM)]


def test_what_the_fused_kernel_is_given_says_it_all_with_or_without_blocks() -> None:
    fused = nn.functional.scaled_dot_product_attention
    query, key = empty(BLOCKS, HEADS, QUERIES, DIM), empty(BLOCKS, KEY_HEADS, KEYS, DIM)
    value = empty(BLOCKS, KEY_HEADS, KEYS, VALUE_DIM)
    assert Products().after(fused, (query, key), {"value": value}, None) == [WHOLE]
    assert Products().after(fused, (query[0], key[0], value[0]), {}, None) == [
        Shapes(1, HEADS, KEY_HEADS, QUERIES, KEYS, DIM, VALUE_DIM)
    ]


def test_products_without_a_softmax_or_of_other_sizes_are_no_attention() -> None:
    products = Products(HEADS)
    query, key = empty(BLOCKS, HEADS, QUERIES, DIM), empty(BLOCKS, HEADS, DIM, KEYS)
    value, other = empty(BLOCKS, HEADS, KEYS, VALUE_DIM), empty(3, 11, 13)
    assert products.after(torch.matmul, (query, key), {}, query @ key) == []
    assert products.after(torch.matmul, (query @ key, value), {}, query @ key @ value) == []
    products.after(torch.softmax, (query @ key, -1), {}, query @ key)
    assert products.after(torch.matmul, (other, other.mT), {}, other @ other.mT) == []
    assert len(products.after(torch.matmul, (query @ key, value), {}, query @ key @ value)) == 1
    assert products.after(torch.matmul, (query @ key, value), {}, query @ key @ value) == []


def test_a_softmax_over_what_no_product_made_begins_no_attention() -> None:
    products, value = Products(), empty(QUERIES, VALUE_DIM)
    flat = empty(KEYS, QUERIES)
    products.after(torch.matmul, (empty(KEYS, 3), empty(3, QUERIES)), {}, flat)
    products.after(torch.softmax, (flat, -1), {}, flat)  # two axes: no heads
    assert products.after(torch.matmul, (flat, value), {}, flat @ value) == []


# windows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 3, 1000, 2**24 - 1, 2**24])
def test_the_window_of_a_rule_is_found_however_wide(window) -> None:
    assert window_of(lambda _b, _h, query, key: (key >= 0) & (query - key < window)) == window


def test_a_window_wider_than_any_text_is_none_and_so_is_a_rule_that_allows_nothing() -> None:
    assert window_of(lambda _b, _h, query, key: query - key < 2**24 + 1) is None
    assert window_of(lambda _b, _h, query, key: query != query) is None


def test_rules_without_a_window_tell_none() -> None:
    assert window_of(lambda _b, _h, query, key: query // 8 == key // 8) is None
    assert window_of(lambda _b, _h, query, key: query - key < 4 + query % 2) is None
    assert window_of(lambda _b, _h, query, key: torch.zeros(3)[query] > 0) is None  # a table of this text


# inputs ---------------------------------------------------------------------------------------------


def config(**fields: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(model_type="made up", **fields)


def model_that_takes(forward: Any, told: Any = None, main: str | None = None) -> nn.Module:
    """A model with this forward, config and main input."""
    names: dict[str, Any] = {"forward": forward} | ({} if main is None else {"main_input_name": main})
    model = type("MadeUp", (nn.Module,), names)()
    model.config = told
    return model


def shapes(made: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v.shape) if isinstance(v, Tensor) else v for name, v in made.items()}


def test_a_decoder_beside_an_encoder_gets_its_text_and_boxes_have_four_sides() -> None:
    def forward(self, bbox, /, input_ids=None, *, decoder_input_ids=None): ...

    def needs(self, bbox, input_ids=None, *, decoder_input_ids=None): ...

    made = placeholder_inputs(model_that_takes(needs), 7)
    assert shapes(made) == {"bbox": (1, 7, 4), "input_ids": (1, 7), "decoder_input_ids": (1, 7)}
    assert all(each.dtype == torch.long for each in made.values())
    assert "bbox" not in placeholder_inputs(model_that_takes(forward), 7)


def test_an_input_that_no_rule_makes_is_refused_by_name() -> None:
    def forward(self, input_ids, *, graph): ...

    with pytest.raises(ValueError, match=r"^nothing is known of its input graph$"):
        placeholder_inputs(model_that_takes(forward), 7)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (config(), (1, 3, 224, 224)),
        (config(image_size=30, num_channels=1), (1, 1, 30, 30)),
        (config(img_size=(30, 50), in_channels=4), (1, 4, 30, 50)),
        (config(image_size=None, vision=config(image_size=[18, 20])), (1, 3, 18, 20)),
    ],
)
def test_a_picture_has_the_size_that_the_config_tells(told, expected) -> None:
    def forward(self, pixel_values): ...

    made = placeholder_inputs(model_that_takes(forward, told, "pixel_values"), 7)
    assert shapes(made) == {"pixel_values": expected}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (config(num_mel_bins=80, max_source_positions=1500), (1, 80, 3000)),
        (config(num_mel_bins=80, inner=config(max_source_positions=300)), (1, 300, 80)),
    ],
)
def test_a_spectrogram_stands_upright_where_the_config_tells_bins_and_frames(told, expected) -> None:
    def forward(self, input_features): ...

    assert shapes(placeholder_inputs(model_that_takes(forward, told, "input_features"), 7)) == {
        "input_features": expected
    }


def test_a_sound_is_ten_seconds_long() -> None:
    def forward(self, input_values): ...

    made = placeholder_inputs(model_that_takes(forward, main="input_values"), 7)
    assert shapes(made) == {"input_values": (1, 160_000)}


def test_a_value_is_looked_for_in_configs_inside_of_a_config_and_missed_by_name() -> None:
    told = config(inner=config(deepest=config(depth=0)), depth=None, other=types.SimpleNamespace(width=3))
    assert config_value(told, "depth") == 0
    assert config_value(told, "height", "depth", default=9) == 0
    assert config_value(told, "width", default=9) == 9  # what is inside is no config
    with pytest.raises(ValueError, match=r"^its config does not tell width or height$"):
        config_value(told, "width", "height")


# counting -------------------------------------------------------------------------------------------


def test_products_are_counted_and_every_question_is_answered_yes() -> None:
    with Count() as count:
        empty(3, 4) @ empty(4, 5)
        assert count.flops == 2 * 3 * 4 * 5
        empty(2, 3, 4) @ empty(2, 4, 5)
        assert count.flops == 3 * 2 * 3 * 4 * 5
        empty(3) + empty(3)
        assert count.flops == 3 * 2 * 3 * 4 * 5
        assert bool((empty(3) > 0).any())
        assert not bool(torch.tensor(False))
        with pytest.raises((RuntimeError, NotImplementedError)):
            empty(1).item()


def widest(mask: torch.Tensor) -> int:
    """The most keys that a query of an eager mask looks at, when it looks at none ahead."""
    return int((mask == 0).sum(-1).max())


def test_masks_are_noted_with_their_windows_and_the_registry_is_as_it_was() -> None:
    registry = AttentionMaskInterface._global_mapping
    before, noted = dict(registry), []
    rule = and_masks(sliding_window_overlay(3), causal_mask_function)
    with windows_of_masks(lambda mask, window: noted.append((mask, window))):
        mask = registry["eager"](1, 5, 5, mask_function=rule)
    assert registry == before
    assert [(each is mask, window) for each, window in noted] == [(True, 3)]
    with pytest.raises(TypeError), windows_of_masks(lambda mask, window: None):
        registry["eager"]()
    assert registry == before
