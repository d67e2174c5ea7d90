"""The dictionary, the scale study, the theatre, and heads of any model, by what is known otherwise."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from families import DIM, HIDDEN, sharp
from transformers import AutoModel, AutoTokenizer

from attnscope import demo
from attnscope.analysis.heads.head import recompute_head
from attnscope.capture import Labels, Selection, record
from attnscope.capture.circuits.paths import read_factors
from attnscope.errors import InputError
from attnscope.model.inputs.text import tokens_of
from attnscope.results import Verdict, load
from attnscope.verbs.sdpa import examples
from attnscope.verbs.sdpa.examples import TABLE, look_up, scale_study, softmax_jacobian
from attnscope.verbs.sdpa.head import theatre, work_head
from attnscope.verbs.sdpa.result import Case
from attnscope.vocabulary import THEATRE as SENTENCE

HEAD, WIDTH = 11, 8


def test_exact_keys_have_their_value_with_certainty_and_an_unknown_one_has_none() -> None:
    result = look_up(TABLE, ["chair", "fruit", "apple"])
    assert result.step("match").matrix.values.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    answers = result.step("found").matrix.values[:, 0]
    assert answers[[0, 2]].tolist() == [3, 9]
    assert math.isnan(answers[1])
    assert result.case is Case.NO_ANSWER
    assert look_up(TABLE, ["apple"]).case is Case.LOOKED_UP


@pytest.fixture(scope="module")
def study():
    return scale_study()


def test_without_the_scale_spread_grows_and_gradient_is_lost_and_additive_scores_keep_both(study) -> None:
    expected = np.sqrt(study.dims)
    assert study.spread[0] == pytest.approx(expected, rel=0.08)
    assert study.spread[1] == pytest.approx(np.ones(len(study.dims)), rel=0.08)
    assert study.spread[1] == pytest.approx(study.spread[0] / expected)
    assert (np.diff(study.entropy[0]) < 0).all()
    assert study.entropy[0, -1] < 0.1 * study.entropy[1, -1]
    assert study.gradient[0, -1] < 0.3 * study.gradient[1, -1]
    assert study.entropy[1] == pytest.approx(np.full(len(study.dims), study.entropy[1].mean()), rel=0.05)
    assert study.entropy.max() < math.log(study.keys)
    spread, entropy, gradient = study.additive
    assert spread.max() < 1.1  # of a unit vector and a tanh no score is larger than its own length
    assert spread[-1] == pytest.approx(spread[-3], rel=0.15)
    assert study.spread[0, -1] > 20 * spread[-1]
    assert entropy[-1] > 0.8 * math.log(study.keys)
    assert gradient[-1] > study.gradient[0, -1]


def test_additive_scores_of_the_study_are_those_of_a_loop() -> None:
    generator = torch.Generator().manual_seed(3)
    q, k = torch.randn(2, 4, generator=generator).double(), torch.randn(2, 3, 4, generator=generator).double()
    drawn = partial(torch.randn, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    wq, wk, a = drawn(4, 4) / 2, drawn(4, 4) / 2, drawn(4) / 2
    found = examples.additive_logits(q, k, 7)
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
    monkeypatch.setattr(examples, "softmax_jacobian", lambda weights: softmax_jacobian(weights) * 1.0001)
    assert scale_study((1, 2)).verdict is Verdict.FAILED


@pytest.fixture(scope="module")
def encoder():
    return AutoModel.from_pretrained(demo.folder(), attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def read():
    tokenizer = AutoTokenizer.from_pretrained(demo.folder())
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    return inputs, tokens_of(tokenizer, inputs, (SENTENCE,))


@pytest.fixture(scope="module")
def seen(encoder, read):
    inputs, tokens = read
    return read_factors(encoder, inputs, Selection(layers=[0]), Labels(tokens))


@pytest.fixture(scope="module")
def shown(encoder, read, seen):
    return theatre(encoder, read[0], seen[0], *seen[1], HEAD)


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


def test_projections_of_another_head_would_not_pass(encoder, read, seen) -> None:
    captured, (right,) = seen
    before = {
        name: replace(factor, matrix=factor.matrix.roll(1, 0), firsts=(0, *factor.firsts[:-1]))
        for name in ("query", "key", "value")
        if (factor := getattr(right, name)) is not None
    }
    wrong = theatre(encoder, read[0], captured, replace(right, **before), HEAD)
    assert [check.passed for check in wrong.checks] == [False, False, False, True]
    assert wrong.verdict is Verdict.FAILED


def test_the_theatre_leaves_no_hook_behind(encoder, read, seen) -> None:
    def hooks() -> int:
        return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in encoder.modules())

    before = hooks()
    theatre(encoder, read[0], seen[0], *seen[1], HEAD)
    assert hooks() == before


IDS = {"input_ids": torch.tensor([[5, 3, 8, 11, 9, 12]])}
LAYER, ITS_HEAD = 1, 2
MINE = slice(ITS_HEAD * DIM, (ITS_HEAD + 1) * DIM)


def worked_head(model: torch.nn.Module):
    captured, (factors,) = read_factors(model, IDS, Selection(layers=[LAYER]), Labels())
    return theatre(model, IDS, captured, factors, ITS_HEAD)


def test_a_fused_projection_that_lies_the_other_way_round_is_taken_apart() -> None:
    model = sharp("gpt2")
    result = worked_head(model)
    fused = model.h[LAYER].attn.c_attn.weight.double()
    for i, letter in enumerate("qkv"):
        expected = fused[:, i * HIDDEN :][:, MINE].detach().numpy()
        assert result.step(f"w{letter}").matrix.values == pytest.approx(expected)
    wo = model.h[LAYER].attn.c_proj.weight.double()[MINE].detach().numpy()
    assert result.step("wo").matrix.values == pytest.approx(wo)
    assert result.step("masked").formula == "scaled, −∞ for later keys"
    assert result.verdict is Verdict.CERTIFIED
    assert len(result.checks) == 4


def test_a_layer_that_is_used_twice_is_read_where_it_is_meant() -> None:
    model = sharp("albert")
    result = worked_head(model)
    with torch.no_grad():
        told = model(**IDS, output_hidden_states=True).hidden_states[LAYER][0]
    assert result.step("x").matrix.values == pytest.approx(told.numpy(), abs=1e-6)
    assert result.verdict is Verdict.CERTIFIED


def test_rotary_positions_stand_between_and_that_is_said() -> None:
    with pytest.raises(InputError, match="is no plain X W: rotary positions are turned into") as no:
        worked_head(sharp("llama"))
    assert str(no.value).startswith("L1 H2 of LlamaModel")
    assert "attnscope sdpa head.npz" in str(no.value)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_head_that_was_stored_is_worked_out_to_what_it_was(tmp_path, suffix: str) -> None:
    captured = record(sharp("t5"), IDS, Selection(layers=[LAYER]))
    head = recompute_head(captured, LAYER, ITS_HEAD)
    path = tmp_path / f"head{suffix}"
    head.save(path)
    result = work_head(load(path))
    assert result.step("weights").matrix.values == pytest.approx(head.weights)
    assert result.step("output").matrix.values == pytest.approx(head.output)
    assert result.verdict is Verdict.RECOMPUTED
    assert [check.passed for check in result.checks] == [True, True]
    assert result.title.endswith("L1 H2 of T5EncoderModel")


def test_a_head_whose_weights_are_not_those_of_its_vectors_fails() -> None:
    head = recompute_head(record(sharp("gpt2"), IDS, Selection(layers=[LAYER])), LAYER, ITS_HEAD)
    bent = replace(head, weights=head.weights * 1.001)
    assert work_head(bent).verdict is Verdict.FAILED
    with pytest.raises(InputError, match="does not hold its q, k and v"):
        work_head(replace(head, q=np.full_like(head.q, np.nan)))
