"""Ended at any moment without being asked (SIGKILL): no half a file by its name, and it can be asked again.

Hashes of large files are remembered, so that what was being written is found by whoever asks again.
"""

from pathlib import Path
from random import Random

from .. import draw
from ..invocation import Invocation
from ..material import Material
from .interrupts import asked, moment


def make(rng: Random, here: Path, material: Material) -> Invocation:
    argv, cold = asked(rng, here, material), draw.chance(rng, 0.5)
    return Invocation(argv, environment={"ATTNSCOPE_DIGESTS": None}, kill=moment(rng, cold), cold=cold)
