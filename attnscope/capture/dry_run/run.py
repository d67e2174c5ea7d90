"""Running a model that has no weights: on the meta device an operation gives a shape and costs nothing.

So what each attention will be handed (shapes, scale, soft cap, window, sinks), how many products there are
until then, and whether positions are rotated there, is known at any length before a weight is read. The
inputs have no content: what the model's forward names, in shapes that its config tells.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.capture.dry_run.watch import DryCall, StandIns, Watch
from attnscope.capture.running import evaluating
from attnscope.errors import one_line
from attnscope.model.anatomy.sites import Site

_NEVER = {"self", "args", "kwargs", "labels", "return_dict", "inputs_embeds"}
_SIDE = 224  # of a picture, where the model takes any
_SAMPLES = 160_000  # ten seconds of sound at the rate that speech models are made for
_MELS = ("num_mel_bins", "n_mel_bins", "input_feat_per_channel", "feature_size")


def placeholder_inputs(model: nn.Module, length: int) -> dict[str, Any]:
    """What `model` is called with for `length` tokens, on the meta device; pictures and sounds in full size.

    That is its main input, what its forward has no default for, and the text of a decoder beside an encoder.
    Raises `ValueError` for an input that no rule makes.
    """
    taken = inspect.signature(model.forward).parameters
    needed = [
        name
        for name, each in taken.items()
        if each.default is each.empty and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    wanted = dict.fromkeys([*needed, getattr(model, "main_input_name", "input_ids"), "decoder_input_ids"])
    made: dict[str, Any] = {}
    for name in wanted:
        if name in taken and name not in _NEVER:
            if name not in _MAKERS:
                raise ValueError(f"nothing is known of its input {name}")
            made[name] = _MAKERS[name](getattr(model, "config", None), length)
    if "use_cache" in taken:
        made["use_cache"] = False
    return made


def _tokens(_config: Any, length: int) -> Tensor:
    return torch.zeros(1, length, dtype=torch.long, device="meta")


def _picture(config: Any, _length: int) -> Tensor:
    size = config_value(config, "image_size", "img_size", default=_SIDE)
    high, wide = size if isinstance(size, list | tuple) else (size, size)
    channels = config_value(config, "num_channels", "in_channels", default=3)
    return torch.zeros(1, channels, high, wide, device="meta")


def _spectrogram(config: Any, _length: int) -> Tensor:
    """Whisper's layout where the config names its frames: twice as many as its encoder has positions."""
    bins, frames = config_value(config, *_MELS), config_value(config, "max_source_positions")
    upright = hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions")
    shape = (1, bins, 2 * frames) if upright else (1, frames, bins)
    return torch.zeros(shape, device="meta")


_MAKERS: Mapping[str, Callable[[Any, int], Tensor]] = {
    "input_ids": _tokens,
    "decoder_input_ids": _tokens,
    "pixel_values": _picture,
    "input_features": _spectrogram,
    "input_values": lambda _config, _length: torch.zeros(1, _SAMPLES, device="meta"),
    "bbox": lambda _config, length: torch.zeros(1, length, 4, dtype=torch.long, device="meta"),
}


def config_value(config: Any, *names: str, default: Any = None) -> Any:
    """The first of the fields that a config, or one inside of it, has a value for.

    Raises `ValueError` where none has and there is no default.
    """
    holders, seen = [config], 0
    while seen < len(holders):
        inner = vars(holders[seen]).values() if hasattr(holders[seen], "__dict__") else ()
        holders += [each for each in inner if hasattr(each, "model_type")]
        seen += 1
    for holder in holders:
        for name in names:
            if (value := getattr(holder, name, None)) is not None:
                return value
    if default is None:
        raise ValueError(f"its config does not tell {' or '.join(names)}")
    return default


@dataclass(frozen=True, eq=False)
class DryRun:
    """What was seen, by module, and why the run ended early, if it did.

    `rotated` has the modules that used a rotation, with the number of its cosines for a token; `used` are
    the parameters that anything used.
    """

    calls: Mapping[nn.Module, Sequence[DryCall]]
    rotated: Mapping[nn.Module, int]
    used: frozenset[nn.Parameter]
    problem: str = ""


def run_dry(model: nn.Module, watched: Sequence[Site], length: int, stand_ins: StandIns) -> DryRun:
    """One pass of `model`, which is on the meta device, for `length` tokens, as far as shapes suffice.

    `stand_ins` say how to stand in for the kernels of each route that has kernels. Mixtures of experts are
    run with as many experts a token as the model chooses.
    """
    watch = Watch(watched, stand_ins)
    problem = ""
    try:
        with evaluating(model), _few_experts(model), watch.watching(model), torch.device("meta"):
            model(**placeholder_inputs(model, length))
    except Exception as error:  # whatever a model does with numbers that are not there
        problem = one_line(error).partition(". ")[0]
    return DryRun(watch.calls, watch.rotated, frozenset(watch.used), problem)


@contextmanager
def _few_experts(model: nn.Module) -> Iterator[None]:
    """While open, experts are run as batched products, which no number decides about."""
    configs = {
        id(config): config for module in model.modules() if (config := getattr(module, "config", None))
    }
    held = {key: vars(config).get("_experts_implementation_internal", "") for key, config in configs.items()}
    try:
        for key, config in configs.items():
            if held[key] != "":
                config._experts_implementation_internal = "batched_mm"
        yield
    finally:
        for key, config in configs.items():
            if held[key] != "":
                config._experts_implementation_internal = held[key]
