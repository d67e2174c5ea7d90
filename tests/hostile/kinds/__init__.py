"""The kinds of hostile invocation, by name, and how many of a hundred are of each.

A kind is a function of a generator, the current folder, which it may fill, and the sound material.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

from ..invocation import Invocation
from ..material import Material
from . import arrays, folders, media, stored, surroundings, typed

Kind = Callable[[Random, Path, Material], Invocation]

KINDS: dict[str, tuple[Kind, int]] = {
    "lines": (typed.lines, 30),
    "folders": (folders.make, 19),
    "media": (media.make, 7),
    "stored": (stored.make, 9),
    "incoming": (typed.incoming, 6),
    "outgoing": (typed.outgoing, 6),
    "arrays": (arrays.make, 7),
    "streams": (surroundings.streams, 4),
    "places": (surroundings.places, 5),
    "environments": (surroundings.environments, 3),
    "interrupts": (surroundings.interrupts, 2),
    "kills": (surroundings.kills, 2),
}
