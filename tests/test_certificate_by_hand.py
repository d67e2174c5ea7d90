"""Certificates of calls made up of a few numbers: the bounds of every rule, worked by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from made_calls import STEP, call_of
from torch import Tensor

from attnscope.attention import AttentionCall, Term
from attnscope.results import Fault, Kind, Reach, Verdict
from attnscope.verify import FAULTS, certify, conclusion
from attnscope.vocabulary import Effect


def random_call(
    queries: int, keys: int, *, heads: int = 2, kv_heads: int = 1, **changes: object
) -> AttentionCall:
    drawn = torch.Generator().manual_seed(4)
    q, k, v = (
        torch.randn(*shape, generator=drawn)
        for shape in ((heads, queries, 5), (kv_heads, keys, 5), (kv_heads, keys, 3))
    )
    return call_of(q, k, v, **changes)


def allowed_for(largest: float, products: int = 2) -> float:
    """The tolerance where so many absolute products sum to `largest` in the largest score."""
    return STEP * (1 + largest) + products**0.5 * STEP / 2 * largest


def tolerance(*keys: Sequence[float], **changes: object) -> float:
    """The tolerance of a weight for one query (1, 1) over such keys."""
    k = torch.tensor([keys])
    return certify(
        call_of(torch.ones(1, 1, 2), k, torch.ones(1, len(keys), 3), **changes), 0
    ).weight_tolerance


def test_a_call_of_some_queries_has_their_weights_in_their_order() -> None:
    call = random_call(5, 7)
    rows, exchanged = call.rows([4, 1]), call.rows([1, 4])
    for head in range(2):
        assert torch.equal(rows.weights[head], torch.stack([call.weights[head][4], call.weights[head][1]]))
        assert certify(rows, head).verdict is Verdict.CERTIFIED
        assert certify(replace(rows, weights=exchanged.weights), head).verdict is Verdict.FAILED


# the conclusion -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("power", "verdict"), [(1.0, Verdict.INCONCLUSIVE), (1.01, Verdict.CERTIFIED)])
def test_a_fault_is_seen_as_soon_as_it_lies_above_the_tolerance(power, verdict):
    found, reason = conclusion(True, 0.0, 0.0, (Fault("mask dropped", 0.1, 0.1, power),))
    assert found is verdict
    assert reason == ("" if power > 1 else "would not have been seen: mask dropped")


@pytest.mark.parametrize(
    ("weight_error", "output_error", "said"),
    [
        (math.inf, math.inf, "the recomputed attention is not the model's"),
        (math.inf, 0.0, "the recomputed attention is not the model's"),
        (math.nan, 0.0, "the model's own weights or output are not numbers"),
        (0.0, math.nan, "the model's own weights or output are not numbers"),
    ],
)
def test_what_is_infinitely_far_off_is_told_from_what_is_no_number(weight_error, output_error, said):
    assert conclusion(False, weight_error, output_error, ()) == (Verdict.FAILED, said)


@pytest.mark.parametrize(
    ("unread", "said"), [(1, "1 more softmax of"), (2, "2 more softmaxes of"), (3, "3 more softmaxes of")]
)
def test_softmaxes_that_were_not_read_are_counted_in_the_reason(unread, said):
    certificate = certify(random_call(3, 4, unread=unread), 1)
    assert certificate.verdict is Verdict.PARTIAL
    assert certificate.reason == f"{said} this layer could not be read"


@pytest.mark.parametrize("effect", Effect)
def test_what_is_known_of_a_head_s_effect_decides_with_its_reason_and_of_that_head_alone(effect):
    reached = {0: Reach(effect, "what was seen"), 1: Reach(Effect.OWN)}
    call = random_call(4, 6, reach=reached)
    is_wrong = effect in (Effect.SOME, Effect.NONE, Effect.OTHER)
    first, second = certify(call, 0), certify(call, 1)
    said = (Verdict.PARTIAL, "what was seen") if is_wrong else (Verdict.CERTIFIED, "")
    assert (first.verdict, first.reason, first.reach) == (*said, reached[0])
    assert (second.verdict, second.reason) == (Verdict.CERTIFIED, "")
    reserved = certify(random_call(4, 6, reach=reached, reservation="a reservation"), 0)
    assert reserved.reason == ("what was seen" if is_wrong else "a reservation")


def test_a_call_that_fails_is_not_called_partial():
    good = random_call(3, 4, unread=1)
    bad = random_call(3, 4, unread=1, output=good.output + 1)
    assert certify(bad, 0).verdict is Verdict.FAILED


def test_an_error_in_a_row_that_may_not_look_everywhere_counts():
    call = random_call(4, 4, allowed=torch.ones(4, 4, dtype=torch.bool).tril()[None])
    weights = {0: call.weights[0].clone()}
    weights[0][1, 0] += 0.01
    certificate = certify(replace(call, weights=weights), 0)
    assert certificate.weight_error == pytest.approx(0.01, rel=1e-4)
    assert certificate.verdict is Verdict.FAILED


def test_the_output_is_that_of_the_weights_that_met_the_values_where_these_are_others():
    call, drawn = random_call(3, 4), torch.Generator().manual_seed(7)
    met = {head: torch.rand(3, 4, generator=drawn).double() for head in range(2)}
    output = torch.stack([met[head] @ call.v[0].double() for head in range(2)])
    certificate = certify(replace(call, reweighted=met, output=output), 1)
    assert certificate.verdict is Verdict.PARTIAL
    assert certificate.reason == "the model changes the weights of its softmax before they meet the values"
    assert certificate.output_error < 1e-12
    assert certify(replace(call, reweighted=met), 1).verdict is Verdict.FAILED


@pytest.mark.parametrize(("steps", "agrees"), [(1.0, True), (1.0 + 2**-20, False)])
@pytest.mark.parametrize("place", ["weights", "output"])
def test_an_error_as_large_as_the_tolerance_is_within_it(place, steps, agrees):
    allowed = torch.ones(1, 2, 3, dtype=torch.bool)
    allowed[0, 1, 2] = False  # where our own weight is 0, and what is added to it exact
    q = torch.tensor([[[1.0, 0.5], [-2.0, 1.0]]])
    k = torch.tensor([[[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]]])
    v = torch.tensor([[[0.0, 4.0], [0.0, 1.0], [0.0, -2.0]]])  # a column of zeros, the largest a power of 2
    call = call_of(q, k, v, allowed=allowed)
    honest = certify(call, 0)
    weights, output = call.weights[0].double(), call.output.double()
    weights[1, 2] = steps * honest.weight_tolerance if place == "weights" else 0
    output[0, 1, 0] = steps * 4 * honest.output_tolerance if place == "output" else 0
    found = certify(replace(call, weights={0: weights}, output=output), 0)
    assert (found.verdict is not Verdict.FAILED) is agrees


# the tolerance --------------------------------------------------------------------------------------


def test_the_tolerance_counts_absolute_products_and_what_is_added():
    assert tolerance((3.0, -1.0), (0.5, 0.25)) == pytest.approx(allowed_for(4))
    added = Term("bias", torch.tensor([[[2.0, -7.0]]]))
    assert tolerance((3.0, -1.0), (0.5, 0.25), terms=(added,)) == pytest.approx(allowed_for(7.75))


def test_forbidden_pairs_do_not_count_and_a_sum_is_as_long_as_the_most_keys_of_one_query():
    allowed = torch.tensor([[[True, False], [False, False]]])
    q = torch.tensor([[[1.0, 1.0], [100.0, 100.0]]])
    k, v = torch.tensor([[[3.0, -1.0], [50.0, 50.0]]]), torch.ones(1, 2, 3)
    assert certify(call_of(q, k, v, allowed=allowed), 0).weight_tolerance == pytest.approx(allowed_for(4))
    assert tolerance((3.0, -1.0), (0.5, 0.25), scale=-3.0) == pytest.approx(allowed_for(12))
    allowed = torch.zeros(1, 5, 4, dtype=torch.bool)
    allowed[0, :, 0] = True  # a key that five queries look at
    allowed[0, 2, :3] = True  # a query that looks at three keys
    certificate = certify(random_call(5, 4, allowed=allowed), 1)
    assert certificate.output_tolerance == pytest.approx(2 * certificate.weight_tolerance + 3 * STEP / 2)
    tolerances = certificate.weight_tolerance, certificate.output_tolerance
    assert certificate.faults
    for fault in certificate.faults:  # the larger of its distances, each over its own tolerance
        expected = max(fault.weight_error / tolerances[0], fault.output_error / tolerances[1])
        assert fault.power == pytest.approx(expected)


@pytest.mark.parametrize(("logit", "counts"), [(-100, True), (-101, True), (-102, False)])
def test_a_score_counts_as_long_as_its_rounding_may_lift_it_to_100_below_the_largest(logit, counts):
    size = 2.0**23  # of its products: all rounding included, it is off by 1 at most
    key = ((size + logit) / 2, (logit - size) / 2)
    found = tolerance(key, (0.0, 0.0), (-1.0, 1.0))
    assert found == pytest.approx(allowed_for(size if counts else 2), rel=1e-6)


def test_the_output_is_held_against_the_largest_value_and_may_all_be_zero():
    call = random_call(3, 4)
    value = float(call.v.abs().max())
    off = call.output.clone()
    off[0, 1, 2] += 0.5
    certificate = certify(random_call(3, 4, output=off), 0)
    assert certificate.output_error == pytest.approx(0.5 / value, rel=1e-5)
    nothing = call_of(call.q, call.k, torch.zeros(1, 4, 3))
    assert certify(nothing, 0).output_error == 0


# faults ---------------------------------------------------------------------------------------------


def band(queries: int, keys: int, window: int, *, ahead: bool) -> Tensor:
    """Where query i, which stands at i + keys - queries, may look through such a window."""
    place = torch.arange(queries)[:, None] + keys - queries
    far = place - torch.arange(keys)[None, :]
    return (far.abs() < window) if ahead else (far >= 0) & (far < window)


@pytest.mark.parametrize(("kind", "ahead"), [(Kind.DECODER, False), (Kind.ENCODER, True)])
@pytest.mark.parametrize("queries", [3, 7])
def test_a_dropped_window_is_counted_from_the_last_query_and_key(kind, ahead, queries):
    allowed = band(queries, 7, 2, ahead=ahead)[None]
    call = random_call(queries, 7, kind=kind, window=2, allowed=allowed)
    faulty = FAULTS["window dropped"](call, 0, call.operands(0))
    seen = allowed[0].any(0)  # keys that nobody sees are padding, to all appearances
    assert torch.equal(faulty.allowed[0], band(queries, 7, 99, ahead=ahead) & seen)


def test_a_dropped_window_shows_nothing_to_a_query_that_saw_nothing():
    allowed = band(7, 7, 2, ahead=False)[None].clone()
    allowed[0, 5] = False
    call = random_call(7, 7, window=2, allowed=allowed)
    faulty = FAULTS["window dropped"](call, 0, call.operands(0))
    assert not faulty.allowed[0, 5].any()
    assert faulty.allowed[0, 6].all()
    call = random_call(4, 4, window=4, allowed=band(4, 4, 4, ahead=False)[None])
    assert FAULTS["window dropped"](call, 0, call.operands(0)) is None


@pytest.mark.parametrize(("kind", "ahead"), [(Kind.DECODER, False), (Kind.ENCODER, True)])
def test_a_dropped_window_opens_nothing_that_lies_within_it(kind, ahead):
    allowed = band(7, 7, 3, ahead=ahead)[None].clone()
    allowed[0, 5, 4] = False  # forbidden for a reason of its own
    call = random_call(7, 7, kind=kind, window=3, allowed=allowed)
    wider = FAULTS["window dropped"](call, 0, call.operands(0)).allowed[0]
    assert not wider[5, 4]
    assert torch.equal(
        wider, band(7, 7, 99, ahead=ahead) & ~((torch.arange(7) == 4) & (torch.arange(7)[:, None] == 5))
    )


def test_a_mask_that_forbids_one_pair_can_be_dropped_and_one_that_forbids_none_cannot():
    allowed = torch.ones(1, 3, 4, dtype=torch.bool)
    whole = random_call(3, 4, allowed=allowed)
    assert FAULTS["mask dropped"](whole, 0, whole.operands(0)) is None
    allowed = allowed.clone()
    allowed[0, 2, 1] = False
    one = random_call(3, 4, allowed=allowed)
    assert FAULTS["mask dropped"](one, 0, one.operands(0)).allowed is None


def dropped(call: AttentionCall, head: int = 0) -> set[str]:
    """What is added and, left out, would be a fault."""
    names = {fault.name.removesuffix(" dropped") for fault in certify(call, head).faults}
    return names & {*call.added(head), "added mask", "bias", "mask"} - {"mask"}


def test_what_is_added_is_a_fault_where_it_differs_along_a_row_or_a_sink_feels_it():
    along = Term("bias", torch.tensor([[[2.0], [3.0], [-1.0]]]).expand(1, 3, 4))
    assert dropped(random_call(3, 4, terms=(along,))) == set()
    sinks = torch.tensor([0.3, -0.2])
    assert dropped(random_call(3, 4, terms=(along,), sinks=sinks)) == {"bias"}
    values = torch.zeros(1, 3, 4)
    values[0, 1, 2] = 0.5
    assert dropped(random_call(3, 4, terms=(Term("bias", values),))) == {"bias"}
    allowed = torch.ones(1, 3, 4, dtype=torch.bool)
    allowed[0, 1, 2] = False
    assert dropped(random_call(3, 4, terms=(Term("bias", values),), allowed=allowed)) == set()
    values = torch.zeros(1, 3, 4)
    values[0, :, 1] = -3.0
    names = {fault.name for fault in certify(random_call(3, 4, terms=(Term("mask", values),)), 0).faults}
    assert "added mask dropped" in names
    assert "mask dropped" not in names


def test_what_is_added_twice_is_left_out_at_once():
    drawn = torch.Generator().manual_seed(5)
    first, second = (torch.randn(1, 3, 4, generator=drawn) for _ in range(2))
    call = random_call(3, 4, terms=(Term("bias", first), Term("bias 2", second)))
    (fault,) = (fault for fault in certify(call, 0).faults if fault.name == "bias dropped")
    bare = (call.q[0] @ call.k[0].mT).double().softmax(-1)
    assert fault.weight_error == pytest.approx(float((bare - call.weights[0]).abs().max()), rel=1e-5)
    once = (call.q[0] @ call.k[0].mT + first[0]).double().softmax(-1)
    assert fault.weight_error != pytest.approx(float((once - call.weights[0]).abs().max()), rel=1e-2)


@pytest.mark.parametrize(("head", "neighbour"), [(0, 1), (1, 2), (2, 0)])
def test_the_wrong_key_head_is_the_next_one_and_after_the_last_the_first(head, neighbour):
    call = random_call(3, 4, heads=3, kv_heads=3)
    operands = call.operands(head)
    for name, field in (("wrong key head", "k"), ("wrong value head", "v")):
        faulty = getattr(FAULTS[name](call, head, operands), field)
        assert torch.equal(faulty, getattr(call, field)[neighbour : neighbour + 1].double())


def test_a_key_head_that_is_the_same_is_passed_over():
    call = random_call(3, 4, heads=4, kv_heads=4)
    k = call.k.clone()
    k[1] = k[2] = k[0]
    call = replace(call, k=k)
    assert torch.equal(FAULTS["wrong key head"](call, 0, call.operands(0)).k, k[3:].double())
    assert torch.equal(FAULTS["wrong key head"](call, 1, call.operands(1)).k, k[3:].double())
    assert torch.equal(FAULTS["wrong key head"](call, 3, call.operands(3)).k, k[:1].double())


def test_the_rotation_left_out_is_that_of_the_heads_own_key():
    before = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(6))
    call = random_call(3, 4, heads=6, kv_heads=3, unrotated_k=before)
    for head in range(6):
        faulty = FAULTS["key rotation left out"](call, head, call.operands(head))
        assert torch.equal(faulty.k, before[head // 2][None].double())
    assert FAULTS["key rotation left out"](random_call(3, 4), 0, random_call(3, 4).operands(0)) is None
