"""How far rounding may move a model's answer, by which a change of it is told."""

import math

from torch import Tensor

from attnscope.capture.arithmetic import epsilon_of

_STRAY = 0.25  # roots of the machine epsilon, of the largest score: what rounding moves no score by


def strays(control: Tensor, untouched: Tensor, allowed: float | None = None) -> bool:
    """Whether an entry that nothing was done to is off the untouched run by more than rounding."""
    if control.shape != untouched.shape:
        return True
    same = (control == untouched) | (control.isnan() & untouched.isnan())  # infinite in both, or no number
    near = (control - untouched).abs() <= (carried(untouched) if allowed is None else allowed)
    return not bool((same | near).all())


def carried(untouched: Tensor) -> float:
    """How far rounding on the way through a model may move its scores, in a batch or with gradients kept.

    The same work on other shapes is added in another order, and every layer carries that on, some of them
    enlarged: it cannot be counted as the rounding of one sum can.
    """
    largest = float(untouched[untouched.isfinite()].abs().max())
    return _STRAY * math.sqrt(epsilon_of(untouched)) * (1 + largest)
