"""Compare stored weights with the model's: skip cut layers, refuse missing and unread ones.

Attention that is computed without some of its trained weights is not that of the trained model, and the
recomputation could not tell. So the weights that the library ignores silently are sorted here: those inside
attention, trained ones elsewhere, and harmless ones (heads, cut layers, stored masks).

A quantised weight is a small integer or a short float beside a scale. Where the library can dequantise
while it loads, it is told to; a scale that nothing would read is an error, never a wrong weight.
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
)  # buffers in old files that a model makes by itself
_HEAD = re.compile(r"(^|\.)(lm_head|pooler)\.")  # also of a submodel
WRAPPER = "base_model.model."  # peft's prefix of all weight names
_NAMED = 3  # most names in a message


@dataclass(frozen=True)
class Quantisation:
    """A checkpoint's quantisation method; `undone` where loading dequantises the weights."""

    method: str
    undone: bool


def unquantised(config: Any, name: str) -> Quantisation | None:
    """The checkpoint's quantisation, or None; sets `config` to dequantise where the method can.

    Raises `ModelUnavailableError` for a method that transformers does not know, and for one that it cannot
    use on this machine, naming the package that is missing.
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
    """True where the last part of a weight's name says scale, zero point or other quantisation data."""
    return bool(_SCALE.search(name.rpartition(".")[2]))


def even_out(module: nn.Module, dtype: torch.dtype) -> None:
    """Cast all floating parameters to `dtype`, but for those of a wider type.

    The library casts the weights that it dequantises, not those stored beside them.
    """
    for parameter in module.parameters():
        if parameter.is_floating_point() and parameter.dtype.itemsize <= dtype.itemsize:
            parameter.data = parameter.data.to(dtype)


def refuse_bare(
    types: Mapping[str, str], needed: Mapping[str, str], weights: Mapping[str, torch.Tensor], name: str
) -> None:
    """Raise for integer or eight-bit float weights in a checkpoint whose config names no quantisation."""
    for stored_as, own in needed.items():
        kind = types.get(stored_as, "F32")
        if own in weights and weights[own].is_floating_point() and not stored.is_float(kind):
            raise ModelUnavailableError(
                f"{name}: {stored_as} is stored as {kind}, but its config names no quantisation"
            )


def refuse_unread_scales(unexpected: Iterable[str], module: nn.Module, name: str) -> None:
    """Raise where the file has a quantisation scale for a weight and the library ignored it."""
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
    """True where a model may be cut after a layer: one layer stack, as deep as the config says.

    A decoder that reads an encoder needs all of the encoder, so models of several stacks are left whole.
    """
    stacks = layer_stacks(skeleton, find_sites(skeleton))
    depth = getattr(config.get_text_config(), "num_hidden_layers", None)
    return [len(stack) for stack in stacks.values()] == [depth]


def cut(model_class: type[nn.Module], layers: int) -> type[nn.Module]:
    """A subclass of `model_class` whose models keep only the first `layers` layers.

    The config is unchanged: some models scale by its depth. The layers are deleted right after construction,
    which happens on the meta device, so their weights are never read. `is_cut` is True on the model where
    layers were deleted.
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
    """Remove ties of deleted layers from the lists of tied weights: Zamba's layers share weights."""
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
    """The weights by name of the model of `skeleton` that remain when it is cut after `layers` layers."""
    gone = cut_away(skeleton, layers)
    return {name: weight for name, weight in skeleton.state_dict().items() if not name.startswith(gone)}


def needed(stored: Iterable[str], skeleton: Any, layers: int | None) -> dict[str, str]:
    """Map from stored weight names to the model's names, of those that a model cut after `layers` may read.

    A cut model is not run past its layers, so a norm after them is not needed. Names are converted as the
    library converts them when it loads. A weight without a name in the model (the scale of a quantised one)
    is needed when it belongs to a module that is kept.
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
    """Make each module whose weights the checkpoint lacks raise `ModelUnavailableError` when it runs.

    So the last layers of a run that ends early, or an unused head, may be absent, and the random numbers that
    the library puts in their place are never used. Such modules have `is_absent` set.
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
    """Remove the model's pooler where the checkpoint has none of its weights."""
    pooler = getattr(model, "pooler", None)
    if isinstance(pooler, nn.Module) and {f"pooler.{key}" for key in pooler.state_dict()} <= set(missing):
        model.pooler = None  # type: ignore[assignment]


def cut_away(skeleton: nn.Module, layers: int | None) -> tuple[str, ...]:
    """Name prefixes of the weights that a cut after `layers` leaves out."""
    if layers is None:
        return ()
    stacks = layer_stacks(skeleton, find_sites(skeleton)).items()
    return tuple(f"{path}.{layer}." for path, stack in stacks for layer in range(layers, len(stack)))


def _closing(skeleton: nn.Module) -> tuple[str, ...]:
    """Name prefixes of a norm that stands alone after the list of layers."""
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
    """The name, with the base model's prefix added or removed, that names a part of the model; or None."""
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
    """Sorted names of trained weights that the library did not read, those of heads left out.

    `skeleton` is the whole model, of which the first `layers` layers were loaded (None: all of them). Raises
    `ModelUnavailableError` where some are inside attention, unless `ignore`.
    """
    own = _trained(unexpected, skeleton, files, layers)
    blocks = _blocks(skeleton)
    inside = [key for key, at in own.items() if at is not None and blocks.match(at)]
    refused = tuple(
        key for key in inside if not (quantised and is_scale(key))
    )  # scales of activations or of the cache
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
    """The first three names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _trained(
    unexpected: Iterable[str], skeleton: nn.Module, files: Sequence[Path], layers: int | None
) -> dict[str, str | None]:
    """The model's name for each unexpected weight, without those of cut layers and of buffers."""
    gone = cut_away(skeleton, layers)
    own = {name: _own_name(name, skeleton) for name in sorted(unexpected) if not _NEVER_TRAINED.search(name)}
    own = {name: at for name, at in own.items() if at is None or not at.startswith(gone)}
    if any(at is not None for at in own.values()):
        masks = _masks(files, skeleton)
        own = {name: at for name, at in own.items() if at is None or at not in masks}
    return own


def _blocks(skeleton: nn.Module) -> re.Pattern[str]:
    """Pattern of the name prefixes of attention weights, for any layer number.

    It covers attention modules and the modules around them whose name says so: `attention` around
    `attention.self`.
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
    """The model's names of stored attention masks: `1 x ... x n x n`, shared by all heads."""
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
