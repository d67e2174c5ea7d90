"""Loading a model together with the head that answers: words for blanks, the next word, a written text.

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
    """What a model answers: the words of its masks, the next token, or a text of its own."""

    MASKED = "masked"
    NEXT = "next"
    GENERATED = "generated"


class Judging(StrEnum):
    """What a model without words tells: one class for all that it reads, one for each token, or in which span
    of a text the answer to a question stands.
    """

    CLASS = "class"
    TAGS = "tags"
    SPAN = "span"


_ENDINGS = {
    "SequenceClassification": Judging.CLASS,
    "ImageClassification": Judging.CLASS,
    "AudioClassification": Judging.CLASS,
    "TokenClassification": Judging.TAGS,
}


# the classes of transformers that predict words, or judge pairs beside it
_OF_WORDS = (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForNextSentencePrediction,
    AutoModelForSeq2SeqLM,
)


class NoAnswerError(InputError):
    """The checkpoint has no head that predicts anything."""


def load_answering(
    checkpoint: Checkpoint, *, pair: bool = False, remote_code: bool = False, **options: Any
) -> tuple[Model, Task]:
    """The model with the head that it was trained to answer with; with `pair` one that judges pairs, if any.

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
    """Raises `NoAnswerError` for a model that was saved with a head of another kind, as a classifier.

    Where embeddings are tied no weight of a word head is missing there, and yet it was trained for no word.
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
    """A model that writes goes on, also where only its mapping for pre-training names it (LLaVA)."""
    return Task.NEXT if getattr(model_class, "can_generate", bool)() else Task.MASKED


def task_of(module: Any) -> Task | None:
    """What a model in memory answers with the head that it has; None where it has none."""
    words = getattr(module, "get_output_embeddings", lambda: None)()
    if words is None and "NextSentence" not in type(module).__name__:
        return None
    return Task.GENERATED if module.config.is_encoder_decoder else _task(type(module))


def judging(model_class: type | None) -> Judging | None:
    """What models of this class are trained to tell in the place of words; None of all others."""
    name = "" if model_class is None else model_class.__name__
    if name in MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES.values():
        return Judging.SPAN
    return next((told for ending, told in _ENDINGS.items() if name.endswith(ending)), None)


def class_names(module: Any) -> list[str]:
    """What such a model calls its classes, by their number; the number itself where it has no name."""
    names = getattr(module.config, "id2label", None) or {}
    return [str(names.get(number, number)) for number in range(int(module.config.num_labels))]


def _always(model_class: type[nn.Module]) -> Callable[[Any], type[nn.Module]]:
    return lambda config: model_class


def _has_words(planned: Plan) -> bool:
    get = getattr(planned.skeleton, "get_output_embeddings", None)
    return get is not None and get() is not None
