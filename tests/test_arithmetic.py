"""The reference arithmetic against an explicit loop, numbers worked by hand, and torch's own kernel."""

import math

import jaxtyping
import pytest
import torch
from torch import Tensor

from attnscope.arithmetic import (
    Operands,
    Stages,
    additive_scores,
    attend,
    logits_over,
    project,
    softmax,
    weigh,
    weights_alone,
)

HEADS, KEY_HEADS, QUERIES, KEYS, DIM, VALUE_DIM = 6, 2, 4, 5, 3, 7


def operands(**changes: object) -> Operands:
    """Random operands, no two axes of the same length."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    plain = Operands(
        q=random(HEADS, QUERIES, DIM),
        k=random(KEY_HEADS, KEYS, DIM),
        v=random(KEY_HEADS, KEYS, VALUE_DIM),
        scale=0.7,
    )
    return plain.but(**changes)


def bias(heads: int = HEADS) -> Tensor:
    return torch.randn(heads, QUERIES, KEYS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def mask(heads: int = HEADS) -> Tensor:
    """Every query may look at its own key and at about half of the others."""
    chosen = torch.rand(heads, QUERIES, KEYS, generator=torch.Generator().manual_seed(2)) < 0.5
    return chosen | torch.eye(QUERIES, KEYS, dtype=torch.bool)


SINKS = torch.linspace(-2, 2, HEADS, dtype=torch.float64)

VARIANTS = {
    "plain": {},
    "soft cap": {"softcap": 0.8},
    "bias": {"bias": bias()},
    "one bias for all heads": {"bias": bias(1)},
    "mask": {"allowed": mask()},
    "one mask for all heads": {"allowed": mask(1)},
    "sinks": {"sinks": SINKS},
    "everything": {"softcap": 0.8, "bias": bias(), "allowed": mask(), "sinks": SINKS},
}


def looped(given: Operands) -> Stages:
    """The same stages, one number at a time."""
    stages = {
        name: torch.zeros(HEADS, QUERIES, KEYS, dtype=torch.float64)
        for name in ("scores", "scaled", "capped", "biased", "masked", "weights")
    }
    output = torch.zeros(HEADS, QUERIES, VALUE_DIM, dtype=torch.float64)
    for head in range(HEADS):
        shared = [0, 0, 0, 1, 1, 1][head]  # three query heads read each key head
        for query in range(QUERIES):
            for key in range(KEYS):
                score = sum(
                    x * y
                    for x, y in zip(given.q[head, query].tolist(), given.k[shared, key].tolist(), strict=True)
                )
                scaled = score * given.scale
                capped = (
                    scaled if given.softcap is None else given.softcap * math.tanh(scaled / given.softcap)
                )
                added = (
                    0.0 if given.bias is None else float(given.bias.expand(HEADS, -1, -1)[head, query, key])
                )
                seen = given.allowed is None or bool(given.allowed.expand(HEADS, -1, -1)[head, query, key])
                stages["scores"][head, query, key] = score
                stages["scaled"][head, query, key] = scaled
                stages["capped"][head, query, key] = capped
                stages["biased"][head, query, key] = capped + added
                stages["masked"][head, query, key] = capped + added if seen else -math.inf
            shares = [math.exp(logit) for logit in stages["masked"][head, query].tolist()]
            whole = sum(shares) + (0.0 if given.sinks is None else math.exp(given.sinks[head]))
            for key in range(KEYS):
                stages["weights"][head, query, key] = shares[key] / whole
                output[head, query] += shares[key] / whole * given.v[shared, key]
    return Stages(**stages, output=output)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_stage_equals_an_explicit_loop(variant):
    given = operands(**VARIANTS[variant])
    expected, found = looped(given), attend(given)
    for stage in ("scores", "scaled", "capped", "biased", "masked", "weights", "output"):
        torch.testing.assert_close(
            getattr(found, stage), getattr(expected, stage), msg=lambda m, s=stage: f"{s}: {m}"
        )


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "plain"])
def test_every_variant_changes_the_weights(variant):
    changed = (attend(operands(**VARIANTS[variant])).weights - attend(operands()).weights).abs().max()
    assert changed > 0.05


def test_three_tokens_worked_by_hand():
    found = attend(
        Operands(
            q=torch.tensor([[[1.0, 0, 1]]], dtype=torch.float64),
            k=torch.tensor([[[1.0, 0, 1], [0, 1, 0], [1, 1, 0]]], dtype=torch.float64),
            v=torch.tensor([[[1.0, 2], [3, 4], [5, 6]]], dtype=torch.float64),
            scale=3**-0.5,
        )
    )
    assert found.scores.flatten().tolist() == [2, 0, 1]
    assert found.scaled.flatten().tolist() == pytest.approx([1.15470054, 0, 0.57735027], abs=5e-9)
    assert found.weights.flatten().tolist() == pytest.approx([0.53289684, 0.16794345, 0.29915971], abs=5e-9)
    assert found.output.flatten().tolist() == pytest.approx([2.53252575, 3.53252575], abs=5e-9)


@pytest.mark.parametrize("variant", ["plain", "bias", "mask"])
def test_the_output_equals_that_of_torch(variant):
    given = operands(**VARIANTS[variant])
    added = given.bias
    if given.allowed is not None:
        added = torch.zeros(HEADS, QUERIES, KEYS, dtype=torch.float64).masked_fill(~given.allowed, -torch.inf)
    expected = torch.nn.functional.scaled_dot_product_attention(
        given.q[None], given.k[None], given.v[None], added, scale=given.scale, enable_gqa=True
    )
    torch.testing.assert_close(attend(given).output, expected[0])


def test_query_heads_read_key_heads_in_blocks_and_not_in_turns():
    found = attend(operands()).scores
    blocks, turns = ([0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1])
    scores = [operands().q @ operands().k[order].transpose(-1, -2) for order in (blocks, turns)]
    torch.testing.assert_close(found, scores[0])
    assert not torch.allclose(found, scores[1])


@pytest.mark.parametrize("sinks", [None, SINKS], ids=["without sinks", "with sinks"])
def test_a_row_without_any_allowed_key_is_nan_and_the_others_are_untouched(sinks):
    allowed = mask()
    allowed[2, 1] = False
    found, whole = (
        attend(operands(allowed=allowed, sinks=sinks)),
        attend(operands(allowed=mask(), sinks=sinks)),
    )
    others = torch.ones(HEADS, QUERIES, dtype=torch.bool)
    others[2, 1] = False
    for stage in ("weights", "output"):
        assert getattr(found, stage)[2, 1].isnan().all()
        assert torch.equal(getattr(found, stage)[others], getattr(whole, stage)[others])
        assert getattr(found, stage)[others].isfinite().all()


def test_a_sink_is_one_more_logit_without_a_value():
    given = operands(sinks=SINKS)
    logits = attend(operands()).masked
    longer = torch.cat([logits, SINKS[:, None, None].expand(HEADS, QUERIES, 1)], dim=-1)
    expected = torch.softmax(longer, dim=-1)[..., :-1]
    found = attend(given).weights
    torch.testing.assert_close(found, expected)
    assert (found.sum(-1) < 1).all()
    torch.testing.assert_close(
        attend(operands()).weights.sum(-1), torch.ones(HEADS, QUERIES, dtype=torch.float64)
    )


@pytest.mark.parametrize("sink", [-1000.0, 1000.0])
def test_sinks_and_logits_of_any_size_overflow_nowhere(sink):
    logits = torch.tensor([[[900.0, 901.0, -900.0]]], dtype=torch.float64)
    found = softmax(logits, torch.tensor([sink], dtype=torch.float64))
    share = 1 / (1 + math.exp(-1))
    expected = [1 - share, share, 0] if sink < 0 else [math.exp(-100), math.exp(-99), 0]
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-9)


def test_the_cap_is_approached_and_never_passed():
    capped = attend(operands(scale=1000.0, softcap=2.5)).capped
    assert capped.abs().max() == pytest.approx(2.5)
    assert torch.equal(capped.sign(), attend(operands()).scores.sign())


def test_operands_whose_axes_do_not_fit_are_refused():
    with pytest.raises(jaxtyping.TypeCheckError):
        operands(k=torch.zeros(KEY_HEADS, KEYS, DIM + 1, dtype=torch.float64))
    with pytest.raises(jaxtyping.TypeCheckError):
        operands(allowed=torch.ones(HEADS, KEYS, QUERIES, dtype=torch.bool))
    with pytest.raises(jaxtyping.TypeCheckError):
        operands(allowed=torch.ones(HEADS, QUERIES, KEYS))  # the right axes, but numbers


def test_a_sink_for_each_query_takes_its_share_of_that_query_alone():
    by_query = OF_QUERIES
    found = attend(operands(sinks=by_query)).weights
    for query in range(QUERIES):
        alone = attend(operands(sinks=by_query[:, query].clone())).weights[:, query]
        torch.testing.assert_close(found[:, query], alone)
    assert not torch.allclose(found, attend(operands(sinks=by_query[:, 0].clone())).weights)


def test_additive_scores_rows_times_a_matrix_and_scores_made_otherwise_by_hand():
    scores = torch.tensor([[[0.0, math.log(3.0)]]], dtype=torch.float64)
    found = weigh(scores, torch.tensor([[[4.0], [8.0]]], dtype=torch.float64))
    assert torch.equal(found.scaled, scores)
    assert found.weights.flatten().tolist() == pytest.approx([0.25, 0.75])
    assert found.output.flatten().tolist() == pytest.approx([7])
    rows = torch.tensor([[1.0, 2], [3, 4], [5, 6]], dtype=torch.float64)
    matrix = torch.tensor([[1.0, 0, 2, 0], [0, 1, 0, 3]], dtype=torch.float64)
    bias = torch.tensor([10.0, 20, 30, 40], dtype=torch.float64)
    assert project(rows, matrix).tolist() == [[1, 2, 2, 6], [3, 4, 6, 12], [5, 6, 10, 18]]
    assert project(rows, matrix, bias).tolist() == [[11, 22, 32, 46], [13, 24, 36, 52], [15, 26, 40, 58]]
    q = torch.tensor([[[0.5, -1.0]]], dtype=torch.float64)
    k = torch.tensor([[[0.25, 1.0], [-0.5, 3.0], [1.5, 0.0]]], dtype=torch.float64)
    found = additive_scores(q, k, torch.tensor([2.0, -1.0], dtype=torch.float64))
    by_hand = [2 * math.tanh(0.75), -math.tanh(2), 2 * math.tanh(2) - math.tanh(-1)]
    assert found.flatten().tolist() == pytest.approx(by_hand)


NO_KEY = mask(1) & (torch.arange(QUERIES) != 2)[:, None]
OF_QUERIES = torch.linspace(-2, 2, HEADS * QUERIES, dtype=torch.float64).reshape(HEADS, QUERIES)


@pytest.mark.parametrize(
    "variant", [*VARIANTS.values(), {"allowed": NO_KEY, "sinks": SINKS}, {"sinks": OF_QUERIES}]
)
def test_weights_written_over_their_scores_are_the_same_numbers_and_leave_the_operands_alone(variant):
    given, before = operands(**variant), operands(**variant)
    torch.testing.assert_close(weights_alone(given), attend(before).weights, rtol=0, atol=0, equal_nan=True)
    for name, value in vars(before).items():
        assert torch.equal(getattr(given, name), value) if isinstance(value, Tensor) else True


def test_logits_go_where_they_are_asked_to_and_leave_their_scores_as_they_were():
    scores = attend(operands()).scores
    before, place = scores.clone(), torch.empty_like(scores)
    found = logits_over(scores, 0.5, None, None, None, out=place)
    assert found is place
    assert torch.equal(scores, before)
    assert torch.equal(found, before * 0.5)
    assert logits_over(scores, 0.5, None, None, None) is scores
