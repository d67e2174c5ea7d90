"""How much the cache holds, and how to be rid of it."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attnscope.cachedir import kept_in
from attnscope.errors import InputError
from attnscope.session.cache.place import place
from attnscope.session.cache.store import Store

_DIGESTS = "digests/*.json"  # kept beside it by `attnscope.model.source.known`


@dataclass(frozen=True)
class Holdings:
    """What is kept: the folder (None where nothing is), files and bytes, and the room that they may take.

    `used` is when one of them was last asked for, in seconds since 1970; None without any.
    """

    folder: Path | None
    entries: int = 0
    size: int = 0
    room: int = 0
    used: float | None = None


def holdings() -> Holdings:
    """What the cache holds now."""
    where = place()
    if where is None:
        return Holdings(None)
    held = Store(where).held()
    size, used = sum(each.size for each in held), max((each.used for each in held), default=None)
    return Holdings(where.folder, len(held), size, where.room, used)


def clear() -> Holdings:
    """Forget everything that is kept; what it was. `InputError` where that fails."""
    before, where, folder = holdings(), place(), kept_in()
    if where is None or folder is None:
        return before
    try:
        Store(where).clear()
        for file in folder.glob(_DIGESTS):
            with suppress(FileNotFoundError):
                file.unlink()
    except OSError as error:
        raise InputError(f"cannot clear {where.folder}: {error.strerror or error}") from error
    return before
