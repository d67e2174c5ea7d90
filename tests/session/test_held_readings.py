"""What is kept of a reading is what a fresh reading gives, and no more than its bound."""

from dataclasses import replace
from threading import RLock

import numpy as np
import pytest

from attnscope.session.choosing import choose
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.questions.held import HELD, HeldReading
from attnscope.session.reading import Reading, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Looking, Wanted

TEXT = "I was watching the door when [MASK] opened."


@pytest.fixture(scope="module")
def opened() -> Opened:
    return open_model(ModelRequest("demo"), Inputs(TEXT), None, Purpose.ANYTHING, Quiet())


def kept(opened: Opened, held: int = HELD) -> HeldReading:
    chosen = choose(opened.model, Wanted(), Quiet(), sensed=False)
    return HeldReading(read_inputs(opened, Inputs(TEXT), Quiet()), chosen, RLock(), held)


def test_heads_are_those_of_a_run_that_looked_at_them_alone(opened: Opened) -> None:
    one = kept(opened)
    for layer, head in ((0, 3), (3, 11), (2, 0)):
        chosen = choose(opened.model, Wanted(layer, head), Quiet(), sensed=False)
        alone = OpenedHeads(read_inputs(opened, Inputs(TEXT), Quiet()), chosen).weights()
        found = one.head(layer, head)
        assert found.name == alone.name
        np.testing.assert_array_equal(found.weights, alone.weights)
        assert replace(found.certificate, reach=None) == replace(alone.certificate, reach=None)
        assert found.certificate.reach.effect == alone.certificate.reach.effect
    assert one.head(0, 3, Looking(special="hide")).weights.shape == (9, 9)
    assert one.measured(1, ("entropy",)).layers == (1,)
    assert one.terms(3, 11).head.name == "L3 H11"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The layers of every run of the model."""
    made: list[tuple[int, ...]] = []
    captured = Reading.attention

    def counted(self: Reading, chosen, **given):
        if self.captured is None:
            made.append(chosen.layers)
        return captured(self, chosen, **given)

    monkeypatch.setattr(Reading, "attention", counted)
    return made


def test_the_first_layer_is_read_alone_then_all_others_and_again_what_was_let_go(
    opened: Opened, runs: list[tuple[int, ...]]
) -> None:
    roomy = kept(opened)
    for layer in (0, 3, 1, 0):
        roomy.head(layer, 2)
    assert runs == [(0,), (1, 2, 3)]
    runs.clear()
    late = kept(opened)
    late.head(3, 2)
    assert runs == [(0, 1, 2, 3)], "a run to the last layer comes by all of them"
    runs.clear()
    layer_of_this_text = 8 * 11 * 11 * 12
    narrow = kept(opened, held=2 * layer_of_this_text)
    same = [narrow.head(layer, 2).weights for layer in (0, 3, 0, 1, 3)]
    assert runs == [(0,), (3,), (1,), (3,)], "two layers are kept"
    np.testing.assert_array_equal(same[0], roomy.head(0, 2).weights)
    np.testing.assert_array_equal(same[4], roomy.head(3, 2).weights)


def test_the_layer_that_is_looked_at_is_never_let_go_for_those_of_the_grid(
    opened: Opened, runs: list[tuple[int, ...]]
) -> None:
    layer_of_this_text = 8 * 11 * 11 * 12
    narrow = kept(opened, held=2 * layer_of_this_text)
    narrow.head(2, 5)
    for layer in (1, 3, 0):
        narrow.measured(layer, ("entropy", "next"), (4, 7))
    assert runs == [(2,), (1,), (3,), (0,)]
    narrow.head(2, 6)
    assert len(runs) == 4
