"""The kinds of hostile invocation, by name, and how many of a hundred are of each.

A kind is a function of a seeded generator, the current folder, which it may fill, and the sound material.
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
    media,
    options,
    outgoing,
    places,
    stored,
    streams,
    texts,
)

Kind = Callable[[Random, Path, Material], Invocation]

KINDS: dict[str, tuple[Kind, int]] = {
    "options": (options.make, 12),
    "texts": (texts.make, 12),
    "folders": (folders.make, 23),
    "media": (media.make, 8),
    "stored": (stored.make, 10),
    "incoming": (incoming.make, 6),
    "outgoing": (outgoing.make, 6),
    "arrays": (arrays.make, 7),
    "streams": (streams.make, 4),
    "places": (places.make, 5),
    "environments": (environments.make, 3),
    "interrupts": (interrupts.make, 2),
    "kills": (kills.make, 2),
}


def kind_of(rng: Random) -> str:
    """The first thing that is drawn for an invocation."""
    return rng.choices(list(KINDS), [share for _, share in KINDS.values()])[0]
