"""Which texts are read in tiles, and what is kept of a reading."""

from dataclasses import replace
from threading import RLock

import numpy as np
import pytest
from corpus_of_demo import Hearing

import attnscope as at
from attnscope.errors import DoesNotFitError, InputError
from attnscope.session.choosing import choose
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.questions import rows
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.questions.held import HELD, HeldReading
from attnscope.session.reading import Reading, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.selection import window
from attnscope.session.wanted import Looking, Wanted

TEXT = "The cat sat on the mat, and the cat was in the house."


@pytest.fixture(scope="module")
def opened():
    """The causal demo on one sentence, as the session has it."""
    return at.load("demo-causal").read(TEXT)


def asked(opened, **wanted):
    reading, chosen = opened._read(Wanted(**wanted))
    return replace(reading, listener=Hearing()), chosen


def test_a_costly_text_is_read_in_tiles_and_the_cost_is_told(opened, monkeypatch):
    reading, chosen = asked(opened, layer=1, head=1)
    assert not rows.in_tiles(reading, chosen)
    assert reading.listener.told == []
    monkeypatch.setattr(rows, "WORTH", 10)
    reading, chosen = asked(opened, layer=1, head=1)
    assert rows.in_tiles(reading, chosen)
    (notice,) = reading.listener.told
    assert "pairs of queries and keys take" in notice
    assert "--dense" in notice
    assert not rows.in_tiles(reading, chosen, False)
    assert not rows.in_tiles(reading, chosen, None, "--show scores lists every pair")


def test_tiles_that_are_asked_for_and_cannot_be_are_refused(opened):
    reading, chosen = asked(opened, layer=1, head=1)
    assert rows.in_tiles(reading, chosen, True)
    with pytest.raises(InputError, match="--tiled: --terms needs"):
        rows.in_tiles(reading, chosen, True, "--terms needs all queries by all keys")


@pytest.mark.parametrize(
    ("tiled", "against", "said"),
    [
        (False, "", "in tiles all of them"),
        (False, "--terms needs all", "--terms needs all: tiles"),
        (True, "", "in tiles, take"),
    ],
)
def test_what_would_not_fit_is_told_before_it_starts(opened, monkeypatch, tiled, against, said):
    monkeypatch.setattr(rows.memory, "free", lambda device: 1000)
    reading, chosen = asked(opened, layer=1, head=1)
    with pytest.raises(DoesNotFitError, match=said) as refused:
        rows.in_tiles(reading, chosen, tiled, against)
    assert "tokens fit" in str(refused.value)
    assert refused.value.exit_code == 4


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("3-5:0-1", (range(3, 6), range(2))),
        ("3-5", (range(3, 6), range(3, 6))),
        ("7:", (range(7, 8), range(20))),
        ("all:-2--1", (range(10), range(18, 20))),
    ],
)
def test_windows_by_hand(wanted, expected):
    assert window(wanted, 10, 20) == expected


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("x:3", "no window"),
        ("5-3", "no queries 5-3"),
        ("1:20", "no keys 20, there are 0-19"),
        ("1:2:3", "no"),
    ],
)
def test_windows_that_are_none_are_refused(wanted, said):
    with pytest.raises(InputError, match=said):
        window(wanted, 10, 20)


def test_the_library_asks_for_tiles_by_name_and_gets_what_it_is_when_held_whole(opened, monkeypatch):
    dense = opened.head(1, 1)
    expected = np.where(dense.allowed, dense.weights, np.nan)
    window_of = opened.long_head(1, 1, zoom="3-5:0-4", query=7, pool="max")
    assert window_of.cells == pytest.approx(expected[3:6, 0:5], abs=1e-5, nan_ok=True)
    assert window_of.row == pytest.approx(np.nan_to_num(expected[7]), abs=1e-5)
    assert window_of.verdict == dense.verdict
    tiled, whole = (opened.overview(1, measure=["previous", "entropy"], tiled=way) for way in (True, False))
    assert (tiled.weights is None, whole.weights is None) == (True, False)
    for name in ("previous", "entropy"):
        assert tiled.scores[name].values == pytest.approx(whole.scores[name].values, abs=1e-5)

    # and takes tiles for many heads where all pairs cost much
    monkeypatch.setattr(rows, "WORTH", 10)
    assert opened.overview(1, 1).weights is None
    assert opened.overview(1, 1, special="renormalise").weights is not None


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda read: read.long_head(1, 1, pool="min"), "the mean or the max of its pairs, not 'min'"),
        (lambda read: read.long_head(1, 1, zoom="0-99"), "no queries 0-99"),
        (lambda read: read.long_head(1, 1, query="zebra"), "no token 'zebra'"),
        (lambda read: read.overview(1, query=3, tiled=True), "leave tiled out"),
        (lambda read: read.overview(1, words=True, tiled=True), "words and special tokens need"),
    ],
)
def test_what_tiles_do_not_have_is_refused_by_the_library(opened, ask, said):
    with pytest.raises(InputError, match=said):
        ask(opened)


MASKED = "I was watching the door when [MASK] opened."


@pytest.fixture(scope="module")
def encoder() -> Opened:
    return open_model(ModelRequest("demo"), Inputs(MASKED), None, Purpose.ANYTHING, Quiet())


def kept(encoder: Opened, held: int = HELD) -> HeldReading:
    chosen = choose(encoder.model, Wanted(), Quiet(), sensed=False)
    return HeldReading(read_inputs(encoder, Inputs(MASKED), Quiet()), chosen, RLock(), held)


def test_heads_are_those_of_a_run_that_looked_at_them_alone(encoder: Opened) -> None:
    one = kept(encoder)
    for layer, head in ((0, 3), (3, 11), (2, 0)):
        chosen = choose(encoder.model, Wanted(layer, head), Quiet(), sensed=False)
        alone = OpenedHeads(read_inputs(encoder, Inputs(MASKED), Quiet()), chosen).weights()
        found = one.head(layer, head)
        assert found.name == alone.name
        np.testing.assert_array_equal(found.weights, alone.weights)
        assert replace(found.certificate, reach=None) == replace(alone.certificate, reach=None)
        assert found.certificate.reach.effect == alone.certificate.reach.effect
    assert one.head(0, 3, Looking(special="hide")).weights.shape == (9, 9)
    assert one.measured(1, ("entropy",), (0,)).layers == (1,)
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
    encoder: Opened, runs: list[tuple[int, ...]]
) -> None:
    roomy = kept(encoder)
    for layer in (0, 3, 1, 0):
        roomy.head(layer, 2)
    assert runs == [(0,), (1, 2, 3)]
    runs.clear()
    late = kept(encoder)
    late.head(3, 2)
    assert runs == [(0, 1, 2, 3)], "a run to the last layer comes by all of them"
    runs.clear()
    layer_of_this_text = 8 * 11 * 11 * 12
    narrow = kept(encoder, held=2 * layer_of_this_text)
    same = [narrow.head(layer, 2).weights for layer in (0, 3, 0, 1, 3)]
    assert runs == [(0,), (3,), (1,), (3,)], "two layers are kept"
    np.testing.assert_array_equal(same[0], roomy.head(0, 2).weights)
    np.testing.assert_array_equal(same[4], roomy.head(3, 2).weights)


def test_the_layer_that_is_looked_at_is_never_let_go_for_those_of_the_grid(
    encoder: Opened, runs: list[tuple[int, ...]]
) -> None:
    layer_of_this_text = 8 * 11 * 11 * 12
    narrow = kept(encoder, held=2 * layer_of_this_text)
    narrow.head(2, 5)
    for layer in (1, 3, 0):
        narrow.measured(layer, ("entropy", "next"), (4, 7))
    assert runs == [(2,), (1,), (3,), (0,)]
    narrow.head(2, 6)
    assert len(runs) == 4
