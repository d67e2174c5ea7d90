"""Heads that are certified together: the figures of one by one, and each head judged by itself alone."""

import gc
import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from families import ids, padded, sharp
from made_calls import call_of
from one_by_one import certificate_of
from torch import Tensor

from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall, Term
from attnscope.capture import Selection, provenance_of, record
from attnscope.capture.following.describe import tokens_of
from attnscope.errors import InputError
from attnscope.results import Certificate, Verdict
from attnscope.verbs.verify import answer as verification
from attnscope.verbs.verify.answer import verify_model
from attnscope.verify import FAULTS, certificate, certify, certify_heads

HEADS, QUERIES, KEYS = 6, 7, 9


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def call(
    heads: int = HEADS, kv_heads: int = 3, queries: int = QUERIES, keys: int = KEYS, **changes: Any
) -> AttentionCall:
    """An attention with scores of about 1, whose weights and output are torch's own."""
    q, k = drawn(heads, queries, 5, seed=1), drawn(kv_heads, keys, 5, seed=2)
    return call_of(q, k, drawn(kv_heads, keys, 4, seed=3), **changes)


def alike(found: Certificate, expected: Certificate) -> bool:
    """To the last bit, NaN like NaN."""
    return repr(found) == repr(expected)


# float64 adds in any order: the kernel's tolerances stand to these as its machine epsilon to float64's
ROUNDINGS, EPSILON = 8, torch.finfo(torch.float64).eps


def assert_near(found: Certificate, expected: Certificate, epsilon: float) -> None:
    """The figures of the oracle, which adds in another order, and its words."""
    words = ("verdict", "reason", "precision", "positions")
    assert [getattr(found, name) for name in words] == [getattr(expected, name) for name in words]
    tolerances = found.weight_tolerance, found.output_tolerance
    assert tolerances == approx((expected.weight_tolerance, expected.output_tolerance), 1e-12, 0)
    off = [ROUNDINGS * EPSILON / epsilon * each for each in tolerances]
    assert found.weight_error == approx(expected.weight_error, 0, off[0])
    assert found.output_error == approx(expected.output_error, 0, off[1])
    others = {fault.name: fault for fault in expected.faults}
    assert sorted(others) == sorted(fault.name for fault in found.faults)
    for fault in found.faults:
        other = others[fault.name]
        assert fault.weight_error == approx(other.weight_error, 0, off[0]), fault.name
        assert fault.output_error == approx(other.output_error, 0, off[1]), fault.name
        assert fault.power == approx(other.power, 1e-12, ROUNDINGS * EPSILON / epsilon), fault.name


def approx(expected: Any, relative: float, absolute: float) -> Any:
    return pytest.approx(expected, rel=relative, abs=absolute, nan_ok=True)


def assert_as_one_by_one(of: AttentionCall) -> None:
    """Each as by itself, to the last bit: it is one product of its own. And as the oracle's loop has it."""
    for head, found in zip(of.weights, certify_heads(of), strict=True):
        assert alike(found, certify(of, head)), f"head {head}"
        assert_near(found, certificate_of(of, head), of.epsilon)


def test_a_figure_a_decade_beyond_rounding_is_not_the_oracles():
    one = call()
    found, tolerance = certificate_of(one, 4), ROUNDINGS * EPSILON / one.epsilon
    assert_near(found, found, one.epsilon)
    (fault, *others), off = found.faults, 10 * tolerance
    faint = tolerance / 10
    for field, size in (("weight_error", found.weight_tolerance), ("output_error", found.output_tolerance)):
        assert_near(replace(found, **{field: getattr(found, field) + faint * size}), found, one.epsilon)
        with pytest.raises(AssertionError):
            assert_near(replace(found, **{field: getattr(found, field) + off * size}), found, one.epsilon)
    moved = replace(fault, weight_error=fault.weight_error + off * found.weight_tolerance)
    with pytest.raises(AssertionError):
        assert_near(replace(found, faults=(moved, *others)), found, one.epsilon)
    with pytest.raises(AssertionError):
        assert_near(replace(found, faults=tuple(others)), found, one.epsilon)


@pytest.mark.parametrize(
    ("family", "dtype"),
    [("bert", torch.float32), ("gemma2", torch.float32), ("t5", torch.bfloat16), ("gpt_oss", torch.bfloat16)],
    ids=str,
)
def test_every_figure_is_that_of_a_head_by_itself(family, dtype):
    for each in record(sharp(family).to(dtype), ids()).calls:
        assert_as_one_by_one(each)


@pytest.mark.parametrize(("family", "side"), [("llama", "left"), ("modernbert", "right")])
def test_so_it_is_where_rows_and_columns_are_padding(family, side):
    for each in record(sharp(family), padded(side), Selection(row=1)).calls:
        assert_as_one_by_one(each)


CAUSAL = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(KEYS - QUERIES)
OF_HEAD = torch.stack([CAUSAL.roll(head, 1) for head in range(HEADS)])
NO_KEY = CAUSAL & (torch.arange(QUERIES) != 3)[:, None]
MADE: dict[str, dict[str, Any]] = {
    "a mask for all heads": {"allowed": CAUSAL[None]},
    "a mask of each head": {"allowed": OF_HEAD},
    "a row without a key": {"allowed": NO_KEY[None]},
    "no row with a key": {"allowed": torch.zeros(1, QUERIES, KEYS, dtype=torch.bool)},
    "a mask that one head alone has": {"allowed": torch.stack([CAUSAL] + [torch.ones_like(CAUSAL)] * 5)},
    "a bias for all heads": {"terms": (Term("bias", drawn(1, QUERIES, KEYS)),)},
    "a bias of each head and one for all": {
        "terms": (Term("bias", drawn(HEADS, QUERIES, KEYS)), Term("mask", drawn(1, QUERIES, KEYS))),
    },
    "a bias that one head alone has": {
        "terms": (Term("bias", drawn(HEADS, QUERIES, KEYS) * (torch.arange(HEADS) == 4)[:, None, None]),)
    },
    "masks of minus a billion": {"terms": (Term("far", torch.where(CAUSAL, 0.0, -1e9)[None]),)},
    "sinks": {"sinks": drawn(HEADS), "allowed": CAUSAL[None]},
    "keys before a rotation": {"unrotated_k": drawn(3, KEYS, 5, seed=9)},
    "as many queries as keys": {"queries": KEYS},
    "a single key head": {"kv_heads": 1, "queries": KEYS},
    "weights that met the values": {
        "reweighted": {head: drawn(QUERIES, KEYS, seed=head).softmax(-1) for head in range(HEADS)}
    },
}


@pytest.mark.parametrize("made", MADE)
def test_so_it_is_with_every_mechanism(made):
    assert_as_one_by_one(call(**MADE[made]))


def test_so_it_is_with_sinks_of_each_query():
    assert_as_one_by_one(replace(call(allowed=NO_KEY[None]), sinks=drawn(HEADS, QUERIES)))


@pytest.mark.parametrize("entries", [1, 2 * QUERIES * KEYS, 4 * QUERIES * KEYS])
def test_how_many_heads_are_computed_at_once_changes_nothing(entries, monkeypatch):
    one = call(allowed=OF_HEAD, terms=(Term("bias", drawn(HEADS, QUERIES, KEYS)),))
    whole = certify_heads(one)
    monkeypatch.setattr(certificate, "_AT_ONCE", entries)
    assert all(alike(a, b) for a, b in zip(certify_heads(one), whole, strict=True))


def test_a_head_that_was_not_captured_is_named():
    one = replace(call(), weights={2: call().weights[2]})
    assert len(certify_heads(one)) == 1
    with pytest.raises(InputError, match=r"head 4 of layer 3 was not captured: captured are \[2\]"):
        certify_heads(one, (2, 4))


# one head of several is broken ----------------------------------------------------------------------


def weights(of: AttentionCall, head: int, spoilt: Callable[[Tensor], Tensor]) -> dict[int, Tensor]:
    return {**of.weights, head: spoilt(of.weights[head].clone())}


def spoil(tensor: Tensor, head: int, spoilt: Callable[[Tensor], Tensor]) -> Tensor:
    changed = tensor.clone()
    changed[head] = spoilt(changed[head])
    return changed


def nan_in(tensor: Tensor) -> Tensor:
    tensor[2, 1] = math.nan
    return tensor


BREAKS: dict[str, Callable[[AttentionCall, int], dict[str, Any]]] = {
    "weights in another order": lambda c, h: {"weights": weights(c, h, lambda w: w.roll(1, -1))},
    "one weight": lambda c, h: {"weights": weights(c, h, lambda w: w + 1e-4 * (w == w.max()))},
    "a weight that is no number": lambda c, h: {"weights": weights(c, h, nan_in)},
    "output of another token": lambda c, h: {"output": spoil(c.output, h, lambda o: o.roll(1, 0))},
    "an output that is no number": lambda c, h: {"output": spoil(c.output, h, nan_in)},
    "query of another token": lambda c, h: {"q": spoil(c.q, h, lambda q: q.roll(1, 0))},
    "query a little longer": lambda c, h: {"q": spoil(c.q, h, lambda q: q * 1.001)},
    "a query that is no number": lambda c, h: {"q": spoil(c.q, h, nan_in)},
    "mask of another head": lambda c, h: {"allowed": spoil(c.allowed, h, lambda a: c.allowed[h - 1])},
    "bias dropped": lambda c, h: {"terms": (Term("bias", spoil(c.terms[0].values, h, torch.zeros_like)),)},
    "sink dropped": lambda c, h: {"sinks": spoil(c.sinks, h, lambda s: s - 100)},
}


@pytest.mark.parametrize("head", [0, 3])
@pytest.mark.parametrize("broken", BREAKS)
def test_of_heads_of_which_one_is_broken_that_one_fails_and_no_other_changes(broken, head):
    honest = call(
        allowed=OF_HEAD, sinks=drawn(HEADS), terms=(Term("bias", drawn(HEADS, QUERIES, KEYS, seed=7)),)
    )
    before = certify_heads(honest)
    assert {each.verdict for each in before} == {Verdict.CERTIFIED}
    after = certify_heads(replace(honest, **BREAKS[broken](honest, head)))
    assert [i for i, each in enumerate(after) if each.verdict is Verdict.FAILED] == [head]
    assert after[head].reason
    assert all(alike(before[i], after[i]) for i in range(HEADS) if i != head)


# one fault of one head would not have been seen -----------------------------------------------------

SQUARE = torch.ones(KEYS, KEYS, dtype=torch.bool).tril()
BAND = SQUARE & SQUARE.T.roll(3, 1)  # a window of four


def faint(tensor: Tensor, head: int, by: float = 1e-9) -> Tensor:
    return spoil(tensor, head, lambda mine: mine * by)


def blind_to_masks(head: int, seen: Tensor) -> dict[str, Any]:
    """A head whose bias alone keeps it from looking where the mask, or the window, forbids."""
    bias = torch.zeros(HEADS, KEYS, KEYS)
    bias[head][~seen] = -1e4
    return {"terms": (Term("bias", bias),), "allowed": seen[None].expand(HEADS, -1, -1)}


def blind_to_its_neighbour(head: int, part: str) -> AttentionCall:
    """A head whose neighbour's keys, or values, are nearly its own."""
    made = call(HEADS, HEADS, KEYS)
    mine, other = getattr(made, part)[head], (head + 1) % HEADS
    shared = spoil(getattr(made, part), other, lambda _: mine * (1 + 2**-23))
    return call_of(made.q, *(shared if each == part else getattr(made, each) for each in ("k", "v")))


UNSEEN: dict[str, Callable[[int], AttentionCall]] = {
    "scale off by sqrt 2": lambda h: call_of(faint(drawn(HEADS, 7, 5), h), drawn(3, 9, 5), drawn(3, 9, 4)),
    "mask dropped": lambda h: call(queries=KEYS, **blind_to_masks(h, SQUARE)),
    "window dropped": lambda h: call(queries=KEYS, window=4, **blind_to_masks(h, BAND)),
    "sink dropped": lambda h: call(sinks=spoil(drawn(HEADS), h, lambda s: s * 0 - 100)),
    "wrong key head": lambda h: blind_to_its_neighbour(h, "k"),
    "wrong value head": lambda h: blind_to_its_neighbour(h, "v"),
    "key rotation left out": lambda h: call(
        kv_heads=HEADS,
        unrotated_k=torch.where(
            (torch.arange(HEADS) == h)[:, None, None],
            drawn(HEADS, KEYS, 5, seed=2) * (1 + 2**-23),
            drawn(HEADS, KEYS, 5, seed=8),
        ),
    ),
    "query and key exchanged": lambda h: call_of(
        drawn(HEADS, 9, 5),
        spoil(drawn(HEADS, 9, 5, seed=2), h, lambda _: drawn(HEADS, 9, 5)[h]),
        drawn(HEADS, 9, 4, seed=3),
    ),
    "bias dropped": lambda h: call(terms=(Term("bias", faint(drawn(HEADS, QUERIES, KEYS), h)),)),
}


@pytest.mark.parametrize("fault", UNSEEN)
def test_a_fault_that_would_pass_in_one_head_makes_that_head_inconclusive_and_no_other(fault):
    head = 4
    found = certify_heads(UNSEEN[fault](head))
    named = [i for i, each in enumerate(found) if fault in each.unseen]
    assert named == [head]
    assert found[head].verdict is Verdict.INCONCLUSIVE
    assert fault in found[head].reason
    assert all(each.verdict is Verdict.CERTIFIED for i, each in enumerate(found) if i != head)
    for i, each in enumerate(found):
        tried = {fault.name: fault for fault in each.faults}
        assert (tried[fault].power > 1) is (i != head)


def test_a_soft_cap_that_one_head_does_not_feel_is_named_for_that_head():
    (given,) = record(sharp("gemma2"), ids(), Selection(layers=[0])).calls
    logits = given.q * 1e-4
    tame = replace(given, q=torch.where((torch.arange(given.heads) == 2)[:, None, None], logits, given.q))
    own = attend(tame.operands(2))
    tame = replace(
        tame,
        weights={**given.weights, 2: own.weights[0].float()},
        output=torch.cat([given.output[:2], own.output.float(), given.output[3:]]),
    )
    unseen = [i for i, each in enumerate(certify_heads(tame)) if "soft cap dropped" in each.unseen]
    assert unseen == [2]


@pytest.mark.parametrize("made", [*MADE, *UNSEEN])
def test_faults_that_are_tried_on_some_queries_first_give_the_same_verdicts_and_at_least_their_size(made):
    one = UNSEEN[made](4) if made in UNSEEN else call(**MADE[made])
    for mine, whole in zip(certify_heads(one, queries=[1, 4]), certify_heads(one), strict=True):
        others = {fault.name: fault for fault in whole.faults}
        same = replace(mine, faults=(), reason=""), replace(whole, faults=(), reason="")
        assert alike(*same)
        assert {*mine.unseen} == {*whole.unseen}
        assert {fault.name for fault in mine.faults} == {*others}
        for fault in mine.faults:
            most = others[fault.name]
            assert fault.power <= most.power * (1 + 1e-9) or math.isnan(most.power)
            assert (fault.power > 1) == (most.power > 1)


def test_a_fault_that_the_first_queries_do_not_show_is_looked_for_in_all():
    q = drawn(HEADS, QUERIES, 5) * (torch.arange(QUERIES) == 6)[:, None]  # one query alone has scores
    one = call_of(q, drawn(3, KEYS, 5, seed=2), drawn(3, KEYS, 4, seed=3))
    for mine, whole in zip(certify_heads(one, queries=[0, 3]), certify_heads(one), strict=True):
        sizes = [
            next(fault for fault in each.faults if fault.name.startswith("scale")) for each in (mine, whole)
        ]
        assert repr(sizes[0]) == repr(sizes[1])
        assert mine.verdict is whole.verdict is Verdict.CERTIFIED


def test_every_fault_of_the_list_is_tried_on_one_head_that_it_would_pass_in():
    assert set(UNSEEN) | {"soft cap dropped"} == {*FAULTS, "bias dropped"}


# memory ---------------------------------------------------------------------------------------------


def test_a_layer_is_let_go_of_as_soon_as_it_is_certified(monkeypatch):
    model, inputs = sharp("bert"), ids()
    there: list[weakref.ref[AttentionCall]] = []
    left: list[int] = []

    def watched(call: AttentionCall, heads: Any) -> tuple[Certificate, ...]:
        gc.collect()
        left.append(sum(each() is not None for each in there))
        there.append(weakref.ref(call.q))
        return certify_heads(call, heads)

    monkeypatch.setattr(verification, "certify_heads", watched)
    tokens = tokens_of(inputs)
    result = verify_model(model, inputs, tokens, provenance_of(model, tokens))
    assert len(result.layers) == len(left) == 3
    assert max(left) == 0
