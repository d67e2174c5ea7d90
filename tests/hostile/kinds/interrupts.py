"""Ctrl-C at any moment, half of them in the first second: in a warm process, or one that has yet to start."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import line, written
from ..invocation import Invocation
from ..material import Material


def make(rng: Random, here: Path, material: Material) -> Invocation:
    argv, cold = asked(rng, here, material), draw.chance(rng, 0.5)
    return Invocation(argv, interrupt=moment(rng, cold), cold=cold)


def asked(rng: Random, here: Path, material: Material) -> tuple[str, ...]:
    """A command that does its work, half of the time into a file."""
    return (*line(rng, here, material), *(written(rng) if draw.chance(rng, 0.5) else []))


def moment(rng: Random, cold: bool) -> float:
    """Seconds after the start."""
    later = rng.uniform(1, 8 if cold else 3)
    return round(rng.uniform(0.1, 1) if draw.chance(rng, 0.5) else later, 3)
