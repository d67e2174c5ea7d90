"""Where kept captures lie, and how much room they may take, as the environment says."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from attnscope.errors import InputError

FOLDER, ROOM = "ATTNSCOPE_CACHE", "ATTNSCOPE_CACHE_SIZE"
USUAL_ROOM = 2 * 10**9  # bytes
_OFF = {"off", "no", "none", "0", "false"}
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
    told, room = os.environ.get(FOLDER, "").strip(), _room()
    if told.casefold() in _OFF or not room:
        return None
    if told:
        return Place(Path(os.path.abspath(os.path.expanduser(told))), room)
    own = _own_folder()
    return None if own is None else Place(own / "attnscope" / "captures", room)


def _room() -> int:
    told = os.environ.get(ROOM, "").strip()
    if not told:
        return USUAL_ROOM
    size = _SIZE.fullmatch(told)
    if size is None:
        raise InputError(f"{ROOM} is no size: '{told}': such as 500MB or 2GB, 0 for none")
    return int(float(size[1]) * _UNITS[size[2].casefold()])


def _own_folder() -> Path | None:
    """The user's folder for what can be made again, by the custom of the system; None without a home."""
    if (told := os.environ.get("XDG_CACHE_HOME", "")) and os.path.isabs(told):
        return Path(told)  # the standard says that what is not absolute does not count
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    return Path(home, "Library", "Caches") if sys.platform == "darwin" else Path(home, ".cache")
