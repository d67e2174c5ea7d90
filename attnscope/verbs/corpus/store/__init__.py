"""Where the files of a corpus and of its run lie: on this machine, or wherever fsspec reaches."""

import json
import re
from pathlib import Path
from typing import Any

from attnscope.verbs.corpus.store.place import Chunks, NotWrittenError, Place

__all__ = ["Chunks", "NotWrittenError", "Place", "place_of"]
_REMOTE = re.compile(r"(?!(?:file|local)://)[A-Za-z][A-Za-z0-9+.-]+://")


def place_of(address: str | Path | Place, **options: Any) -> Place:
    """The place of that path or address; `options` are for the system that an address names."""
    if isinstance(address, Place):
        return address
    plain = str(address)
    if not _REMOTE.match(plain):
        return Place(plain.removeprefix("file://").removeprefix("local://"))
    from attnscope.verbs.corpus.store.remote import There

    return There(plain, json.dumps(options, sort_keys=True))
