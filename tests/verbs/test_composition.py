"""Which heads read which, and an explanation whose parts are the answers of the verbs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from families import sharp

import attnscope
import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Composition
from attnscope.session.listener import Quiet
from attnscope.session.request import ModelRequest
from attnscope.verbs.compose.question import Compose
from attnscope.verbs.compose.result import Through
from attnscope.verbs.explain.result import Asked, that_look


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
    assert [every.looked_at(through) for through in Through] == [6 * 12 * 12] * 3
    assert every.verdict == "certified"
    assert every.certified["certified"] == every.heads == 48
    assert every.reasons == ()
    assert every.pairs.tolist() == sorted(every.pairs.tolist())
    assert every.read_back_in == "I was watching the door when it opened."
    assert every.sharing == 3, "twelve heads share four keys"


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


def test_a_model_of_pictures_needs_none_and_one_without_a_tokenizer_is_read_by_token_numbers() -> None:
    found = Compose(draws=5, kind="encoder").answer(ModelRequest("demo-caption"), Quiet()).result
    assert found.verdict == "certified"
    assert found.looked_at(Through.QUERY) > 0
    assert found.read_back_in == ""
    assert at.wrap(sharp("llama")).composition(draws=5).looked_at(Through.KEY) == 3 * 6 * 6


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_where_weights_are_random_many_pairs_pass_their_own_draws_and_none_stands_out(family: str) -> None:
    found = at.wrap(sharp(family)).composition(draws=20)
    assert (found.below == found.draws).sum() > 3
    assert [found.standing_out(through) for through in Through] == [0, 0, 0]


def test_induction_goes_with_the_two_heads_that_compose_most_and_not_with_the_third(
    every: Composition,
) -> None:
    model = at.load("demo-causal")
    reading, output = model.read("the door was closed."), model.module.model.layers[0].self_attn.o_proj.weight
    whole = output.detach().clone()

    def induction(*without: int) -> float:
        with torch.no_grad():
            output.copy_(whole)
            for head in without:
                output.unflatten(1, (12, -1))[:, head] = 0
        return float(reading.overview(1, measure="induction").main.values.mean())

    by_key, by_query = (
        [pair.early for pair in every.ranked(through) if pair.late == (1, 8)][:2]
        for through in (Through.KEY, Through.QUERY)
    )
    assert (by_key, by_query[0]) == ([(0, 0), (0, 4)], (0, 2))
    kept = induction()
    assert kept > 0.75
    assert max(induction(0), induction(2)) < kept - 0.5  # the previous token, and the head of the queries
    assert abs(induction(4) - kept) < 0.02  # above chance all the same: a score alone proves no use


def test_the_same_is_asked_from_the_command_line_and_comes_back_the_same(
    causal: at.Model, tmp_path: Path
) -> None:
    asked = Compose("1", "-4", through="value", draws=20, seed=3)
    first = asked.answer(ModelRequest("demo-causal"), Quiet()).result
    again, other = (causal.composition(1, 8, through="value", draws=20, seed=seed) for seed in (3, 4))
    assert first.shown == (1, 8)
    files = [each.save(tmp_path / name).read_text() for each, name in ((first, "a.csv"), (again, "b.csv"))]
    rows = [[line for line in file.splitlines() if not line.startswith("# architecture")] for file in files]
    assert rows[0] == rows[1]  # the command reads the model without what it predicts with
    assert np.array_equal(first.scores, other.scores)
    assert not np.array_equal(first.chance, other.chance)


TEXT = "I was watching the door when [MASK] opened."


@pytest.fixture(scope="module")
def demo() -> attnscope.Model:
    return attnscope.load("demo")


def test_its_parts_are_the_answers_of_the_verbs(demo: attnscope.Model) -> None:
    reading = demo.read(TEXT)
    found = reading.explain("[MASK]", "door", controls=19, seed=3)
    alone = reading.find("[MASK]", "door", controls=19, seed=3)
    assert found.finding.weights.tolist() == alone.weights.tolist()
    assert found.finding.controls.mean.tolist() == alone.controls.mean.tolist()
    assert found.heads == that_look(alone)
    heads = ",".join(f"L{layer}H{head}" for layer, head in found.heads)
    assert found.taken is not None
    taken = reading.ablate(heads=heads)
    assert [each.change for each in found.taken.heads] == pytest.approx([each.change for each in taken.heads])
    assert found.cut is not None
    cut = reading.ablate(heads=heads, link="[MASK]->door")
    assert [each.change for each in found.cut.heads] == pytest.approx([each.change for each in cut.heads])
    for why in found.whys:
        again = reading.why(why.layer, why.head, "[MASK]", "door")
        assert why.contrast == pytest.approx(again.contrast)
        assert why.reasons == again.reasons
    assert found.lead is not None
    assert found.composition is not None
    composed = demo.composition(*found.lead)
    np.testing.assert_allclose(found.composition.scores, composed.scores, rtol=1e-9)


def test_what_is_generated_and_what_is_not_one_token_is_refused() -> None:
    model = attnscope.load("demo-causal")
    with pytest.raises(InputError, match="explain takes one token each"):
        model.read("the door opened").explain(2, "the door")
    with pytest.raises(InputError, match="leave --generate out"):
        model.read("I was watching the", generate=2).explain(3, 2)


def test_a_question_that_cannot_be_asked_leaves_the_others(demo: attnscope.Model) -> None:
    """Without a mask and a second text the encoder has no answer to take heads from."""
    reading = demo.read("I was watching the door when it opened.")
    found = reading.explain("it", "door", controls=19, layers=[2, 3])
    assert found.finding.layers == (2, 3)
    assert {layer for layer, _ in found.heads} <= {2, 3}
    assert found.taken is None
    assert found.cut is None
    assert "no [MASK] to fill" in {each.question: each.reason for each in found.unasked}[Asked.MATTER]
    assert found.whys
    assert found.replaced is not None
