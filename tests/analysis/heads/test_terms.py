"""The parts of a head's scores: sums by hand and by loops, weights without a part, negative cases."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from families import ids, padded, padding_as_tokens, sharp

from attnscope.analysis.heads.head import head_terms
from attnscope.attention import AttentionCall, Capture, Term
from attnscope.capture import Selection, record
from attnscope.capture.following.describe import numbered
from attnscope.results import HeadTerms, Kind
from attnscope.results.score import CAP, CONTENT, MASK, SINK
from attnscope.sdpa import attend
from attnscope.verify import certify

ALIBI, RELATIVE = "alibi", "relative position"


def made() -> Capture:
    """One query head pair on three queries and four keys: scale 1/2, cap, two terms, a mask, a sink."""
    q = torch.tensor([[[2.0, 0.0], [0.0, 4.0], [1.0, 1.0]]]).repeat(2, 1, 1)
    k = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, -1.0], [0.0, 0.0]]])
    v = torch.arange(20.0).reshape(1, 4, 5)
    terms = (
        Term(ALIBI, torch.tensor([[[0.0, -0.5, -1.0, -1.5]] * 3])),
        Term(RELATIVE, torch.arange(24.0).reshape(2, 3, 4) / 8),
    )
    allowed = torch.ones(1, 3, 4, dtype=torch.bool)
    allowed[0, 0, 2:] = False
    call = AttentionCall(
        module="made", call=0, layer=0, kind=Kind.DECODER, query_tokens=numbered(3), key_tokens=numbered(4),
        q=q, k=k, v=v, scale=0.5, softcap=3.0, terms=terms, allowed=allowed,
        sinks=torch.tensor([0.25, -1.0]), window=None, output=torch.zeros(2, 3, 5), weights={},
        epsilon=1e-7, precision="float32",
    )  # fmt: skip
    stages = [attend(call.operands(head)) for head in range(2)]
    call = replace(
        call,
        output=torch.cat([each.output for each in stages]),
        weights={head: each.weights[0] for head, each in enumerate(stages)},
    )
    from made_results import provenance

    return Capture((call,), 1, provenance())


def part(result: HeadTerms, name: str):
    return next(each for each in result.influences if each.name == name)


def test_one_pair_is_what_a_person_works_out() -> None:
    columns = head_terms(made(), 0, 1).columns
    assert list(columns) == ["q·k", "scaled", "capped", ALIBI, RELATIVE, "mask", "score", "weight"]
    query, key = 1, 1
    capped = 3 * math.tanh(2 / 3)
    by_hand = [4.0, 2.0, capped, -0.5, (12 + 5) / 8, 0.0, capped - 0.5 + 17 / 8]
    assert [float(values[query, key]) for values in columns.values()][:-1] == pytest.approx(by_hand)


def test_the_columns_add_up_to_what_enters_the_softmax_in_every_cell() -> None:
    result = head_terms(made(), 0, 1)
    columns = result.columns
    for query in range(3):
        for key in range(4):
            total = sum(float(columns[name][query, key]) for name in ("capped", ALIBI, RELATIVE, "mask"))
            if result.head.allowed[query, key]:
                assert total == pytest.approx(result.head.scaled[query, key])
            else:
                assert total == float(columns["score"][query, key]) == -math.inf
                assert math.isnan(result.head.scaled[query, key])


def test_a_weight_is_exp_of_its_score_less_the_normaliser_and_the_sink_takes_the_rest() -> None:
    result = head_terms(made(), 0, 0)
    assert result.sink_weights is not None
    for query in range(3):
        powers = [math.exp(score) for score in result.columns["score"][query]]
        total = sum(powers) + math.exp(0.25)
        assert result.normaliser[query] == pytest.approx(math.log(total))
        assert result.head.weights[query] == pytest.approx([power / total for power in powers])
        assert result.sink_weights[query] == pytest.approx(math.exp(0.25) / total)


def slow_weights(result: HeadTerms, without: str) -> list[list[float]]:
    """Weights, and last what the sink takes, by plain loops with one part left out."""
    head, rows = result.head, []
    for query in range(len(head.query_tokens)):
        powers = []
        for key in range(len(head.key_tokens)):
            score = 0.0 if without == CONTENT else float(head.scores[query, key]) * head.scale
            if head.softcap is not None and without != CAP:
                score = head.softcap * math.tanh(score / head.softcap)
            score += sum(float(values[query, key]) for name, values in head.terms.items() if name != without)
            seen = head.allowed[query, key] or without == MASK
            powers.append(math.exp(score) if seen else 0.0)
        sink = 0.0 if result.sinks is None or without == SINK else math.exp(result.sinks[query])
        total = sum(powers) + sink
        rows.append([power / total for power in (*powers, sink)])
    return rows


@pytest.mark.parametrize("name", [CONTENT, CAP, ALIBI, RELATIVE, MASK, SINK])
def test_how_far_the_weights_move_is_the_total_variation_to_those_without_the_part(name: str) -> None:
    result = head_terms(made(), 0, 1)
    whole, other = slow_weights(result, "nothing"), slow_weights(result, name)
    moved = [
        sum(abs(a - b) for a, b in zip(one, two, strict=True)) / 2
        for one, two in zip(whole, other, strict=True)
    ]
    told = part(result, name)
    assert (told.moved, told.moved_most) == pytest.approx((sum(moved) / 3, max(moved)))
    assert 0 < told.moved < told.moved_most <= 1


def test_contributions_are_taken_over_the_allowed_pairs_only() -> None:
    result = head_terms(made(), 0, 1)
    relative = [(12 + 4 * query + key) / 8 for query in range(3) for key in range(4) if query or key < 2]
    told = part(result, RELATIVE)
    assert (told.mean, told.least, told.most) == pytest.approx(
        (sum(relative) / 10, min(relative), max(relative))
    )
    assert (part(result, SINK).mean, part(result, SINK).most) == (-1.0, -1.0)
    assert math.isnan(part(result, MASK).mean)


def test_a_query_without_a_key_is_left_out_and_has_no_normaliser() -> None:
    captured = made()
    call = captured.calls[0]
    allowed = torch.ones(1, 3, 4, dtype=torch.bool)
    allowed[0, 2] = False
    silent = replace(captured, calls=(replace(call, allowed=allowed),))
    result = head_terms(silent, 0, 0)
    assert np.isnan(result.normaliser).tolist() == [False, False, True]
    assert all(math.isfinite(each.moved) for each in result.influences)


def test_a_term_that_is_not_the_model_s_is_seen_by_the_certificate_of_the_same_head() -> None:
    captured = made()
    call = captured.calls[0]
    assert certify(call, 1).verdict == "certified"
    wrong = replace(call.terms[1], values=call.terms[1].values.flip(-1))
    lying = replace(captured, calls=(replace(call, terms=(call.terms[0], wrong)),))
    assert head_terms(lying, 0, 1).head.certificate.verdict == "failed"


@pytest.mark.parametrize(
    ("family", "parts"),
    [
        ("t5", {CONTENT, RELATIVE}),
        ("gemma2", {CONTENT, CAP, MASK}),
        ("gpt_oss", {CONTENT, MASK, SINK}),
        ("bert", {CONTENT}),
    ],
)
def test_real_models_have_the_parts_that_their_papers_say(family: str, parts: set[str]) -> None:
    captured = record(sharp(family), ids(), Selection(layers=[0]))
    result = head_terms(captured, 0, 4)
    assert {each.name for each in result.influences} == parts
    assert all(each.moved > 0 for each in result.influences)
    entering = result.capped + sum(result.head.terms.values())
    assert entering[result.head.allowed] == pytest.approx(result.head.scaled[result.head.allowed], abs=1e-9)
    assert result.head.certificate.verdict == "certified"


def test_padding_forbids_keys_and_adds_nothing() -> None:
    captured = record(sharp("bert"), padded("right"), Selection(layers=[1], row=1))
    result = head_terms(padding_as_tokens(captured), 1, 2)
    assert {each.name for each in result.influences} == {CONTENT, MASK}
    assert np.isneginf(result.columns["mask"][:, -3:]).all()
    assert not result.columns["mask"][:, :-3].any()
