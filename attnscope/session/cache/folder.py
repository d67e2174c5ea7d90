"""What a model's folder holds, so that a change is seen: small files by content, large ones by their dates.

A large file is known by its size, the times of its last changes, its inode and its device, which no program
leaves as they were when it writes to it; one that has just been written is not believed, since a second
change could fall into the same tick of the clock.
"""

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

_SMALL = 32 * 2**20  # bytes; read and hashed at every question
_MANY = 200  # files; such a folder is no model's alone
SETTLED = 2.0  # seconds; no file system in use counts more coarsely
_HEAVY = {".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".ot", ".onnx", ".gguf"}

Stat = tuple[str, int, int, int, int, int]


@dataclass(frozen=True)
class Folder:
    """The files of a folder at one moment: `small` by SHA-256, `large` by what the system tells of them."""

    small: tuple[tuple[str, str], ...]
    large: tuple[Stat, ...]
    others: tuple[str, ...]

    @property
    def settled(self) -> bool:
        """Whether the last change of every large file lies long enough ago for a next one to be seen."""
        now = time.time_ns()
        return all(max(each[2:4]) < now - SETTLED * 1e9 for each in self.large)


def look_into(folder: Path) -> Folder | None:
    """What is in the folder; None where that cannot be told."""
    small, large, others = [], [], []
    try:
        names = sorted(os.listdir(folder))
        for name in names if len(names) <= _MANY else ():
            path = folder / name
            if not path.is_file():
                others.append(name)
                continue
            status = path.stat()
            if path.suffix not in _HEAVY and status.st_size <= _SMALL:
                small.append((name, hashlib.sha256(path.read_bytes()).hexdigest()))
            else:
                times = status.st_mtime_ns, status.st_ctime_ns
                large.append((name, status.st_size, *times, status.st_ino, status.st_dev))
    except OSError:
        return None
    return Folder(tuple(small), tuple(large), tuple(others)) if large else None
