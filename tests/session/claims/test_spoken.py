"""Answers of several tokens, against plain loops that give the model one token after the other."""

import numpy as np
import pytest
import torch
from torch import nn

import attnscope as at
from attnscope.errors import InputError

TEXT, FIRST, SECOND = "the man opened the", "old", "door"
ANSWER = f"{FIRST} {SECOND}"
SOURCE, WRITTEN = "The door opened.", "la porte s'est ouverte."


@pytest.fixture(scope="module")
def causal() -> at.Model:
    return at.load("demo-causal")


@pytest.fixture(scope="module")
def translating() -> at.Model:
    return at.load("demo-translate")


def ids_of(model: at.Model, text: str) -> list[int]:
    return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def summed(module: nn.Module, prompt: list[int], answer: list[int]) -> float:
    """The log probabilities of the answer's tokens, each asked for in a run of its own."""
    total = 0.0
    for i, token in enumerate(answer):
        with torch.no_grad():
            logits = module(input_ids=torch.tensor([prompt + answer[:i]])).logits[0, -1]
        total += float(logits.double().log_softmax(-1)[token])
    return total


def without_head(module: nn.Module, layer: int, head: int) -> torch.utils.hooks.RemovableHandle:
    """The head's columns of what goes into the way out are zero."""
    size = module.config.head_dim

    def zero(_: nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        new = given[0].clone()
        new[..., head * size : (head + 1) * size] = 0.0
        return (new, *given[1:])

    return module.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(zero)


def test_a_head_costs_an_answer_what_it_costs_its_tokens_one_after_the_other(causal: at.Model) -> None:
    found = causal.read(TEXT).ablate(1, 2, answer=ANSWER)
    prompt, answer = list(causal.read(TEXT).tokens.ids), ids_of(causal, ANSWER)
    assert len(answer) == 2
    before = summed(causal.module, prompt, answer)
    handle = without_head(causal.module, 1, 2)
    after = summed(causal.module, prompt, answer)
    handle.remove()
    (one,) = found.heads
    assert one.before == pytest.approx(np.exp(before), rel=1e-5)
    assert one.change == pytest.approx(after - before, abs=1e-5)
    assert abs(one.change) > 0.01
    assert (found.answer.text, found.answer.ids, found.answer.position) == (ANSWER, tuple(answer), 4)
    assert "2 tokens (old · door): their probabilities are multiplied" in found.notes[-1]


def test_two_tokens_are_the_sum_of_two_questions_of_one(causal: at.Model) -> None:
    both = causal.read(TEXT).ablate(1, "0,2,5", each=True, answer=ANSWER)
    first = causal.read(TEXT).ablate(1, "0,2,5", each=True, answer=FIRST)
    second = causal.read(f"{TEXT} {FIRST}").ablate(1, "0,2,5", each=True, answer=SECOND)
    changes = [{each.head: each for each in one.heads} for one in (both, first, second)]
    for head in (0, 2, 5):
        whole, one, two = (each[head] for each in changes)
        assert whole.change == pytest.approx(one.change + two.change, abs=1e-5)
        assert whole.before == pytest.approx(one.before * two.before, rel=1e-5)
    assert not any("multiplied" in note for note in first.notes)


def test_two_answers_that_begin_alike_differ_by_their_sums(causal: at.Model) -> None:
    found = causal.read(TEXT).ablate(1, 2, answer=ANSWER, against=f"{FIRST} box")
    prompt = list(causal.read(TEXT).tokens.ids)
    own, other = (
        summed(causal.module, prompt, ids_of(causal, f"{FIRST} {word}")) for word in (SECOND, "box")
    )
    assert found.heads[0].before == pytest.approx(own - other, abs=1e-5)
    assert abs(own - other) > 0.1


def test_what_an_encoder_decoder_would_write_is_an_answer_like_a_target(translating: at.Model) -> None:
    named = translating.read(SOURCE).ablate(3, 2, kind="cross", answer=WRITTEN)
    given = translating.read(SOURCE, target=WRITTEN).ablate(3, 2, kind="cross")
    assert (named.heads[0].change, named.answer.ids) == (given.heads[0].change, given.answer.ids)
    ids, total = list(given.target.ids), 0.0
    source = torch.tensor([list(translating.read(SOURCE).tokens.ids)])
    for i in range(1, len(ids)):
        with torch.no_grad():
            made = translating.module(input_ids=source, decoder_input_ids=torch.tensor([ids[:i]]))
        total += float(made.logits[0, -1].double().log_softmax(-1)[ids[i]])
    assert np.log(named.answer.probability) == pytest.approx(total, abs=1e-4)


def test_replacing_a_token_costs_the_sum_and_gradients_follow_it(causal: at.Model) -> None:
    found = causal.read(TEXT).flow("pos:last", answer=ANSWER)
    ablated, prompt = found.ablated, list(causal.read(TEXT).tokens.ids)
    answer = ids_of(causal, ANSWER)
    assert ablated.answer_ids == tuple(answer)
    assert len(found.tokens) == len(prompt)
    before = summed(causal.module, prompt, answer)
    for place in np.flatnonzero(~np.isnan(ablated.effects)):
        changed = [*prompt[:place], ablated.replacement_id, *prompt[place + 1 :]]
        lost = before - summed(causal.module, changed, answer)
        assert ablated.effects[place] == pytest.approx(lost, abs=1e-5)
    assert np.nanmax(np.abs(ablated.effects)) > 0.1
    leaf = causal.module.get_input_embeddings()(torch.tensor([prompt + answer[:-1]])).detach()
    leaf.requires_grad_()
    logits = causal.module(inputs_embeds=leaf).logits[0].log_softmax(-1)
    score = sum(logits[len(prompt) - 1 + i, token] for i, token in enumerate(answer))
    (slope,) = torch.autograd.grad(score, leaf)
    (gradient,) = (each for each in found.attributed if each.method == "gradient x input")
    expected = (slope * leaf.detach())[0].sum(-1)[: len(prompt)]
    np.testing.assert_allclose(gradient.values, expected, rtol=1e-4, atol=1e-5)


def test_a_flow_within_a_decoder_is_asked_what_its_text_goes_on_with(translating: at.Model) -> None:
    read = translating.read(SOURCE, target="la porte")
    found = read.flow("pos:last", kind="decoder", answer="s'est ouverte")
    given = [*found.tokens.ids]
    source, total = torch.tensor([list(read.tokens.ids)]), 0.0
    assert len(found.ablated.answer_ids) > 1
    for token in found.ablated.answer_ids:
        with torch.no_grad():
            made = translating.module(input_ids=source, decoder_input_ids=torch.tensor([given]))
        total += float(made.logits[0, -1].double().log_softmax(-1)[token])
        given.append(token)
    assert np.log(found.ablated.probability) == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize(
    ("verb", "how", "why"),
    [
        ("ablate", {"answer": "old 漢"}, "cannot spell it"),
        ("ablate", {"answer": ANSWER, "against": "door"}, "differ in their last token alone"),
        ("ablate", {"answer": ANSWER, "against": ANSWER}, "is the answer itself"),
    ],
)
def test_an_answer_that_cannot_be_asked_about_is_refused(
    causal: at.Model, verb: str, how: dict, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        getattr(causal.read(TEXT), verb)(1, 2, **how)


def test_a_flow_from_within_the_text_has_no_answer_of_several_tokens(causal: at.Model) -> None:
    with pytest.raises(InputError, match="--from takes its last token, 4 the"):
        causal.read(TEXT).flow("opened", answer=ANSWER)


def test_a_prediction_of_a_named_answer_is_the_product_of_its_tokens(causal: at.Model) -> None:
    found = causal.read(TEXT).predict(answer=ANSWER)
    prompt, answer = list(causal.read(TEXT).tokens.ids), ids_of(causal, ANSWER)
    chances = [each.probability for each in found.generated.tokens]
    assert [each.id for each in found.generated.tokens] == answer
    assert np.log(chances).sum() == pytest.approx(summed(causal.module, prompt, answer), abs=1e-6)
    assert not found.generated.written
    (one,) = causal.read(TEXT).predict(answer=FIRST).generated.tokens
    assert one.probability == pytest.approx(chances[0], rel=1e-6)
    likeliest = causal.read(TEXT).predict().blanks[0].guesses[0]
    (same,) = causal.read(TEXT).predict(answer=likeliest.text).generated.tokens
    assert (same.id, same.probability) == (likeliest.id, pytest.approx(likeliest.probability, rel=1e-6))


def test_an_answer_of_one_token_is_read_as_it_was_before(causal: at.Model) -> None:
    reading = causal.read(TEXT)
    likeliest = reading.ablate(1, 2)
    named = reading.ablate(1, 2, answer=likeliest.answer.text)
    assert named.heads == likeliest.heads
    assert len(named.tokens) == len(likeliest.tokens)


def test_tokens_are_named_among_those_of_the_text_alone(causal: at.Model) -> None:
    reading = causal.read(TEXT)
    (last,) = reading.ablate(1, part="mlp", at="pos:last", answer="the old door").places
    assert last.positions == (4,)
    assert reading.ablate(1, 2, link="pos:last->man", answer="man door").link == (4, 2)
