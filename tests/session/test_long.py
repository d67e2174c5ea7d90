"""Which texts are read in tiles, what is told of it, and what stands against it."""

from dataclasses import replace

import numpy as np
import pytest

import attnscope as at
from attnscope.errors import DoesNotFitError, InputError
from attnscope.session.questions import long
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.selection import window
from attnscope.session.wanted import Wanted

TEXT = "The cat sat on the mat, and the cat was in the house."


class Heard:
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def detail(self, text: str) -> None: ...

    def working(self, what: str):
        from contextlib import nullcontext

        return nullcontext()


@pytest.fixture(scope="module")
def opened():
    """The causal demo on one sentence, as the session has it."""
    return at.load("demo-causal").read(TEXT)


def asked(opened, **wanted):
    reading, chosen = opened._read(Wanted(**wanted))
    return replace(reading, listener=Heard()), chosen


def test_a_short_text_is_held_whole_and_nothing_is_said(opened):
    reading, chosen = asked(opened, layer=1, head=1)
    assert not long.in_tiles(reading, chosen)
    assert reading.listener.notices == []


def test_a_costly_text_is_read_in_tiles_and_the_cost_is_told(opened, monkeypatch):
    monkeypatch.setattr(long, "WORTH", 10)
    reading, chosen = asked(opened, layer=1, head=1)
    assert long.in_tiles(reading, chosen)
    (notice,) = reading.listener.notices
    assert "pairs of queries and keys take" in notice
    assert "--dense" in notice
    assert not long.in_tiles(reading, chosen, False)
    assert not long.in_tiles(reading, chosen, None, "--show scores lists every pair")


def test_tiles_that_are_asked_for_and_cannot_be_are_refused(opened):
    reading, chosen = asked(opened, layer=1, head=1)
    assert long.in_tiles(reading, chosen, True)
    with pytest.raises(InputError, match="--tiled: --terms needs"):
        long.in_tiles(reading, chosen, True, "--terms needs all queries by all keys")


@pytest.mark.parametrize(
    ("tiled", "against", "said"),
    [
        (False, "", "in tiles all of them"),
        (False, "--terms needs all", "--terms needs all: tiles"),
        (True, "", "in tiles, take"),
    ],
)
def test_what_would_not_fit_is_told_before_it_starts(opened, monkeypatch, tiled, against, said):
    monkeypatch.setattr(long.memory, "free", lambda device: 1000)
    reading, chosen = asked(opened, layer=1, head=1)
    with pytest.raises(DoesNotFitError, match=said) as refused:
        long.in_tiles(reading, chosen, tiled, against)
    assert "tokens fit" in str(refused.value)
    assert refused.value.exit_code == 4


def test_one_head_and_several_are_what_they_are_when_held_whole(opened):
    reading, chosen = asked(opened, layer=1, head=1)
    whole = OpenedHeads(reading, chosen).weights()
    tiled = long.read_long(reading, chosen, query=5, zoom="2-6:0-4")
    expected = np.where(whole.allowed, whole.weights, np.nan)[2:7, 0:5]
    assert tiled.mean == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert tiled.row == pytest.approx(np.where(whole.allowed[5], whole.weights[5], 0), abs=1e-5)
    assert tiled.verdict == whole.verdict
    reading, chosen = asked(opened, layer=1)
    names = ("entropy", "previous", "induction")  # the last of a run of its own
    short = OpenedHeads(reading, chosen).overview(names)
    several = long.read_long_overview(reading, chosen, names)
    for name in names:
        expected = pytest.approx(short.scores[name].values, abs=1e-5, nan_ok=True)
        assert several.scores[name].values == expected
    # of weights that are 1 in single precision another may be named: it is as large
    named = [
        short.dense_weights[0][head][tuple(several.strongest[0, head])] for head in range(len(short.heads))
    ]
    assert named == pytest.approx(short.strongest_weight[0], abs=1e-5)


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


def test_the_library_asks_for_tiles_by_name_and_gets_what_it_is_when_held_whole(opened):
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


def test_the_library_takes_tiles_for_many_heads_where_all_pairs_cost_much(opened, monkeypatch):
    assert opened.overview(1, 1).weights is not None
    monkeypatch.setattr(long, "WORTH", 10)
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
