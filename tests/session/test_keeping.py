"""What is kept of a reading is what a fresh reading gives, and no more than its bound."""

from threading import RLock

import numpy as np
import pytest

from attnscope.session import keeping
from attnscope.session.choosing import choose
from attnscope.session.entering import read_inputs
from attnscope.session.keeping import Kept
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs, Looking, ModelRequest, Wanted

TEXT = "I was watching the door when [MASK] opened."


@pytest.fixture(scope="module")
def opened() -> Opened:
    return open_model(ModelRequest("demo"), Inputs(TEXT), None, Purpose.ANYTHING, Quiet())


def kept(opened: Opened, held: int = keeping.HELD) -> Kept:
    chosen = choose(opened.model, Wanted(), Quiet(), sensed=False)
    return Kept(read_inputs(opened, Inputs(TEXT), Quiet()), chosen, RLock(), held)


def test_heads_are_those_of_a_run_that_looked_at_them_alone(opened: Opened) -> None:
    one = kept(opened)
    for layer, head in ((0, 3), (3, 11), (2, 0)):
        chosen = choose(opened.model, Wanted(layer, head), Quiet(), sensed=False)
        alone = keeping.read_weights(read_inputs(opened, Inputs(TEXT), Quiet()), chosen)
        found = one.head(layer, head)
        assert found.name == alone.name
        np.testing.assert_array_equal(found.weights, alone.weights)
        assert found.certificate == alone.certificate
    assert one.head(0, 3, Looking(special="hide")).weights.shape == (9, 9)
    assert one.measured(1, "entropy").layers == (1,)
    assert one.terms(3, 11).head.name == "L3 H11"


def test_the_model_runs_once_where_all_fits_and_again_for_what_was_let_go(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[int, ...]] = []
    captured = Reading.attention

    def counted(self: Reading, chosen, **given):
        if self.captured is None:
            runs.append(chosen.layers)
        return captured(self, chosen, **given)

    monkeypatch.setattr(Reading, "attention", counted)
    roomy = kept(opened)
    for layer in (0, 3, 1, 0):
        roomy.head(layer, 2)
    assert runs == [(0, 1, 2, 3)]
    runs.clear()
    layer_of_this_text = 8 * 11 * 11 * 12
    narrow = kept(opened, held=2 * layer_of_this_text)
    same = [narrow.head(layer, 2).weights for layer in (0, 3, 0, 1, 3)]
    assert runs == [(0,), (3,), (1,), (3,)], "two layers are kept"
    np.testing.assert_array_equal(same[0], roomy.head(0, 2).weights)
    np.testing.assert_array_equal(same[4], roomy.head(3, 2).weights)
