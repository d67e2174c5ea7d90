"""An explanation in Python: its parts are the verbs' own answers, and which words matter is run by hand."""

import numpy as np
import pytest
import torch

import attnscope
from attnscope.errors import InputError
from attnscope.results.claims.explanation import Asked, that_look

TEXT = "I was watching the door when [MASK] opened."


@pytest.fixture(scope="module")
def demo() -> attnscope.Model:
    return attnscope.load("demo")


def lost_by_hand(model: attnscope.Model, text: str, position: int, replacement: int) -> dict[int, float]:
    """What the likeliest answer at a position loses where each other token is replaced, one run for each."""
    ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
    lost = dict[int, float]()
    with torch.no_grad():
        before = _chances(model, ids)[position]
        answer = int(before.argmax())
        for place in range(ids.shape[1]):
            changed = ids.clone()
            changed[0, place] = replacement
            lost[place] = float(before[answer] - _chances(model, changed)[position, answer])
    return lost


def _chances(model: attnscope.Model, ids: torch.Tensor) -> torch.Tensor:
    output = model.module(input_ids=ids)
    logits = output["prediction_logits"] if "prediction_logits" in output else output["logits"]
    return logits[0].double().log_softmax(-1)


def test_words_that_are_replaced_cost_what_a_run_for_each_costs(demo: attnscope.Model) -> None:
    found = demo.read(TEXT).explain("[MASK]", "door", controls=19)
    assert found.replaced is not None
    mask = found.replaced.position
    assert mask is not None
    by_hand = lost_by_hand(demo, TEXT, mask, demo.tokenizer.mask_token_id)
    places = [part.positions[0] for part in found.replaced.parts]
    assert found.key in places
    assert mask not in places, "where the answer stands nothing is replaced"
    for part in found.replaced.parts:
        assert part.change == pytest.approx(by_hand[part.positions[0]], abs=1e-5)
    changes = [part.change for part in found.replaced.parts]
    assert changes == sorted(changes, reverse=True)


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


def test_a_word_behind_the_answer_has_no_part_in_it_in_a_decoder() -> None:
    """Of a decoder the answer comes last; the query may stand before it, and is a word like others then."""
    model = attnscope.load("demo-causal")
    found = model.read("river king door window river king door window").explain(5, 2, controls=19)
    assert found.replaced is not None
    assert found.replaced.position == 8
    assert 5 in [part.positions[0] for part in found.replaced.parts]
    assert found.replaced.of(8) is None


def test_the_heads_that_were_asked_for_alone_are_looked_at(demo: attnscope.Model) -> None:
    found = demo.read(TEXT).explain("[MASK]", "door", controls=19, layers=3)
    assert found.finding.layers == (3,)
    assert {layer for layer, _ in found.heads} <= {3}


def test_what_is_generated_and_what_is_not_one_token_is_refused() -> None:
    model = attnscope.load("demo-causal")
    with pytest.raises(InputError, match="explain takes one token each"):
        model.read("the door opened").explain(2, "the door")
    with pytest.raises(InputError, match="leave --generate out"):
        model.read("I was watching the", generate=2).explain(3, 2)


def test_a_question_that_cannot_be_asked_leaves_the_others(demo: attnscope.Model) -> None:
    """Without a mask and a second text the encoder has no answer to take heads from."""
    found = demo.read("I was watching the door when it opened.").explain("it", "door", controls=19)
    assert found.taken is None
    assert found.cut is None
    assert "no [MASK] to fill" in found.reason(Asked.MATTER)
    assert found.whys
    assert found.replaced is not None
