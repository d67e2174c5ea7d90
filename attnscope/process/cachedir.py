"""Where this program keeps what it can make again: the user's folder for that, by the custom of the system.

Nothing is made here, and nobody's folder but the user's own is ever named.
"""

import os
import sys
from pathlib import Path

FOLDER = "ATTNSCOPE_CACHE"  # a folder in place of the user's own, or that nothing is kept
_OFF = {"off", "no", "none", "0", "false"}


def kept_in() -> Path | None:
    """The folder of what is kept; None where that is off, or where this user has no place of his own."""
    told = _told()
    if told.casefold() in _OFF:
        return None
    if told:
        return Path(os.path.abspath(os.path.expanduser(told)))
    own = own_folder()
    return None if own is None else own / "attnscope"


def own_folder() -> Path | None:
    """The user's folder for what can be made again, of all programs; None without a home."""
    if (told := os.environ.get("XDG_CACHE_HOME", "")) and os.path.isabs(told):
        return Path(told)  # the standard says that what is not absolute does not count
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    return Path(home, "Library", "Caches") if sys.platform == "darwin" else Path(home, ".cache")


def _told() -> str:
    return os.environ.get(FOLDER, "").strip()
