"""While tests run, axes that do not fit together are refused in every typed part of the package."""

import numpy as np
import pytest
import torch
from families import ids, sharp
from jaxtyping import TypeCheckError
from typed_axes import EVERY_TYPE

from attnscope.analysis.heads.overview import measure_heads
from attnscope.capture import Selection, record
from attnscope.capture.following.takeover import weights_by_identity
from attnscope.measures import Tile
from attnscope.model.anatomy.sites import layers_of
from attnscope.printable import printable
from attnscope.results import HeadScores, MeasureDescription
from attnscope.sdpa import for_each_query_head
from attnscope.verify import certify


def test_a_result_whose_axes_do_not_fit_is_refused():
    told = MeasureDescription(name="entropy", unit="nats", meaning="")
    HeadScores(told, (0, 1), (0, 1, 2), np.zeros((2, 3)))
    with pytest.raises(TypeCheckError):
        HeadScores(told, (0, 1), (0, 1, 2), np.zeros((2, 3, 1)))


def test_a_tile_with_more_positions_than_rows_is_refused():
    Tile(torch.zeros(2, 3), torch.arange(2), torch.arange(3))
    with pytest.raises(TypeCheckError):
        Tile(torch.zeros(2, 3), torch.arange(3), torch.arange(3))


def test_a_call_whose_keys_are_narrower_than_its_queries_is_refused():
    (call,) = record(sharp("llama"), ids(), Selection(layers=[0])).calls
    fields = {name: getattr(call, name) for name in call.__dataclass_fields__}
    type(call)(**fields)
    with pytest.raises(TypeCheckError):
        type(call)(**{**fields, "k": call.k[..., :-1]})


def test_an_array_of_the_wrong_rank_is_refused_however_often_the_right_one_came_before():
    for _ in range(3):
        for_each_query_head(torch.zeros(1, 2, 3), 4)
    with pytest.raises(TypeCheckError):
        for_each_query_head(torch.zeros(2, 3), 2)


@pytest.mark.skipif(not EVERY_TYPE, reason="types without axes are enforced with ATTNSCOPE_TYPES=all")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: certify("a call", 0),
        lambda: weights_by_identity("inputs", 0),
        lambda: measure_heads("captured"),
        lambda: layers_of((), "decoder"),
        lambda: printable(3),
    ],
    ids=["verify", "capture", "analysis", "model", "tokens"],
)
def test_types_without_axes_are_checked_where_they_are_asked_for(wrong):
    with pytest.raises(TypeCheckError):
        wrong()
