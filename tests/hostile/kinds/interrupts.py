"""Ctrl-C at any moment: in a warm process while it works, in one of its own also while it starts."""

from pathlib import Path
from random import Random

from .. import draw
from ..invocation import Invocation
from ..material import Material
from .sensible import command, written


def make(rng: Random, here: Path, material: Material) -> Invocation:
    argv = command(rng)
    argv += written(rng, argv[0]) if draw.chance(rng, 0.5) else []
    cold = draw.chance(rng, 0.3)
    after = rng.uniform(0.1, 8) if cold else rng.uniform(0, 1.2)
    return Invocation(tuple(argv), interrupt=round(after, 3), cold=cold)
