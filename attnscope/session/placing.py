"""Where the parts of a model are to go, as a user says it: `auto`, or a place for each part.

    {"embeddings": "cuda:0", "encoder.layer.0": 1, "encoder.layer.1": "cpu", "pooler": "disk"}

Here it is only read, and written in one way, so that the same map is the same request. Whether there are such
parts and such devices is seen when the model is loaded (`attnscope.model.loading.placing`).
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.process.machine import bytes_of

AUTO = "auto"
DeviceMap = str | Path | Mapping[str, str | int] | None
Budgets = str | Mapping[str | int, str | int] | None
_FORM = 'auto, or a map such as {"": "cpu", "encoder.layer.0": "disk"}, there or in a file'


def device_map(written: DeviceMap) -> str | None:
    """`auto`, or the map as JSON; `InputError` for what is neither."""
    if written is None or written == AUTO:
        return written
    parts = dict(written) if isinstance(written, Mapping) else _read(str(written))
    if not parts:
        raise InputError(f"--device-map names no part of the model: it takes {_FORM}")
    for part, place in parts.items():
        if not isinstance(part, str) or isinstance(place, bool) or not isinstance(place, str | int):
            shown = json.dumps(place, default=str)
            raise InputError(f"--device-map: '{part}' goes to {shown}, which is no device")
    return json.dumps(parts)


def max_memory(written: Budgets) -> str | None:
    """How much each device may be given, in bytes, as JSON; `InputError` for what is no such thing."""
    if written is None:
        return None
    pairs: list[tuple[Any, Any]]
    if not isinstance(written, str):
        pairs = list(written.items())
    elif written.startswith("{"):
        pairs = list(_object(written, "--max-memory").items())
    else:
        pairs = [part.partition("=")[::2] for part in written.split(",")]
    budgets = {}
    for place, size in pairs:
        taken = size if isinstance(size, int) else bytes_of(str(size).strip())
        if not str(place).strip() or taken is None or taken < 0:
            raise InputError(f"--max-memory is '{written}': it takes cuda:0=10GB,cpu=30GB")
        budgets[str(place).strip()] = taken
    return json.dumps(budgets)


def _read(written: str) -> dict[str, Any]:
    if written.lstrip().startswith("{"):
        return _object(written, "--device-map")
    try:
        content = incoming.content(os.path.expanduser(written), "--device-map")
    except InputError as error:
        raise InputError(f"{error}; it takes {_FORM}") from error
    return _object(content, f"--device-map '{written}'")


def _object(content: str | bytes, where: str) -> dict[str, Any]:
    parts = incoming.parsed(content, where, object_pairs_hook=_once)
    if not isinstance(parts, dict):
        raise InputError(f"{where} is no map of parts to devices: it takes {_FORM}")
    for part in parts:
        incoming.check_name(part, where)
    return parts


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"'{twice[0]}' stands there twice")
    return dict(pairs)
