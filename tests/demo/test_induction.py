"""Induction scores against slow loops and against a model that is known to do nothing, and silenced heads."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from attnscope.demo.train.evaluation import induction
from attnscope.demo.train.evaluation.causal import uniform
from attnscope.demo.train.tokenizer import build_causal


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_causal([f"{a}{b}{c}" for a in "pqr" for b in "aeiou" for c in "mnst"], 64)


@pytest.fixture(scope="module")
def model(tokenizer) -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=24, intermediate_size=12, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, head_dim=4, initializer_range=0.4,
    )  # fmt: skip
    config._attn_implementation = "eager"
    return LlamaForCausalLM(config).eval()


def looped(weights: torch.Tensor, size: int) -> dict[str, float]:
    """The scores of one head from their definitions, place by place. weights: `query key`."""
    second = range(size + 1, 2 * size + 1)  # the places of the second r; [BOS] is place 0
    return {
        "induction": sum(weights[at, at - size + 1].item() for at in second) / size,
        "duplicate": sum(weights[at, at - size].item() for at in second) / size,
        "previous": sum(weights[at, at - 1].item() for at in range(1, 2 * size + 1)) / (2 * size),
    }


@pytest.mark.parametrize("size", [2, 3, 7])
def test_scores_are_what_a_slow_loop_finds(size: int) -> None:
    weights = torch.rand(3, 2, 2 * size + 1, 2 * size + 1).tril()
    found = induction.scores_of(weights, size)
    for layer in range(3):
        for head in range(2):
            for name, value in looped(weights[layer, head], size).items():
                assert found[name][layer, head].item() == pytest.approx(value, abs=1e-6)


def test_a_perfect_induction_head_scores_one_and_a_previous_token_head_scores_none() -> None:
    size = 4
    perfect, previous = torch.zeros(9, 9), torch.zeros(9, 9)
    for at in range(1, 9):
        perfect[at, at - 3 if at > size else 0] = 1
        previous[at, at - 1] = 1
    found = induction.scores_of(torch.stack([perfect, previous]), size)
    assert found["induction"].tolist() == [1, 0]
    assert found["previous"].tolist() == [1 / 8, 1]  # the first word has but one token before it
    assert found["duplicate"].tolist() == [0, 0]


def test_sequences_begin_and_repeat_different_words_and_vary_with_the_seed(tokenizer) -> None:
    ids = induction.repeated(tokenizer, 7, 5, seed=1)
    assert ids.shape == (5, 15)
    assert (ids[:, 0] == tokenizer.bos_token_id).all()
    assert torch.equal(ids[:, 1:8], ids[:, 8:])
    assert all(len(set(row[:7])) == 7 for row in ids[:, 1:].tolist())
    assert not torch.equal(ids, induction.repeated(tokenizer, 7, 5, seed=2))
    assert all(word.isalpha() for word in tokenizer.convert_ids_to_tokens(ids[:, 1:].flatten().tolist()))


def test_the_scores_of_a_model_are_the_mean_over_its_sequences_and_sizes(model, tokenizer) -> None:
    found, sums = induction.scores(model, tokenizer, seed=5, sizes=(3, 6)), torch.zeros(3, 6)
    for size in (3, 6):
        output = model(induction.repeated(tokenizer, size, induction.EACH, 5), output_attentions=True)
        for layer, weights in enumerate(output.attentions):
            for head in range(6):
                each = [looped(weights[row, head], size)["induction"] for row in range(induction.EACH)]
                sums[layer, head] += sum(each) / len(each) / 2
    torch.testing.assert_close(found.induction, sums, atol=1e-5, rtol=0)
    layer, head = found.best("induction")
    assert sums[layer, head] == sums.max()


def test_looking_at_all_alike_gives_the_uniform_score() -> None:
    rows = torch.ones(61, 61).tril()
    means = []
    for size in induction.SIZES:
        weights = rows[: 2 * size + 1, : 2 * size + 1]
        means.append(induction.scores_of(weights / weights.sum(-1, keepdim=True), size)["induction"])
    assert uniform() == pytest.approx(torch.stack(means).mean().item(), abs=1e-6)


def test_a_silenced_head_adds_nothing_and_comes_back(model, tokenizer) -> None:
    ids = induction.repeated(tokenizer, 4, 3, seed=0)
    with torch.no_grad():
        before = model(ids).logits
        with induction.without(model, [(1, 4)]):
            silenced = model(ids).logits
        after = model(ids).logits
        columns = model.model.layers[1].self_attn.o_proj.weight[:, 16:20]
        kept = columns.clone()
        columns.zero_()
        by_weights = model(ids).logits
        columns.copy_(kept)
    assert torch.equal(before, after)
    assert not torch.allclose(before, silenced, atol=1e-3)
    torch.testing.assert_close(silenced, by_weights)


def test_accuracy_counts_the_words_that_are_guessed_in_each_half(model, tokenizer) -> None:
    right = {"first": [], "second": []}
    for size in (3, 5):
        ids = induction.repeated(tokenizer, size, induction.EACH, 9)
        guesses = model(ids).logits.argmax(-1)
        for name, places in {"first": range(2, size + 1), "second": range(size + 2, 2 * size + 1)}.items():
            hits = [guesses[row, at - 1] == ids[row, at] for row in range(len(ids)) for at in places]
            right[name].append(sum(hits).item() / len(hits))
    expected = [sum(shares) / 2 for shares in right.values()]
    assert list(induction.accuracy(model, tokenizer, 9, (3, 5))) == pytest.approx(expected, abs=1e-6)
