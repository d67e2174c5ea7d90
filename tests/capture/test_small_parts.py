"""Small parts of a capture: rows, keys before their rotation, an index out of bounds on a card."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.capture import running
from attnscope.capture.following.recorder import unrotated_keys
from attnscope.capture.run import batch_size
from attnscope.capture.running import InBounds, draw_from, drawing


def test_inputs_have_as_many_rows_as_their_first_tensor_and_one_without_any():
    assert batch_size({"text": "a word", "scale": torch.tensor(3.0), "input_ids": torch.zeros(4, 9)}) == 4
    assert batch_size({"text": "a word", "scale": torch.tensor(3.0)}) == 1
    assert batch_size({}) == 1


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


VALUES = torch.arange(24.0).reshape(2, 3, 4)
TABLE = torch.arange(10.0).reshape(5, 2)
COLUMN = torch.tensor([[[0], [3], [1]], [[2], [0], [3]]])


@pytest.fixture
def as_on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every device is taken for a card, so that indices are looked at here."""
    monkeypatch.setattr(running, "_is_card", lambda device: True)
    monkeypatch.setattr(running, "_some_card", lambda: True)


@pytest.mark.usefixtures("as_on_a_card")
@pytest.mark.parametrize(
    ("wrong", "fits"),
    [
        (lambda: VALUES[torch.tensor([0, 2])], lambda: VALUES[torch.tensor([0, -2])]),
        (lambda: VALUES[:, [3]], lambda: VALUES[:, [2]]),
        (lambda: VALUES[0, None, torch.tensor(3)], lambda: VALUES[0, None, torch.tensor(2)]),
        (lambda: VALUES[VALUES[..., 0] > 0, torch.tensor([4])], lambda: VALUES[VALUES[..., 0] > 0, [3]]),
        (lambda: F.embedding(torch.tensor([5]), TABLE), lambda: F.embedding(COLUMN[0], TABLE)),
        (lambda: F.embedding(input=torch.tensor([-1]), weight=TABLE), lambda: TABLE[-1]),
        (lambda: TABLE.gather(1, torch.tensor([[2]])), lambda: VALUES.gather(-1, COLUMN)),
        (lambda: torch.index_select(TABLE, dim=0, index=torch.tensor([5])), lambda: TABLE[4]),
        (lambda: TABLE.scatter(0, torch.tensor([[5, 0]]), 0.0), lambda: TABLE.scatter(0, COLUMN[0, :1], 0.0)),
    ],
)  # fmt: skip
def test_an_index_out_of_bounds_is_an_error_before_a_card_is_asked(
    wrong: Callable[[], Tensor], fits: Callable[[], Tensor]
) -> None:
    plain = fits()
    with InBounds():
        assert fits().equal(plain)
        with pytest.raises(IndexError, match="is out of bounds for a dimension of size"):
            wrong()


@pytest.mark.usefixtures("as_on_a_card")
def test_what_is_put_at_a_place_out_of_bounds_is_an_error_too() -> None:
    values = VALUES.clone()
    with InBounds():
        values[:, torch.tensor([1])] = 0
        with pytest.raises(IndexError, match="index 3 is out of bounds for a dimension of size 3"):
            values[:, torch.tensor([3])] = 0
    assert values[:, 1].eq(0).all()
    assert values[:, [0, 2]].equal(VALUES[:, [0, 2]])


@pytest.mark.usefixtures("as_on_a_card")
def test_each_device_that_holds_weights_draws_again_what_it_drew(monkeypatch: pytest.MonkeyPatch) -> None:
    class Card:
        """A device module whose generator is a number."""

        at = torch.tensor([3])

        def get_rng_state(self, device: Any) -> Tensor:
            return self.at.clone()

        def set_rng_state(self, state: Tensor, device: Any) -> None:
            self.at = state

    card = Card()
    monkeypatch.setattr(torch, "get_device_module", lambda device: card)
    state = drawing(nn.Linear(2, 3))
    first = torch.rand(4)
    card.at += 5
    draw_from(state)
    assert card.at.tolist() == [3]
    assert torch.rand(4).equal(first)
