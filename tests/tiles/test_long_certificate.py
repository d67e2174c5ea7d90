"""The certificate over tiles: it certifies what is right, and every fault that is put in is found."""

from dataclasses import replace

import pytest
import torch
from made_long import MECHANISMS, QUERIES

from attnscope.arithmetic import attend
from attnscope.capture.long.run import sample_rows
from attnscope.results import Verdict
from attnscope.tiles.softmax import Heads, certify_long, rows_of
from attnscope.tiles.tiling import EMPTY, EVERYWHERE, FULL, PART, LongCall, Sample, Sizes, Symbolic

HEAD, SIZES = 1, Sizes(11, 17, 17)


def answered(name: str) -> LongCall:
    """The call of a mechanism with what a right kernel answered, some of its rows in full."""
    mechanism = MECHANISMS[name]
    stages = attend(mechanism.dense)
    rows = torch.tensor([0, 3, 12, 13, 20, 31, QUERIES - 1])
    weights = {head: stages.weights[head][rows].float() for head in range(4)}
    return replace(mechanism.call, output=stages.output.float(), sample=Sample(rows, weights))


def certificate(call: LongCall, heads: Heads | None = None):
    heads = heads or Heads(call, SIZES, torch.float32)
    return certify_long(call, HEAD, rows_of(heads.head(HEAD)))


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_right_is_certified_and_every_fault_would_have_been_seen(name):
    found = certificate(answered(name))
    assert found.verdict is Verdict.CERTIFIED, found
    assert found.power > 10


def unlike(name: str, **changes):
    return replace(answered(name), **changes)


def wider(_head, q, k):
    return k[None, :] <= q[:, None]


BROKEN = {
    "scale": lambda: unlike("causal", scale=answered("causal").scale * 2**0.5),
    "mask": lambda: unlike("causal", rule=EVERYWHERE),
    "window": lambda: unlike("window", rule=Symbolic(wider)),
    "padding": lambda: unlike("right padding", rule=EVERYWHERE),
    "soft cap": lambda: unlike("soft cap", softcap=None),
    "relative position": lambda: unlike("relative position", terms=()),
    "sink": lambda: unlike("sink", sinks=None),
    "key head": lambda: unlike("grouped queries", k=answered("grouped queries").k.flip(0)),
    "value head": lambda: unlike("grouped queries", v=answered("grouped queries").v.flip(0)),
    "query and key": lambda: unlike("plain", q=answered("plain").k, k=answered("plain").q),
    "no number in a row that is no sample": lambda: _without_number(answered("causal")),
    "one value of a row that is no sample": lambda: unlike("causal", output=_moved(answered("causal"))),
}


def _without_number(call: LongCall) -> LongCall:
    """One query that is no sample has no number, and what was made of it has none."""
    q, output = call.q.clone(), call.output.clone()
    q[HEAD, 17, 0] = output[HEAD, 17] = torch.nan
    return replace(call, q=q, output=output)


def _moved(call: LongCall) -> torch.Tensor:
    output = call.output.clone()
    output[HEAD, 17, 2] += 1e-3
    return output


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_that_is_there_fails(name):
    assert certificate(BROKEN[name]()).verdict is Verdict.FAILED


FAULTS = {
    "causal": {
        "scale off by sqrt 2",
        "mask dropped",
        "wrong key head",
        "wrong value head",
        "query and key exchanged",
    },
    "window": {"window dropped", "mask dropped"},
    "soft cap": {"soft cap dropped"},
    "sink": {"sink dropped"},
    "relative position": {"relative position dropped"},
    "cross": {"scale off by sqrt 2", "wrong key head", "wrong value head"},
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_faults_of_a_short_text_are_those_of_a_long_one(name):
    tried = {fault.name for fault in certificate(answered(name)).faults}
    assert tried >= FAULTS[name]
    assert ("window dropped" in tried) == (name == "window")


def test_a_rotation_left_out_is_one_of_them():
    call = answered("causal")
    tried = certificate(replace(call, unrotated_k=call.k.roll(1, -1))).faults
    assert "key rotation left out" in {fault.name for fault in tried}


@pytest.mark.parametrize(("place", "state"), [((2, 0), EMPTY), ((1, 1), FULL), ((0, 1), PART)])
def test_a_block_taken_for_another_is_found(place, state):
    call = answered("causal")
    heads = Heads(call, SIZES, torch.float32)
    heads.tiling(HEAD).state[place[0]][place[1]] = state
    wrong = state != PART  # a block of nothing that is computed all the same changes nothing
    assert (certificate(call, heads).verdict is Verdict.FAILED) == wrong


def test_the_power_of_a_dropped_window_is_that_of_rows_where_they_stand():
    """By hand: row 20 of a window of 9 sees 12-20, without it 0-20; the sample is no block of its own."""
    call = answered("window")
    (fault,) = (each for each in certificate(call).faults if each.name == "window dropped")
    mechanism = MECHANISMS["window"]
    rows = torch.arange(QUERIES)
    causal = (rows[None, :] <= rows[:, None])[None]
    wrong = attend(mechanism.dense.but(allowed=causal)).weights[HEAD][call.sample.rows]
    expected = (wrong - call.sample.weights[HEAD].double()).abs().max()
    assert fault.weight_error == pytest.approx(float(expected))


def test_rows_of_a_sample_are_the_first_the_last_and_others_the_same_every_time():
    rows = sample_rows(100_000, 100_000)
    assert rows[0] == 0
    assert rows[-1] == 99_999
    assert len(rows) == 16
    assert torch.equal(rows, sample_rows(100_000, 100_000))
    assert len(sample_rows(8, 8)) == 8
