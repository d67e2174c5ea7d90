"""Which class of transformers a config stands for: as it was saved, with a head, or without one."""

from typing import Any

import transformers
from torch import nn
from transformers import AutoModel, AutoModelForSeq2SeqLM, GenerationMixin
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from attnscope.errors import ModelUnavailableError
from attnscope.model.source.checkpoint import Checkpoint

# what a checkpoint may have code of its own for: without a head if that can be, since attention needs none
OWN = ("AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM")


def saved_class(config: Any) -> type[nn.Module] | None:
    """The class that the checkpoint says it was saved as, where transformers has it."""
    names = [name for name in config.architectures or () if isinstance(name, str)]
    named: Any = getattr(transformers, names[0], None) if names else None
    fits = isinstance(named, type) and getattr(named, "config_class", None) is type(config)
    return named if fits else None


def writing_class(config: Any) -> type[nn.Module] | None:
    """For an encoder-decoder the class that writes text, or else the one that it was saved as."""
    if not config.is_encoder_decoder:
        return None
    saved = saved_class(config)
    if saved is not None and issubclass(saved, GenerationMixin):
        return saved
    return mapped_class(AutoModelForSeq2SeqLM, config) or saved


def mapped_class(auto: Any, config: Any) -> type[nn.Module] | None:
    """The class that an Auto class of transformers would take for this config."""
    entry: Any = auto._model_mapping.get(type(config), None)
    return entry[0] if isinstance(entry, tuple) else entry  # type: ignore[no-any-return]


def needs_code(name: str) -> ModelUnavailableError:
    """What to say of a model that transformers has no class for, but its repository has."""
    return ModelUnavailableError(f"{name} needs code from its own repository: --trust-remote-code runs it")


def base_class(config: Any, checkpoint: Checkpoint, remote_code: bool) -> type[nn.Module]:
    """The headless model for this kind of config."""
    saved = saved_class(config)
    if saved is not None and saved.__name__.endswith("EncoderModel"):
        return saved  # the encoder alone of an encoder-decoder, whose config names the whole
    tasks = ("AutoModelForSeq2SeqLM", *OWN) if config.is_encoder_decoder else OWN
    if remote_code and (own := own_class(config, checkpoint, *tasks)) is not None:
        return own
    name, model_class = checkpoint.source.name, mapped_class(AutoModel, config)
    if model_class is None and set(OWN) & set(getattr(config, "auto_map", {})):
        raise needs_code(name)
    if model_class is None:
        raise ModelUnavailableError(f"{name}: transformers has no model for type '{config.model_type}'")
    return model_class


def own_class(config: Any, checkpoint: Checkpoint, *tasks: str) -> type[nn.Module] | None:
    """The class that the checkpoint's own code has for the first of these tasks that it has one for."""
    named = getattr(config, "auto_map", {})
    reference = next((named[task] for task in tasks if named.get(task)), None)
    if reference is None:
        return None
    return get_class_from_dynamic_module(reference, checkpoint.source.folder)  # type: ignore[no-any-return]


def class_for(auto: Any, config: Any, checkpoint: Checkpoint, remote_code: bool) -> type[nn.Module] | None:
    """What an Auto class stands for: in the checkpoint's own code where that may run, else as mapped."""
    own = own_class(config, checkpoint, auto.__name__) if remote_code else None
    return own or mapped_class(auto, config)
