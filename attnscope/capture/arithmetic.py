"""Measure the precision of a model's matrix products: their real machine epsilon, not that of their dtype.

Products of float32 may be rounded to fewer bits: to those of TensorFloat-32 on NVIDIA's cards, of bfloat16
on processors that multiply it in hardware. Torch has two generations of switches that allow it (`allow_tf32`
and `set_float32_matmul_precision`, and `fp32_precision` by backend), the environment has more
(`NVIDIA_TF32_OVERRIDE`, `ONEDNN_DEFAULT_FPMATH_MODE`), and whether the hardware follows is its own affair. So
numbers whose last bits are known are multiplied by 1, and what is left of them tells. A card picks its
kernels by shape: there a switch that allows fewer bits counts as fewer bits.

What rounding does to a model's numbers is measured by moving its weights by as much (`move_weights`).
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.reference import EXACT

_SINGLE = torch.finfo(torch.float32).eps
_TF32 = 2.0**-10
_SIZE = 64  # rows and columns: small products are never shortened
_FEWEST = 7  # places of bfloat16: who loses more makes mistakes, which are to be seen
_APART = 64  # terms: wider than the registers in which partial sums stand side by side
_NAMES = {_TF32: "TensorFloat-32", torch.finfo(torch.bfloat16).eps: "bfloat16"}


def precision_of(query: Tensor, output: Tensor) -> tuple[float, str]:
    """Machine epsilon of the coarsest arithmetic that the kernel may use, and its name (`bfloat16 on cpu`).

    Many models run their softmax in float32 whatever the rest runs in, so float64 counts as float32. Where
    sums are kept in half precision, a score is off by half an epsilon for each of its products.
    """
    dtype, device = _coarsest(query, output), query.device
    on, epsilon = f"on {device.type}", epsilon_of(query, output)
    if dtype == EXACT:
        return _SINGLE, f"float64 {on}, its softmax perhaps in float32"
    if dtype == torch.float32 and epsilon > _SINGLE:
        bits = _NAMES.get(epsilon, f"{round(-math.log2(epsilon))}-bit")
        return epsilon, f"{bits} products {on}"
    name = str(dtype).removeprefix("torch.")
    if sums_of(query, output) > _SINGLE:
        return epsilon * max(1.0, query.shape[-1] / 2), f"{name} {on}, sums in {name}"
    return epsilon, f"{name} {on}"


def epsilon_of(*tensors: Tensor) -> float:
    """Machine epsilon of matrix products in the coarsest dtype of these tensors, on their device."""
    dtype = _coarsest(*tensors)
    return _products(tensors[0].device) if dtype == torch.float32 else torch.finfo(dtype).eps


def sums_of(*tensors: Tensor) -> float:
    """Machine epsilon of the sums in matrix products: float32's, or the half dtype's on some hardware."""
    dtype, device = _coarsest(*tensors), tensors[0].device
    if dtype in (torch.float32, EXACT):
        return _SINGLE
    if dtype == torch.float16 and device.type == "cuda" and _adds_in_half():
        return torch.finfo(dtype).eps
    return _added(device, dtype, _switches()) if _can_try(device) else _SINGLE


def _coarsest(*tensors: Tensor) -> torch.dtype:
    """Dtype with the largest machine epsilon among the tensors' dtypes and, if it is on, autocast's."""
    dtypes, kind = [each.dtype for each in tensors], tensors[0].device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        dtypes.append(torch.get_autocast_dtype(kind))
    return max(dtypes, key=lambda each: torch.finfo(each).eps)


def _products(device: torch.device) -> float:
    """Machine epsilon that products of float32 keep on this device under the current switches."""
    tried = _multiplied(device, _switches()) if _can_try(device) else _SINGLE
    return max(tried, _TF32) if device.type == "cuda" and _allows_tf32(device) else tried


def _can_try(device: torch.device) -> bool:
    return device.type == "cpu" or (device.type != "meta" and torch.accelerator.is_available())


def _allows_tf32(device: torch.device) -> bool:
    cuda = torch.cuda.is_available() and not torch.version.hip
    if cuda and torch.cuda.get_device_capability(device)[0] < 8:
        return False  # a card without it
    new = _float32_precision(torch.backends.cuda)
    return torch.get_float32_matmul_precision() != "highest" if new is None else new == "tf32"


def _adds_in_half() -> bool:
    return bool(getattr(torch.backends.cuda.matmul, "allow_fp16_accumulation", False))


def _switches() -> tuple[str, ...]:
    new = [_float32_precision(torch.backends.cuda), _float32_precision(torch.backends.mkldnn)]
    precisions = new if all(new) else [torch.get_float32_matmul_precision()]
    return *map(str, precisions), str(torch.backends.mkldnn.enabled)


def _float32_precision(backend: Any) -> str | None:
    """`backend.matmul.fp32_precision`, or None in a torch that has only the old switches.

    Old switches set the new ones as well, while reading an old one is an error once a new one was set.
    """
    precision = getattr(getattr(backend, "matmul", None), "fp32_precision", None)
    return None if precision is None else str(precision)


@lru_cache(maxsize=64)
def _multiplied(device: torch.device, switches: tuple[str, ...]) -> float:
    """Measured epsilon of float32 products: 2^-k, where 1 + 2^-j for all j <= k survives a product with 1."""
    with _undisturbed(device):
        places = torch.arange(_SIZE) % 23 + 1
        numbers = (1 + torch.exp2(-places.float()))[:, None].repeat(1, _SIZE).to(device)
        one = torch.eye(_SIZE).to(device)
        ways = (
            numbers @ one,
            (one @ numbers.mT.contiguous()).mT,
            torch.nn.functional.linear(numbers, one),
            torch.bmm(numbers[None].repeat(2, 1, 1), one[None].repeat(2, 1, 1))[1],
        )
        kept = torch.stack([(each == numbers).all(1) for each in ways]).all(0).cpu()
        lost = places[~kept]
        left = int(lost.min()) - 1 if len(lost) else 23
        return 2.0 ** -max(left, _FEWEST)


@lru_cache(maxsize=64)
def _added(device: torch.device, dtype: torch.dtype, switches: tuple[str, ...]) -> float:
    """Measured epsilon of sums: that of `dtype` if many halves of it added to 1 are lost, else float32's."""
    epsilon = torch.finfo(dtype).eps
    with _undisturbed(device):
        terms = torch.zeros(_SIZE, 16 * _APART)
        terms[:, ::_APART] = epsilon / 2
        terms[:, 0] = 1
        rows = terms.to(device, dtype)
        found = (rows @ torch.ones_like(rows).mT).float().cpu()
    return _SINGLE if float(found.min()) >= 1 + 6 * epsilon else epsilon  # they are 7.5


@contextmanager
def _undisturbed(device: torch.device) -> Iterator[None]:
    """Context manager: switches alone decide products; no torch function mode, gradient or autocast."""
    with ExitStack() as stack:
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(torch.no_grad())
        if torch.amp.is_autocast_available(device.type):
            stack.enter_context(torch.autocast(device.type, enabled=False))
        yield


@torch.no_grad()
def move_weights(model: nn.Module, seed: int) -> None:
    """Multiply each floating-point weight in place by 1 plus or minus its machine epsilon, signs at random.

    This imitates what another installation's rounding does to the model: two installations add the same
    products in another order, and make exp and roots by other means. A sum of K products then comes out
    otherwise by about epsilon times the root of their summed squares. This moves the sum by as much, and
    every norm and embedding by epsilon too; from there on the model itself says how far that carries: a
    peaked softmax or a small vector under a norm amplify it, a residual stream carries it on.

    The same `seed` draws the same signs. Weights that several modules share are moved once.
    """
    random = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        if weight.is_floating_point():
            lots = torch.randint(0, 2, weight.shape, generator=random) * 2 - 1
            weight.mul_((1 + epsilon_of(weight) * lots).to(weight))
