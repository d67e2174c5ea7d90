"""The kinds of hostile invocation, by name, and how many of a hundred are of each.

A kind is a function of a generator, the current folder, which it may fill, and the sound material.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

from ..invocation import Invocation
from ..material import Material
from . import (
    arrays,
    environments,
    folders,
    incoming,
    interrupts,
    kills,
    lines,
    media,
    outgoing,
    places,
    stored,
    streams,
)

Kind = Callable[[Random, Path, Material], Invocation]

KINDS: dict[str, tuple[Kind, int]] = {
    "lines": (lines.make, 30),
    "folders": (folders.make, 19),
    "media": (media.make, 7),
    "stored": (stored.make, 9),
    "incoming": (incoming.make, 6),
    "outgoing": (outgoing.make, 6),
    "arrays": (arrays.make, 7),
    "streams": (streams.make, 4),
    "places": (places.make, 5),
    "environments": (environments.make, 3),
    "interrupts": (interrupts.make, 2),
    "kills": (kills.make, 2),
}
