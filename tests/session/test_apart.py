"""Measures that are not of the text: random tokens read twice, and circuits of weights alone."""

import re

import numpy as np
import pytest
import torch
from families import HEADS, KEY_HEADS, ids, sharp

import attnscope as at
from attnscope.analysis.scores.dense import copying_scores, drawn, repeated_scores
from attnscope.capture import Selection, record
from attnscope.errors import InputError

TWICE = ("induction", "duplicate", "previous-random")


@pytest.fixture(scope="module")
def causal() -> at.Reading:
    return at.load("demo-causal").read("the door was closed.")


def test_random_tokens_are_different_ones_twice_over_as_many_as_fit() -> None:
    vocabulary = range(5, 90)
    twice = drawn(vocabulary, (1, 2), 21, seed=3)
    assert twice.read == (1, 2, *twice.ids, *twice.ids)
    assert len(twice.read) == 20  # of 21
    assert len(set(twice.ids)) == twice.period == 9
    assert set(twice.ids) <= set(vocabulary)
    assert drawn(vocabulary, (1, 2), 21, seed=3) == twice != drawn(vocabulary, (1, 2), 21, seed=4)
    assert drawn(vocabulary, (), None).period == 50
    assert drawn(vocabulary, (1, 2), 1).period == 0


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_scores_on_random_tokens_are_those_of_the_weights_that_the_model_returns(family: str) -> None:
    model, twice = sharp(family), drawn(range(3, 97), (1,), 20)
    inputs = {"input_ids": torch.tensor([twice.read])}
    with torch.no_grad():
        returned = model(**inputs, output_attentions=True).attentions
    found = repeated_scores(record(model, inputs), range(HEADS), TWICE, twice, "[BOS]")
    period = twice.period
    for layer, weights in enumerate(returned):
        for head in range(HEADS):
            rows = weights[0, head].tolist()
            second = range(1 + period, 1 + 2 * period)
            expected = {
                "induction": [rows[i][i - period + 1] for i in second],
                "duplicate": [rows[i][i - period] for i in second],
                "previous-random": [rows[i][i - 1] for i in second],
            }
            for name, each in expected.items():
                assert found[name].values[layer, head] == pytest.approx(sum(each) / period, abs=1e-6)
    assert found["induction"].description.apart.startswith("2 x 9 random tokens after [BOS], seed 0 (")


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_copying_is_that_of_vocabulary_by_vocabulary_made_by_hand(family: str) -> None:
    model = sharp(family)
    embedding = model.get_input_embeddings().weight.detach()
    unembedding = torch.randn(embedding.shape, generator=torch.Generator().manual_seed(7))
    found = copying_scores(
        record(model, ids(), Selection(circuits=True)), range(HEADS), embedding, unembedding
    )
    assert not isinstance(found, str)
    for layer in range(3):
        for head in range(HEADS):
            values, output = by_hand(model, family, layer, head)
            dense = (embedding @ values @ output @ unembedding.T).double().numpy()
            roots = np.linalg.eigvals(dense)
            roots = roots[np.abs(roots) > 1e-4 * np.abs(roots).max()]  # the others are rounding
            expected = roots.real.sum() / np.abs(roots).sum()
            assert found.values[layer, head] == pytest.approx(expected, abs=1e-3)


def by_hand(model: torch.nn.Module, family: str, layer: int, head: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The value and the output matrix of a head, sliced out of the model's own modules."""
    mine, dim = slice(head * 8, head * 8 + 8), 8
    if family == "gpt2":
        attention = model.h[layer].attn
        return attention.c_attn.weight[:, 96:][:, mine].detach(), attention.c_proj.weight[mine].detach()
    attention, shared = model.layers[layer].self_attn, head // (HEADS // KEY_HEADS)
    values = attention.v_proj.weight[shared * dim : shared * dim + dim].T
    return values.detach(), attention.o_proj.weight[:, mine].T.detach()


def test_where_values_are_normed_on_their_way_there_is_no_circuit() -> None:
    model = sharp("llama")
    for layer in model.layers:
        layer.self_attn.v_proj.register_forward_hook(lambda _part, _given, made: made / made.norm())
    captured = record(model, ids(), Selection(circuits=True))
    assert all(call.value_projection is None for call in captured.calls)
    embedding = model.get_input_embeddings().weight.detach()
    found = copying_scores(captured, [0], embedding, embedding)
    assert found == "no matrix alone makes its values, or reads its heads' outputs"
    other = torch.randn(97, 20)
    found = copying_scores(record(sharp("llama"), ids(), Selection(circuits=True)), [0], other, other)
    assert found == "its embeddings are not of the size of what its heads read and write"


def test_where_they_have_no_meaning_that_is_said_in_one_line() -> None:
    reading = at.load("demo").read("the door was closed.")
    with pytest.raises(InputError, match=r"^no induction here: .*not a decoder$"):
        reading.overview(measure="induction")
    found = reading.overview(measure="copying,entropy")
    assert found.main.measure == "entropy"
    assert found.scores["copying"].absent.endswith("not a decoder")
    assert np.isnan(found.scores["copying"].values).all()


def test_the_heads_that_learned_induction_stand_out_and_copy(causal: at.Reading) -> None:
    found = causal.overview(measure=[*TWICE, "copying", "entropy"])
    assert list(found.scores) == [*TWICE, "copying", "entropy"]
    scores = {name: each.values for name, each in found.scores.items()}
    assert (scores["induction"][1] > 0.8).sum() >= 8  # it was trained until layer 1 does this
    assert (scores["induction"][[0, 2, 3]] < 0.1).all()
    assert scores["previous-random"].max() == scores["previous-random"][0, 0] > 0.9
    assert (scores["copying"][1][scores["induction"][1] > 0.8] > 0.3).all()
    (note,) = [note for note in found.notes if "random" in note]
    assert re.fullmatch(
        r"induction, duplicate, previous-random: 2 x \d+ random tokens after \[BOS\], seed 0 \(certified\)",
        note,
    )
