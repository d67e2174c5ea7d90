"""Load a planned model: only the needed layers, float32 by default, no weight made up.

An adapter is put into the loaded model by peft, with none of its weights missing, left over or made up. Where
the adapter was trained with another number of tokens the embeddings are resized to it, and each new row is
the adapter's.
"""

import copy
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import Tensor, nn

from attnscope.errors import (
    DoesNotFitError,
    InputError,
    ModelUnavailableError,
    calling,
    is_out_of_memory,
    one_line,
)
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.anatomy.towers import Tower, find_towers
from attnscope.model.inputs.text import Tokenizer
from attnscope.model.loaded import Model
from attnscope.model.loading.config import (
    base_class,
    build_skeleton,
    needs_code,
    read_config,
    saved_class,
    tokenizer_for,
    writing_class,
)
from attnscope.model.loading.memory import check_possible, torch_device
from attnscope.model.loading.partial import (
    WRAPPER,
    can_be_cut,
    cut,
    drop_pooler,
    left_unread,
    placed,
    refuse_missing,
    refuse_other_shapes,
)
from attnscope.model.loading.weights import read_weights
from attnscope.model.source.checkpoint import Checkpoint
from attnscope.model.source.weight_files import Adapter

_INSIDE = "default"  # peft's name of the adapter within the model
_UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    ImportError,
    RuntimeError,
    SafetensorError,
    StrictDataclassError,
    UnpicklingError,
)  # exceptions that the libraries raise for damaged files
_PROGRESS_ABOVE = 2**30  # bytes of weights from which loading is slow enough to want a progress bar


def put_in_adapter(
    module: Any, adapter: Adapter, skeleton: Any, tokens: int, *, ignore_unread: bool
) -> tuple[str, ...]:
    """Put `adapter` into `module`; returns names of adapter weights that the model does not read.

    `skeleton` is the model as it was before, `tokens` the size of its tokenizer. Raises
    `ModelUnavailableError` for an adapter that does not fit.
    """
    from peft import PeftConfig, inject_adapter_in_model
    from peft.utils import load_peft_weights, set_peft_model_state_dict

    name = f"the adapter in {adapter.name}"
    with calling(f"cannot put in {name}"):
        config = PeftConfig.from_pretrained(str(adapter.folder), inference_mode=True)
        stored = load_peft_weights(str(adapter.folder), device="cpu")
    if why := acts_by_text(config):
        raise ModelUnavailableError(f"{name} {why}")
    held = _without_copies({_own(key, skeleton): weight for key, weight in stored.items()})
    _resize(module, config, held, tokens, name)
    with calling(f"cannot put in {name}"):
        inject_adapter_in_model(config, module, _INSIDE)
        found: Any = set_peft_model_state_dict(module, held, _INSIDE)
    own = {key for key, _ in module.named_parameters()} | {key for key, _ in module.named_buffers()}
    missing = sorted(key for key in found.missing_keys if _INSIDE in key.split(".") and key in own)
    if missing:  # a weight that is shared stands in the file by one name
        raise ModelUnavailableError(f"{name} lacks {len(missing)} of its weights: {missing[0]}")
    _refuse_other_names(module, config, name)
    return left_unread(found.unexpected_keys, skeleton, (adapter.weights,), name, ignore=ignore_unread)


def acts_by_text(config: Any) -> str:
    """Why an adapter depends on the text and cannot be read; empty for a change of weights alone."""
    if config.is_prompt_learning:
        return "puts vectors before the text that stand for no token: they are not read"
    if getattr(config, "alora_invocation_tokens", None):
        return "acts only behind certain tokens (activated LoRA): that is not read"
    if config.peft_type == "XLORA":
        return "mixes others by what the text says (X-LoRA): that is not read"
    return ""


def _own(key: str, skeleton: Any) -> str:
    """The model's name of an adapter weight, which may have been trained with another head."""
    bare = key.removeprefix(WRAPPER)
    return placed(bare, skeleton) or bare


def _without_copies(held: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The adapter's weights without the second copy that peft writes of trained modules."""
    inner = ".modules_to_save."
    plain = {key: held.get(key.replace(inner, ".")) for key in held if inner in key}
    copies = {key for key, own in plain.items() if own is not None and torch.equal(own, held[key])}
    return {key: weight for key, weight in held.items() if key not in copies}


def _resize(module: Any, config: Any, held: Mapping[str, Tensor], tokens: int, name: str) -> None:
    """Resize the embeddings to the number of rows that the adapter was trained with.

    The library would draw new rows at random, so the adapter must hold each. Where it does not hold those of
    the output head, that head stays as it was: no added token is predicted.
    """
    paths = {part: path for path, part in module.named_modules()}
    embeddings = module.get_input_embeddings()
    if not isinstance(embeddings, nn.Embedding):
        return
    rows, path = len(embeddings.weight), paths[embeddings]
    wanted = _rows(held, path)
    if wanted is None:
        trained = _trained(config, path, listed=True)
        if not any(row >= rows for row in trained):
            return
        wanted = max(tokens, *(row + 1 for row in trained))
        if lacking := sorted({*range(rows, wanted)} - trained):
            those = f"{len(lacking)} of {wanted - rows} added tokens, the first is {lacking[0]}"
            raise ModelUnavailableError(f"{name} lacks the embeddings of {those}")
    if wanted == rows:
        return
    head = module.get_output_embeddings()
    with calling(f"cannot put in {name}"):
        module.resize_token_embeddings(wanted, mean_resizing=False)
    if head is None or module.get_output_embeddings().weight is module.get_input_embeddings().weight:
        return
    replaced = _trained(config, paths[head], listed=False) >= {*range(rows, wanted)}
    if not replaced and _rows(held, paths[head]) is None:
        module.set_output_embeddings(head)


def _rows(held: Mapping[str, Tensor], path: str) -> int | None:
    names = ("weight", "base_layer.weight", "token_adapter.base_layer.weight")
    stored = (held.get(f"{path}.{name}") for name in names)
    return next((len(weight) for weight in stored if weight is not None), None)


def _trained(config: Any, path: str, *, listed: bool) -> set[int]:
    """Rows of the embedding at `path` that the adapter replaces; a bare list counts only if `listed`."""
    rows = getattr(config, "trainable_token_indices", None) or getattr(config, "token_indices", None) or ()
    if not isinstance(rows, dict):
        return {*rows} if listed else set()
    return {row for name, each in rows.items() if path.endswith(name) for row in each}


def _refuse_other_names(module: Any, config: Any, name: str) -> None:
    """Refuse an adapter whose scale or rank patterns match only the names of a model with a head.

    peft would silently use the adapter's common scale and rank for them.
    """
    keys = {**(getattr(config, "alpha_pattern", None) or {}), **(getattr(config, "rank_pattern", None) or {})}
    paths = [path for path, _ in module.named_modules() if path]
    for key in keys:
        pattern = re.compile(rf"(.*\.)?({key})$")  # as peft itself looks for it
        if any(pattern.match(path) for path in paths):
            continue
        if any(pattern.match(f"{module.base_model_prefix}.{path}") for path in paths):
            where = f"which {type(module).__name__} calls otherwise"
            raise ModelUnavailableError(f"{name} has a setting of its own for {key}, {where}")


@dataclass(frozen=True, eq=False)
class Plan:
    """A checkpoint's class, config and modules, known before any weight is read.

    `skeleton` is the whole model on the meta device, `towers` are its groups of attention modules.
    """

    checkpoint: Checkpoint
    config: Any
    model_class: type[nn.Module]
    skeleton: nn.Module
    towers: tuple[Tower, ...]

    @property
    def name(self) -> str:
        return self.checkpoint.source.name

    @property
    def writes(self) -> bool:
        """True for an encoder-decoder with more than one attention tower."""
        return bool(self.config.is_encoder_decoder) and len(self.towers) > 1


def plan_model(
    checkpoint: Checkpoint,
    *,
    choose: Callable[[Any], type[nn.Module] | None] = lambda config: None,
    remote_code: bool = False,
) -> Plan:
    """Plan a checkpoint: read its config, choose its class and build it without weights.

    `choose` may name the class for a config (as `saved_class` does). Otherwise it is the headless one, and
    for an encoder-decoder one that can write.
    """
    _silence(checkpoint)
    config = read_config(checkpoint, remote_code)
    config._attn_implementation = "eager"  # whatever kernel the checkpoint asks for
    model_class = choose(config) or writing_class(config) or base_class(config, checkpoint, remote_code)
    skeleton = build_skeleton(model_class, config, checkpoint)
    return Plan(checkpoint, config, model_class, skeleton, find_towers(find_sites(skeleton)))


def load_model(
    planned: Plan,
    *,
    layers: int | None = None,
    device: str = "auto",
    dtype: str = "float32",
    remote_code: bool = False,
    attention: str = "eager",
    ignore_unread: bool = False,
    words: bool = True,
    device_map: str | None = None,
    max_memory: str | None = None,
) -> Model:
    """The planned model with its weights, in evaluation mode; only its first `layers` layers.

    `device_map` spreads it over devices instead of one `device` (see `loading.memory`). `attention` is the
    library's name of the attention kernel. A model without `words` to read needs no tokenizer. Weights that
    the checkpoint lacks are an error as soon as the model would use them, and so are those inside attention
    that the model does not read, unless `ignore_unread`. Raises `ModelUnavailableError`, `InputError` or
    `DoesNotFitError`, each with one line.
    """
    target, name = torch_device(device), planned.name
    if device_map is not None:
        check_possible(device_map)
    adapter = planned.checkpoint.adapter  # made for the whole model: a cut one may lack all that it changes
    cuttable = adapter is None and planned.checkpoint.source.gguf is None
    cuttable = cuttable and can_be_cut(planned.skeleton, planned.config)
    keep = layers if cuttable else None
    model_class: Any = planned.model_class if keep is None else cut(planned.model_class, keep)
    _check_kernel(planned, attention)
    tokenizer = tokenizer_for(planned.model_class, planned.checkpoint.words, remote_code, words)
    with _reading_weights(name):
        read = read_weights(
            planned.checkpoint,
            planned.skeleton,
            model_class,
            planned.config,
            layers=keep,
            dtype=dtype,
            device=target,
            attention=attention,
            device_map=device_map,
            max_memory=max_memory,
        )
    module, info, quantisation = read.module, read.info, read.quantisation
    refuse_other_shapes(info["mismatched_keys"], name)
    unread = left_unread(
        info["unexpected_keys"],
        planned.skeleton,
        read.checkpoint.files,
        name,
        layers=keep,
        quantised=quantisation is not None,
        ignore=ignore_unread,
    )
    missing = tuple(sorted(info["missing_keys"]))
    drop_pooler(module, missing)
    refuse_missing(module, (key for key in missing if _present(module, key)), name)
    if adapter is not None:
        known = len(tokenizer.own) if isinstance(tokenizer, Tokenizer) else 0
        unread += put_in_adapter(module, adapter, planned.skeleton, known, ignore_unread=ignore_unread)
    try:
        module = module.eval()
        # weights that stay quantised cannot be moved, spread ones are in place
        if read.places is None and (quantisation is None or quantisation.undone):
            module = moved(module, target)
    except RuntimeError as error:
        raise _out_of_memory(error, f"{name} on {target}") from error
    method = None if quantisation is None else quantisation.method
    return Model(read.checkpoint, module, tokenizer, keep, missing, method, unread=unread)


def moved(module: nn.Module, target: torch.device | str) -> nn.Module:
    """Move the module to `target` and keep shared weights shared.

    Where a device cannot take a weight in place, torch makes a new one for each module that has it.
    """
    shared: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
    for part in module.modules():
        for name, weight in part._parameters.items():
            if weight is not None:
                shared.setdefault(weight, []).append((part, name))
    module = module.to(target)
    for (first, named), *others in shared.values():
        for part, name in others:
            part._parameters[name] = first._parameters[named]
    return module


def load_with_head(checkpoint: Checkpoint, *, remote_code: bool = False, **options: Any) -> Model:
    """The whole model with its saved head, or without it where the checkpoint lacks its weights."""
    planned = plan_model(checkpoint, choose=saved_class, remote_code=remote_code)
    model = load_model(planned, remote_code=remote_code, **options)
    if not model.missing:
        return model
    return load_model(plan_model(checkpoint, remote_code=remote_code), remote_code=remote_code, **options)


def _silence(checkpoint: Checkpoint) -> None:
    """Keep the library's load reports off the screen; its progress bar stays for long loads on a terminal."""
    transformers.logging.set_verbosity_error()
    logging.getLogger("accelerate").setLevel(logging.ERROR)
    if checkpoint.size > _PROGRESS_ABOVE and sys.stderr.isatty():
        transformers.logging.enable_progress_bar()
    else:
        transformers.logging.disable_progress_bar()


def _check_kernel(planned: Plan, attention: str) -> None:
    if attention == "eager":
        return
    config = copy.deepcopy(planned.config)
    config._attn_implementation = attention
    try:
        with torch.device("meta"):
            planned.model_class(config)
    except (ImportError, ValueError) as error:
        why = one_line(error).partition(". ")[0].rstrip(".")  # the rest asks for a feature of transformers
        raise InputError(
            f"{planned.name} cannot run with --attn {attention}: {why}; --attn eager runs always"
        ) from error


def _present(module: nn.Module, key: str) -> bool:
    try:
        return module.get_submodule(key.rpartition(".")[0]) is not None
    except AttributeError:
        return False


@contextmanager
def _reading_weights(name: str) -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        if is_out_of_memory(error):
            raise _out_of_memory(error, name) from error
        if "trust_remote_code" in str(error):
            raise needs_code(name) from error
        why = "the pickle is corrupt or holds more than weights"
        why = why if isinstance(error, UnpicklingError) else one_line(error)
        raise ModelUnavailableError(f"{name}: cannot read the weights: {why}") from error


def _out_of_memory(error: Exception, what: str) -> Exception:
    return (
        DoesNotFitError(f"not enough memory for {what}: {one_line(error)}")
        if is_out_of_memory(error)
        else error
    )
