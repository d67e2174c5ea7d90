"""A softmax of the model's own with one added to its sum: read where it can be, else said not to be."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from families import ids
from own_attention import with_own_attention
from torch import Tensor

from attnscope.capture import Labels, Selection, record
from attnscope.capture.returned import read
from attnscope.capture.routes import NothingSeenError
from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.verify import certify

UNREAD: dict[str, Callable[[Tensor], Tensor]] = {
    "a column of zeros behind the scores": lambda scores: torch.softmax(
        torch.cat([scores, torch.zeros_like(scores[..., :1])], -1), -1
    )[..., :-1],
    "a column of zeros before the scores": lambda scores: torch.softmax(
        torch.cat([scores.new_zeros(*scores.shape[:-1], 1), scores], -1), -1
    )[..., 1:],
    "a padded column": lambda scores: F.softmax(F.pad(scores, (0, 1)), -1)[..., :-1],
    "two halves of the scores with a column between": lambda scores: torch.softmax(
        torch.cat([scores[..., :4], 0 * scores[..., :1], scores[..., 4:]], -1), -1
    )[..., [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]],
    "exponentials": lambda scores: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_softmax_with_one_added_is_no_attention_that_we_read_and_no_traceback(name):
    model = with_own_attention(normalise=UNREAD[name])
    with pytest.raises(NothingSeenError, match="made no dense softmax attention in layer 0-2"):
        record(model, ids())
    told: list[str] = []
    with pytest.raises(InputError, match="returns no attention that was made in layer 0"):
        read(model, ids(), Selection(), Labels(), told.append)


def test_weights_that_are_scaled_to_sum_to_less_than_one_are_partial():
    def softmax_one(scores: Tensor) -> Tensor:
        return scores.softmax(-1) * torch.sigmoid(scores.logsumexp(-1, keepdim=True))

    for call in record(with_own_attention(normalise=softmax_one), ids()).calls:
        assert certify(call, 4).verdict is Verdict.PARTIAL
        assert (call.reweighted[4].sum(-1) < 1).all()


def test_halves_of_scores_that_are_put_together_again_are_one_product():
    def halves(scores: Tensor) -> Tensor:
        return torch.softmax(torch.cat([scores[..., :4], scores[..., 4:]], -1), -1)

    for call in record(with_own_attention(normalise=halves), ids()).calls:
        assert certify(call, 4).verdict is Verdict.CERTIFIED
