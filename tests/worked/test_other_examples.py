"""The dictionary, the scale study and the theatre, against what can be known of them otherwise."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from attnscope import demo
from attnscope.capture import Labels, Selection, record
from attnscope.model.inputs.text import tokens_of
from attnscope.results import Verdict
from attnscope.results.worked import Case
from attnscope.worked import TABLE, example, look_up, scale
from attnscope.worked.model_head import SENTENCE, theatre
from attnscope.worked.scale import scale_study, softmax_jacobian


def test_exact_keys_have_their_value_with_certainty_and_an_unknown_one_has_none() -> None:
    result = look_up(TABLE, ["chair", "fruit", "apple"])
    assert result.step("match").matrix.values.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    answers = result.step("found").matrix.values[:, 0]
    assert answers[[0, 2]].tolist() == [3, 9]
    assert math.isnan(answers[1])
    assert result.case is Case.NO_ANSWER
    assert look_up(TABLE, ["apple"]).case is Case.LOOKED_UP


def test_a_dictionary_does_not_take_a_word_that_is_nearly_a_key() -> None:
    assert np.isnan(look_up(TABLE, ["Apple", "apple "]).step("found").matrix.values).all()


def test_the_built_in_dictionary_asks_for_a_fruit() -> None:
    assert example("dictionary").step("match").matrix.rows.names == ("apple", "banana", "chair", "fruit")


@pytest.fixture(scope="module")
def study():
    return scale_study()


def test_without_the_scale_the_spread_grows_as_the_root_of_d(study) -> None:
    expected = np.sqrt(study.dims)
    assert study.spread[0] == pytest.approx(expected, rel=0.08)
    assert study.spread[1] == pytest.approx(np.ones(len(study.dims)), rel=0.08)
    assert study.spread[1] == pytest.approx(study.spread[0] / expected)


def test_without_the_scale_the_softmax_loses_its_entropy_and_its_gradient(study) -> None:
    assert (np.diff(study.entropy[0]) < 0).all()
    assert study.entropy[0, -1] < 0.1 * study.entropy[1, -1]
    assert study.gradient[0, -1] < 0.3 * study.gradient[1, -1]
    assert study.entropy[1] == pytest.approx(np.full(len(study.dims), study.entropy[1].mean()), rel=0.05)
    assert study.entropy.max() < math.log(study.keys)


def test_additive_scores_keep_their_spread_and_their_gradient_where_dot_products_do_not(study) -> None:
    spread, entropy, gradient = study.additive
    assert spread.max() < 1.1  # of a unit vector and a tanh no score is larger than its own length
    assert spread[-1] == pytest.approx(spread[-3], rel=0.15)
    assert study.spread[0, -1] > 20 * spread[-1]
    assert entropy[-1] > 0.8 * math.log(study.keys)
    assert gradient[-1] > study.gradient[0, -1]


def test_additive_scores_of_the_study_are_those_of_a_loop() -> None:
    generator = torch.Generator().manual_seed(3)
    q, k = torch.randn(2, 4, generator=generator).double(), torch.randn(2, 3, 4, generator=generator).double()
    wq, wk, a = scale.additive_weights(4, torch.Generator().manual_seed(7))
    found = scale.additive_logits(q, k, 7)
    for i in range(2):
        for j in range(3):
            hidden = [math.tanh(float(q[i] @ wq[:, h] + k[i, j] @ wk[:, h])) for h in range(4)]
            assert float(found[i, j]) == pytest.approx(sum(float(a[h]) * hidden[h] for h in range(4)))


def test_the_jacobian_is_what_differences_of_softmaxes_say() -> None:
    logits, step = torch.tensor([[0.3, -1.2, 0.8, 2.0]], dtype=torch.float64), 1e-6
    found = softmax_jacobian(torch.softmax(logits, -1))[0]
    for j in range(4):
        moved = [
            torch.softmax(logits + sign * step * torch.eye(4, dtype=torch.float64)[j], -1) for sign in (1, -1)
        ]
        assert found[:, j].numpy() == pytest.approx(((moved[0] - moved[1]) / (2 * step))[0].numpy(), abs=1e-9)


def test_the_gradient_is_checked_and_a_wrong_one_is_noticed(monkeypatch: pytest.MonkeyPatch, study) -> None:
    assert study.verdict is None
    assert study.checks[0].passed
    monkeypatch.setattr(scale, "softmax_jacobian", lambda weights: softmax_jacobian(weights) * 1.0001)
    assert scale_study((1, 2)).verdict is Verdict.FAILED


HEAD, HEADS, WIDTH = 11, 12, 8


@pytest.fixture(scope="module")
def encoder():
    return AutoModel.from_pretrained(demo.folder(), attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def read():
    tokenizer = AutoTokenizer.from_pretrained(demo.folder())
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    return inputs, tokens_of(tokenizer, inputs, (SENTENCE,))


@pytest.fixture(scope="module")
def captured(encoder, read):
    inputs, tokens = read
    return record(encoder, inputs, Selection(layers=[0]), Labels(tokens))


@pytest.fixture(scope="module")
def shown(encoder, read, captured):
    return theatre(encoder, read[0], captured)


def test_the_theatre_starts_from_the_model_s_embeddings_and_ends_with_its_weights(
    encoder, read, shown
) -> None:
    with torch.no_grad():
        told = encoder(**read[0], output_attentions=True, output_hidden_states=True)
    assert shown.step("x").matrix.values == pytest.approx(told.hidden_states[0][0].numpy(), abs=1e-6)
    assert shown.step("weights").matrix.values == pytest.approx(told.attentions[0][0, HEAD].numpy(), abs=1e-5)
    assert [shown.step(key).matrix.shape for key in ("x", "wq", "q", "weights", "output", "y")] == [
        "T=13 x d=96",
        "d=96 x d_k=8",
        "T=13 x d_k=8",
        "T=13 x T=13",
        "T=13 x d_v=8",
        "T=13 x d=96",
    ]


def test_the_theatre_takes_the_rows_of_its_head_from_each_projection(encoder, shown) -> None:
    layer = encoder.encoder.layer[0].attention
    mine = slice(HEAD * WIDTH, (HEAD + 1) * WIDTH)
    assert shown.step("wk").matrix.values == pytest.approx(layer.self.key.weight[mine].T.detach().numpy())
    assert shown.step("bv").matrix.values[0] == pytest.approx(layer.self.value.bias[mine].detach().numpy())
    assert shown.step("wo").matrix.values == pytest.approx(
        layer.output.dense.weight[:, mine].T.detach().numpy()
    )


def test_the_theatre_is_certified_twice_and_all_its_checks_pass(shown) -> None:
    assert [certificate.verdict for _, certificate in shown.proofs] == [Verdict.CERTIFIED] * 2
    assert len(shown.checks) == 4
    assert shown.verdict is Verdict.CERTIFIED


def test_the_pairs_are_ranked_as_they_come_out(shown) -> None:
    weights = shown.step("weights").matrix
    ordered = sorted(weights.values.ravel(), reverse=True)
    assert [(pair.query, pair.key) for pair in shown.pairs[::2]] == [("watch", "movie"), ("theatre", "watch")]
    for pair in shown.pairs:
        assert ordered[pair.rank - 1] == pair.weight
        row, column = weights.rows.names.index(pair.query), weights.columns.names.index(pair.key)
        assert pair.weight == weights.values[row, column]
        assert pair.pairs == 169


def test_the_theatre_says_how_its_words_became_tokens(shown) -> None:
    assert shown.notes[0].startswith(f"“{SENTENCE}”: 11 words, T = 13 tokens: each word one token")
    assert shown.step("x").matrix.rows.names[1:4] == ("Bill", "is", "going")


def test_projections_of_another_head_would_not_pass(
    encoder, read, captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    import attnscope.worked.model_head as module

    genuine = module.projections_of

    def of_the_head_before(*given):
        return {letter: replace(part, first=part.first - WIDTH) for letter, part in genuine(*given).items()}

    monkeypatch.setattr(module, "projections_of", of_the_head_before)
    wrong = theatre(encoder, read[0], captured)
    assert [check.passed for check in wrong.checks] == [False, False, False, True]
    assert wrong.verdict is Verdict.FAILED


def test_the_theatre_leaves_no_hook_behind(encoder, read, captured) -> None:
    def hooks() -> int:
        return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in encoder.modules())

    before = hooks()
    theatre(encoder, read[0], captured)
    assert hooks() == before
