"""What reaches a token of the bundled models, by hand on the model's own modules."""

import copy
from pathlib import Path

import families
import numpy as np
import pytest
import torch
from transformers import BertForPreTraining, BertTokenizerFast, LlamaForCausalLM

import attnscope as at
from attnscope.analysis.claims.flow import replacing
from attnscope.capture.intervening import value_zeroing
from attnscope.errors import CertificateError, InputError
from attnscope.results.claims.flow import GRADIENT, INTEGRATED
from attnscope.session.questions.claims import flow as asked
from attnscope.session.questions.claims import replacing as instead

DEMO = Path(at.__file__).parent / "demo"
TEXT = "I was watching the door when [MASK] opened."
MASK, QUERY = 4, 7


@pytest.fixture(scope="module")
def masked() -> at.Reading:
    return at.load("demo").read(TEXT)


@pytest.fixture(scope="module")
def translated() -> at.Reading:
    return at.load("demo-translate").read("I saw the red door.", target="j'ai vu la porte rouge.")


@torch.no_grad()
def test_rollout_and_effects_are_those_of_the_models_own_attentions_and_logits(masked: at.Reading) -> None:
    found = masked.flow("[MASK]")
    model = BertForPreTraining.from_pretrained(DEMO / "encoder", attn_implementation="eager").eval()
    ids = torch.tensor([masked.tokens.ids])
    output = model(ids, output_attentions=True)
    reached = torch.eye(ids.shape[1])
    for weights in output.attentions:
        reached = (weights[0].mean(0) + torch.eye(ids.shape[1])) / 2 @ reached
    assert found.rollout[-1] == pytest.approx(reached[QUERY].numpy(), abs=1e-5)
    assert found.raw[-1] == pytest.approx(output.attentions[-1][0, :, QUERY].mean(0).numpy(), abs=1e-5)
    before = output.prediction_logits[0, QUERY].log_softmax(-1)
    assert found.ablated is not None
    assert found.ablated.answer == "it"
    assert found.ablated.probability == pytest.approx(float(before.max().exp()), abs=1e-5)
    expected = np.full(ids.shape[1], np.nan)
    for place in (1, 2, 3, 4, 5, 6, 8, 9):  # neither special ones nor the query
        changed = ids.clone()
        changed[0, place] = MASK
        after = model(changed).prediction_logits[0, QUERY].log_softmax(-1)
        expected[place] = before.max() - after[before.argmax()]
    np.testing.assert_allclose(found.ablated.effects, expected, atol=1e-4)
    assert np.nanmax(expected) == expected[5] > 0.1  # the door
    assert found.by_norm is not None
    assert found.flow is not None
    assert [each.method for each in found.ablated.trust] == [*found.methods, "distance alone"]
    of_attention = [each for each in found.methods if each not in (GRADIENT, INTEGRATED)]
    assert len(of_attention) == 6
    for shares in (found.methods[each] for each in of_attention):
        assert shares.sum() == pytest.approx(1.0, abs=1e-6)
    assert found.verdict == "certified"


def test_the_lead_of_an_answer_over_another_is_what_every_column_measures(masked: at.Reading) -> None:
    """By hand: tokens masked one by one, the slope of the lead at the embeddings, what columns sum to."""
    found = masked.flow("[MASK]", answer="it", against="they")
    model = BertForPreTraining.from_pretrained(DEMO / "encoder", attn_implementation="eager").eval()
    tokenizer = BertTokenizerFast.from_pretrained(DEMO / "encoder")
    it, they = tokenizer.convert_tokens_to_ids(["it", "they"])
    ids = torch.tensor([masked.tokens.ids])

    def lead(**given: torch.Tensor) -> torch.Tensor:
        logits = model(**given).prediction_logits[0, QUERY]
        return logits[it] - logits[they]

    places = [1, 2, 3, 4, 5, 6, 8, 9]
    with torch.no_grad():
        untouched, costs = float(lead(input_ids=ids)), []
        for place in places:
            changed = ids.clone()
            changed[0, place] = MASK
            costs.append(untouched - float(lead(input_ids=changed)))
        every = ids.clone()
        every[0, places] = MASK
        all_at_once = untouched - float(lead(input_ids=every))
    assert found.ablated is not None
    assert found.ablated.lead == pytest.approx(untouched, abs=1e-4)
    assert np.isnan(found.ablated.probability)
    assert (found.ablated.answer, found.ablated.against, found.ablated.unit) == ("it", "they", "logits")
    np.testing.assert_allclose(found.ablated.effects[places], costs, atol=1e-4)
    embedded = model.get_input_embeddings()(ids).detach().requires_grad_()
    (slope,) = torch.autograd.grad(lead(inputs_embeds=embedded), embedded)
    by_hand = (slope * embedded).sum(-1)[0].detach().numpy()
    by_name = {each.method: each for each in found.attributed}
    np.testing.assert_allclose(by_name[GRADIENT].values, by_hand, atol=1e-3)
    assert by_name[INTEGRATED].whole == pytest.approx(all_at_once, abs=1e-3)
    assert np.nansum(by_name[INTEGRATED].values) == pytest.approx(
        all_at_once, abs=0.01 * abs(all_at_once) + 0.01
    )
    assert found.text(width=300).startswith("“it” over “they” at [MASK] depends most on “door”: ")


def test_an_answer_that_is_named_is_the_one_that_is_measured(masked: at.Reading) -> None:
    likeliest, other = masked.flow("[MASK]"), masked.flow("[MASK]", answer="they")
    named = masked.flow("[MASK]", answer="it")
    assert likeliest.ablated is not None
    assert named.ablated is not None
    assert other.ablated is not None
    np.testing.assert_array_equal(likeliest.ablated.effects, named.ablated.effects)
    assert (other.ablated.answer, other.ablated.unit) == ("they", "nats")
    assert other.ablated.probability < 0.5 < likeliest.ablated.probability
    assert np.nanmax(np.abs(other.ablated.effects - named.ablated.effects)) > 0.1


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"answer": "the door"}, "has no token 'the door': it would write the door"),
        ({"against": "it"}, "--against 'it' is the answer itself: name another one"),
        ({"answer": "they", "against": "they"}, "--against 'they' is the answer itself"),
    ],
)
def test_an_answer_that_cannot_be_one_is_refused(masked: at.Reading, how: dict, why: str) -> None:
    with pytest.raises(InputError, match=why):
        masked.flow("[MASK]", **how)


def test_a_lead_over_prompts_is_counted_in_logits() -> None:
    texts = [TEXT, "The king opened the door because [MASK] was cold."]
    asked_of = {"answer": "it", "against": "they"}
    told = (
        at.load("demo")
        .prompts([{"text": text, "spans": {"seen": "door"}} for text in texts])
        .flow("[MASK]", **asked_of)
    )
    i = next(i for i, figure in enumerate(told.figures) if figure.name == "field:seen")
    assert told.figures[i].measured == "logits lost"
    for k, (text, place) in enumerate(zip(texts, (5, 5), strict=True)):
        alone = at.load("demo").read(text).flow("[MASK]", **asked_of).ablated
        assert alone is not None
        assert told.values[i, k] == pytest.approx(alone.effects[place])


@pytest.mark.parametrize(
    ("name", "text", "span", "how"),
    [
        ("demo", TEXT, "the door", {}),
        ("demo-causal", "I put my money in the bank.", "2-4", {}),  # grouped queries
        ("demo-translate", "I saw the red door.", "la porte", {"kind": "decoder"}),
    ],
)
@torch.no_grad()
def test_from_several_tokens_it_is_the_mean_of_their_rows(name: str, text: str, span: str, how: dict) -> None:
    written = {"target": "j'ai vu la porte rouge."} if how else {}
    reading = at.load(name).read(text, **written)
    found = reading.flow(span, **how)
    places = list(found.query_span)
    assert len(places) == {"the door": 2, "2-4": 3, "la porte": 2}[span]
    assert found.query == places[-1]
    layers = plain_attentions(reading, how)
    reached = torch.eye(layers[0].shape[-1])
    for weights in layers:
        reached = (weights[0].mean(0) + torch.eye(len(reached))) / 2 @ reached
    assert found.rollout[-1] == pytest.approx(reached[places].mean(0).numpy(), abs=1e-5)
    assert found.raw[-1] == pytest.approx(layers[-1][0, :, places].mean((0, 1)).numpy(), abs=1e-5)
    assert found.ablated is not None
    assert np.isnan(found.ablated.effects[places]).all(), "none of them is replaced"
    single = reading.flow(f"@{places[-1]}", **how)
    others = np.setdiff1d(np.arange(len(found.tokens)), places)
    np.testing.assert_allclose(found.ablated.effects[others], single.ablated.effects[others], atol=1e-5)


def plain_attentions(reading: at.Reading, how: dict) -> tuple[torch.Tensor, ...]:
    """The weights that the untouched model itself returns, eager."""
    opened = reading._whole()
    module, before = opened.model.module, opened.model.module.config._attn_implementation
    module.set_attn_implementation("eager")
    output = module(**opened.inputs, output_attentions=True)
    module.set_attn_implementation(before)
    return output.decoder_attentions if how else output.attentions


@torch.no_grad()
def test_where_a_vocabulary_has_nothing_to_put_in_an_embedding_is_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instead, "replacement", lambda _: instead.Replacement(None, instead.NOTHING))
    reading = at.load("demo-causal").read("I put my money in the")
    found = reading.flow("the", layers="0-1")
    model = LlamaForCausalLM.from_pretrained(DEMO / "causal", attn_implementation="eager").eval()
    ids = torch.tensor([reading.tokens.ids])
    before = model(ids).logits[0, -1].log_softmax(-1)
    embedded = model.get_input_embeddings()(ids)
    expected = np.full(ids.shape[1], np.nan)
    for place in range(1, ids.shape[1] - 1):
        changed = embedded.clone()
        changed[0, place] = 0
        expected[place] = (
            before.max() - model(inputs_embeds=changed).logits[0, -1].log_softmax(-1)[before.argmax()]
        )
    assert found.ablated is not None
    assert (found.ablated.replacement, found.ablated.answer) == ("nothing", "bank")
    np.testing.assert_allclose(found.ablated.effects, expected, atol=1e-4)
    assert len(found.layers) == 2
    again = reading.predict(1).blanks[0].guesses[0]
    assert (again.text, again.probability) == ("bank", pytest.approx(found.ablated.probability, abs=1e-6))


def test_batches_of_replaced_tokens_are_those_one_by_one(
    masked: at.Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = masked.flow("[MASK]")
    alone = [slice(i, i + 1) for i in range(8)]
    monkeypatch.setattr(replacing, "batches", lambda count, tokens: iter(alone[:count]))
    one = masked.flow("[MASK]")
    assert one.ablated is not None
    assert together.ablated is not None
    np.testing.assert_allclose(one.ablated.effects, together.ablated.effects, atol=1e-6)


def test_causal_attention_brings_nothing_from_later_tokens() -> None:
    found = at.load("demo-causal").read("I put my money in the bank.").flow("money")
    later = found.query + 1
    assert (found.rollout[:, later:] == 0).all()
    assert found.flow is not None
    assert (found.flow[later:] == 0).all()
    assert found.ablated is not None
    assert np.isnan(found.ablated.effects[later:]).all()


def test_inside_an_encoder_of_two_halves_the_querys_vector_is_looked_at() -> None:
    found = at.load("demo-translate").read("I saw the red door.").flow("door", kind="encoder")
    assert found.ablated is not None
    assert found.ablated.answer == ""
    assert np.isnan(found.ablated.probability)
    effects = found.ablated.effects[~np.isnan(found.ablated.effects)]
    assert len(effects) == 5
    assert (effects > 0).all()
    assert (effects < 2).all()
    assert "The vector of “door” turns most where “.” is replaced" in found.text(width=200)


def test_the_decoders_own_tokens_are_replaced_in_its_own_input(translated: at.Reading) -> None:
    found = translated.flow("rouge", kind="decoder")
    assert found.ablated is not None
    assert found.ablated.answer == "."
    replaced = [found.tokens.names[i] for i in np.flatnonzero(~np.isnan(found.ablated.effects))]
    assert "porte" in replaced
    assert "door" not in replaced


def test_weights_that_are_no_numbers_are_followed_nowhere() -> None:
    broken = copy.deepcopy(families.sharp("bert"))
    with torch.no_grad():
        broken.encoder.layer[1].attention.self.query.weight.fill_(torch.nan)
    reading = at.wrap(broken).read(ids=[1, 20, 31, 42, 53, 2])
    with pytest.raises(CertificateError, match="the weights of layer 2 are not numbers"):
        reading.flow(3)
    assert reading.flow(3, layers=0).rollout.shape == (1, 6)


def test_a_long_text_has_no_flow_and_says_so(masked: at.Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "MOST_FLOW", 5)
    found = masked.flow("[MASK]")
    assert found.flow is None
    assert "flow" not in found.methods
    assert "no flow: there are more than 5 tokens" in " ".join(found.text(width=200).split())


def test_what_has_no_way_back_to_the_input_is_refused(masked: at.Reading, translated: at.Reading) -> None:
    with pytest.raises(InputError, match="cross-attention leads to another text"):
        translated.flow("porte", kind="cross")
    with pytest.raises(InputError, match="choose the first layers, --layer 0-2"):
        masked.flow("[MASK]", layers="1-2")
    with pytest.raises(InputError, match="no token 'window'"):
        masked.flow("window")


@torch.no_grad()
def test_value_zeroing_is_that_of_a_whole_run_for_each_layer_and_token(masked: at.Reading) -> None:
    found = masked.flow("[MASK]")
    model = BertForPreTraining.from_pretrained(DEMO / "encoder", attn_implementation="eager").eval()
    ids = torch.tensor([masked.tokens.ids])
    count = ids.shape[1]
    before = model(ids, output_hidden_states=True).hidden_states
    reached = np.eye(count)
    for number, layer in enumerate(model.bert.encoder.layer):
        turned = np.zeros((count, count))
        for key in range(count):

            def empty(_module: object, _given: object, made: torch.Tensor, key: int = key) -> torch.Tensor:
                return made.index_fill(1, torch.tensor([key]), 0.0)

            handle = layer.attention.self.value.register_forward_hook(empty)
            after = model(ids, output_hidden_states=True).hidden_states[number + 1][0].double()
            handle.remove()
            cosine = torch.cosine_similarity(before[number + 1][0].double(), after, dim=-1)
            turned[:, key] = 1 - cosine.numpy()
        reached = turned / turned.sum(axis=1, keepdims=True) @ reached
        assert found.zeroed is not None
        assert found.zeroed[number] == pytest.approx(reached[QUERY], abs=2e-5)
    assert found.zeroed is not None
    assert found.zeroed[-1].argmax() != found.rollout[-1].argmax(), "it is another view than rollout"
    assert found.zeroing is not None
    assert (found.zeroing.read_back, found.zeroing.verdict) == (4, "certified")


def test_zeroed_values_that_come_back_wrong_fail_the_whole_answer(
    masked: at.Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_zeroing, "_zeroed", lambda values, keys: values)
    found = masked.flow("[MASK]")
    assert found.verdict == "failed"
    told = " ".join(found.text(width=100).split())
    assert told.startswith("✗ Do not use these numbers")
    assert "✗ FAILED: zeroed values: in 4 of 4 runs" in told


def test_where_values_cannot_be_zeroed_it_is_said(masked: at.Reading) -> None:
    found = masked.flow("[MASK]", route="returned")
    assert (found.zeroed, found.zeroing) == (None, None)
    assert "no value zeroing: weights that a model returns say nothing" in " ".join(found.text().split())
