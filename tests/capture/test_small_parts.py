"""Small parts of a capture: one entry of a batch, layers by number, rows, keys before their rotation."""

import pytest
import torch
from torch import Tensor, nn

from attnscope.capture import routes
from attnscope.capture.following.recorder import unrotated_keys
from attnscope.capture.following.takeover import KernelInputs
from attnscope.capture.run import batch_size, chosen_row
from attnscope.errors import InputError


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_one_entry_of_what_a_kernel_was_handed_has_the_masks_and_biases_of_that_entry(entries):
    def each(count: int, *rest: int) -> Tensor:
        return torch.arange(count, dtype=torch.float32).view(count, 1, 1, 1).expand(count, *rest)

    options = {"position_bias": each(entries, 4, 5, 6), "sinks": each(entries, 4, 5, 1), "scaling": 0.5}
    query, key = each(3, 4, 5, 8), each(3, 2, 6, 8)
    given = KernelInputs(nn.Identity(), print, query, key, key + 10, each(entries, 1, 5, 6), options)
    entry, shared = (2 if entries == 3 else 1), entries - 1  # what has one entry is the same for all
    one = given.row(entry)
    assert (one.query == entry).all()
    assert (one.key == entry).all()
    assert (one.value == entry + 10).all()
    for tensor in (one.mask, one.options["position_bias"], one.options["sinks"]):
        assert (tensor == shared).all()
    assert {len(tensor) for tensor in (one.query, one.key, one.value, one.mask, one.options["sinks"])} == {1}
    assert one.options["scaling"] == 0.5
    assert len(given.options["sinks"]) == entries
    assert KernelInputs(nn.Identity(), print, query, key, key, None, {}).row(1).mask is None


def test_a_layer_is_a_number_of_the_tower_and_only_negatives_count_from_the_end():
    there = (1, 3, 4)
    assert [routes._layer(layer, there) for layer in (1, 3, 4, -1, -2, -3)] == [1, 3, 4, 4, 3, 1]
    for layer in (0, 2, 5, -4):
        with pytest.raises(
            InputError, match=f"^no layer {layer}: the model has attention in layers 1, 3, 4$"
        ):
            routes._layer(layer, there)


def test_inputs_have_as_many_rows_as_their_first_tensor_and_one_without_any():
    assert batch_size({"text": "a word", "scale": torch.tensor(3.0), "input_ids": torch.zeros(4, 9)}) == 4
    assert batch_size({"text": "a word", "scale": torch.tensor(3.0)}) == 1
    assert batch_size({}) == 1


def test_rows_are_counted_from_the_end_too():
    inputs = {"input_ids": torch.zeros(3, 9)}
    assert [chosen_row(row, inputs) for row in (0, 2, -1, -3)] == [0, 2, 2, 0]
    for row in (3, -4):
        with pytest.raises(InputError, match=rf"^no row {row} in the inputs: rows are 0-2$"):
            chosen_row(row, inputs)


class Attending(nn.Module):
    def __init__(self, **parts: object) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


class Listing(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [x]


def test_the_key_before_its_rotation_is_what_its_norm_or_else_its_projection_returned():
    normed = Attending(k_norm=nn.Identity(), k_proj=nn.Identity())
    plain, other = Attending(k_proj=nn.Identity()), Attending(k_proj="no module")
    listing, first = Attending(k_proj=Listing()), torch.ones(2)
    with unrotated_keys([normed, plain, other, listing]) as latest:
        normed.k_proj(first)
        listing.k_proj(first)
        assert latest == {}
        normed.k_norm(first)
        plain.k_proj(first + 1)
        plain.k_proj(first + 2)
        assert latest.keys() == {normed, plain}
        assert torch.equal(latest[normed], first)
        assert torch.equal(latest[plain], first + 2)
    plain.k_proj(first)
    assert torch.equal(latest[plain], first + 2)
