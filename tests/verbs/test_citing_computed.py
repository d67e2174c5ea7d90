"""Removal, attention and fits beside plain loops, on tiny models of four families and on numbers alone."""

import numpy as np
import pytest
import torch
from torch import nn
from worded import worded

from attnscope.analysis.answers.answered import Answered
from attnscope.errors import InputError
from attnscope.verbs.cite.answer import rank, scored
from attnscope.verbs.cite.result import LEAST, Judged, Method, candidates_of, sources_of
from attnscope.verbs.cite.taking import fitted, halves, log_odds, others_together, taken_away

PROMPT, ANSWER = [3, 20, 31, 42, 13, 5, 7, 66, 9], [17, 8, 4]
START = 0  # of a decoder
PASSAGES = [(1, 2), (3, 4, 5), (6,)]
SENTENCES = [(0, 1), (2,)]


def answered(family: str, model: nn.Module) -> Answered:
    if family == "t5":
        decoder = torch.tensor([[START, *ANSWER]])
        ids = torch.tensor([PROMPT])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": decoder}
        return Answered(model, inputs, len(PROMPT), (0, 1, 2), tuple(ANSWER), True)
    ids = torch.tensor([PROMPT + ANSWER])
    rows = tuple(range(len(PROMPT) - 1, len(PROMPT) + 2))
    return Answered(model, {"input_ids": ids}, ids.shape[1], rows, tuple(ANSWER), False)


@torch.no_grad()
def plain(family: str, model: nn.Module, removed: set[int]) -> list[float]:
    """ln p of each token of the answer, in a run of its own without padding or a mask, token by token."""
    left = [id for i, id in enumerate(PROMPT) if i not in removed]
    found = []
    for i, id in enumerate(ANSWER):
        if family == "t5":
            decoder = torch.tensor([[START, *ANSWER[:i]]])
            scores = model(input_ids=torch.tensor([left]), decoder_input_ids=decoder).logits[0, -1]
        else:
            scores = model(input_ids=torch.tensor([left + ANSWER[:i]])).logits[0, -1]
        found.append(float(scores.double().log_softmax(-1)[id]))
    return found


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_what_is_lost_is_what_a_loop_over_shortened_texts_says(family: str) -> None:
    model = worded(family, 1, 0.12)
    taken = taken_away(answered(family, model), SENTENCES, PASSAGES, None, 0)
    before = plain(family, model, set())
    for j, passage in enumerate(PASSAGES):
        after = plain(family, model, {*passage})
        for i, sentence in enumerate(SENTENCES):
            expected = sum(before[token] - after[token] for token in sentence)
            assert taken.lost[i, j] == pytest.approx(expected, abs=1e-4), (i, j)
    gone = plain(family, model, {each for passage in PASSAGES for each in passage})
    assert taken.without_all[1] == pytest.approx(before[2] - gone[2], abs=1e-4)
    assert np.ptp(taken.lost) > 0.05, "a loss that is no rounding"
    assert taken.floor < 1e-4


def test_a_model_whose_answer_hangs_on_its_neighbours_in_a_batch_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from attnscope.errors import CertificateError

    model = worded("gpt2", 1, 0.12)
    own = model.forward

    def mixing(*args: object, **kwargs: object) -> object:
        output = own(*args, **kwargs)
        output.logits = output.logits + 0.5 * output.logits.flip(-1) * (len(output.logits) > 1)
        return output

    mixing.__signature__ = __import__("inspect").signature(own)  # type: ignore[attr-defined]
    monkeypatch.setattr(model, "forward", mixing)
    with pytest.raises(CertificateError, match="side by side"):
        taken_away(answered("gpt2", model), SENTENCES, PASSAGES, None, 0)
    with pytest.raises(InputError, match="nothing stands before the answer"):
        answered("gpt2", worded("gpt2", 1, 0.12)).without([range(len(PROMPT))])


def test_a_sparse_sum_is_found_and_its_fit_is_told_and_noise_has_none() -> None:
    there = halves(30, 120, 0)
    odds = 4.0 * there[:, 7] - 3.0 * there[:, 12] - 1.0
    chances = -np.log1p(np.exp(-odds))
    assert log_odds(chances) == pytest.approx(odds)
    weights, r2 = fitted(there, chances, 1)
    assert r2 > 0.99
    assert np.argsort(-np.abs(weights)).tolist()[:2] == [7, 12]
    assert weights[7] == pytest.approx(4.0, abs=0.2)
    assert np.delete(weights, [7, 12]) == pytest.approx(0, abs=0.1)
    noise = np.random.default_rng(1).uniform(-3, -0.1, 120)
    assert fitted(there, noise, 1)[1] < 0.3


def test_controls_are_other_halves_of_the_passages_and_a_source_stands_out_of_them_as_well() -> None:
    drawn = others_together(9, (2,), 0)
    assert len(drawn) == len(set(drawn)) == 20
    assert all(2 not in half and len(half) == 4 for half in drawn)
    assert others_together(9, (2,), 0) == drawn
    assert others_together(2, (1,), 0) == [(0,)]
    assert {len(half) for half in others_together(6, (0,), 1)} == {2, 3}
    lost = np.array([4.0, 0.1, 0.2])
    assert sources_of(lost, (0,), (0.1, -0.4)) == (0,)
    assert sources_of(lost, (0,), (0.1, -0.5)) == (), "9.5 times beside two others"
    assert sources_of(lost, (), ()) == ()


@pytest.mark.parametrize(
    ("lost", "candidates"),
    [
        ([4.0, 0.1, -0.2], (0,)),  # one
        ([0.05, 3.0, 2.5], (1, 2)),
        ([0.1, 3.0, 2.5], ()),  # two by luck
        ([LEAST / 2, 0.0, 0.0], ()),  # too little
        ([3.0, 2.0, 1.6], ()),  # all alike
        ([3.0, -2.0, 0.0], ()),  # another wins as much
        ([np.nan, 3.0, 0.05], (1,)),  # only those taken away
    ],
)
def test_candidates_are_the_fewest_that_stand_out(lost: list[float], candidates: tuple[int, ...]) -> None:
    assert candidates_of(np.array(lost)) == candidates


def test_in_models_of_random_weights_no_more_sources_are_named_than_chance_allows() -> None:
    named, lost, family = 0, [], "gpt2"
    for seed in range(30):
        model = worded(family, seed, 0.12)
        prompt = np.random.default_rng(seed).integers(3, 97, 30).tolist()
        with torch.no_grad():
            answer = int(model(torch.tensor([prompt])).logits[0, -1].argmax())
        ids = torch.tensor([[*prompt, answer]])
        asked = Answered(model, {"input_ids": ids}, 31, (29,), (answer,), False)
        taken = taken_away(asked, [(0,)], [tuple(range(i, i + 4)) for i in range(0, 24, 4)], None, seed)
        lost.append(float(taken.lost.max()))
        named += bool(sources_of(taken.lost[0], taken.candidates[0], taken.controls[0]))
    assert np.mean(lost) > 0.3, "passages do something here"
    assert named <= 3, "one in ten"


def judged(source: tuple[int, ...], *values: list[float]) -> Judged:
    ranks = tuple(rank(np.array(each), source) for each in values)
    return Judged(1, "q", "a", 0.9, source, 3, source, ranks, tuple(map(max, values)))


def test_ranks_and_scores_are_those_of_a_plain_count() -> None:
    assert rank(np.array([0.1, 0.5, 0.3]), (2,)) == 2
    assert rank(np.array([0.1, 0.5, 0.3]), (0, 2)) == 2
    assert rank(np.array([0.5, 0.5, 0.3]), (0,)) == 1.5, "one of two alike"
    assert np.isnan(rank(np.array([0.5, 0.5]), ()))
    cases = [judged((0,), [0.9, 0.1, 0.0]), judged((1,), [0.9, 0.1, 0.0]), judged((), [0.95, 0.0, 0.0])]
    score = scored(cases, Method.ATTENTION, 0)
    assert (score.cases, score.top1, score.reciprocal) == (2, 0.5, 0.75)
    assert score.top1_low < 0.1
    assert score.top1_high > 0.9
    assert (score.reciprocal_low, score.reciprocal_high) == (0.5, 1.0)
    assert score.tells == 0, "the case without a source gets more"


def test_subsets_of_passages_are_the_loop_and_the_fit_puts_first_what_is_then_removed_itself() -> None:
    model = worded("llama", 1, 0.12)
    taken = taken_away(answered("llama", model), SENTENCES, PASSAGES, 40, 3)
    assert taken.subsets == 40
    assert taken.weights is not None
    before, after = plain("llama", model, set()), plain("llama", model, {*PASSAGES[1]})
    assert taken.lost[1, 1] == pytest.approx(before[2] - after[2], abs=1e-4)
