"""Quantised checkpoints: read as the numbers that they stand for, or refused in words.

A quantised weight is a small integer or a short float beside a scale. Where the library can multiply the
two out while it loads, it is told to; a scale that nothing would read is an error, never a wrong weight.
"""

import copy
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AutoHfQuantizer

from attnscope.errors import ModelUnavailableError, one_line
from attnscope.model.source import weight_files as stored

_SCALE = re.compile("scale|zero|absmax|quant")


@dataclass(frozen=True)
class Quantisation:
    """The method of a quantised checkpoint, and whether loading multiplies the weights out again."""

    method: str
    undone: bool


def prepare(config: Any, name: str) -> Quantisation | None:
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
