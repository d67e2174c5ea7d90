"""What a weight file says that it holds, read from its head alone: names and types of the weights."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from attnscope.errors import ModelUnavailableError, one_line

FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def check_head(file: Path, name: str) -> None:
    """Refuse a safetensors file of model `name` that is truncated, corrupt or something else."""
    try:
        with safe_open(file, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise ModelUnavailableError(
            f"{name}: {file.name} is truncated or corrupt: {one_line(error)}"
        ) from error


def types(files: Iterable[Path]) -> dict[str, str]:
    """How the numbers of each weight in sound safetensors files are stored: `F32`, `F8_E4M3`, `I8`."""
    return {name: entry["dtype"] for file in files for name, entry in _head(file).items()}


def shapes(files: Iterable[Path]) -> dict[str, tuple[int, ...]]:
    """The shape of each weight in sound safetensors files."""
    return {name: tuple(entry["shape"]) for file in files for name, entry in _head(file).items()}


def precision(files: Iterable[Path]) -> str | None:
    """The floating type that takes most of the bytes, as torch calls it; None where no weight has one."""
    taken: Counter[str] = Counter()
    for file in files:
        for entry in _head(file).values():
            start, end = entry["data_offsets"]
            taken[entry["dtype"]] += end - start
    floats = [kind for kind, _ in taken.most_common() if kind in FLOATS]
    return FLOATS[floats[0]] if floats else None


def is_float(kind: str) -> bool:
    """Whether a number stored so is the number that is meant, with no scale beside it."""
    return kind in FLOATS


def _head(file: Path) -> dict[str, dict[str, Any]]:
    """The table at the start of a safetensors file: eight bytes of length, then JSON."""
    with file.open("rb") as stream:
        table: dict[str, Any] = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    table.pop("__metadata__", None)
    return table
