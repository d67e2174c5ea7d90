"""Figures of transformer-lens and inseq for one small GPT-2 (`specimens/of_others.py`), and ours for it."""

import json

import numpy as np
import of_others
import pytest

import attnscope
from attnscope.results.claims.attributed import INTEGRATED

FIGURES = json.loads(of_others.FILE.read_text())
EACH_HEAD = [(layer, head) for layer in range(of_others.LAYERS) for head in range(of_others.HEADS)]
OTHER = {"patch_from": of_others.OTHER, "answer": of_others.ANSWER, "against": of_others.AGAINST}
CLOSE = {"rel": 1e-4, "abs": 2e-5}


@pytest.fixture(scope="module")
def model() -> attnscope.Model:
    return attnscope.wrap(of_others.model(), of_others.tokenizer())


@pytest.fixture(scope="module")
def reading(model: attnscope.Model) -> attnscope.Reading:
    return model.read(of_others.CLEAN)


def test_it_is_the_same_model_to_this_day(model: attnscope.Model) -> None:
    """Its weights are drawn again; where they were others no figure of theirs would be of it."""
    for text, figure in (of_others.CLEAN, "difference"), (of_others.OTHER, "other"):
        logits = model.module(of_others.ids_of(text)).logits
        assert float(of_others.of_answer(logits)) == pytest.approx(FIGURES[figure], **CLOSE)


def test_weights_are_the_patterns_of_transformer_lens(reading: attnscope.Reading) -> None:
    theirs = np.array(FIGURES["weights"])
    assert theirs.max() > 0.9, "some of it is peaked"
    for layer, head in EACH_HEAD:
        np.testing.assert_allclose(reading.head(layer, head).weights, theirs[layer, head], atol=2e-6)


def test_direct_contributions_are_its_direct_logit_attribution(reading: attnscope.Reading) -> None:
    made = reading.why(answer=of_others.ANSWER, against=of_others.AGAINST)
    ours, theirs = {part.name: part.direct for part in made.parts}, FIGURES["direct"]
    names = {f"L{layer} H{head}": f"L{layer}H{head}" for layer, head in EACH_HEAD}
    for own, other in (names | {"token": "embed", "position": "pos_embed"}).items():
        assert ours[own] == pytest.approx(theirs[other], **CLOSE)
    assert made.logit == pytest.approx(FIGURES["difference"], **CLOSE)


def test_what_a_layer_would_answer_is_its_logit_lens(reading: attnscope.Reading) -> None:
    (place,) = reading.predict_layers(controls=1).places
    theirs = np.exp(FIGURES["lens"])
    assert [each.layer for each in place.layers] == [-1, 0, 1, 2]
    for own, chances in zip(place.layers, theirs, strict=True):
        assert own.best.id == chances.argmax()
        assert own.best.probability == pytest.approx(chances.max(), **CLOSE)
        assert own.probability == pytest.approx(chances[place.answer.id], **CLOSE)
    assert len({each.best.id for each in place.layers}) > 2, "layers differ"


def test_heads_of_another_text_do_what_its_activation_patching_does(reading: attnscope.Reading) -> None:
    made = reading.ablate(each=True, **OTHER)
    after = {(each.layer, each.head): each.after for each in made.heads}
    for layer, head in EACH_HEAD:
        assert after[layer, head] == pytest.approx(FIGURES["patched"]["heads"][layer][head], **CLOSE)


def test_layer_and_token_are_patched_as_it_patches_them(reading: attnscope.Reading) -> None:
    """Its grid is of what enters a layer, ours of what leaves it: our rows are its from the second on."""
    made = reading.ablate(part="residual", at="pos:each", **OTHER)
    theirs, inner = np.array(FIGURES["patched"]["residual"]), 0
    for each in made.places:
        if each.layer + 1 < of_others.LAYERS:
            (position,) = each.positions
            assert each.after == pytest.approx(theirs[each.layer + 1, position], **CLOSE)
            inner += 1
    assert inner == (of_others.LAYERS - 1) * theirs.shape[1]


def test_integrated_gradients_are_those_of_inseq(model: attnscope.Model) -> None:
    """Of the token that asks there is no number: nothing is replaced there, nor does their way move it."""
    flow = model.read(of_others.NOTHING).flow("pos:last")
    (made,) = (each for each in flow.attributed if each.method is INTEGRATED)
    theirs = np.array(FIGURES["integrated"]["lost"])
    assert flow.ablated is not None
    assert flow.ablated.answer == FIGURES["integrated"]["answer"]
    assert made.values is not None
    assert np.isnan(made.values[-1])
    assert theirs[-1] == pytest.approx(0, abs=1e-9)
    assert np.abs(theirs).max() > 1
    # ours takes as many steps as its sum needs to be right to what it says; theirs takes many
    assert made.values[:-1] == pytest.approx(theirs[:-1], abs=max(0.004, 2 * abs(made.off)))
    assert float(theirs.sum()) == pytest.approx(made.whole, abs=2e-3)
