"""Weights large enough that attention is peaked: a mistake in even attention would not be seen."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

QUERY_OR_KEY = re.compile(
    r"(^|_)(q|k|query|key|queries|keys|qkv|kqv|wq|wk|wqkv|to_q|to_k|to_qkv|query_key_value|c_attn|wqkv|in_proj|qk)(_|$)"
)
_TABLE = re.compile(r"embed|token|pos|table|bias|quer|latent|prompt|memory")
_KEPT = re.compile(r"a_log|dt_bias|inv_freq|lambda_p|^d$|running")


def draw(model: nn.Module, gain: float, seed: int) -> None:
    """Draw all parameters anew: matrices by their fan-in, queries and keys `gain` times as large, tables plainly
    different from zero, and every vector (norms, biases, sinks, gates) moved off its starting value."""
    random = torch.Generator().manual_seed(seed)
    owners = {
        id(parameter): owner for owner in model.modules() for parameter in owner.parameters(recurse=False)
    }
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if not parameter.is_floating_point() or _KEPT.search(path.split(".")[-1].lower()):
                continue
            noise = torch.randn(parameter.shape, generator=random)
            if "sink" in path.split(".")[-1]:
                parameter.copy_(noise)
            elif parameter.ndim < 2 or parameter.numel() == max(parameter.shape):
                parameter.add_(noise, alpha=0.2)
            else:
                parameter.copy_(noise * _spread(path, parameter, owners[id(parameter)]))
                if any(QUERY_OR_KEY.search(name.lower()) for name in path.split(".")[-2:]):
                    parameter.mul_(gain)


def _spread(path: str, parameter: Tensor, owner: nn.Module) -> float:
    """The standard deviation that a parameter is drawn with."""
    name = path.split(".")[-1].lower()
    if isinstance(owner, nn.Embedding):
        return 1.0
    if not isinstance(owner, nn.Linear) and name != "weight" and _TABLE.search(name) and parameter.ndim < 5:
        return 0.5
    if type(owner).__name__ == "Conv1D":
        return float(parameter.shape[0] ** -0.5)
    return float(
        (parameter.numel() / parameter.shape[0]) ** -0.5
        if parameter.ndim != 3 or name == "weight"
        else parameter.shape[-1] ** -0.5
    )


class Peaks(TorchFunctionMode):
    """While on, measures how peaked every softmax over at least three choices is: 0 even, 1 one-hot."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[float] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") in {"softmax", "_softmax"} and result.ndim > 2:
            choices = (result > 0).sum(-1)
            rows = result.amax(-1)[choices > 2]
            if rows.numel():
                even = 1 / choices[choices > 2]
                self.found.append(float(((rows - even) / (1 - even)).mean()))
        return result


@contextmanager
def peaks() -> Iterator[list[float]]:
    """Collects the peakedness of each softmax that runs inside."""
    mode = Peaks()
    with mode:
        yield mode.found


def finite(output: Any) -> bool:
    """Whether all numbers in a model's output are numbers; -inf is what some detectors write for "no class"."""
    if isinstance(output, Tensor):
        return not output.is_floating_point() or not bool((output.isnan() | output.isposinf()).any())
    if isinstance(output, dict):
        return all(finite(value) for value in output.values())
    return all(finite(value) for value in output) if isinstance(output, (list, tuple)) else True
