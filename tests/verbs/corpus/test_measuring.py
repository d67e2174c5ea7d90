"""Measures of padded batches against the measure itself on each text, alone and unpadded."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from attnscope.capture.weights import Passed
from attnscope.errors import CertificateError, InputError
from attnscope.measures import MEASURES, parse_measures, whole
from attnscope.measures.registry import check_measurable, measurable
from attnscope.measures.rows import moved_norms
from attnscope.verbs.corpus.measuring import leaking, measured
from attnscope.verbs.corpus.passes import Facts, norms_moved, triangles

LENGTHS, HEADS, DIM, HIDDEN = (2, 7, 5, 1), 4, 3, 11
NAMES = measurable(parse_measures("all"))
EXACTLY = {"fixed", "offset", "fixed-norm", "offset-norm", "pattern"}  # given the weights
GENERATOR = torch.Generator().manual_seed(3)


def facts() -> Facts:
    """Four texts of 2 to 7 tokens; the first has no punctuation, the third no token twice."""
    most = max(LENGTHS)
    ids = torch.tensor([[1, 2, 0, 0, 0, 0, 0], [1, 5, 6, 5, 7, 6, 2], [1, 3, 4, 9, 2, 0, 0], [1] + [0] * 6])
    own = torch.arange(most) < torch.tensor(LENGTHS)[:, None]
    alike = (ids[:, :, None] == ids[:, None, :]) & own[:, :, None] & own[:, None, :]
    return Facts(torch.tensor(LENGTHS), ((ids == 1) | (ids == 2)) & own, (ids == 7) | (ids == 9), alike)


def batch(causal: bool, by_head: bool = False) -> tuple[Passed, Facts, Tensor]:
    """Weights with what no text is made of in the rows that fill up, and where queries may look."""
    known, most = facts(), max(LENGTHS)
    allowed = (known.own[:, :, None] & known.own[:, None, :])[:, None].clone()
    allowed = allowed.tril() if causal else allowed
    allowed[1, 0, 3] = False  # a query that may look nowhere
    if by_head:  # each head looks elsewhere
        allowed = allowed & (torch.rand(len(LENGTHS), HEADS, most, most, generator=GENERATOR) > 0.2)
    scores = 3 * torch.randn(len(LENGTHS), HEADS, most, most, generator=GENERATOR)
    scores[1, 2, 4, 2] = scores[1, 2, 4, 5] = 9.0  # two keys that are the strongest
    weights = torch.softmax(scores.masked_fill(~allowed, -1e30), -1)
    values = torch.randn(len(LENGTHS), HEADS // 2, most, DIM, generator=GENERATOR)
    values *= 10 ** (
        4 * torch.rand(*values.shape[:-1], 1, generator=GENERATOR) - 2
    )  # keys move unlike amounts
    return Passed(weights, allowed, values, tuple(range(HEADS)), 2), known, allowed


def ranges(name: str, keys: int, lengths: Tensor) -> float:
    """What a measure's values of one text range over: of what is moved, the largest that could be."""
    if name == "moved":
        return float(lengths.max())
    low, high = MEASURES[name].limits(keys)
    return max(high - low, 1.0)


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
@pytest.mark.parametrize("causal", [False, True])
def test_every_measure_of_a_batch_is_that_of_each_text_alone(
    causal: bool, dtype: torch.dtype, off: float
) -> None:
    passed, known, allowed = batch(causal, by_head=not causal)
    passed = replace(passed, weights=passed.weights.to(dtype))
    projection = torch.randn(HEADS, DIM, HIDDEN, generator=GENERATOR)
    lengths = norms_moved(passed, triangles(projection))
    found = measured(passed, known, NAMES, lengths)
    assert found.shape == (len(LENGTHS), len(NAMES), HEADS)
    for row, length in enumerate(LENGTHS):
        of_keys = moved_norms(passed.values[row, :, :length], projection)
        for head in range(HEADS):
            see = allowed[row, 0 if causal else head, :length, :length]
            weights = passed.weights[row, head, :length, :length].double().masked_fill(~see, 0.0)
            weights = weights.masked_fill(~see.any(-1, keepdim=True), torch.nan)
            tiles = whole(
                weights,
                allowed=see,
                visible=see.sum(-1),
                special=known.special[row, :length],
                punctuation=known.punctuation[row, :length],
                alike=known.alike[row, :length, :length],
                norms=of_keys[head],
                moved=weights @ of_keys[head],
            )
            lacking = {name for name, none in known.missing.items() if none[row]}
            for i, name in enumerate(NAMES):
                needs = {need.value for need in MEASURES[name].needs}
                expected = float("nan") if needs & lacking else MEASURES[name](tiles)
                most = 0.0 if name in EXACTLY else off * ranges(name, length, of_keys[head])
                assert float(found[row, i, head]) == pytest.approx(expected, rel=0, abs=most, nan_ok=True), (
                    name
                )


def test_weight_on_what_fills_up_is_seen() -> None:
    passed, known, _ = batch(causal=False)
    assert leaking(passed, known) == 0
    off = passed.weights.clone()
    off[0, 1, 0, 5] = 0.25
    assert leaking(replace(passed, weights=off), known) == 0.25
    off = passed.weights.clone()
    off[3, 2, 0, 1] = 0.125  # the first key behind the shortest text
    assert leaking(replace(passed, weights=off), known) == 0.125
    off = passed.weights.clone()
    off[0, 1, 5, 5] = 0.5  # a row that is no query of the text
    assert leaking(replace(passed, weights=off), known) == leaking(passed, known)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_no_numbers_are_refused_in_a_text_and_nothing_to_it_in_what_fills_up(
    wrong: float,
) -> None:
    passed, known, _ = batch(causal=False)
    expected = measured(passed, known, ("entropy", "self"), None)
    off = passed.weights.clone()
    off[0, 1, 5] = wrong  # a row that is no query of the text
    found = measured(replace(passed, weights=off), known, ("entropy", "self"), None)
    assert torch.equal(found.nan_to_num(-1), expected.nan_to_num(-1))
    off[1, 2, 4, 0] = wrong
    with pytest.raises(CertificateError, match="are not numbers"):
        measured(replace(passed, weights=off), known, ("entropy", "self"), None)


def test_lengths_of_values_keep_what_nearly_vanishes() -> None:
    values = torch.randn(2, 2, 5, DIM, generator=GENERATOR)
    projection = torch.randn(HEADS, DIM, HIDDEN, generator=GENERATOR).double()
    projection[:, 0] = 1e-9 * projection[:, 0]
    values[..., 1:] = 0.0
    found = norms_moved(Passed(torch.empty(2, 4, 5, 5), None, values, (3, 1), 2), triangles(projection))
    for row in range(2):
        expected = moved_norms(values[row].double(), projection)[[3, 1]]
        assert np.allclose(found[row], expected, rtol=1e-9, atol=0)


def test_what_is_not_taken_of_a_corpus_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="no near over a corpus: what can be measured is entropy"):
        check_measurable(("entropy", "near"))
    passed, known, _ = batch(causal=False)
    with pytest.raises(CertificateError, match="not numbers"):
        measured(replace(passed, weights=passed.weights * torch.nan), known, ("entropy",), None)
