"""The SHA-256 of a large file, remembered from when it was read whole: so one layer of it costs one layer.

It is remembered only where the file's size, times and inode tell of every change (`telling`), and not of one
that changed while it was read; anywhere else a file is read each time. What is remembered is told together
with what it is of, and counts for nothing where that is not the same, or is not whole.
"""

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path

from attnscope.cachedir import kept_in
from attnscope.ending import undone_by_a_signal
from attnscope.model.source.telling import Stamp, lasting_stamp, stamp

LARGE = 32 * 2**20  # bytes; less is read in no time
FOLDER, SUFFIX = "digests", ".json"
_FORM = 2  # of a note, and of what it takes to make one
_MOST = 256  # files that are remembered
_HASH = re.compile(r"[0-9a-f]{64}")


def sha256(file: Path) -> str:
    """The SHA-256 of the bytes of a file, in hexadecimal digits, as `sha256sum` prints it."""
    with file.open("rb") as stream:
        handle = stream.fileno()
        before = stamp(handle)
        if before[0] < LARGE:
            return hashlib.sha256(stream.read()).hexdigest()
        note = _note(before)
        if note is not None and (remembered := _remembered(note, before)) is not None:
            return remembered
        lasting = None if note is None else lasting_stamp(handle)
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if note is not None and lasting == before and stamp(handle) == before:
            _remember(note, before, found)
    return found


def unread(file: Path, *, lasting: bool = False) -> str | None:
    """What stands for the content of a large file without reading it: it is the same while that is.

    That holds of what was found to be `lasting`, and is None where it is not, or the file is not large.
    """
    with file.open("rb") as stream:
        found = lasting_stamp(stream.fileno()) if lasting else stamp(stream.fileno())
    return None if found is None or found[0] < LARGE else json.dumps(found)


def _note(of: Stamp) -> Path | None:
    """Where the hash of such a file is remembered; None where nothing is."""
    folder = kept_in()
    name = hashlib.sha256(json.dumps(of).encode()).hexdigest()[:32]
    return None if folder is None else folder / FOLDER / f"{name}{SUFFIX}"


def _remembered(note: Path, of: Stamp) -> str | None:
    try:
        told = json.loads(note.read_bytes())
        found, check = told["sha256"], told["check"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    whole = isinstance(found, str) and _HASH.fullmatch(found) and check == _check(of, found)
    return found if whole else None


def _check(of: Stamp, found: str) -> str:
    return hashlib.sha256(json.dumps([_FORM, of, found]).encode()).hexdigest()


def _remember(note: Path, of: Stamp, found: str) -> None:
    """Keep it, whole or not at all; where it cannot be kept, the file is read again next time."""
    partial = note.with_name(f"{note.name}.{os.getpid()}")
    told = {"sha256": found, "check": _check(of, found)}
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
