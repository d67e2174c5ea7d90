"""The score of a pair: by dimension, and by its parts; sums by hand and by loops, negative cases."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as hf
from families import ids, sharp
from torch import nn

from attnscope.analysis.heads.head import UNPAIRED, head_dimensions, head_terms, rotation_of
from attnscope.arithmetic import attend
from attnscope.attention import AttentionCall, Capture, Term
from attnscope.capture import Selection, record
from attnscope.capture.following.describe import numbered
from attnscope.errors import InputError
from attnscope.results import HeadTerms, Kind
from attnscope.results.score import CAP, CONTENT, MASK, SINK
from attnscope.verify import certify


def turned(
    before: np.ndarray, pairs: list[tuple[int, int]], angles: list[float], stretch: float = 1.0
) -> np.ndarray:
    """`before` with every pair turned by its angle times the place, by sine and cosine."""
    after = stretch * before.copy()
    for place in range(len(before)):
        for (one, other), angle in zip(pairs, angles, strict=True):
            x, y = before[place, one], before[place, other]
            cosine, sine = math.cos(angle * place), math.sin(angle * place)
            after[place, one] = stretch * (x * cosine - y * sine)
            after[place, other] = stretch * (x * sine + y * cosine)
    return after


def vectors(keys: int = 9, dimensions: int = 8) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(keys, dimensions))


LAYOUTS = {
    "halves": ([(0, 4), (1, 5), (2, 6), (3, 7)], [1.0, 0.3, 0.01, 1e-4]),
    "neighbours": ([(0, 1), (2, 3), (4, 5), (6, 7)], [1.0, 0.3, 0.01, 1e-4]),
    "halves of the first dimensions": ([(0, 2), (1, 3)], [1.0, 0.1]),
    "neighbours of the last dimensions": ([(4, 5), (6, 7)], [1.0, 0.1]),
    "backwards": ([(0, 4), (1, 5), (2, 6), (3, 7)], [-1.0, -0.3, -0.01, -0.001]),
}


@pytest.mark.parametrize("stretch", [1.0, 1.25])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pairs_that_were_turned_by_hand_are_found_with_their_angles(layout: str, stretch: float) -> None:
    pairs, angles = LAYOUTS[layout]
    if stretch != 1 and len(pairs) < 4:
        pytest.skip("what stretches keys stretches all that it turns, and the rest stays")
    found = rotation_of(vectors(), turned(vectors(), pairs, angles, stretch))
    assert found is not None
    assert list(zip(found.first, found.second, strict=True)) == pairs
    assert found.angle == pytest.approx(np.array(angles), abs=1e-9)
    assert found.wavelength == pytest.approx(2 * np.pi / np.abs(angles))


def test_what_is_no_turning_of_pairs_is_not_told_as_one() -> None:
    before, (pairs, angles) = vectors(), LAYOUTS["halves"]
    after = turned(before, pairs, angles)
    assert rotation_of(before, before) is None
    assert rotation_of(before[:2], after[:2]) is None, "two tokens lie on a line whatever was done"
    assert rotation_of(before, after + 1e-2 * vectors()[::-1]) is None
    assert rotation_of(before, turned(before, [(0, 3), (1, 6), (2, 5), (4, 7)], angles)) is None
    late = after.copy()
    late[6] = turned(before, pairs, [2 * each for each in angles])[6]
    assert rotation_of(before, late) is None, "one token stands elsewhere"


def inverse_frequencies(model: nn.Module, layer: int) -> np.ndarray:
    """The angles that the model's own module holds, for local and global layers where it has two."""
    modules = [each for name, each in model.named_modules() if name.endswith("rotary_emb")]
    buffers = {name: value for each in modules for name, value in each.named_buffers() if "inv_freq" in name}
    kinds = getattr(model.config, "layer_types", None)
    own = [
        v for name, v in buffers.items() if kinds and name.startswith(kinds[layer]) and "original" not in name
    ]
    return (own or [buffers["inv_freq"]])[0].double().numpy()


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_the_angles_are_those_that_the_model_holds(family: str) -> None:
    model = sharp(family)
    captured = record(model, ids(12), Selection(layers=[1]))
    found = head_dimensions(captured, 1, 2, 7, 6).rotation
    assert found is not None
    expected = inverse_frequencies(model, 1)
    assert np.abs(found.angle) == pytest.approx(expected, rel=2e-3)
    half = len(expected)
    assert (found.second - found.first == half).all()


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_the_products_add_up_to_the_score_that_the_certificate_holds(family: str) -> None:
    captured = record(sharp(family), ids(9), Selection(layers=[1]))
    result = head_dimensions(captured, 1, 3, 6, 2)
    call = captured.call(1)
    q, k = call.q[3, 6].double(), call.k[call.key_head(3), 2].double()
    by_loop = [float(q[dim]) * float(k[dim]) for dim in range(q.shape[0])]
    assert result.products == pytest.approx(np.array(by_loop), rel=1e-12)
    assert result.cumulated[-1] == pytest.approx(result.head.scores[6, 2], rel=1e-12)
    assert list(np.abs(result.products[result.order])) == sorted(np.abs(by_loop), reverse=True)
    allowed = [key for key in range(9) if key != 2 and call.allowed_matrix(3)[6, key]]
    assert result.others == allowed
    mean = [
        sum(float(q[d]) * float(call.k[call.key_head(3), key, d]) for key in allowed) for d in range(len(q))
    ]
    assert result.beside == pytest.approx(np.array(mean) / len(allowed))
    above = result.head.scores[6, 2] - result.head.scores[6, allowed].mean()
    assert (result.products - result.beside).sum() == pytest.approx(above)


def test_without_names_it_is_the_strongest_pair_and_of_a_query_its_strongest_key() -> None:
    captured = record(sharp("gpt2"), ids(9), Selection(layers=[0]))
    found = head_dimensions(captured, 0, 1)
    weights = found.head.weights
    assert weights[0, 0] == 1, "the first token sees itself alone: that is no finding"
    others = np.where(np.eye(len(weights), dtype=bool), -1.0, np.nan_to_num(weights))
    row, key = np.unravel_index(np.argmax(others), weights.shape)
    assert (found.query, found.key) == (row, key)
    assert head_dimensions(captured, 0, 1, 5).key == int(np.nanargmax(weights[5]))
    first = head_dimensions(captured, 0, 1, 0)
    assert first.others == []
    assert np.isnan(first.beside).all()


def test_pairs_that_cannot_be_told_are_said_not_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = record(sharp("llama"), ids(9), Selection(layers=[0]))
    call = captured.call(0)
    call.unrotated_k[:, 4] *= 1.5  # as if one token had been stretched
    found = head_dimensions(captured, 0, 1, 5, 2)
    assert found.rotation is None
    assert found.unpaired == UNPAIRED
    assert head_dimensions(record(sharp("bert"), ids(9), Selection(layers=[0])), 0, 1).unpaired == ""


@pytest.mark.parametrize(
    ("query", "key", "message"),
    [(None, 2, "a key goes with a query"), (2, 5, "key 5 .* is masked for query 2"), (30, None, "no token")],
)
def test_a_pair_that_is_not_there_is_one_line(query: int | None, key: int | None, message: str) -> None:
    captured = record(sharp("gpt2"), ids(9), Selection(layers=[0]))
    with pytest.raises(InputError, match=message):
        head_dimensions(captured, 0, 1, query, key)


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


def test_a_term_that_is_not_the_model_s_is_seen_by_the_certificate_of_the_same_head() -> None:
    captured = made()
    call = captured.calls[0]
    assert certify(call, 1).verdict == "certified"
    wrong = replace(call.terms[1], values=call.terms[1].values.flip(-1))
    lying = replace(captured, calls=(replace(call, terms=(call.terms[0], wrong)),))
    assert head_terms(lying, 0, 1).head.certificate.verdict == "failed"


def test_a_model_that_turns_neighbours_and_one_that_turns_a_part() -> None:
    torch.manual_seed(4)
    sizes = {"vocab_size": 97, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3}
    cohere = hf.CohereModel(
        hf.CohereConfig(**sizes, intermediate_size=32, num_key_value_heads=3, pad_token_id=0)
    ).eval()
    found = head_dimensions(record(cohere, ids(10), Selection(layers=[0])), 0, 1).rotation
    assert found is not None
    assert list(zip(found.first, found.second, strict=True)) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    phi = hf.PhiModel(hf.PhiConfig(**sizes, intermediate_size=32, partial_rotary_factor=0.5)).eval()
    found = head_dimensions(record(phi, ids(10), Selection(layers=[0])), 0, 1).rotation
    assert found is not None
    assert list(zip(found.first, found.second, strict=True)) == [(0, 2), (1, 3)]


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
    result = head_terms(record(sharp(family), ids(), Selection(layers=[0])), 0, 4)
    assert {each.name for each in result.influences} == parts
    assert all(each.moved > 0 for each in result.influences)
    entering = result.capped + sum(result.head.terms.values())
    assert entering[result.head.allowed] == pytest.approx(result.head.scaled[result.head.allowed], abs=1e-9)
