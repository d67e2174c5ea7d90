"""Entrances of the library: `load` a model by name, `wrap` one that is in memory."""

from dataclasses import dataclass
from typing import Any

from attnscope.capture.running import as_written
from attnscope.errors import InputError
from attnscope.library.models import Model, opened
from attnscope.model.loaded import Model as LoadedModel
from attnscope.model.loaded import out_of_pipeline
from attnscope.model.loading.answering import task_of
from attnscope.model.loading.load import acts_by_text
from attnscope.process.machine import alone
from attnscope.session.listener import Listener, Log
from attnscope.session.opening import Opened
from attnscope.session.question import taking
from attnscope.session.request import ModelRequest


@dataclass(frozen=True, kw_only=True)
class _Load(ModelRequest):
    listener: Listener | None = None


@alone
@taking(_Load)
def load(asked: _Load) -> Model:
    """Load the model called `name`: a hub id, a folder, or a bundled one, such as `demo`.

    The default name is ATTNSCOPE_MODEL, else `bert-base-uncased`. The model is loaded whole, with its
    prediction head where the checkpoint has one. `revision` is a branch, tag or commit of a hub model,
    `adapter` a PEFT adapter (folder or hub id), `tokenizer` the model or folder whose tokenizer is used where
    the model has none. It runs on a `device` (`auto`, `cpu`, `cuda`, `cuda:1`, `mps`) with `dtype`
    (`float32`, or `auto` for the checkpoint's own). `attn` is the attention kernel; the default is eager, and
    for some rows of a long text the fused one. `device_map` spreads a model that is too large for one device:
    `auto`, within `max_memory`, or a map from modules to devices, `cpu` and `disk`.

    `allow_pickle` loads pickled weights, which can run code; `trust_remote_code` runs a model's own code;
    `ignore_unread` accepts stored weights that the model does not read. Notices go to the `listener`, by
    default the logger `attnscope`.

    Raises `ModelUnavailableError` where the model cannot be found or fetched, `DoesNotFitError` where it
    needs more memory than there is, `InputError` for an invalid option.
    """
    return opened(asked, asked.listener or Log())


@alone
def wrap(module: Any, processor: Any = None, *, listener: Listener | None = None) -> Model:
    """Wrap a transformers model that is in memory, with its tokenizer or processor, or a pipeline.

    `module` keeps its own kernel and device, and is left unchanged. Notices about training mode, compiled
    code and kernels without masks go to the `listener`, by default the logger `attnscope`. Without a
    tokenizer as `processor` the model reads `ids`. Raises `InputError` for anything but a transformers model.
    """
    module, processor = out_of_pipeline(module, processor)
    written = _without_peft(as_written(module))
    if not hasattr(written, "config") or not hasattr(written, "forward"):
        raise InputError(f"{type(module).__name__} is no model of transformers: it has no config to go by")
    _check_own(written)
    tokenizer = getattr(
        processor, "tokenizer", processor if hasattr(processor, "convert_ids_to_tokens") else None
    )
    model = LoadedModel(
        None, written, tokenizer, None, processor=None if processor is tokenizer else processor
    )
    return Model(Opened(model, task_of(written)), listener or Log(), module)


def _without_peft(module: Any) -> Any:
    configs = getattr(module, "peft_config", None)
    if not configs or not hasattr(module, "get_base_model"):
        return module
    for name in getattr(module, "active_adapters", ()):
        if why := acts_by_text(configs[name]):
            raise InputError(f"the adapter {name} of {type(module).__name__} {why}")
    return module.get_base_model()


def _check_own(module: Any) -> None:
    if hasattr(module, "get_input_embeddings"):
        return
    told = f"{type(module).__name__} is no model of transformers"
    for path, inner in module.named_modules():
        if hasattr(inner, "get_input_embeddings"):
            raise InputError(f"{told}, but holds one, {type(inner).__name__}: wrap that, its .{path}")
    raise InputError(f"{told}: it has no get_input_embeddings to find its tokens by")
