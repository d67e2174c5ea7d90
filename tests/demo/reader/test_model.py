"""The bundled demo-reader: what lies in its folder, that it reads, and that its card tells the truth."""

import json
import random
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from attnscope.demo import folder
from attnscope.demo.train.cards import reader as card
from attnscope.demo.train.evaluation import reader as evaluate
from attnscope.demo.train.evaluation.induction import without
from attnscope.demo.train.reading import batches, prompts
from attnscope.demo.train.reading.sentences import is_new

PATH = folder("demo-reader")
PASSAGES = (
    "Passage: Velna has a blue key. The hat of Marton is round. Passage: Velton has a wooden boat."
    " Marton was tired and Joda was quiet. For Joda, the hat is clean."
)


@pytest.fixture(scope="module")
def bundle() -> evaluate.Bundle:
    return evaluate.Bundle(PATH)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads((PATH / "figures.json").read_text())


def answer(bundle: evaluate.Bundle, messages: list[dict[str, str]]) -> list[str]:
    ids = bundle.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=False
    )
    written = bundle.model.generate(ids, max_new_tokens=4)[0, ids.shape[1] :]
    return bundle.tokenizer.convert_ids_to_tokens(written.tolist())


def test_the_folder_is_small_and_holds_what_hugging_face_expects() -> None:
    assert (PATH / "model.safetensors").stat().st_size <= 1_400_000
    assert {file.name for file in PATH.iterdir()} == {
        "README.md", "chat_template.jinja", "config.json", "figures.json", "generation_config.json",
        "model.safetensors", "tokenizer.json", "tokenizer_config.json", "training.json",
    }  # fmt: skip


def test_the_model_loads_by_the_auto_classes_with_no_key_missing_or_left_over() -> None:
    model, loading = AutoModelForCausalLM.from_pretrained(PATH, output_loading_info=True)
    assert not any(loading.values())
    run = json.loads((PATH / "training.json").read_text())
    assert model.config.model_type == "llama"
    assert model.config.num_attention_heads > model.config.num_key_value_heads > 1
    assert model.config.max_position_embeddings == 2048
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(PATH)) == run["model"]["vocabulary"]
    assert model.num_parameters() == run["model"]["parameters"]
    assert {part.dtype for part in model.parameters()} == {torch.float16}


def test_the_card_is_the_one_that_its_figures_give_and_names_no_machine(told) -> None:
    run, text = json.loads((PATH / "training.json").read_text()), (PATH / "README.md").read_text()
    assert text == card.text(run, told)
    assert "/" + "work" not in text
    assert "/" + "tmp" not in text


def test_the_stream_is_the_one_that_the_bundled_model_was_trained_on(bundle) -> None:
    run = json.loads((PATH / "training.json").read_text())
    assert batches.digest(run["settings"]["seed"], bundle.ids) == run["record"]["stream"]
    assert batches.digest(run["settings"]["seed"] + 1, bundle.ids) != run["record"]["stream"]


@pytest.mark.parametrize("length", [64, 256, 1024])
def test_questions_about_names_it_never_met_are_answered(bundle, length: int) -> None:
    asked = prompts_of(length, {64: 60, 256: 40, 1024: 10}[length])
    assert all(is_new(one.pair[0]) for one in asked)
    answers = bundle.answers(asked)
    assert {one.answer == "none" for one in asked} == {True, False}
    right = [found == one.answer for found, one in zip(answers, asked, strict=True)]
    assert sum(right) / len(right) >= 0.9


def prompts_of(length: int, count: int) -> list[prompts.Prompt]:
    generator = random.Random(length)
    return [prompts.prompt(length, "new", generator) for _ in range(count)]


def test_the_card_says_what_is_asked_of_the_model(told) -> None:
    """Ninety-five in a hundred about names never met, at every length that was trained."""
    trained = [one for length, one in told["new_names"].items() if int(length) <= 1024]
    assert len(trained) == 5
    assert min(one["all"] for one in trained) >= 0.95


def test_the_guide_tells_what_the_figures_say_of_the_heads_that_copy(told) -> None:
    guide = " ".join((PATH.parents[2] / "docs" / "guide" / "kinds.md").read_text().split())
    heads = told["heads"]
    assert f"Over {heads['prompts']} prompts of {heads['tokens']} tokens about names" in guide
    assert [heads["without_each"][1], heads["without_first"][7]] == [[1.0] * 8, 0.0]
    assert f"without the four that look most, {100 * heads['without_first'][3]:.0f} % are right" in guide
    assert heads["without_as_many_others"][7] == heads["without_layer"][2] == 1.0


def test_a_chat_goes_on_for_several_turns_and_each_answer_ends(bundle) -> None:
    messages = [
        {"role": "system", "content": "Answer only from the passages."},
        {"role": "user", "content": f"{PASSAGES} What is the key of Velna?"},
    ]
    assert answer(bundle, messages) == ["blue", "<|end|>"]
    messages += [
        {"role": "assistant", "content": "blue"},
        {"role": "user", "content": "Which boat does Velton have?"},
    ]
    assert answer(bundle, messages) == ["wooden", "<|end|>"]
    messages += [
        {"role": "assistant", "content": "wooden"},
        {"role": "user", "content": "What is the boat of Velna?"},
    ]
    assert answer(bundle, messages) == ["none", "<|end|>"]


@pytest.mark.parametrize(
    ("end", "word"),
    [
        ("Question: what is Marton's hat? Answer:", "round"),
        ("In short, the hat of Joda is", "clean"),
        ("In short, Marton's boat is", "none"),
    ],
)
def test_a_bare_prompt_is_answered(bundle, end: str, word: str) -> None:
    ids = bundle.tokenizer(f"{PASSAGES} {end}", return_tensors="pt")["input_ids"]
    best = bundle.model(ids).logits[0, -1].argmax().item()
    assert bundle.words[best] == word


def test_the_answer_goes_with_the_heads_that_copy_and_stays_without_as_many_others(bundle, told) -> None:
    heads = told["heads"]
    asked = [one for one in prompts_of(128, 40) if one.sentence]

    def right(places: list[list[int]]) -> float:
        with without(bundle.model, [(layer, head) for layer, head in places]):
            found = bundle.answers(asked)
        return evaluate.share(a == one.answer for a, one in zip(found, asked, strict=True))

    assert len(heads["others"]) == len(heads["copying"]) > 1
    assert not {*map(tuple, heads["others"])} & {*map(tuple, heads["copying"])}
    assert right([]) >= 0.95
    assert right(heads["copying"]) <= 0.2
    assert right(heads["others"]) >= 0.9
