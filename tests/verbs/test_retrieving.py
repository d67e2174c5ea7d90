"""Heads that fetch: those of demo-reader, as a plain script has them; random weights have none."""

import copy
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM
from transformers.models.llama import modeling_llama

import attnscope
from attnscope.demo import folder
from attnscope.errors import InputError
from attnscope.results import Retrieval, Verdict
from attnscope.verbs.find.needles import Planted, bundled_facts, bundled_text, planted
from attnscope.verbs.find.retrieval_sheet import sheet
from attnscope.verbs.find.retrieving import certainty, facts_in

LENGTHS, COUNT = (70, 130), 7


@cache
def found() -> Retrieval:
    return attnscope.load("demo-reader").retrieval(lengths=LENGTHS, needles=COUNT)


@cache
def reader() -> tuple[Any, Any]:
    path = folder("demo-reader")
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    return model.eval(), AutoTokenizer.from_pretrained(path)


def texts(again: bool, lengths: tuple[int, ...] = LENGTHS, count: int = COUNT) -> list[Planted]:
    """Those that were read: of seed 0, and others of the next."""
    _, tokenizer = reader()
    facts = bundled_facts(count, int(again))

    def size(text: str) -> int:
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return planted(facts, bundled_text(), lengths, count, int(again), size)


def test_the_heads_of_the_reader_are_found_and_removal_confirms_them() -> None:
    result = found()
    assert {layer for layer, _ in result.named} == {1}
    assert len(result.named) >= 6
    assert result.answered >= 12
    assert result.confirmation is not None
    assert result.confirmation.confirmed
    assert result.certified == {Verdict.CERTIFIED: 4 * 24}
    assert all(each.length - 20 <= each.tokens <= each.length for each in result.needles)
    # of each length the texts whose facts stand first and last
    certified = [result.needles[place] for place in result.sampled]
    for length in LENGTHS:
        depths = [each.depth for each in result.needles if each.length == length]
        ends = [each.depth for each in certified if each.length == length]
        assert sorted(ends) == [min(depths), max(depths)]
    assert result.failed == ()


def test_a_head_whose_weights_are_not_those_of_its_queries_and_keys_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = modeling_llama.eager_attention_forward

    def wrong(module: Any, *given: Any, **named: Any) -> Any:
        output, weights = honest(module, *given, **named)
        if module.layer_idx == 1:
            weights = weights.clone()
            weights[:, 2] = weights[:, 2].roll(1, -1)
        return output, weights

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", wrong)
    result = attnscope.load("demo-reader", attn="eager").retrieval(lengths=(70,), needles=3)
    assert result.failed == ((1, 2),)
    assert result.certified == {Verdict.FAILED: 2, Verdict.CERTIFIED: 2 * 23}
    assert result.verdict is Verdict.FAILED
    assert "L1 H2 not as recomputed" in " ".join(told for _, told in sheet(result).proof)


def test_scores_and_answers_are_those_of_a_plain_script() -> None:
    model, tokenizer = reader()
    result = found()
    for k, each in enumerate(texts(again=False)):
        read = tokenizer(each.text, return_offsets_mapping=True, return_tensors="pt")
        offsets = read.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            out = model(**read, output_attentions=True)
        assert tokenizer.decode(out.logits[0, -1].argmax()).strip() == each.fact.answer
        rows = torch.stack([layer[0, :, -1] for layer in out.attentions]).numpy()  # layer, head, key
        for (start, end), first, weights in (
            (each.at, result.first, result.weights),
            (each.other_at, result.first_other, result.weights_other),
        ):
            inside = [i for i, (a, b) in enumerate(offsets) if a >= start and b <= end and b > a]
            assert tokenizer.decode(read["input_ids"][0, inside][-2]).strip() in (
                each.fact.answer,
                each.other.answer,
            )
            np.testing.assert_allclose(rows[..., inside].sum(-1), weights[..., k], atol=1e-5)
            ordered = np.sort(rows, axis=-1)
            clear = ordered[..., -1] - ordered[..., -2] > 1e-5
            assert np.array_equal(np.isin(rows.argmax(-1), inside)[clear], first[..., k][clear] == 1)


def test_a_model_that_answers_no_questions_is_asked_by_sentences_that_go_on_with_the_answer() -> None:
    """demo-reader without the words of a question; of other facts a plain script counts what it answers."""
    model, (_, tokenizer) = attnscope.load("demo-reader"), reader()
    with torch.no_grad():
        model.module.get_input_embeddings().weight[tokenizer.convert_tokens_to_ids(["question", ":"])] = 0
    result = model.retrieval(lengths=(60,), needles=3)

    def size(text: str) -> int:
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    right = [0, 0]
    for goes_on in (False, True):
        for each in planted(bundled_facts(6, -1, goes_on), bundled_text(), (60,), 6, -1, size):
            with torch.no_grad():
                answer = model.module(**tokenizer(each.text, return_tensors="pt")).logits[0, -1].argmax()
            right[goes_on] += tokenizer.decode(answer).strip() == each.fact.answer
    assert right[1] > right[0]
    told = f"of 6 other facts it answers {right[1]} as sentences to go on with, {right[0]} as questions"
    assert result.notes == (told,)
    assert result.how.endswith("as sentences to go on with")
    for each in result.needles:
        assert each.text == f"{each.question} {each.answer}."
    kept = model.retrieval(lengths=(60,), needles=2, facts=list(bundled_facts(3, 0)))
    assert all(each.question.startswith("Question") for each in (*kept.needles, *found().needles))
    assert kept.notes == found().notes == ()


def test_what_is_left_without_heads_is_what_hooks_leave() -> None:
    model, tokenizer = reader()
    told = found().confirmation
    assert told is not None
    for masked in (None, told.found, told.others[0]):
        gone = () if masked is None else masked.heads
        handles = [
            model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(
                lambda _, args, head=head: (
                    args[0] * torch.tensor([float(i // 32 != head) for i in range(args[0].shape[-1])]),
                )
            )
            for layer, head in gone
        ]
        right = 0
        with torch.no_grad():
            for each in texts(again=True):
                scores = model(**tokenizer(each.text, return_tensors="pt")).logits[0, -1]
                right += tokenizer.decode(scores.argmax()).strip() == each.fact.answer
        for handle in handles:
            handle.remove()
        assert right == (told.right if masked is None else masked.right)


def test_of_a_model_with_random_weights_no_head_is_named() -> None:
    model, tokenizer = reader()
    torch.manual_seed(0)
    other = LlamaForCausalLM(model.config).eval()
    result = attnscope.wrap(other, tokenizer).retrieval(lengths=(70,), needles=9)
    assert (result.named, result.confirmation) == ((), None)


@pytest.mark.parametrize("length", [70, 1100])
def test_a_text_goes_through_the_model_once_and_what_is_said_there_is_what_it_says_alone(length: int) -> None:
    model, tokenizer = reader()
    torch.manual_seed(0)
    config = copy.deepcopy(model.config)
    config._attn_implementation = "sdpa"
    other, read = LlamaForCausalLM(config).eval(), Counter[tuple[int, ...]]()

    def count(_: Any, _given: Any, named: dict[str, Any]) -> None:
        read.update(map(tuple, named["input_ids"].tolist()))

    handle = other.register_forward_pre_hook(count, with_kwargs=True)
    result = attnscope.wrap(other, tokenizer).retrieval(lengths=(length,), needles=3)
    handle.remove()
    assert result.confirmation is None
    plain = LlamaForCausalLM(model.config).eval()
    plain.load_state_dict(other.state_dict())
    for k, (needle, each) in enumerate(zip(result.needles, texts(False, (length,), 3), strict=True)):
        *ids, answer = whole = tokenizer(f"{each.text} {each.fact.answer}")["input_ids"]
        assert len(whole) == needle.tokens
        assert read[tuple(whole)] == 1 or (length == 1100 and k in result.sampled)
        with torch.no_grad():
            said = plain(torch.tensor([ids]), output_attentions=True)
        chance = said.logits[0, -1].softmax(-1)[answer]
        assert needle.probability == pytest.approx(float(chance), rel=1e-4)
        offsets = tokenizer(each.text, return_offsets_mapping=True)["offset_mapping"]
        inside = [i for i, (a, b) in enumerate(offsets) if a >= each.at[0] and b <= each.at[1] and b > a]
        rows = torch.stack([layer[0, :, -1, inside].sum(-1) for layer in said.attentions]).numpy()
        np.testing.assert_allclose(rows, result.weights[..., k], atol=1e-5)
    assert result.certified == {Verdict.CERTIFIED: 2 * 24}
    assert result.acts == ("a fact and its question alone" if length < 1024 else "")


def test_a_head_that_looks_at_either_fact_alike_is_no_more_than_luck() -> None:
    first, other = np.zeros((2, 1, 3, 20))
    first[0, 0], other[0, 0, :2] = 1, 1  # 18 times more, never less
    first[0, 1, ::2], other[0, 1, 1::2] = 1, 1  # as often less
    _, _, chance = certainty(first, other)
    assert chance[0].tolist() == pytest.approx([2**-18, 616666 / 2**20, 1.0])
    assert np.isnan(certainty(first[..., :0], other[..., :0])[2]).all()


def test_facts_stand_at_their_characters_one_in_each_part_of_a_text_and_no_text_is_too_long() -> None:
    facts = bundled_facts(5, 3)
    made = planted(facts, bundled_text(), (90, 300), 5, 8, lambda text: len(text.split()))
    for each in made:
        assert each.text[slice(*each.at)] == each.fact.needle
        assert each.text[slice(*each.other_at)] == each.other.needle
        assert each.fact.answer != each.other.answer
        assert each.length - 20 <= len(each.text.split()) < each.length
        assert each.text.endswith(each.fact.question)
    for length in (90, 300):
        depths = sorted(each.depth for each in made if each.length == length)
        assert [int(5 * depth) for depth in depths] == list(range(5))
        starts = [each.at[0] for each in sorted(made, key=lambda each: each.depth) if each.length == length]
        assert all(a < b for a, b in pairwise(starts))
    assert made == planted(facts, bundled_text(), (90, 300), 5, 8, lambda text: len(text.split()))


def test_a_line_without_an_answer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text('\n{"needle": "A is red.", "question": "A?", "answer": "red"}\n{"needle": "B is red."}\n')
    with pytest.raises(InputError, match=r"facts\.jsonl':3: it has no text under 'question'"):
        facts_in(file)
    file.write_text('{"needle": "A is red.", "question": "A?", "answer": "red"}\n')
    with pytest.raises(InputError, match="two different answers"):
        facts_in(file)
