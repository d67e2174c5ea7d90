"""Where kept captures lie, and how much room they may take, as the environment says."""

import os
from dataclasses import dataclass
from pathlib import Path

from attnscope.cachedir import kept_in
from attnscope.errors import InputError
from attnscope.session.placing import bytes_of

ROOM = "ATTNSCOPE_CACHE_SIZE"
USUAL_ROOM = 2 * 10**9  # bytes


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
    room = bytes_of(told)
    if room is None:
        raise InputError(f"{ROOM} is no size: '{told}': such as 500MB or 2GB, 0 for none")
    return room
