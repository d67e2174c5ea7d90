"""Every verb of the library on a model that is in memory: each is asked here, or this file does not pass.

What is said first is held against the same question of the same model by its name.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    pipeline,
)

import attnscope as at
from attnscope import demo
from attnscope.demo import FOLDERS
from attnscope.library.readings import Prompted
from attnscope.render.sheets import sheet_of

Ask = Callable[[Any], Any]
ENCODER, CAUSAL = "He saw the king when it opened the [MASK].", "box dog king box dog king"
OTHER = ENCODER.replace("king", "door")
FILL = [{"a": "king", "b": "door"}, {"a": "dog", "b": "box"}]
NO_QUESTIONS = {"labels", "tokens", "name", "module", "tokenizer", "towers", "read", "prompts", "ask"}

OF_READING: dict[str, Ask] = {
    "ablate": lambda read: read.ablate(part="residual", at="king", patch_from=OTHER),
    "dimensions": lambda read: read.dimensions(1, 2, "it", "king"),
    "explain": lambda read: read.explain("it", "king", controls=19),
    "find": lambda read: read.find("it", "king", by="word", controls=5),
    "flow": lambda read: read.flow("it", layers="0-2"),
    "grid": lambda read: read.grid(),
    "head": lambda read: read.head("all", "mean", by="word"),
    "links": lambda read: read.links(controls=19),
    "long_head": lambda read: read.long_head(1, 2),
    "measure": lambda read: read.measure("importance"),
    "overview": lambda read: read.overview(query="it"),
    "predict": lambda read: read.predict(3),
    "predict_layers": lambda read: read.predict_layers(controls=3),
    "report": lambda read: read.report(1, 2, "it"),
    "terms": lambda read: read.terms(1, 2),
    "tsne": lambda read: read.tsne(1, 2),
    "verify": lambda read: read.verify(),
    "why": lambda read: read.why(2, 1, "it", "king", against="saw"),
}
OF_PROMPTS: dict[str, Ask] = {
    "ablate": lambda prompts: prompts.ablate(rank=True, top=2),
    "find": lambda prompts: prompts.find("field:b", "field:a", controls=5),
    "flow": lambda prompts: prompts.flow("field:b"),
    "links": lambda prompts: prompts.links(controls=5),
    "predict": lambda prompts: prompts.predict(),
    "predict_layers": lambda prompts: prompts.predict_layers(controls=2),
    "why": lambda prompts: prompts.why(answer="door", against="box"),
}
# not of a text, or not of these models: they are asked of wrapped ones below and in other files
ELSEWHERE = {"over", "dependencies", "align", "cite", "retrieval", "compare", "composition"}


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")} - NO_QUESTIONS


def bundled(name: str, kind: Any) -> tuple[nn.Module, Any]:
    """A bundled model and its tokenizer, as transformers loads them."""
    folder = Path(demo.folder()).parent / FOLDERS[name]
    module = kind.from_pretrained(folder, attn_implementation="eager").eval()
    module.config._name_or_path = name  # what it is called
    return module, AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def wrapped() -> at.Model:
    return at.wrap(*bundled("demo", AutoModelForMaskedLM))


@pytest.fixture(scope="module")
def both(model: at.Model, wrapped: at.Model) -> tuple[at.Reading, at.Reading]:
    return model.read(ENCODER), wrapped.read(ENCODER)


def test_no_verb_is_forgotten_here() -> None:
    assert {*OF_READING, *ELSEWHERE} == public(at.Reading) | public(at.Model)
    assert {*OF_PROMPTS} == public(Prompted)


@pytest.mark.parametrize("verb", OF_READING)
def test_a_wrapped_model_answers_as_the_same_model_by_its_name(
    verb: str, both: tuple[at.Reading, at.Reading]
) -> None:
    by_name, in_memory = map(OF_READING[verb], both)
    assert type(in_memory) is type(by_name)
    assert sheet_of(in_memory).answer == sheet_of(by_name).answer != ""


@pytest.mark.parametrize("verb", OF_PROMPTS)
def test_many_prompts_of_a_wrapped_model(verb: str, model: at.Model, wrapped: at.Model) -> None:
    template = "He saw the {a} when it opened the {b} of the [MASK]."
    by_name, in_memory = (OF_PROMPTS[verb](each.prompts(template, fill=FILL)) for each in (model, wrapped))
    assert sheet_of(in_memory).answer == sheet_of(by_name).answer != ""


def test_wrapped_models_and_their_readings_are_compared_and_composed(
    wrapped: at.Model, model: at.Model
) -> None:
    asks: list[Ask] = [
        lambda model: model.composition(2, 1),
        lambda model: at.compare(model.read(ENCODER), model.read("The king saw it."), "king"),
        lambda model: model.compare(wrapped, [ENCODER, OTHER]),
    ]
    for ask in asks:
        assert sheet_of(ask(wrapped)).answer == sheet_of(ask(model)).answer != ""


def test_a_wrapped_decoder_with_a_chat_answers_of_its_messages() -> None:
    module, tokenizer = bundled("demo-causal", AutoModelForCausalLM)
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    model = at.wrap(module, tokenizer)
    said = CAUSAL.split()
    chat = [
        {"role": "user", "content": " ".join(said[:3])},
        {"role": "assistant", "content": " ".join(said[3:])},
    ]
    read = model.read(chat=chat)
    assert read.find("pos:last", "role:user", controls=5).question.key_span == (0, 1, 2)
    told = model.read(CAUSAL).explain("box@4", "dog@2", controls=9)
    assert told.circuits, "the planted circuit, of a model that was handed over"
    assert told.reads_confirmed == ("L0 H2 by query", "L0 H0 by key")


def test_a_wrapped_translator_aligns_a_wrapped_decoder_cites_and_a_wrapped_reader_fetches() -> None:
    translator = at.wrap(*bundled("demo-translate", AutoModelForSeq2SeqLM)), at.load("demo-translate")
    said = [sheet_of(each.read("The door opened.").align()).answer for each in translator]
    assert said[0] == said[1] != ""
    decoders = at.wrap(*bundled("demo-causal", AutoModelForCausalLM)), at.load("demo-causal")
    text = "The king saw the door. The dog saw the box. The"
    said = [sheet_of(each.read(text).cite("king saw", by="sentence")).answer for each in decoders]
    assert said[0] == said[1] != ""

    readers = at.wrap(*bundled("demo-reader", AutoModelForCausalLM)), at.load("demo-reader")
    said = [sheet_of(each.retrieval(lengths=(64,), needles=2)).answer for each in readers]
    assert said[0] == said[1] != ""


class Around(nn.Module):
    """Somebody's own module that hands everything on to a model of transformers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.inner, self.config = model, model.config

    def forward(self, *given: Any, **named: Any) -> Any:
        return self.inner(*given, **named)


def test_a_pipeline_and_what_torch_puts_around_a_model_are_the_model_itself(wrapped: at.Model) -> None:
    module, tokenizer = bundled("demo", AutoModelForMaskedLM)
    expected = wrapped.read(ENCODER).head(1, 2).weights
    pipe = pipeline("fill-mask", model=module, tokenizer=tokenizer)
    for model in (at.wrap(pipe), at.wrap(nn.DataParallel(module), tokenizer)):
        assert (model.read(ENCODER).head(1, 2).weights == expected).all()
        assert model.read(ENCODER).predict().blanks == wrapped.read(ENCODER).predict().blanks
    pipe.processor, pipe.image_processor = None, object()
    with pytest.raises(at.AttnscopeError, match="has tokenizer and image_processor and no processor"):
        at.wrap(pipe)


def test_a_module_around_a_model_is_refused_with_what_to_wrap() -> None:
    module, tokenizer = bundled("demo", AutoModelForMaskedLM)
    with pytest.raises(at.AttnscopeError) as refused:
        at.wrap(Around(module), tokenizer)
    assert str(refused.value) == (
        "Around is no model of transformers, but holds one, BertForMaskedLM: wrap that, its .inner"
    )
