"""Stored weights and those of the model: what is left out, what is not there, what is not read.

What is not needed is left out, and what is not there is never run on. Attention that is computed without some
of its trained weights is not that of the trained model, and nothing in the recomputation could tell. So what
the library passes over in silence is sorted here: weights inside attention, trained ones elsewhere, and what
nobody misses (heads, layers left out on purpose, stored masks).

A quantised weight is a small integer or a short float beside a scale. Where the library can multiply the
two out while it loads, it is told to; a scale that nothing would read is an error, never a wrong weight.
"""

import copy
import inspect
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AutoHfQuantizer

from attnscope.errors import ModelUnavailableError, one_line
from attnscope.model.anatomy.sites import find_sites, layer_stacks
from attnscope.model.source import weight_files as stored

_SCALE = re.compile("scale|zero|absmax|quant")
_ATTENTION = re.compile("att(n|ention)", re.IGNORECASE)
_NEVER_TRAINED = re.compile(
    r"(^|[._])(masked_bias|attn_mask|causal_mask|position_ids|relative_position_index|inv_freq"
    r"|(sin|cos)_cached)$"
)  # what old files hold of buffers that a model makes by itself
_HEAD = re.compile(r"(^|\.)(lm_head|pooler)\.")  # also one of a part of the model
WRAPPER = "base_model.model."  # what peft puts before all names
_NAMED = 3  # names that a message gives


@dataclass(frozen=True)
class Quantisation:
    """The method of a quantised checkpoint, and whether loading multiplies the weights out again."""

    method: str
    undone: bool


def unquantised(config: Any, name: str) -> Quantisation | None:
    """How the checkpoint is quantised, None when it is not; `config` is made to ask for true numbers.

    Raises `ModelUnavailableError` for a method that transformers does not know, and for one that it cannot
    use on this machine, with the package that it lacks.
    """
    holder = _holder(config)
    if holder is None:
        return None
    settings = dict(holder.quantization_config)
    method = _method(settings, name)
    undone = "dequantize" in inspect.signature(AUTO_QUANTIZATION_CONFIG_MAPPING[method]).parameters
    if undone:
        settings["dequantize"] = True
        holder.quantization_config = settings
    try:
        quantizer = AutoHfQuantizer.from_config(copy.deepcopy(settings), pre_quantized=True)
        quantizer.validate_environment(device_map=None, weights_only=True)
    except (ImportError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise ModelUnavailableError(f"{name} is quantised with {method}: {one_line(error)}") from error
    return Quantisation(method, undone)


def is_quantised(config: Any) -> bool:
    return _holder(config) is not None


def is_scale(name: str) -> bool:
    """Whether a weight goes by the name of a scale, or of what else stands beside quantised numbers."""
    return bool(_SCALE.search(name.rpartition(".")[2]))


def even_out(module: nn.Module, dtype: torch.dtype) -> None:
    """Bring all parameters to `dtype`, but for those that are kept wider on purpose.

    The library does that for the weights that it multiplies out, not for those stored beside them.
    """
    for parameter in module.parameters():
        if parameter.is_floating_point() and parameter.dtype.itemsize <= dtype.itemsize:
            parameter.data = parameter.data.to(dtype)


def refuse_bare(
    types: Mapping[str, str], needed: Mapping[str, str], weights: Mapping[str, torch.Tensor], name: str
) -> None:
    """Refuse weights stored as integers or eight-bit floats when nothing says what they stand for."""
    for stored_as, own in needed.items():
        kind = types.get(stored_as, "F32")
        if own in weights and weights[own].is_floating_point() and not stored.is_float(kind):
            raise ModelUnavailableError(
                f"{name}: {stored_as} is stored as {kind}, but its config names no quantisation"
            )


def refuse_unread_scales(unexpected: Iterable[str], module: nn.Module, name: str) -> None:
    """Refuse a loaded model of which some weight has a scale in the file that the library did not use."""
    weights = module.state_dict()
    for key in sorted(unexpected):
        ends = [match.start() for match in re.finditer("[._:]", key)]
        if any(key[:end] in weights and _SCALE.search(key[end:]) for end in ends):
            how = "is quantised in a way that transformers does not read"
            raise ModelUnavailableError(f"{name} {how}: it has no use for {key}")


def _holder(config: Any) -> Any:
    both = (config, config.get_text_config(decoder=True))
    return next((each for each in both if getattr(each, "quantization_config", None)), None)


def _method(settings: dict[str, Any], name: str) -> str:
    method = settings.get("quant_method")
    for bits in (4, 8):
        if settings.get(f"load_in_{bits}bit"):
            method = f"bitsandbytes_{bits}bit"
    if method is None:
        raise ModelUnavailableError(
            f"{name} is quantised, but its config does not say how: quantization_config has no quant_method"
        )
    if method not in AUTO_QUANTIZATION_CONFIG_MAPPING:
        known = ", ".join(sorted(AUTO_QUANTIZATION_CONFIG_MAPPING))
        raise ModelUnavailableError(
            f"{name} is quantised with {method}, which transformers cannot read; it reads {known}"
        )
    return str(method)


def can_be_cut(skeleton: nn.Module, config: Any) -> bool:
    """Whether the layers after a chosen one are surely not needed: one stack, as deep as the config says.

    A decoder that reads an encoder needs all of the encoder, so models of several stacks are left whole.
    """
    stacks = layer_stacks(skeleton, find_sites(skeleton))
    depth = getattr(config.get_text_config(), "num_hidden_layers", None)
    return [len(stack) for stack in stacks.values()] == [depth]


def cut(model_class: type[nn.Module], layers: int) -> type[nn.Module]:
    """A subclass whose models have only the first `layers` layers.

    The config stays as it is: some models scale by the depth that it names. The layers go right after
    construction, which happens on the meta device, so their weights are never read. `is_cut` says
    that there were more.
    """

    def construct(self: nn.Module, config: Any, *args: Any, **kwargs: Any) -> None:
        model_class.__init__(self, config, *args, **kwargs)
        for stack in layer_stacks(self, find_sites(self)).values():
            self.is_cut = len(stack) > layers  # type: ignore[assignment]
            del stack[layers:]
        _forget_ties(self)

    return type(
        model_class.__name__, (model_class,), {"__init__": construct, "__module__": model_class.__module__}
    )


def _forget_ties(model: nn.Module) -> None:
    """Take out of the list of tied weights those that went with their layer: Zamba's share theirs."""
    for module in model.modules():
        ties = getattr(module, "all_tied_weights_keys", None)
        if isinstance(ties, dict):
            left = {tied: own for tied, own in ties.items() if _has(module, tied) and _has(module, own)}
            module.all_tied_weights_keys = left  # type: ignore[assignment]


def _has(module: nn.Module, weight: str) -> bool:
    try:
        module.get_parameter_or_buffer(weight)  # type: ignore[operator]
    except AttributeError:
        return False
    return True


def kept(skeleton: nn.Module, layers: int | None) -> dict[str, torch.Tensor]:
    """The weights, by name, that the model of `skeleton` has when it is cut after `layers` layers."""
    gone = cut_away(skeleton, layers)
    return {name: weight for name, weight in skeleton.state_dict().items() if not name.startswith(gone)}


def needed(stored: Iterable[str], skeleton: Any, layers: int | None) -> dict[str, str]:
    """Those of the `stored` weights that the model may read when cut after `layers`, with its names for them.

    A cut model is not run past its layers, so a norm after them is not needed. The names are changed as
    the library itself changes them when it loads. A weight that goes by no name of the model's (the scales
    of a quantised one) is needed when it belongs to a module that is kept.
    """
    conversions = get_model_conversion_mapping(skeleton)
    renamings = [each for each in conversions if isinstance(each, WeightRenaming)]
    converters = [each for each in conversions if isinstance(each, WeightConverter)]
    whole = skeleton.state_dict()
    gone = cut_away(skeleton, layers) + (() if layers is None else _closing(skeleton))
    places = {}
    for name in stored:
        own, _ = rename_source_key(name, renamings, converters, skeleton.base_model_prefix, whole)
        own = name if own not in whole and name in whole else own
        place = own if own in whole else placed(own, skeleton)
        if place is not None and not place.startswith(gone):
            places[name] = place
    return places


def refuse_missing(model: nn.Module, missing: Iterable[str], name: str) -> None:
    """Make every module whose weights the checkpoint lacks raise `ModelUnavailableError` when it is run.

    So the last layers of a run that ends early, or a head nobody asked for, may be absent, and nothing is
    ever computed from the random numbers that the library puts in their place. `is_absent` tells the modules.
    """
    for key in missing:
        owner = model.get_submodule(key.rpartition(".")[0])
        owner.is_absent = True  # type: ignore[assignment]
        owner.register_forward_pre_hook(_refusal(key, name))


def refuse_other_shapes(mismatched: Iterable[tuple[str, Any, Any]], name: str) -> None:
    for key, held, expected in sorted(mismatched):
        shapes = f"{tuple(held)} in the file, {tuple(expected)} by its config"
        raise ModelUnavailableError(f"{name}: cannot read the weights: {key} is {shapes}")


def drop_pooler(model: nn.Module, missing: Iterable[str]) -> None:
    """Take out a pooler that the checkpoint does not have: it stands after all layers and may be absent."""
    pooler = getattr(model, "pooler", None)
    if isinstance(pooler, nn.Module) and {f"pooler.{key}" for key in pooler.state_dict()} <= set(missing):
        model.pooler = None  # type: ignore[assignment]


def cut_away(skeleton: nn.Module, layers: int | None) -> tuple[str, ...]:
    """How the names of the weights begin that a cut after `layers` leaves out."""
    if layers is None:
        return ()
    stacks = layer_stacks(skeleton, find_sites(skeleton)).items()
    return tuple(f"{path}.{layer}." for path, stack in stacks for layer in range(layers, len(stack)))


def _closing(skeleton: nn.Module) -> tuple[str, ...]:
    """How the names of the weights begin that stand after all layers: of a norm, alone behind their list."""
    prefixes: list[str] = []
    for path, stack in layer_stacks(skeleton, find_sites(skeleton)).items():
        parent = path.rpartition(".")[0]
        siblings = list(skeleton.get_submodule(parent).named_children())
        place = next(number for number, (_, sibling) in enumerate(siblings) if sibling is stack)
        later = [(name, list(sibling.parameters())) for name, sibling in siblings[place + 1 :]]
        match [(name, weights) for name, weights in later if weights]:
            case [(name, weights)] if "emb" not in name and all(weight.ndim == 1 for weight in weights):
                prefixes.append(f"{parent}.{name}.".removeprefix("."))
    return tuple(prefixes)


def placed(name: str, skeleton: Any) -> str | None:
    """The name with the base model's prefix put on or taken off, as it begins with a part of the model."""
    prefix = skeleton.base_model_prefix
    base = getattr(skeleton, prefix, None) if prefix else None
    bare = name.removeprefix(f"{prefix}.")
    if _is_part(name, skeleton):
        return name
    if base is not None and _is_part(name, base):
        return f"{prefix}.{name}"
    return bare if _is_part(bare, skeleton) else None


def _is_part(name: str, module: nn.Module) -> bool:
    first, _, rest = name.partition(".")
    return bool(rest) and isinstance(getattr(module, first, None), nn.Module)


def _refusal(key: str, name: str) -> Any:
    def refuse(_module: nn.Module, _inputs: Any) -> None:
        raise ModelUnavailableError(f"{name} lacks weights that this run needs: {key}")

    return refuse


def left_unread(
    unexpected: Iterable[str],
    skeleton: nn.Module,
    files: Sequence[Path],
    name: str,
    *,
    layers: int | None = None,
    quantised: bool = False,
    ignore: bool = False,
) -> tuple[str, ...]:
    """The trained ones of the names that the library had no use for when it read `files`.

    `skeleton` is the whole model, of which the first `layers` layers were loaded (None: all of them). Raises
    `ModelUnavailableError` where some are inside attention, unless that is to be ignored.
    """
    own = _trained(unexpected, skeleton, files, layers)
    blocks = _blocks(skeleton)
    inside = [key for key, at in own.items() if at is not None and blocks.match(at)]
    refused = tuple(
        key for key in inside if not (quantised and is_scale(key))
    )  # of activations, of the cache
    if refused and not ignore:
        those = f"{counted(refused)} inside attention that the model does not read"
        raise ModelUnavailableError(
            f"{name} holds {those}: {named(refused)}; --ignore-unread runs without them"
        )
    towers = {key.partition(".")[0] for key in own if _ATTENTION.search(key)}
    elsewhere = [
        key
        for key, at in own.items()
        if key not in inside
        and not _HEAD.search(key)
        and (_in_trunk(at, skeleton) or key.partition(".")[0] in towers)
    ]
    return tuple(sorted(inside + elsewhere))


def counted(names: tuple[str, ...]) -> str:
    return f"{len(names)} weight{'s' if len(names) > 1 else ''}"


def named(names: tuple[str, ...]) -> str:
    """The first few of the names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _trained(
    unexpected: Iterable[str], skeleton: nn.Module, files: Sequence[Path], layers: int | None
) -> dict[str, str | None]:
    """What the model would call each of the weights, without layers that were cut away and buffers."""
    gone = cut_away(skeleton, layers)
    own = {name: _own_name(name, skeleton) for name in sorted(unexpected) if not _NEVER_TRAINED.search(name)}
    own = {name: at for name, at in own.items() if at is None or not at.startswith(gone)}
    if any(at is not None for at in own.values()):
        masks = _masks(files, skeleton)
        own = {name: at for name, at in own.items() if at is None or at not in masks}
    return own


def _blocks(skeleton: nn.Module) -> re.Pattern[str]:
    """What the names begin with of all that belongs to attention, in layers that do not exist as well.

    That is an attention module, and what holds it under such a name: `attention` around `attention.self`.
    """
    paths = {site.path for site in find_sites(skeleton)}
    holders = {path.rpartition(".")[0] for path in paths}
    paths |= {holder for holder in holders if _ATTENTION.search(holder.rpartition(".")[2])}
    parts = (["[0-9]+" if part.isdigit() else re.escape(part) for part in path.split(".")] for path in paths)
    patterns = sorted({r"\.".join(each) for each in parts})
    return re.compile(rf"({'|'.join(patterns)})\." if patterns else "(?!)")


def _own_name(name: str, skeleton: nn.Module) -> str | None:
    return placed(name.removeprefix(WRAPPER), skeleton)


def _in_trunk(own_name: str | None, skeleton: nn.Module) -> bool:
    prefix = getattr(skeleton, "base_model_prefix", "")
    base = getattr(skeleton, prefix, None) if prefix else None
    if own_name is None or base is None:
        return own_name is not None
    inner = own_name.removeprefix(f"{prefix}.")
    return inner != own_name and isinstance(getattr(base, inner.partition(".")[0], None), nn.Module)


def _masks(files: Sequence[Path], skeleton: nn.Module) -> set[str | None]:
    """The model's names for stored masks: squares of positions, the same for every head."""
    shapes = stored.shapes(files) if files[0].suffix == ".safetensors" else _pickled(files)
    return {
        _own_name(name, skeleton)
        for name, shape in shapes.items()
        if len(shape) > 2 and shape[-1] == shape[-2] and set(shape[:-2]) == {1}
    }


def _pickled(files: Iterable[Path]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        held = torch.load(file, map_location="meta", weights_only=True, mmap=zipfile.is_zipfile(file))
        shapes |= {name: tuple(weight.shape) for name, weight in held.items() if hasattr(weight, "shape")}
    return shapes
