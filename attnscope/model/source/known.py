"""The SHA-256 of a large file, remembered from when it was read whole: so one layer of it costs one layer.

A file is known by its size, the times of its last changes, its inode and its device, which no program leaves
as they were when it writes to it; of one that has just been written, or that changed while it was read,
nothing is remembered, since a next change could fall into the same tick of the clock. What is remembered is
told together with what it is of, and counts for nothing where that is not the same, or is not whole.
"""

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from attnscope.cachedir import kept_in
from attnscope.ending import undone_by_a_signal

LARGE = 32 * 2**20  # bytes; less is read in no time
SETTLED = 2.0  # seconds; no file system in use counts more coarsely
FOLDER, SUFFIX = "digests", ".json"
_MOST = 256  # files that are remembered
_HASH = re.compile(r"[0-9a-f]{64}")
Stamp = list[int]


def sha256(file: Path) -> str:
    """The SHA-256 of the bytes of a file, in hexadecimal digits, as `sha256sum` prints it."""
    with file.open("rb") as stream:
        stamp = _stamp(stream.fileno())
        note = _note(stamp)
        if note is not None and (remembered := _remembered(note, stamp)) is not None:
            return remembered
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if note is not None and _stamp(stream.fileno()) == stamp:
            _remember(note, stamp, found)
    return found


def _stamp(handle: int) -> Stamp:
    told = os.fstat(handle)
    return [told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino, told.st_dev]


def _note(stamp: Stamp) -> Path | None:
    """Where the hash of such a file is remembered; None where it is not."""
    folder = kept_in()
    settled = max(stamp[1:3]) < time.time_ns() - SETTLED * 1e9
    if folder is None or stamp[0] < LARGE or not settled:
        return None
    name = hashlib.sha256(json.dumps(stamp).encode()).hexdigest()[:32]
    return folder / FOLDER / f"{name}{SUFFIX}"


def _remembered(note: Path, stamp: Stamp) -> str | None:
    try:
        told = json.loads(note.read_bytes())
        found, check = told["sha256"], told["check"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    whole = isinstance(found, str) and _HASH.fullmatch(found) and check == _check(stamp, found)
    return found if whole else None


def _check(stamp: Stamp, found: str) -> str:
    return hashlib.sha256(json.dumps([stamp, found]).encode()).hexdigest()


def _remember(note: Path, stamp: Stamp, found: str) -> None:
    """Keep it, whole or not at all; where it cannot be kept, the file is read again next time."""
    partial = note.with_name(f"{note.name}.{os.getpid()}")
    told = {"sha256": found, "check": _check(stamp, found)}
    with undone_by_a_signal(partial.unlink), suppress(OSError):
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(json.dumps(told).encode())
            os.replace(partial, note)
            _forget_all_but_the_newest(note.parent)
        except OSError:
            partial.unlink()


def _forget_all_but_the_newest(folder: Path) -> None:
    found = sorted(folder.glob(f"*{SUFFIX}"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for each in found[_MOST:]:
        each.unlink()
