"""What is made of an ablation's runs: probabilities, divergences, controls and estimates, worked by hand."""

import math

import numpy as np
import pytest
import torch
from families import HEADS, LAYERS, ids, sharp
from torch import Tensor, nn

from attnscope.analysis.claims.ablation import estimates, replacing
from attnscope.analysis.claims.ablation.experiment import (
    MOST_DRAWN,
    groups_drawn,
    intervention,
    layers_drawn,
    others_drawn,
    taken_away,
)
from attnscope.analysis.claims.ablation.question import (
    class_of_text,
    effect,
    log_chances,
    text_written,
    verdict_on_pair,
    word_at,
)
from attnscope.capture import Selection
from attnscope.capture.intervening.changes import Put, Zero
from attnscope.capture.intervening.experiments import Experiments, experiments_on
from attnscope.capture.intervening.passing import answers_to
from attnscope.errors import CertificateError, InputError
from attnscope.results import Verdict
from attnscope.results.claims.ablation import ranked
from attnscope.results.claims.effect import Asks, HeadEffect
from attnscope.results.claims.intervention import Intervention
from attnscope.tokens import Token, Tokens


class Speaking(nn.Module):
    """A tiny family with a vocabulary: scores of 97 words at every position."""

    def __init__(self, family: str) -> None:
        super().__init__()
        self.base = sharp(family)
        self.config = self.base.config
        torch.manual_seed(4)
        self.words = nn.Linear(48, 97)

    def get_output_embeddings(self) -> nn.Module:
        return self.words

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        return {"logits": self.words(self.base(input_ids=input_ids).last_hidden_state)}


@pytest.fixture(scope="module")
def speaking() -> Speaking:
    return Speaking("bert").eval()


@pytest.fixture(scope="module")
def made(speaking: Speaking) -> Experiments:
    question = word_at(Asks.MASK, 4, 11, None, str)
    return experiments_on(speaking, ids(), Selection(), question.asked)


def logs(*chances: float) -> Tensor:
    return torch.tensor([chances], dtype=torch.float64).log()


def test_an_effect_worked_by_hand() -> None:
    told = effect(logs(0.5, 0.25, 0.25), logs(0.25, 0.25, 0.5), [0])
    assert told.before == pytest.approx(0.5)
    assert told.after == pytest.approx(0.25)
    assert told.change == pytest.approx(math.log(0.5))
    assert told.kl == pytest.approx(0.5 * math.log(2) - 0.25 * math.log(2))


def test_a_divergence_is_of_after_from_before_and_not_the_other_way() -> None:
    there, back = logs(0.9, 0.1), logs(0.5, 0.5)
    assert effect(there, back, [0]).kl == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2))
    assert effect(back, there, [0]).kl != pytest.approx(effect(there, back, [0]).kl)
    assert effect(there, there, [1]).kl == 0


def test_a_choice_that_was_impossible_does_not_make_a_divergence_nothing() -> None:
    told = effect(logs(1.0, 0.0), logs(0.5, 0.5), [0])
    assert told.kl == pytest.approx(math.log(2))


def test_a_text_is_as_probable_as_all_its_tokens_together() -> None:
    before = torch.cat([logs(0.5, 0.5), logs(0.1, 0.9)])
    after = torch.cat([logs(0.25, 0.75), logs(0.1, 0.9)])
    told = effect(before, after, [0, 1])
    assert told.before == pytest.approx(0.45)
    assert told.change == pytest.approx(math.log(0.5))


def test_scores_that_are_no_numbers_are_no_answer() -> None:
    with pytest.raises(CertificateError, match="not numbers"):
        log_chances(torch.tensor([[0.0, math.nan]]))


def test_where_the_answer_of_each_kind_stands() -> None:
    scores = torch.arange(2 * 5 * 3.0).reshape(2, 5, 3)
    word = word_at(Asks.NEXT, 3, 5, None, str)
    assert torch.equal(word.asked.of({"logits": scores}), scores[:, [3]])
    assert torch.equal(word.asked.of({"logits": scores[:, [3]]}), scores[:, [3]]), "only that row was made"
    both = {"prediction_logits": scores, "seq_relationship_logits": scores[:, 0, :2]}
    assert torch.equal(word.asked.of(both), scores[:, [3]])
    assert torch.equal(verdict_on_pair(None, str).asked.of(both), scores[:, :1, :2])
    assert torch.equal(class_of_text(2, str).asked.of({"logits": scores[:, 4]}), scores[:, [4]])
    written = text_written([9, 0, 2, 1], 1, "a text", str)
    assert written.ids == (0, 2, 1)
    assert torch.equal(written.asked.of({"logits": scores[:, :4]}), scores[:, :3])


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(InputError, match="wrote nothing"):
        text_written([9], 1, "", str)
    with pytest.raises(InputError, match="no classes"):
        class_of_text(None, str).asked.of({"logits": torch.zeros(1, 1)})
    with pytest.raises(InputError, match="no head that judges pairs"):
        verdict_on_pair(None, str).asked.of({"logits": torch.zeros(1, 2, 3)})


def test_heads_are_ranked_by_size_whatever_their_sign() -> None:
    heads = [HeadEffect(0.5, 0.5, d, 0.0, n, 0) for n, d in enumerate((0.1, -0.3, 0.2, -0.2))]
    assert [each.layer for each in ranked(tuple(heads))] == [1, 2, 3, 0]


def test_random_heads_are_others_of_the_same_layers_and_repeat_by_their_seed() -> None:
    counts = {0: 4, 1: 20, 2: 2}
    drawn = others_drawn([(1, 3), (1, 5), (2, 0), (2, 1)], counts, seed=1)
    assert {layer for layer, _ in drawn} == {1}, "layer 2 has no other head"
    assert len(drawn) == len(set(drawn)) == MOST_DRAWN
    assert not {(1, 3), (1, 5)} & set(drawn)
    assert drawn == others_drawn([(1, 3), (1, 5), (2, 0), (2, 1)], counts, seed=1)
    assert drawn != others_drawn([(1, 3), (1, 5), (2, 0), (2, 1)], counts, seed=2)


def test_random_groups_have_as_many_heads_in_the_same_layers() -> None:
    group = [(0, 1), (0, 2), (1, 0)]
    groups = groups_drawn(group, {0: 5, 1: 3}, seed=0)
    assert len(groups) == len(set(groups)) == 6, "three pairs of heads 0, 3, 4, with head 1 or 2"
    assert all([layer for layer, _ in each] == [0, 0, 1] for each in groups)
    assert not any({(0, 1), (0, 2), (1, 0)} & set(each) for each in groups)
    assert groups_drawn([(0, 0), (0, 1)], {0: 2}, seed=0) == [], "the whole layer is no other group"


def test_whole_layers_are_held_against_other_whole_layers() -> None:
    counts = {0: 2, 2: 3, 5: 2}
    assert layers_drawn([(2, 0), (2, 1), (2, 2)], counts, seed=0) == [((0, 0), (0, 1)), ((5, 0), (5, 1))]
    assert layers_drawn([(2, 0), (2, 1)], counts, seed=0) == [], "head 2 is not in it"
    both = [(layer, head) for layer in (0, 2) for head in range(counts[layer])]
    assert layers_drawn(both, counts, seed=0) == [], "no two other layers"
    assert len(layers_drawn([(0, 0)], dict.fromkeys(range(40), 1), seed=0)) == MOST_DRAWN


def test_every_head_in_turn_beside_the_others_of_its_layer(made: Experiments, speaking: Speaking) -> None:
    answer = int(made.untouched[0, 0].argmax())
    heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    found = taken_away(made, [answer], heads, Zero(), together=False, seed=0)
    assert len(found.heads) == LAYERS * HEADS
    assert found.group is None
    assert found.floor.random == ()
    assert found.floor.runs == LAYERS
    assert 0 < found.floor.rounding < 1e-5 < max(abs(each.change) for each in found.heads)
    for each in found.heads:
        there = [abs(o.change) for o in found.heads if o.layer == each.layer and o.head != each.head]
        assert each.controls == HEADS - 1
        assert each.typical == pytest.approx(np.median(there))
        assert each.below == sum(size < abs(each.change) for size in there)


def test_one_head_and_its_random_others_by_hand(made: Experiments, speaking: Speaking) -> None:
    answer = int(made.untouched[0, 0].argmax())
    found = taken_away(made, [answer], [(2, 1), (2, 4)], Zero(), together=True, seed=0)
    assert found.group is not None
    assert found.group.heads == ((2, 1), (2, 4))
    assert len(found.floor.random) == HEADS - 2
    weight = speaking.base.encoder.layer[2].attention.output.dense.weight.data
    kept = weight.clone()
    weight[:, 8:16] = 0
    weight[:, 32:40] = 0
    with torch.no_grad():
        by_hand = speaking(**ids())["logits"][0, 4].softmax(-1)[answer]
    weight.copy_(kept)
    assert found.group.effect.after == pytest.approx(float(by_hand), rel=1e-4)
    assert found.group.controls == 6, "pairs of the other four heads"


def test_the_vocabulary_is_multiplied_out_at_the_answers_row_alone(speaking: Speaking) -> None:
    rows: list[tuple[int, ...]] = []
    handle = speaking.words.register_forward_hook(lambda _, args, made: rows.append(tuple(made.shape)))
    try:
        question = word_at(Asks.MASK, 4, 11, None, str)
        one = experiments_on(speaking, ids(), Selection(), question.asked)
        taken_away(one, [3], [(2, 0), (2, 1)], Zero(), together=False, seed=0)
    finally:
        handle.remove()
    assert rows == [(1, 11, 97), (1, 11, 97), (HEADS + 3, 1, 97)], (
        "every head, an untouched one at either end and rounding"
    )
    assert one.plainness == 0


def test_a_head_that_its_layer_does_not_have_is_refused(made: Experiments) -> None:
    with pytest.raises(InputError, match="no head 6 in layer 1: heads are 0-5"):
        taken_away(made, [1], [(1, 6)], Zero(), together=False, seed=0)


def sides() -> dict[str, Tokens]:
    tokens = [Token(n, f"w{n}", f"w{n}", None, i) for i, n in enumerate(ids()["input_ids"][0].tolist())]
    return {"input_ids": Tokens(("text",), tuple(tokens))}


def test_means_are_over_the_outputs_of_control_texts_one_by_one(
    made: Experiments, speaking: Speaking
) -> None:
    from attnscope.analysis.claims.controls import control_texts

    told = replacing.means(speaking, ids(), made.sites, sides(), mask_id=None, count=7, seed=5)
    assert isinstance(told.what, Put)
    assert told.how.startswith("each output replaced by its mean over 7 control texts, position by position")
    rows = control_texts(sides()["input_ids"], count=7, seed=5).ids
    one_by_one = [answers_to(speaking, {"input_ids": torch.tensor(row)[None]}, made.sites)[0] for row in rows]
    for place, mean in told.what.answers.items():
        by_hand = torch.stack([each[place] for each in one_by_one]).mean(0)
        assert torch.allclose(mean.float(), by_hand, atol=1e-5), place
        assert not torch.allclose(mean.float(), made.answers[place], atol=1e-2)


def test_what_is_foretold_is_right_for_little_changes_and_ranks_large_ones(made: Experiments) -> None:
    answer = [int(made.untouched[0, 0].argmax())]
    torch.manual_seed(1)
    little = {place: each + 1e-3 * torch.randn_like(each) for place, each in made.answers.items()}
    foretold = estimates.estimated(made, answer, Put(little))
    assert len(foretold) == LAYERS * HEADS
    heads = [(each.layer, each.head) for each in foretold[:6]]
    found = taken_away(made, answer, heads, Put(little), together=False, seed=0)
    both, correlation = estimates.held_against(found.heads, foretold)
    for each in both:
        assert each.predicted == pytest.approx(each.change, rel=0.1, abs=2e-5)
    assert correlation == pytest.approx(1.0)


def test_too_few_heads_have_no_order_to_compare(made: Experiments) -> None:
    foretold = estimates.estimated(made, [3], Zero())
    found = taken_away(made, [3], [(0, 0), (0, 1)], Zero(), together=False, seed=0)
    assert estimates.held_against(found.heads, foretold)[1] is None


def test_an_intervention_is_as_good_as_what_was_read_back(made: Experiments) -> None:
    assert intervention(made).verdict is Verdict.CERTIFIED
    good = Intervention.of(3, 0, 0, True)
    assert good.verdict is Verdict.CERTIFIED
    assert Intervention.of(3, 0, 0, False).verdict is Verdict.INCONCLUSIVE
    assert Intervention.of(3, 0, 1, True).verdict is Verdict.PARTIAL
    assert Intervention.of(3, 1, 0, True).verdict is Verdict.FAILED
    assert Intervention.of(0, 0, 0, True).verdict is Verdict.FAILED, "nothing was changed at all"
