"""Adapters of every kind are put in as peft itself puts them in, added tokens too, or refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoTokenizer,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    LlamaConfig,
    LlamaForCausalLM,
)

import attnscope as at
from attnscope import demo
from attnscope.errors import InputError, ModelUnavailableError
from attnscope.model.loading.answering import load_answering
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import find
from attnscope.results import Verdict

peft = pytest.importorskip("peft", reason="puts adapters in")
TEXT, ADDED = "the dog saw <first> near the <second> door", ["<first>", "<second>"]
LORA = {"r": 3, "lora_alpha": 9, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
EMBEDDINGS = ["embed_tokens", "lm_head"]
ADDING: dict[str, dict[str, Any]] = {
    "resized, which peft writes unasked": {},
    "whole embeddings": {"modules_to_save": EMBEDDINGS},
    "two rows": {"trainable_token_indices": [-2, -1]},
    "two rows of both": {"trainable_token_indices": {name: [-2, -1] for name in EMBEDDINGS}},
}


def base(folder: Path, tied: bool) -> Path:
    """A Llama of two layers with random weights and the tokenizer of the bundled causal model."""
    torch.manual_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(demo.folder("demo-causal"))
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=24, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=tied, initializer_range=0.4,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def adapter(folder: Path, model: Path, added: int, save: bool | str = "auto", **settings: Any) -> Path:
    """One that was trained, which is that none of its weights is what peft begins with."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    module = LlamaForCausalLM.from_pretrained(model)
    if added:
        tokenizer.add_tokens(ADDED[:added], special_tokens=True)
        module.resize_token_embeddings(len(tokenizer))
        tokenizer.save_pretrained(folder)
    match settings.get("trainable_token_indices"):
        case [*rows]:
            settings["trainable_token_indices"] = [row % len(tokenizer) for row in rows]
        case {"embed_tokens": rows, "lm_head": _}:
            settings["trainable_token_indices"] = {
                name: [row % len(tokenizer) for row in rows] for name in EMBEDDINGS
            }
    adapted = peft.get_peft_model(module, peft.LoraConfig(**LORA | settings))
    torch.manual_seed(4)
    with torch.no_grad():
        for weight in adapted.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn_like(weight) * 0.3)
    adapted.save_pretrained(folder, save_embedding_layers=save)
    return folder


def by_peft(folder: Path) -> Any:
    kind = peft.AutoPeftModelForCausalLM
    return kind.from_pretrained(str(folder), attn_implementation="eager").eval()


def logits(module: Any, tokenizer: Any, text: str) -> Tensor:
    with torch.no_grad():
        answer: Tensor = module(**tokenizer(text, return_tensors="pt")).logits
    return answer


@pytest.mark.parametrize(("kind", "tied"), list(zip(ADDING, [True, False, True, False], strict=True)))
def test_added_tokens_are_those_of_the_adapter_and_logits_those_of_peft(
    kind: str, tied: bool, tmp_path: Path
) -> None:
    model = base(tmp_path / "base", tied)
    folder = adapter(tmp_path / "adapter", model, 2, **ADDING[kind])
    assert find(str(folder)).notice == f"{folder} holds an adapter of {model}, with a tokenizer of its own"
    ours, theirs = at.load(str(folder)), by_peft(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(TEXT)["input_ids"]
    assert [tokenizer.convert_ids_to_tokens(i) for i in ids if i >= len(tokenizer) - 2] == ADDED
    assert ours.read(TEXT).head(1, 3).certificate.verdict is Verdict.CERTIFIED
    found = logits(ours.module, tokenizer, TEXT)
    torch.testing.assert_close(found, logits(theirs, tokenizer, TEXT), atol=1e-4, rtol=1e-4)
    assert found.shape[-1] == len(tokenizer)
    plain = at.load(str(model)).module
    plain.resize_token_embeddings(len(tokenizer))
    assert not torch.allclose(found, logits(plain, tokenizer, TEXT), atol=0.1)


def test_rows_of_the_output_head_that_no_file_has_are_not_made_up(tmp_path: Path) -> None:
    model = base(tmp_path / "base", tied=False)
    folder = adapter(tmp_path / "adapter", model, 2, save=False, trainable_token_indices=[-2, -1])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = len(tokenizer) - 2
    found = logits(at.load(str(folder)).module, tokenizer, TEXT)
    assert found.shape[-1] == rows
    theirs = logits(by_peft(folder), tokenizer, TEXT)
    torch.testing.assert_close(found, theirs[..., :rows], atol=1e-4, rtol=1e-4)


def test_an_added_token_of_which_the_adapter_has_no_embedding_is_refused(tmp_path: Path) -> None:
    model = base(tmp_path / "base", tied=True)
    some = adapter(tmp_path / "some", model, 2, save=False, trainable_token_indices=[-1])
    with pytest.raises(ModelUnavailableError, match=r"lacks the embeddings of 1 of 2 added tokens"):
        at.load(str(some))
    none = at.load(str(adapter(tmp_path / "none", model, 2, save=False)))
    assert none.read("the dog saw the door").predict().blanks
    with pytest.raises(ModelUnavailableError, match=r"its tokenizer makes token \d+, its embeddings end at"):
        none.read(TEXT).predict()


@pytest.mark.parametrize(
    "settings",
    [
        {"use_dora": True, "rank_pattern": {"q_proj": 2}},
        {"use_rslora": True, "target_modules": ["embed_tokens", "k_proj", "down_proj"]},
        {"lora_bias": True, "layers_to_transform": [1]},
    ],
    ids=["DoRA", "embeddings", "one layer"],
)
def test_a_model_in_memory_with_an_adapter_answers_as_the_one_from_the_folder_and_as_peft(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    model = base(tmp_path / "base", tied=False)
    folder = adapter(tmp_path / "adapter", model, 0, **settings)
    tokenizer, theirs, text = AutoTokenizer.from_pretrained(model), by_peft(folder), "the dog was near the"
    ours, wrapped = at.load(str(folder)), at.wrap(theirs, tokenizer)
    expected = logits(theirs, tokenizer, text)
    torch.testing.assert_close(logits(ours.module, tokenizer, text), expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(expected, logits(at.load(str(model)).module, tokenizer, text), atol=0.1)
    best = expected[0, -1].softmax(-1).max().item()
    for each in (ours, wrapped):
        reading = each.read(text)
        assert reading.predict().blanks[0].guesses[0].probability == pytest.approx(best, rel=1e-3)
        assert reading.head(1, 3).certificate.verdict is Verdict.CERTIFIED
    given = tokenizer(text, return_tensors="pt")
    written = theirs.generate(**given, max_new_tokens=3, do_sample=False)[0].tolist()
    assert list(wrapped.read(text, generate=3).head(0, 0).query_tokens.ids) == written[:-1]
    assert wrapped.module is theirs.get_base_model()
    shown = wrapped.read(text).head(0, 0)
    assert shown.provenance.adapter == "default (in memory)"
    assert "Next:" not in shown.text()
    assert f"--adapter {folder}" in " ".join(ours.read(text).head(0, 0).text().replace("\\", "").split())
    for each in (ours, wrapped):
        with pytest.raises(InputError, match=f"no token {len(tokenizer)}, its vocabulary is"):
            each.read(ids=[3, len(tokenizer)]).head(0, 0)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (lambda: peft.PromptTuningConfig(num_virtual_tokens=2, task_type="CAUSAL_LM"), "vectors before"),
        (lambda: peft.LoraConfig(**LORA, alora_invocation_tokens=[5]), "only behind certain tokens"),
    ],
)  # fmt: skip
def test_an_adapter_that_acts_by_what_the_text_says_is_refused(config: Any, why: str, tmp_path: Path) -> None:
    model = base(tmp_path / "base", tied=False)
    adapted = peft.get_peft_model(LlamaForCausalLM.from_pretrained(model), config())
    with pytest.raises(InputError, match=why):
        at.wrap(adapted, AutoTokenizer.from_pretrained(model))
    adapted.save_pretrained(tmp_path / "adapter")
    with pytest.raises(ModelUnavailableError, match=why):
        at.load(str(tmp_path / "adapter"))


@pytest.mark.parametrize("task", ["SEQ_CLS", "TOKEN_CLS", None])
def test_an_adapter_for_classes_answers_with_no_word(task: str | None, tmp_path: Path) -> None:
    kind = {"SEQ_CLS": BertForSequenceClassification, "TOKEN_CLS": BertForTokenClassification}
    module = kind.get(str(task), BertForMaskedLM).from_pretrained(demo.folder())
    settings = {"r": 2, "target_modules": ["query"], "init_lora_weights": False, "task_type": task}
    adapted = peft.get_peft_model(module, peft.LoraConfig(**settings)).eval()
    adapted.save_pretrained(tmp_path)
    model = at.load(str(tmp_path))
    reading = model.read("the dog saw the [MASK]")
    ids = {"input_ids": torch.tensor([reading.head(3, 2).query_tokens.ids])}
    with torch.no_grad():
        made = [each(**ids, output_hidden_states=True) for each in (adapted, model.module)]
    torch.testing.assert_close(*(each.hidden_states[-1] for each in made), atol=1e-4, rtol=1e-4)
    if task is None:
        assert reading.predict().blanks[0].guesses
        return
    with pytest.raises(InputError, match="has no head that predicts words"):
        reading.predict()
    with pytest.raises(InputError, match=f"was trained for {task} and not for words"):
        load_answering(open_checkpoint(find(str(tmp_path))))
