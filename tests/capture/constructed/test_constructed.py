"""Nothing that misleads is certified, and everything that is right is: on every route, at every place.

Each construction is tried on one route; on its others with the slow tests.
"""

from collections import Counter

import pytest

from tests.capture.constructed.construction import Construction, in_turn
from tests.capture.constructed.harmless import HARMLESS
from tests.capture.constructed.judged import GOOD, judged
from tests.capture.constructed.misleading import LONG, MISLEADING
from tests.capture.constructed.truth import truth

ROUTES = {"eager", "fused", "named", "traced", "tiled"}
WRONG, WRONG_ELSEWHERE = in_turn(MISLEADING)
RIGHT, RIGHT_ELSEWHERE = in_turn(HARMLESS)


@pytest.mark.parametrize("name", WRONG)
def test_what_misleads_is_not_certified(name: str) -> None:
    seen = judged(MISLEADING[name], misleads=True)
    assert not seen.faults, "\n".join(seen.faults)


@pytest.mark.parametrize("name", WRONG_ELSEWHERE)
def test_what_misleads_is_not_certified_on_its_other_routes(name: str) -> None:
    seen = judged(MISLEADING[name], misleads=True)
    assert not seen.faults, "\n".join(seen.faults)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_odd_and_right_is_certified(name: str) -> None:
    seen = judged(HARMLESS[name], misleads=False)
    assert not seen.faults, "\n".join(seen.faults)


@pytest.mark.parametrize("name", RIGHT_ELSEWHERE)
def test_what_is_odd_and_right_is_certified_on_its_other_routes(name: str) -> None:
    seen = judged(HARMLESS[name], misleads=False)
    assert not seen.faults, "\n".join(seen.faults)


@pytest.mark.parametrize("name", LONG)
def test_what_misleads_beyond_the_beginning_is_not_certified_without_saying_what_was_tried(name: str) -> None:
    assert truth(LONG[name]).misleading
    for head, told in LONG[name].certificates():
        assert told.verdict not in GOOD or "512" in told.positions_tried, head


@pytest.mark.parametrize("made", [MISLEADING, HARMLESS], ids=["misleading", "harmless"])
def test_there_are_enough_of_every_route(made: dict[str, Construction]) -> None:
    first, others = in_turn(made)
    assert {*first} | {*others} == {*made}
    for names, least in ((first, 5), (made, 30)):
        routes = Counter(made[name].route for name in names)
        assert routes.total() >= 150
        assert {*routes} == ROUTES
        assert min(routes.values()) >= least
    assert not {*MISLEADING} & {*HARMLESS}


@pytest.mark.parametrize(
    ("name", "heads", "reason"),
    [
        ("eager: rows of head 1 flipped", [1], "rows moved"),
        ("fused: rows averaged after the kernel", [0, 1, 2], "rows mixed"),
        ("fused: rows leaking a little after the kernel", [0, 1, 2], "rows mixed"),
        ("fused: values of head 1 flipped", [1], "keys and values of different rows"),
        ("fused: rows rolled on keys and values", [0, 1, 2], "keys of other rows"),
        ("fused: first two heads swapped after the kernel", [0, 1], "another head's columns"),
        ("fused: head 2 zeroed after the kernel", [2], "no effect"),
        ("fused: rows first row zeroed in the block after the module", [0, 1, 2], "no effect of 1 rows"),
        ("eager: of the next head in the kernel, on the weights", [0, 1, 2], "other weights"),
    ],
)
def test_the_truth_is_told_of_the_heads_that_it_is_true_of(name: str, heads: list[int], reason: str) -> None:
    assert truth(MISLEADING[name]).misleading == {(1, head, 0): reason for head in heads}
    assert truth(HARMLESS["fused: plain"]).misleading == {}


def test_the_truth_knows_the_layer_the_call_and_the_place() -> None:
    first = truth(MISLEADING["fused: rows averaged in the first layer"]).misleading
    assert first == {(0, head, 0): "rows mixed" for head in range(3)}
    second = truth(MISLEADING["fused: a second attention, rolled"]).misleading
    assert second == {(1, head, 1): "rows moved" for head in range(3)}
    assert truth(HARMLESS["fused: plain"]).in_place == {0, 1}
    assert truth(HARMLESS["fused: windows, rolled by 2"]).in_place == {0}
