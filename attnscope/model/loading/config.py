"""Read a checkpoint's config, choose its transformers class, build it without weights; its tokenizer.

The library meets an unexpected setting with any kind of exception. Nothing checks a config against the
weights beside it: a hundred thousand layers are as quickly written as twelve. So modules are counted while
the model is built and compared with the number of stored weights: an absurd config is refused in seconds.

The library answers most damage of a tokenizer.json with an error. But at some it panics, which prints a trace
of Rust on standard error, and for some it allocates until the process is killed. Only these are looked for
here.
"""

import base64
import binascii
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn.modules import module as hooks
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer, GenerationMixin
from transformers.dynamic_module_utils import get_class_from_dynamic_module
from transformers.initialization import no_init_weights

from attnscope.errors import ModelUnavailableError, calling
from attnscope.incoming import settings
from attnscope.model.inputs.given import Unreadable
from attnscope.model.inputs.text import REMEDY, Tokenizer
from attnscope.model.source import weight_files
from attnscope.model.source.checkpoint import Checkpoint
from attnscope.model.source.find import Source

# Auto classes that a checkpoint's own code may implement; headless first, as attention needs no head
OWN = ("AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM")

# settings that the library loops over while it reads a config, and more than any model has
_COUNTED = {
    re.compile("(layer|depth|block|group|stage|type)s?$"): 2_000,
    re.compile("labels?$"): 1_000_000,
}
_PARTS = 300_000  # most parts without stored weights: twice the largest mixtures of experts
_SHOWN = 200  # most characters about pruned heads in a message
_SOME_PARTS, _PARTS_PER_WEIGHT = 2_000, 50  # most parts with stored weights
FILE = "tokenizer.json"
_HEAD = 4  # bytes of a charsmap that say how long its table is


def saved_class(config: Any) -> type[nn.Module] | None:
    """The transformers class that the config says the model was saved as; None where there is none."""
    names = [name for name in config.architectures or () if isinstance(name, str)]
    named: Any = getattr(transformers, names[0], None) if names else None
    fits = isinstance(named, type) and getattr(named, "config_class", None) is type(config)
    return named if fits else None


def writing_class(config: Any) -> type[nn.Module] | None:
    """For an encoder-decoder its class that generates text, else its saved class; None for others."""
    if not config.is_encoder_decoder:
        return None
    saved = saved_class(config)
    if saved is not None and issubclass(saved, GenerationMixin):
        return saved
    return mapped_class(AutoModelForSeq2SeqLM, config) or saved


def mapped_class(auto: Any, config: Any) -> type[nn.Module] | None:
    """Transformers class that an Auto class maps this config's type to; None without one."""
    entry: Any = auto._model_mapping.get(type(config), None)
    return entry[0] if isinstance(entry, tuple) else entry  # type: ignore[no-any-return]


def needs_code(name: str) -> ModelUnavailableError:
    """The error for a model whose class is only in its repository: asks for --trust-remote-code."""
    return ModelUnavailableError(f"{name} needs code from its own repository: --trust-remote-code runs it")


def base_class(config: Any, checkpoint: Checkpoint, remote_code: bool) -> type[nn.Module]:
    """Headless class for this config; `ModelUnavailableError` where transformers knows none."""
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
    """The checkpoint's own class for the first of `tasks` that its `auto_map` names; None without one."""
    named = getattr(config, "auto_map", {})
    reference = next((named[task] for task in tasks if named.get(task)), None)
    if reference is None:
        return None
    return get_class_from_dynamic_module(reference, checkpoint.source.folder)  # type: ignore[no-any-return]


def class_for(auto: Any, config: Any, checkpoint: Checkpoint, remote_code: bool) -> type[nn.Module] | None:
    """The class of an Auto class: from the checkpoint's own code where allowed, else transformers'."""
    own = own_class(config, checkpoint, auto.__name__) if remote_code else None
    return own or mapped_class(auto, config)


def check_counts(folder: Path, name: str) -> None:
    """Raises `ModelUnavailableError` for a config.json of `name` with absurdly many layers or labels."""
    try:
        config = settings(folder / "config.json")
    except (ValueError, RecursionError, OSError):
        return  # answered in one line by the library
    for setting, number in _numbers(config):
        for named, most in _COUNTED.items():
            if named.search(setting) and number > most:
                raise ModelUnavailableError(
                    f"{name}: cannot read config.json: {setting} is over {most:,}, which is no model's"
                )


def _numbers(node: Any, setting: str = "") -> Iterator[tuple[str, int]]:
    """Every integer of a config with the name of its setting; integers in a list have the list's name."""
    waiting = [(setting, node)]
    while waiting:
        setting, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [(str(key), value) for key, value in each.items()]
        elif isinstance(each, list):
            waiting += [(setting, value) for value in each]
        elif isinstance(each, int) and not isinstance(each, bool):
            yield setting, each


@contextmanager
def held_to(checkpoint: Checkpoint) -> Iterator[None]:
    """Context manager: building raises `ModelUnavailableError` at far more parts than stored weights."""
    stored = _stored(checkpoint)
    most = _PARTS if stored is None else _SOME_PARTS + _PARTS_PER_WEIGHT * stored
    beside = "any model has" if stored is None else f"its files have weights, which are {stored}"
    made = 0

    def count(*_: Any) -> None:
        nonlocal made
        made += 1
        if made > most:
            raise ModelUnavailableError(
                f"{checkpoint.source.name}: config.json describes a model of far more parts than {beside}"
            )

    with (
        hooks.register_module_parameter_registration_hook(count),
        hooks.register_module_module_registration_hook(count),
    ):
        yield


def _stored(checkpoint: Checkpoint) -> int | None:
    if checkpoint.shards:
        return len(checkpoint.shards)
    if not checkpoint.files or checkpoint.pickled:
        return None
    return len(weight_files.types(checkpoint.there))


def read_config(checkpoint: Checkpoint, remote_code: bool) -> Any:
    """The config of a checkpoint; `ModelUnavailableError` in one line where it is none."""
    folder, name = checkpoint.source.folder, checkpoint.source.name
    if checkpoint.source.gguf is None:
        check_counts(folder, name)
    what = "config.json" if checkpoint.source.gguf is None else "its settings"
    with calling(f"{name}: cannot read {what}"):
        try:
            file = checkpoint.source.file
            config = AutoConfig.from_pretrained(folder, trust_remote_code=remote_code, **file)
        except ValueError as error:
            if "trust_remote_code" in str(error):
                raise needs_code(name) from error
            raise
    if (pruned := getattr(config, "pruned_heads", None)) and isinstance(pruned, dict):
        gone = "; ".join(f"layer {layer}: {heads}" for layer, heads in pruned.items())[:_SHOWN]
        raise ModelUnavailableError(
            f"{name} is pruned ({gone}): transformers 5 builds every layer with all of its heads"
        )
    _settle(config)
    return config


def _settle(config: Any) -> None:
    """Set malformed `architectures` and `auto_map` to empty values, and `return_dict` to True."""
    if not isinstance(config.architectures, list | tuple):
        config.architectures = None
    if not isinstance(getattr(config, "auto_map", {}), dict):
        config.auto_map = {}
    for part in (config, *(getattr(config, name, None) for name in config.sub_configs)):
        if part is not None:
            part.return_dict = True


def build_skeleton(model_class: type[nn.Module], config: Any, checkpoint: Checkpoint) -> nn.Module:
    """The whole model on the meta device; `ModelUnavailableError` where `config` makes no model.

    Weights are not initialised.
    """
    trying = f"{checkpoint.source.name}: no {model_class.__name__} can be built from its config.json"
    with calling(trying), held_to(checkpoint), torch.device("meta"), no_init_weights():
        return model_class(config)


def check_tokenizer_file(folder: Path, name: str) -> None:
    """Raises `ModelUnavailableError` for a tokenizer.json on which the library would crash."""
    file = folder / FILE
    if not file.is_file():
        return
    try:
        tables = settings(file)
    except (ValueError, RecursionError, OSError):
        return  # answered in one line by the library
    for fault in _faults(tables):
        raise ModelUnavailableError(f"{name}: cannot read the tokenizer: {FILE} {fault}")


def _faults(tables: Any) -> Iterator[str]:
    if not isinstance(tables, dict):
        return
    for part in ("normalizer", "pre_tokenizer", "post_processor"):
        for step in _steps(tables.get(part)):
            if check := _CHECKS.get(str(step.get("type"))):
                yield from check(step)
    model = tables.get("model")
    if isinstance(model, dict) and "merges" in model:
        yield from _merges(model)


def _steps(node: Any) -> Iterator[dict[str, Any]]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += [value for value in each.values() if isinstance(value, list)]
            if "type" in each:
                yield each


def _template(step: dict[str, Any]) -> Iterator[str]:
    """Faults of a template: special tokens without an entry, entries with other ids than tokens."""
    table = step.get("special_tokens")
    known = table if isinstance(table, dict) else {}
    for entry in known.values():
        if isinstance(entry, dict) and _length(entry.get("ids")) != _length(entry.get("tokens")):
            yield f"has other ids than tokens for {entry.get('id')!r}"
    for pieces in (step.get("single"), step.get("pair")):
        for piece in pieces if isinstance(pieces, list) else ():
            token = piece.get("SpecialToken") if isinstance(piece, dict) else None
            if isinstance(token, dict) and isinstance(token.get("id"), str) and token["id"] not in known:
                yield f"puts {token['id']!r} around texts and does not say what that is"


def _fixed(step: dict[str, Any]) -> Iterator[str]:
    if step.get("length") == 0:
        yield "cuts texts into pieces of length 0"


def _charsmap(step: dict[str, Any]) -> Iterator[str]:
    """Faults of a precompiled_charsmap: a table longer than the data behind its four-byte length."""
    charsmap = step.get("precompiled_charsmap")
    try:
        content = base64.b64decode(charsmap, validate=True) if isinstance(charsmap, str) else None
    except (binascii.Error, ValueError):
        return
    if content is None:
        return  # answered in one line by the library, as bad base64 is
    size = int.from_bytes(content[:_HEAD], "little")
    if len(content) < _HEAD or size > len(content) - _HEAD:
        yield f"has a precompiled_charsmap that claims {size} bytes and has {len(content)}"


def _merges(model: dict[str, Any]) -> Iterator[str]:
    """Faults of BPE merges: pairs whose joined piece is not in the vocabulary."""
    vocabulary, merges = model.get("vocab"), model.get("merges")
    prefix = model.get("continuing_subword_prefix") or ""
    if not isinstance(vocabulary, dict) or not isinstance(merges, list):
        return
    for merge in merges:
        if isinstance(merge, str) and merge.startswith("#version"):
            continue
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
            return  # answered in one line by the library
        made = pair[0] + pair[1][len(str(prefix)) :]
        if made not in vocabulary:
            yield f"merges {pair[0]!r} and {pair[1]!r} into {made!r}, which is not in its vocabulary"


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else -1


_CHECKS = {"TemplateProcessing": _template, "FixedLength": _fixed, "Precompiled": _charsmap}


def tokenizer_for(model_class: type[nn.Module], source: Source, remote_code: bool, words: bool = True) -> Any:
    """The tokenizer of a model; None for a model that reads only pictures or sounds and has none.

    Without `words` to read, an unreadable tokenizer is an `Unreadable`, which raises when it is used; with
    them it raises `ModelUnavailableError`.
    """
    try:
        return open_tokenizer(source, remote_code)
    except ModelUnavailableError as error:
        takes = inspect.signature(model_class.forward).parameters
        if {"pixel_values", "input_features", "input_values"} & takes.keys() and "input_ids" not in takes:
            return Unreadable(error) if "decoder_input_ids" in takes else None
        refusal = ModelUnavailableError(
            f"{error}; --tokenizer NAME takes another's, token numbers need none (--ids)"
        )
        if not words:
            return Unreadable(refusal)
        raise refusal from error


def open_tokenizer(source: Source, remote_code: bool = False) -> Tokenizer:
    """The tokenizer in the folder of `source`; `ModelUnavailableError` where it has none that is sound."""
    folder, name = source.folder, source.name
    if source.gguf is None:
        check_tokenizer_file(folder, name)
    with calling(f"{name}: cannot read the tokenizer", REMEDY):
        try:
            own = AutoTokenizer.from_pretrained(folder, trust_remote_code=remote_code, **source.file)
        except ValueError as error:
            if "trust_remote_code" in str(error):
                raise needs_code(name) from error
            raise
    _check(own, source)
    return Tokenizer(own, name)


def _check(own: Any, source: Source) -> None:
    """Refuse a tokenizer without vocabulary files, which the library builds to read all as unknown."""
    folder, cannot = source.folder, f"{source.name}: cannot read the tokenizer"
    if not isinstance(own.model_max_length, int | float):
        raise ModelUnavailableError(f"{cannot}: model_max_length is '{own.model_max_length}', not a number")
    files = set(own.vocab_files_names.values()) | ({FILE} if own.is_fast else set())
    if source.gguf is None and own.vocab_files_names and not any((folder / file).is_file() for file in files):
        raise ModelUnavailableError(f"{cannot}: there is no {' or '.join(sorted(files))}")
