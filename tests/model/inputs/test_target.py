"""What a decoder reads: a given text shifted by one, or what the model writes."""

from pathlib import Path
from typing import Any

import media_models as media
import pytest
import torch
from checkpoints import tiny_bert, tiny_translator
from transformers import AutoModelForSeq2SeqLM

from attnscope.errors import InputError
from attnscope.model.inputs.text import Encoded
from attnscope.model.loaded import Model
from attnscope.model.loading.load import load_model, plan_model
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import find
from attnscope.tokens import Tokens

FAMILIES = ("bart", "t5")


def loaded(folder: Path) -> Model:
    return load_model(plan_model(open_checkpoint(find(str(folder)))))


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, tmp_path_factory) -> Model:
    return loaded(tiny_translator(tmp_path_factory.mktemp("models") / request.param, request.param))


def test_a_given_text_is_shifted_by_one_behind_the_start_token(model) -> None:
    target = model.target(model.encode(("the door",)), "We saw it")
    labels = model.tokenizer(text_target="We saw it")["input_ids"]
    start = model.module.config.decoder_start_token_id
    assert target.ids[0].tolist() == [start, *labels[:-1]] == list(target.tokens.ids)
    assert not target.written


@pytest.mark.parametrize(
    ("settings", "between"),
    [
        ({"language": "en", "task": "transcribe"}, ["<|en|>", "<|transcribe|>", "<|notimestamps|>"]),
        ({"language": "en", "task": "transcribe", "return_timestamps": True}, ["<|en|>", "<|transcribe|>"]),
        ({"task": "transcribe"}, ["<|en|>", "<|transcribe|>", "<|notimestamps|>"]),  # the language is heard
        ({"is_multilingual": False, "lang_to_id": None}, ["<|notimestamps|>"]),
    ],
)
def test_a_given_text_of_a_recogniser_stands_behind_what_its_own_writing_begins_with(
    settings: dict[str, Any], between: list[str]
) -> None:
    torch.manual_seed(3)
    module, (_, tokenizer) = media.whisper()
    names = ["<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    language, task, bare = tokenizer.convert_tokens_to_ids(names)
    known = {"is_multilingual": True, "lang_to_id": {names[0]: language}, "task_to_id": {"transcribe": task}}
    for name, value in (known | {"no_timestamps_token_id": bare, "max_length": 9} | settings).items():
        if value is not None:
            setattr(module.generation_config, name, value)
    model = Model(None, module.eval(), tokenizer, None)
    encoded = Encoded({"input_features": torch.randn(1, 20, 100)}, Tokens((), ()), ())
    target = model.target(encoded, "what is in")
    start = ["<|startoftranscript|>", *between]
    assert tokenizer.convert_ids_to_tokens(target.tokens.ids) == [*start, "what", "Ġis", "Ġin"]
    assert (target.given, target.first) == (len(start), len(start))
    assert model.target(encoded, None).tokens.ids[: len(start)] == target.tokens.ids[: len(start)]
    typed = model.target(encoded, "<|startoftranscript|><|transcribe|>what")
    assert tokenizer.convert_ids_to_tokens(typed.tokens.ids) == ["<|startoftranscript|>", names[1], "what"]
    assert typed.first == 2
    module.generation_config.language = "xx"  # which it does not know
    target = model.target(encoded, "what is in")
    assert tokenizer.convert_ids_to_tokens(target.tokens.ids[:4]) == ["<|startoftranscript|>", *names]
    assert "stands behind the tokens that its tokenizer puts in front" in target.notices[0]


@pytest.mark.parametrize(("forced", "behind"), [(None, 2), (5, 5)])
def test_a_token_that_is_always_written_first_stands_in_front_of_a_given_text(
    model, monkeypatch, forced: int | None, behind: int
) -> None:
    monkeypatch.setattr(model.module.generation_config, "forced_bos_token_id", forced)
    target = model.target(model.encode(("the door",)), "We saw it")
    start, text = model.module.config.decoder_start_token_id, model.tokenizer("we saw it")["input_ids"][1:-1]
    assert list(target.tokens.ids) == [start, behind, *text]
    assert (target.first, target.tokens.items[target.first].text) == (2, "We")


@pytest.mark.parametrize("longest", [{"max_length": 7}, {"max_new_tokens": 6}, {}])
def test_a_text_that_the_model_writes_is_as_long_as_its_settings_let_it(
    tmp_path: Path, longest: dict[str, int]
) -> None:
    model = loaded(tiny_translator(tmp_path / "m"))
    with torch.no_grad():
        model.module.final_logits_bias[0, 3] = -1e6  # it never ends by itself
    settings = model.module.generation_config
    settings.forced_eos_token_id = None
    for name, value in longest.items():
        setattr(settings, name, value)
    encoded = model.encode(("the door",))
    target = model.target(encoded, None)
    assert (len(target.tokens), target.finished) == (7 if longest else 40, False)
    if longest:
        assert target.ids.tolist() == model.module.generate(**encoded.inputs).tolist()


def test_what_the_model_writes_is_what_the_library_generates_greedily(model) -> None:
    encoded = model.encode(("i was watching the door",))
    target = model.target(encoded, None)
    untouched = AutoModelForSeq2SeqLM.from_pretrained(model.checkpoint.source.folder).eval()
    step = torch.tensor([[untouched.config.decoder_start_token_id]])
    for _ in range(len(target.tokens) - 1):  # without a cache and without `generate`
        with torch.no_grad():
            logits = untouched(input_ids=encoded.inputs["input_ids"], decoder_input_ids=step).logits
        step = torch.cat([step, logits[:, -1:].argmax(-1)], dim=1)
    assert target.ids.tolist() == step.tolist()
    assert target.written


def test_a_written_text_that_reads_back_as_the_same_ids_has_its_words_as_labels(model) -> None:
    tokenizer = model.tokenizer
    ids = [0, *tokenizer("the door opened", add_special_tokens=False)["input_ids"]]
    from attnscope.model.inputs.target import tokens_by_text

    tokens = tokens_by_text(tokenizer, ids, "the door opened")
    assert tokens.names == ("[PAD]", "the", "door", "opened")
    assert [item.span for item in tokens.items] == [None, (0, 3), (4, 8), (9, 15)]


@pytest.mark.parametrize(("text", "message"), [(" ", "target text is empty"), ("the " * 60, "62 tokens")])
def test_a_target_that_cannot_be_read_is_refused(tmp_path: Path, text: str, message: str) -> None:
    model = loaded(tiny_translator(tmp_path / "m"))
    with pytest.raises(InputError, match=message):
        model.target(model.encode(("the door",)), text)


def test_a_model_that_does_not_say_where_to_start_is_refused(tmp_path: Path) -> None:
    model = loaded(tiny_translator(tmp_path / "m"))
    for holder in (model.module.config, model.module.generation_config):
        holder.decoder_start_token_id = holder.bos_token_id = None
    with pytest.raises(InputError, match="does not say what a decoder starts from"):
        model.target(model.encode(("the door",)), None)


def test_settings_that_the_library_does_not_follow_are_one_line_and_no_traceback(tmp_path: Path) -> None:
    model = loaded(tiny_translator(tmp_path / "m"))
    model.module.generation_config.penalty_alpha, model.module.generation_config.top_k = 0.6, 4
    with pytest.raises(
        InputError, match=r"cannot write as its generation_config\.json says, give --target: "
    ):
        model.target(model.encode(("the door",)), None)
    assert model.target(model.encode(("the door",)), "we saw it").tokens.sentence == "we saw it"


def test_a_wrapper_that_names_no_inputs_is_given_them_all(tmp_path: Path, monkeypatch) -> None:
    bert = loaded(tiny_bert(tmp_path / "b"))
    inner = bert.module.forward
    monkeypatch.setattr(bert.module, "forward", lambda *given, **named: inner(*given, **named))
    assert {"input_ids", "token_type_ids"} <= bert.encode(("the door",)).inputs.keys()
