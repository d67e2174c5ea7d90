"""What a model's folder holds: of its weights the names, since few are read, of all else the content."""

import os
from dataclasses import dataclass
from pathlib import Path

from attnscope.model.source import known

_MANY = 200  # files; such a folder is no model's alone
_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".ot", ".onnx", ".gguf"}


@dataclass(frozen=True)
class Folder:
    """A folder at one moment: `read` are its files with their SHA-256, `weights` and `others` only named."""

    read: tuple[tuple[str, str], ...]
    weights: tuple[str, ...]
    others: tuple[str, ...]


def look_into(folder: Path) -> Folder | None:
    """What is in the folder; None where that cannot be told, or there are no weights."""
    read, weights, others = [], [], []
    try:
        names = sorted(os.listdir(folder))
        for name in names if len(names) <= _MANY else ():
            path = folder / name
            if not path.is_file():
                others.append(name)
            elif path.suffix in _WEIGHTS:
                weights.append(name)
            else:
                read.append((name, known.sha256(path)))
    except OSError:
        return None
    return Folder(tuple(read), tuple(weights), tuple(others)) if weights else None
