"""Load a model with the head that it answers with: masked words, the next token, generated text.

A head whose weights the checkpoint does not have is never run: such a model is refused.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForNextSentencePrediction,
    AutoModelForPreTraining,
    AutoModelForSeq2SeqLM,
    GenerationMixin,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES

from attnscope.errors import InputError
from attnscope.model.loaded import Model
from attnscope.model.loading.config import class_for, mapped_class, saved_class
from attnscope.model.loading.load import Plan, load_model, plan_model
from attnscope.model.source.checkpoint import Checkpoint


class Task(StrEnum):
    """The kind of answer: words at the masks, the next token, or a generated text."""

    MASKED = "masked"
    NEXT = "next"
    GENERATED = "generated"


class Judging(StrEnum):
    """Answer kind of a model without a word head: a class of the text, a tag per token, or an answer span."""

    CLASS = "class"
    TAGS = "tags"
    SPAN = "span"


_ENDINGS = {
    "SequenceClassification": Judging.CLASS,
    "ImageClassification": Judging.CLASS,
    "AudioClassification": Judging.CLASS,
    "TokenClassification": Judging.TAGS,
}


# Auto classes of transformers whose heads predict words, or judge pairs
_OF_WORDS = (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForNextSentencePrediction,
    AutoModelForSeq2SeqLM,
)


class NoAnswerError(InputError):
    """Raised where the checkpoint has no head that predicts anything."""


def load_answering(
    checkpoint: Checkpoint, *, pair: bool = False, remote_code: bool = False, **options: Any
) -> tuple[Model, Task]:
    """The model with its trained answering head, and its task; `pair` prefers a next-sentence head.

    Raises `NoAnswerError` for a checkpoint without the weights of any such head.
    """
    tried = []
    for planned, task in _candidates(checkpoint, pair, remote_code):
        model = load_model(planned, remote_code=remote_code, **options)
        if not model.missing:
            return model, task
        tried.append(planned.model_class.__name__)
    name = checkpoint.source.name
    lacks = f": it lacks weights of {', '.join(tried)}" if tried else ""
    raise NoAnswerError(f"{name} has no head that predicts words{lacks} (heads and find show its attention)")


def _candidates(checkpoint: Checkpoint, pair: bool, remote_code: bool) -> Iterator[tuple[Plan, Task]]:
    whole = plan_model(checkpoint, remote_code=remote_code)
    if (adapter := checkpoint.adapter) is not None and adapter.judges is not None:
        raise NoAnswerError(
            f"{adapter.name} was trained for {adapter.judges} and not for words, and its own head is not "
            "read (heads and find show its attention)"
        )
    _check_saved(checkpoint.source.name, whole.config)
    if whole.writes:
        if _has_words(whole):
            yield whole, Task.GENERATED
        return
    if whole.model_class.__name__.endswith("EncoderModel"):
        return  # cut out of an encoder-decoder: transformers knows no head for it

    def find(auto: Any) -> type[nn.Module] | None:
        return class_for(auto, whole.config, checkpoint, remote_code)

    for model_class, task in _classes(whole.config, pair, find).items():
        planned = plan_model(checkpoint, choose=_always(model_class), remote_code=remote_code)
        if _has_words(planned) or ("NextSentence" in planned.model_class.__name__):
            yield planned, task


def _check_saved(name: str, config: Any) -> None:
    """Raises `NoAnswerError` for a model that was saved with another kind of head, as a classifier.

    With tied embeddings no weight of a word head is missing there, though no word head was trained.
    """
    saved = saved_class(config)
    if saved is None or "For" not in saved.__name__ or issubclass(saved, GenerationMixin):
        return
    if saved not in [mapped_class(auto, config) for auto in _OF_WORDS]:
        raise NoAnswerError(
            f"{name} has no head that predicts words: it is a {saved.__name__} (heads and find show its "
            "attention)"
        )


def _classes(
    config: Any, pair: bool, find: Callable[[Any], type[nn.Module] | None]
) -> dict[type[nn.Module], Task]:
    saved = saved_class(config)
    causal = find(AutoModelForCausalLM)
    masked = [
        find(AutoModelForMaskedLM),
        find(AutoModelForPreTraining),
        find(AutoModelForNextSentencePrediction),
    ]
    if pair:
        masked = [masked[1], masked[2], masked[0]]
    masked_first = {entry: _task(entry) for entry in masked if entry is not None and entry is not causal}
    causal_one = {causal: Task.NEXT} if causal is not None else {}
    if (causal is not None and saved is causal) or getattr(config, "is_decoder", False):
        return causal_one
    return masked_first or causal_one


def _task(model_class: Any) -> Task:
    """NEXT for a class that can generate (LLaVA too, mapped for pre-training alone), else MASKED."""
    return Task.NEXT if getattr(model_class, "can_generate", bool)() else Task.MASKED


def task_of(module: Any) -> Task | None:
    """The task that a model in memory answers with its present head; None without a word head."""
    words = getattr(module, "get_output_embeddings", lambda: None)()
    if words is None and "NextSentence" not in type(module).__name__:
        return None
    return Task.GENERATED if module.config.is_encoder_decoder else _task(type(module))


def judging(model_class: type | None) -> Judging | None:
    """The `Judging` of a model class by its name: classes, tags or spans; None for all others."""
    name = "" if model_class is None else model_class.__name__
    if name in MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES.values():
        return Judging.SPAN
    return next((told for ending, told in _ENDINGS.items() if name.endswith(ending)), None)


def class_names(module: Any) -> list[str]:
    """The names of the model's classes by number; the number itself where the config has no name."""
    names = getattr(module.config, "id2label", None) or {}
    return [str(names.get(number, number)) for number in range(int(module.config.num_labels))]


def _always(model_class: type[nn.Module]) -> Callable[[Any], type[nn.Module]]:
    return lambda config: model_class


def _has_words(planned: Plan) -> bool:
    get = getattr(planned.skeleton, "get_output_embeddings", None)
    return get is not None and get() is not None
