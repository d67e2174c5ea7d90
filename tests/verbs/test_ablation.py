"""What heads and parts do to an answer, of one token or of several: beside plain hooks and loops."""

import numpy as np
import pytest
import torch
from families import sharp
from torch import nn

import attnscope as at
from attnscope.errors import InputError
from attnscope.results import Overview


def test_the_library_asks_what_the_command_asks(reading: at.Reading) -> None:
    result = reading.ablate()
    assert len(result.heads) == 48
    assert result.group is None
    one = reading.ablate(3, 11)
    (same,) = [each for each in result.heads if (each.layer, each.head) == (3, 11)]
    assert one.heads[0].change == pytest.approx(same.change, abs=1e-4)
    assert reading.ablate(heads="L3H7,L2H4").group.heads == ((3, 7), (2, 4))
    assert all(each in " ".join(str(result).split()) for each in ("L3 H7", "“box”", "8.3 %", "3.2 %"))
    assert "each taken away alone; output replaced by zeros" in one.text(width=120)
    frame = result.to_pandas()
    assert list(frame["change"]) == [each.change for each in result.heads]
    assert frame.attrs["verdict"] == "certified"


def test_an_encoders_head_is_taken_away_while_the_decoder_reads_all() -> None:
    reading = at.load("demo-translate").read("The door opened.", target="la porte s'est ouverte.")
    result = reading.ablate(3, kind="encoder")
    assert result.kind == "encoder"
    assert result.answer.text == "la porte s'est ouverte."
    assert result.query_tokens.sentence == "The door opened."
    crossed = reading.ablate(3, 11, kind="cross", link="0->door")
    assert crossed.link is not None
    assert crossed.key_tokens.names[crossed.link[1]] == "door"


def test_a_model_without_a_head_is_measured_by_the_vector_that_it_makes() -> None:
    module = sharp("bert")
    reading = at.wrap(module).read(ids=[3, 4, 5, 9, 12])
    result = reading.ablate(1, "2,4")
    ids = torch.tensor([[3, 4, 5, 9, 12]])

    def vector(heads: tuple[int, ...]) -> torch.Tensor:
        def without(_: object, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            new = given[0].clone().unflatten(-1, (6, 8))
            new[:, :, list(heads)] = 0
            return (new.flatten(-2), *given[1:])

        output = module.encoder.layer[1].attention.output.dense.register_forward_pre_hook(without)
        with torch.no_grad():
            made = module(input_ids=ids).last_hidden_state[0].double().mean(0)
        output.remove()
        return made

    for one in result.heads:
        expected = torch.cosine_similarity(vector(()), vector((one.head,)), dim=0)
        assert one.after == pytest.approx(float(expected), abs=1e-5)
        assert one.before == 1
    assert result.group is not None
    both = torch.cosine_similarity(vector(()), vector((2, 4)), dim=0)
    assert result.group.effect.after == pytest.approx(float(both), abs=1e-5)
    assert both < 0.999, "a turn that could be missed"
    assert (result.answer.asks, result.measured, result.unit) == ("vector", "cosine to itself", "of cosine")
    with pytest.raises(InputError, match="--against is a second text: what is read here is none"):
        reading.ablate(against="other words")


TEXT = "the door was closed because it was"


@pytest.fixture(scope="module")
def causal() -> at.Reading:
    return at.load("demo-causal").read(TEXT)


@pytest.fixture(scope="module")
def both(causal: at.Reading) -> Overview:
    return causal.measure(("importance", "logit"), answer="open", others=4, seed=3)


def test_importance_is_the_size_of_what_patching_with_zeros_foretells(
    causal: at.Reading, both: Overview
) -> None:
    foretold = causal.ablate(rank=True, replacement="zero", answer="open", top=1).predicted
    assert len(foretold) == 48
    for each in foretold:
        found = both.scores["importance"].values[each.layer, each.head]
        assert found == pytest.approx(abs(each.change), rel=1e-4, abs=1e-6)


def test_the_answer_that_is_named_is_the_one_that_is_measured(causal: at.Reading, both: Overview) -> None:
    likeliest = causal.measure("logit", others=4, seed=3)
    named = causal.measure("logit", answer="long", others=4, seed=3)
    assert np.array_equal(likeliest.main.values, named.main.values)
    assert not np.allclose(likeliest.main.values, both.scores["logit"].values)
    assert (
        "of the answer “long” after 7 was, probability 0.0938, beside the runner-up “heavy”"
        in likeliest.notes[0]
    )
    assert both.notes[0].endswith("and 4 others drawn with seed 3")


def test_other_answers_are_drawn_by_their_seed(causal: at.Reading, both: Overview) -> None:
    again = causal.measure("logit", answer="open", others=4, seed=3).main
    other = causal.measure("logit", answer="open", others=4, seed=4).main
    assert np.array_equal(again.values, other.values)
    assert again.control is not None
    assert other.control is not None
    assert np.array_equal(again.control, both.scores["logit"].control)
    assert not np.allclose(again.control, other.control)
    assert causal.measure("logit", answer="open", others=0).main.control is None


def test_beside_measures_of_the_text_one_without_meaning_says_why() -> None:
    reading = at.load("demo").read("the door was [MASK].")
    found = reading.measure(("entropy", "logit", "importance"))
    assert list(found.scores) == ["entropy", "logit", "importance"]
    assert (
        found.scores["logit"].absent == "between its heads and its answer stands gelu, no sum, matrix or norm"
    )
    assert np.isnan(found.scores["logit"].values).all()
    assert found.main.measure == "entropy"
    with pytest.raises(InputError, match=r"^no logit here: between its heads and its answer stands gelu"):
        reading.measure("logit")


def test_each_side_of_an_encoder_decoder_is_measured_by_the_text_that_is_written() -> None:
    reading = at.load("demo-translate").read("the door was closed.", target="la porte était ouverte.")
    for kind in ("encoder", "cross"):
        found = reading.measure(("importance", "logit"), kind=kind, others=2)
        assert "of the answer “la porte était ouverte.”" in " ".join(found.notes)
        assert found.scores["importance"].values.max() > 0
        assert bool(found.scores["logit"].absent) == (kind == "encoder")
    assert found.scores["logit"].description.apart.endswith(
        "11 norms held on the way, all parts add up to the logit"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "entropy", "answer": "open"}, "an answer is what importance, attention-gradient, "),
        ({"name": "importance", "answer": "xyzzyq"}, "the vocabulary of demo-causal has no token 'xyzzyq'"),
        ({"name": "importance", "query": "door"}, "an answer is measured over all queries and keys"),
        ({"name": "importance", "route": "returned"}, "--route returned has weights alone: importance needs"),
        (
            {"name": "importance", "others": -1},
            "others is -1: other answers to hold it against are 0 to 1000",
        ),
        ({"name": "importance", "seed": -1}, "seed is -1: it must be from 0 to 18446744073709551615"),
    ],
)
def test_what_cannot_be_asked_is_one_line(causal: at.Reading, options: dict, told: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError) as refused:
        causal.measure(**options)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_an_estimate_by_a_measure_is_held_against_what_happens(causal: at.Reading) -> None:
    found = causal.ablate(rank=True, by="logit", answer="open", top=5)
    assert found.predicted_by == "logit"
    assert found.how == "each output replaced by zeros"
    values = causal.measure("logit", answer="open", others=0).main.values
    for each in found.predicted:
        assert each.change == pytest.approx(-values[each.layer, each.head], rel=1e-6, abs=1e-9)
    assert {(each.layer, each.head) for each in found.heads} == {
        (each.layer, each.head) for each in found.predicted[:5]
    }
    with pytest.raises(InputError, match=r"--by logit knows of no other text"):
        causal.ablate(rank=True, by="logit", replacement="the door was open because it was")
    with pytest.raises(InputError, match=r"^no estimate 'rollout': patching, importance"):
        causal.ablate(rank=True, by="rollout")
    with pytest.raises(InputError, match="give --rank"):
        causal.ablate(by="logit")


PROMPT, FIRST, SECOND = "the man opened the", "old", "door"
ANSWER = f"{FIRST} {SECOND}"
SOURCE, WRITTEN = "The door opened.", "la porte s'est ouverte."


@pytest.fixture(scope="module")
def decoder() -> at.Model:
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


def test_a_head_costs_an_answer_what_it_costs_its_tokens_one_after_the_other(decoder: at.Model) -> None:
    found = decoder.read(PROMPT).ablate(1, 2, answer=ANSWER)
    prompt, answer = list(decoder.read(PROMPT).tokens.ids), ids_of(decoder, ANSWER)
    assert len(answer) == 2
    before = summed(decoder.module, prompt, answer)
    handle = without_head(decoder.module, 1, 2)
    after = summed(decoder.module, prompt, answer)
    handle.remove()
    (one,) = found.heads
    assert one.before == pytest.approx(np.exp(before), rel=1e-5)
    assert one.change == pytest.approx(after - before, abs=1e-5)
    assert abs(one.change) > 0.01
    assert (found.answer.text, found.answer.ids, found.answer.position) == (ANSWER, tuple(answer), 4)
    assert "2 tokens (old · door): their probabilities are multiplied" in found.notes[-1]


def test_two_answers_that_begin_alike_differ_by_their_sums(decoder: at.Model) -> None:
    found = decoder.read(PROMPT).ablate(1, 2, answer=ANSWER, against=f"{FIRST} box")
    prompt = list(decoder.read(PROMPT).tokens.ids)
    own, other = (
        summed(decoder.module, prompt, ids_of(decoder, f"{FIRST} {word}")) for word in (SECOND, "box")
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


def test_replacing_a_token_costs_the_sum_and_gradients_follow_it(decoder: at.Model) -> None:
    found = decoder.read(PROMPT).flow("pos:last", answer=ANSWER)
    ablated, prompt = found.ablated, list(decoder.read(PROMPT).tokens.ids)
    answer = ids_of(decoder, ANSWER)
    assert ablated.answer_ids == tuple(answer)
    assert len(found.tokens) == len(prompt)
    before = summed(decoder.module, prompt, answer)
    for place in np.flatnonzero(~np.isnan(ablated.effects)):
        changed = [*prompt[:place], ablated.replacement_id, *prompt[place + 1 :]]
        lost = before - summed(decoder.module, changed, answer)
        assert ablated.effects[place] == pytest.approx(lost, abs=1e-5)
    assert np.nanmax(np.abs(ablated.effects)) > 0.1
    leaf = decoder.module.get_input_embeddings()(torch.tensor([prompt + answer[:-1]])).detach()
    leaf.requires_grad_()
    logits = decoder.module(inputs_embeds=leaf).logits[0].log_softmax(-1)
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
    decoder: at.Model, verb: str, how: dict, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        getattr(decoder.read(PROMPT), verb)(1, 2, **how)


def test_a_flow_from_within_the_text_has_no_answer_of_several_tokens(decoder: at.Model) -> None:
    with pytest.raises(InputError, match="--from takes its last token, 4 the"):
        decoder.read(PROMPT).flow("opened", answer=ANSWER)


def test_a_prediction_of_a_named_answer_is_the_product_of_its_tokens(decoder: at.Model) -> None:
    found = decoder.read(PROMPT).predict(answer=ANSWER)
    prompt, answer = list(decoder.read(PROMPT).tokens.ids), ids_of(decoder, ANSWER)
    chances = [each.probability for each in found.generated.tokens]
    assert [each.id for each in found.generated.tokens] == answer
    assert np.log(chances).sum() == pytest.approx(summed(decoder.module, prompt, answer), abs=1e-6)
    assert not found.generated.written
    (one,) = decoder.read(PROMPT).predict(answer=FIRST).generated.tokens
    assert one.probability == pytest.approx(chances[0], rel=1e-6)
    likeliest = decoder.read(PROMPT).predict().blanks[0].guesses[0]
    (same,) = decoder.read(PROMPT).predict(answer=likeliest.text).generated.tokens
    assert (same.id, same.probability) == (likeliest.id, pytest.approx(likeliest.probability, rel=1e-6))
