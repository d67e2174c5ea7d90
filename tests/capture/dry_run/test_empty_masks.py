"""The window that a mask was made with, asked of its rule, against the mask itself."""

import pytest
import torch
from transformers.masking_utils import (
    AttentionMaskInterface,
    and_masks,
    causal_mask_function,
    chunked_overlay,
    eager_mask,
    sliding_window_overlay,
)

from attnscope.capture.dry_run.watch import window_of, windows_of_masks


def widest(mask: torch.Tensor) -> int:
    """The most keys that a query of an eager mask looks at, when it looks at none ahead."""
    return int((mask == 0).sum(-1).max())


@pytest.mark.parametrize("window", [1, 4, 7])
def test_a_sliding_rule_tells_its_window(window: int) -> None:
    rule = and_masks(sliding_window_overlay(window), causal_mask_function)
    assert window_of(rule) == window == widest(eager_mask(1, 9, 9, mask_function=rule))


def test_rules_without_a_window_tell_none() -> None:
    chunks = and_masks(chunked_overlay(4, torch.zeros(1, dtype=torch.long)), causal_mask_function)
    assert window_of(causal_mask_function) is None
    assert window_of(chunks) is None
    assert window_of(lambda batch, head, query, key: query == query) is None
    assert window_of(lambda batch, head, query, key: torch.zeros(3)[query] > 0) is None


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
