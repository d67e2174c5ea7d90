"""Where kept captures lie, and how much room they may take, as the environment says."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from attnscope.cachedir import kept_in
from attnscope.errors import InputError

ROOM = "ATTNSCOPE_CACHE_SIZE"
USUAL_ROOM = 2 * 10**9  # bytes
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([kmgt]?)b?", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A folder of kept captures, which take at most `room` bytes."""

    folder: Path
    room: int


def place() -> Place | None:
    """Where captures are kept; None where that is off, or where this user has no place of his own.

    `InputError` for a size that is none.
    """
    folder, room = kept_in(), _room()
    return None if folder is None or not room else Place(folder / "captures", room)


def _room() -> int:
    told = os.environ.get(ROOM, "").strip()
    if not told:
        return USUAL_ROOM
    size = _SIZE.fullmatch(told)
    if size is None:
        raise InputError(f"{ROOM} is no size: '{told}': such as 500MB or 2GB, 0 for none")
    return int(float(size[1]) * _UNITS[size[2].casefold()])
