"""What one head of one layer would cost, reckoned from shapes before anything is loaded.

The products are counted, not guessed: the model's by a run without weights, ours by running our own
arithmetic on the same shapes. Only how fast this machine multiplies is measured, which makes the time an
estimate.
"""

import time
from dataclasses import fields

import torch

from attnscope.capture.empty_run import Count, Handed
from attnscope.sdpa import Operands, attend
from attnscope.verify import FAULTS

_SIDE = 512  # of the square matrices that are multiplied to see how fast that goes
_SECONDS = 0.05


def recomputation(seen: Handed, *, masked: bool = True) -> tuple[int, int]:
    """Floating-point operations of one recomputation of one head in float64, and bytes of all its stages."""
    shape = {"dtype": torch.float64, "device": "meta"}
    pairs = (1, seen.queries, seen.keys)
    operands = Operands(
        q=torch.empty(1, seen.queries, seen.dim, **shape),  # type: ignore[call-overload]
        k=torch.empty(1, seen.keys, seen.dim, **shape),  # type: ignore[call-overload]
        v=torch.empty(1, seen.keys, seen.value_dim, **shape),  # type: ignore[call-overload]
        scale=1.0,
        softcap=seen.softcap,
        bias=torch.empty(pairs, **shape) if seen.biased else None,  # type: ignore[call-overload]
        allowed=torch.empty(pairs, dtype=torch.bool, device="meta") if masked else None,
        sinks=torch.empty(1, **shape) if seen.sinks else None,  # type: ignore[call-overload]
    )
    with Count() as count:
        stages = attend(operands)
    made = {
        id(stage): stage for field in fields(stages) if (stage := getattr(stages, field.name)) is not None
    }
    return count.flops, sum(stage.numel() * stage.element_size() for stage in made.values())


def repeats(seen: Handed) -> int:
    """How often the head is recomputed at most: to be shown, to be certified, and once for every fault."""
    return 2 + len(FAULTS) + bool(seen.biased)


def rate(dtype: torch.dtype) -> float:
    """Floating-point operations in a second of a product of square matrices, measured now on this machine."""
    square = torch.ones(_SIDE, _SIDE, dtype=dtype)
    square @ square
    done, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < _SECONDS:
        square @ square
        done += 1
    return done * 2 * _SIDE**3 / passed
