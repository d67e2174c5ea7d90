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


def draw(model: nn.Module, first: dict[str, Tensor], gain: float, seed: int) -> None:
    """Draw all parameters anew: matrices by their fan-in, queries and keys `gain` times as large.

    Tables become plainly different from zero, and every vector (norms, biases, gates) is moved off the value
    that it has in `first`, the model's state as the library made it.
    """
    random = torch.Generator().manual_seed(seed)
    owners = {
        id(parameter): owner for owner in model.modules() for parameter in owner.parameters(recurse=False)
    }
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            owner, name = path.split(".")[-2:] if "." in path else ("", path)
            if not parameter.is_floating_point() or _KEPT.search(name.lower()):
                continue
            noise = torch.randn(parameter.shape, generator=random)
            if "sink" in name:
                parameter.copy_(noise)
            elif parameter.ndim < 2 or parameter.numel() == max(parameter.shape):
                parameter.copy_(first[path] + 0.2 * noise)
            else:
                parameter.copy_(noise * _spread(path, parameter, owners[id(parameter)]))
            norm = parameter.ndim < 2 and name == "weight" and "norm" in owner
            if _makes_scores(owner, name) and (parameter.ndim > 1 or norm):
                parameter.mul_(gain)
    model.train().eval()  # LeViT keeps its biases as they were first used until it is trained again


def _makes_scores(owner: str, name: str) -> bool:
    """Whether a parameter of this name makes queries or keys."""
    return any(QUERY_OR_KEY.search(part.lower()) for part in (owner, name))


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


_MASKED = 1000.0  # this far below the largest score of its row a score is a mask's, not the model's


class Peaks(TorchFunctionMode):
    """While on, measures how peaked every softmax over at least three choices is: 0 even, 1 one-hot."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[float] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") in {"softmax", "_softmax"} and result.ndim > 2:
            self._measure(args[0] if args else (kwargs or {})["input"], result)
        return result

    def _measure(self, scores: Tensor, weights: Tensor) -> None:
        choices = (scores > scores.amax(-1, keepdim=True) - _MASKED).sum(-1)
        largest, choices = weights.amax(-1)[choices > 2], choices[choices > 2]
        if choices.numel():
            self.found.append(float(((largest - 1 / choices) / (1 - 1 / choices)).mean()))


@contextmanager
def peaks() -> Iterator[list[float]]:
    """Collects the peakedness of each softmax that runs inside."""
    mode = Peaks()
    with mode:
        yield mode.found


def finite(output: Any) -> bool:
    """Whether all numbers in an output are numbers; -inf is what some detectors write for "no class"."""
    if isinstance(output, Tensor):
        return not output.is_floating_point() or not bool((output.isnan() | output.isposinf()).any())
    if isinstance(output, dict):
        return all(finite(value) for value in output.values())
    return all(finite(value) for value in output) if isinstance(output, (list, tuple)) else True
