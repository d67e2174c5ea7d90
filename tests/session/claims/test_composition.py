"""Composition of heads of the bundled models: what is known of them, and how it is asked."""

from pathlib import Path

import numpy as np
import pytest
import torch
from families import sharp

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Composition
from attnscope.results.claims.composition import Through
from attnscope.session.listener import Quiet
from attnscope.session.questions.claims.composition import CompositionQuestion, compose
from attnscope.session.request import ModelRequest
from attnscope.session.wanted import Wanted


@pytest.fixture(scope="module")
def causal() -> at.Model:
    return at.load("demo-causal")


@pytest.fixture(scope="module")
def every(causal: at.Model) -> Composition:
    return causal.composition()


def test_the_induction_heads_read_the_head_of_the_previous_token_through_their_keys(
    every: Composition,
) -> None:
    # all heads of layer 1 are induction heads, L0 H0 looks at the previous token (the model's card)
    best = every.ranked(Through.KEY)[:12]
    assert {(pair.early, pair.late[0]) for pair in best} == {((0, 0), 1)}
    assert all(pair.stands_out and pair.limit > 1.5 * pair.chance for pair in best)
    assert all(pair.below == every.draws and pair.score > 2 * pair.beside for pair in best)
    for other in (Through.QUERY, Through.VALUE):  # and through nothing else
        mine = [pair for pair in every.ranked(other) if pair.early == (0, 0) and pair.late[0] == 1]
        assert len(mine) == 12
        assert max(pair.difference for pair in mine) < 0


def test_all_pairs_are_looked_at_and_everything_is_certified(every: Composition) -> None:
    assert [every.looked_at(through) for through in Through] == [6 * 12 * 12] * 3
    assert every.verdict == "certified"
    assert every.certified["certified"] == every.heads == 48
    assert every.reasons == ()
    assert every.pairs.tolist() == sorted(every.pairs.tolist())
    assert abs(every.chance - 96**-0.5).max() < 0.005


def test_one_head_is_asked_on_both_sides(causal: at.Model, every: Composition) -> None:
    found = causal.composition(1, 8, through="key", draws=20)
    assert found.through == (Through.KEY,)
    assert found.shown == (1, 8)
    before, after = (found.ranked(Through.KEY, before=each) for each in (True, False))
    assert len(before) == 12
    assert len(after) == 24
    assert before[0].early == (0, 0)
    whole = {(pair.early, pair.late): pair.score for pair in every.ranked(Through.KEY)}
    assert all(whole[pair.early, pair.late] == pytest.approx(pair.score) for pair in (*before, *after))
    grid = found.grid(Through.KEY)
    assert np.isnan(grid[1]).all()
    assert grid[0, 0] == pytest.approx(before[0].difference)
    assert np.isfinite(grid[[0, 2, 3]]).all()


def test_the_same_is_asked_from_the_command_line_and_comes_back_the_same(
    causal: at.Model, tmp_path: Path
) -> None:
    asked = CompositionQuestion("1", "-4", "value", 20, 3)
    first = compose(ModelRequest("demo-causal"), asked, Wanted(), Quiet())
    again, other = (causal.composition(1, 8, through="value", draws=20, seed=seed) for seed in (3, 4))
    assert first.shown == (1, 8)
    files = [each.save(tmp_path / name).read_text() for each, name in ((first, "a.csv"), (again, "b.csv"))]
    rows = [[line for line in file.splitlines() if not line.startswith("# architecture")] for file in files]
    assert rows[0] == rows[1]  # the command reads the model without what it predicts with
    assert np.array_equal(first.scores, other.scores)
    assert not np.array_equal(first.chance, other.chance)


def test_cross_attention_reads_what_is_written_through_its_queries_alone() -> None:
    found = at.load("demo-translate").composition(kind="cross", draws=5)
    assert [found.looked_at(through) > 0 for through in Through] == [True, False, False]
    assert len(found.reasons) == 2
    assert all(each.endswith("nothing that an earlier head writes comes there") for each in found.reasons)


def test_where_it_has_no_meaning_or_is_asked_wrongly_that_is_one_line(causal: at.Model) -> None:
    for told, wrong in {
        "--layer and --head go together": {"layer": 1},
        "no 'keys' to compose through: query, key, value": {"through": "keys"},
        "--draws 0": {"draws": 0},
        "needs one head": {"layer": "0-1", "head": 3},
        "no head 12 in demo-causal: layers 0-3, heads 0-11": {"layer": 1, "head": 12},
        "no layer 4": {"layer": 4, "head": 0},
        "--route returned has weights alone": {"route": "returned"},
    }.items():
        with pytest.raises(InputError, match=told):
            causal.composition(**wrong)


@pytest.mark.parametrize(("name", "kind"), [("demo-caption", "encoder"), ("demo-speech", "cross")])
def test_a_model_of_pictures_or_sounds_needs_none_of_them(name: str, kind: str) -> None:
    found = compose(ModelRequest(name), CompositionQuestion(draws=5), Wanted(kind=kind), Quiet())
    assert found.verdict == "certified"
    assert found.looked_at(Through.QUERY) > 0
    assert found.read_back_in == ""


def test_what_the_matrices_were_read_back_in_is_kept(every: Composition) -> None:
    assert every.read_back_in == "I was watching the door when it opened."
    assert every.sharing == 3, "twelve heads share four keys"


def test_a_model_without_a_tokenizer_is_read_by_token_numbers() -> None:
    found = at.wrap(sharp("llama")).composition(draws=5)
    assert found.looked_at(Through.KEY) == 3 * 6 * 6


@pytest.mark.parametrize("family", ["llama", "bert", "gpt2"])
def test_where_weights_are_random_many_pairs_pass_their_own_draws_and_none_stands_out(family: str) -> None:
    found = at.wrap(sharp(family)).composition(draws=20)
    assert (found.below == found.draws).sum() > 3
    assert [found.standing_out(through) for through in Through] == [0, 0, 0]


def test_induction_goes_with_the_two_heads_that_compose_most_and_not_with_the_third(
    every: Composition,
) -> None:
    model = at.load("demo-causal")
    reading, output = model.read("the door was closed."), model.module.model.layers[0].self_attn.o_proj.weight
    dim, whole = output.shape[1] // 12, output.detach().clone()

    def induction(without: int | None) -> float:
        with torch.no_grad():
            output.copy_(whole)
            if without is not None:
                output[:, without * dim : (without + 1) * dim] = 0
        return float(reading.overview(1, measure="induction").main.values.mean())

    by_key, by_query = (
        [pair.early for pair in every.ranked(through) if pair.late == (1, 8)][:2]
        for through in (Through.KEY, Through.QUERY)
    )
    assert by_key == [(0, 0), (0, 4)]
    assert by_query[0] == (0, 2)
    kept = induction(None)
    assert kept > 0.75
    assert induction(0) < kept - 0.5  # the previous token
    assert induction(2) < kept - 0.5
    assert abs(induction(4) - kept) < 0.02  # above chance all the same: a score alone proves no use
