"""Stored results that were changed after they had been written, with hashes that fit again or do not."""

import io
import json
import sys
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from .. import draw
from ..commands import others, written
from ..invocation import Invocation
from ..material import SPECIMENS, Material
from . import planted

KEYS = (
    "schema", "layout", "kind", "layer", "head", "weights", "scores", "query_tokens", "key_tokens",
    "query_texts", "certificate", "verdict", "provenance", "model", "token_ids", "heads", "layers", "span",
    "text", "allowed", "measure", "values", "picture", "sound", "points", "attnscope", "items", "word",
    "special", "errors", "tolerance", "faults", "version", "notes", "scale", "dim", "steps", "shape",
)  # fmt: skip
DTYPES = (
    "float32", "float16", "int64", "uint8", "bool", "complex128", "U3", "S3", "datetime64[s]", "float64",
    ">f8",
)  # fmt: skip


def make(rng: Random, here: Path, material: Material) -> Invocation:
    files = sorted(material.stored().iterdir())
    origin = rng.choice(files)
    name = "stored" + (origin.suffix if draw.chance(rng, 0.95) else rng.choice([".json", ".npz", ".png", ""]))
    content = origin.read_bytes()
    if draw.chance(rng, 0.92):
        content = _json(rng, content) if origin.suffix == ".json" else _npz(rng, here, content)
        content = _resealed(content, origin.suffix) if draw.chance(rng, 0.5) else content
    (here / name).write_bytes(content)
    argv = ["show", name]
    if draw.chance(rng, 0.3):
        (here / f"other{origin.suffix}").write_bytes(origin.read_bytes())
        argv = rng.choice([["check", name], ["compare", name, f"other{origin.suffix}"], ["sdpa", name]])
        return Invocation(tuple(argv))
    argv += others(rng, "show", rng.choice([0, 0, 1, 1, 2, 3]), odd=0.3)
    argv += written(rng) if draw.chance(rng, 0.4) else []
    return Invocation(tuple(argv), environment={"COLUMNS": rng.choice(["80", "100", "140", "40", "1"])})


def _resealed(content: bytes, suffix: str) -> bytes:
    """The file with hashes of what it holds now, as a forger leaves it; as it was if it is none."""
    if str(SPECIMENS) not in sys.path:
        sys.path.append(str(SPECIMENS))
    import resealed

    try:
        if suffix == ".json":
            return json.dumps(resealed.document(json.loads(content))).encode()
        return resealed.archive(resealed.arrays_of(content))
    except Exception:  # whatever a file that is none does to NumPy
        return content


def _json(rng: Random, content: bytes) -> bytes:
    if draw.chance(rng, 0.12):
        return draw.changed_bytes(rng, content)
    document = json.loads(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        document = draw.changed_json(rng, document, KEYS if draw.chance(rng, 0.4) else ())
    return draw.json_bytes(rng, document)


def _npz(rng: Random, here: Path, content: bytes) -> bytes:
    if draw.chance(rng, 0.15):
        return draw.changed_bytes(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.choice([1, 1, 2])):
        _member(rng, here, members)
    return draw.zipped(members, rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))


def _member(rng: Random, here: Path, members: dict[str, bytes]) -> None:
    name = rng.choice(list(members) or ["weights.npy"])
    action = rng.randrange(8)
    if action == 0:
        members.pop(name, None)
    elif action == 1:
        other = rng.choice(["x.npy", "../x.npy", "weights", "\u202e.npy", "q.npy", "/etc/x.npy"])
        members[other] = members.get(name, b"")
    elif action == 2:
        members[name] = planted.object_array(here)
    elif action == 3:
        members[name] = draw.changed_bytes(rng, members.get(name, b""))
    elif action == 4:
        members[name] = _lying_header(rng)
    else:
        members[name] = _array(rng, members.get(name, b""))


def _lying_header(rng: Random) -> bytes:
    """An array whose header says that it is far larger than it is, or no array at all."""
    shape = rng.choice(
        ["(1000000, 1000000)", "(9223372036854775807,)", "(-1,)", "()", "(0, 5)", "(2, 3", "(1000000000,)"]
    )
    described = rng.choice(["<f8", "|O", "<U1000000", "|V8", "<f9", "<m8"])
    header = f"{{'descr': '{described}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"\0" * 64


def _array(rng: Random, content: bytes) -> bytes:
    """The same array with other values, another shape or another type; the text of a document changed."""
    try:
        array: Any = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError):
        return content
    if array.dtype.kind in "US" and array.ndim == 0:
        try:
            array = np.array(json.dumps(draw.changed_json(rng, json.loads(str(array)), KEYS)))
        except (ValueError, UnicodeEncodeError):
            array = np.array(draw.text(rng))
    else:
        array = _spoiled(rng, array)
    made = io.BytesIO()
    try:
        np.save(made, array, allow_pickle=False)
    except (ValueError, UnicodeError):
        return content
    return made.getvalue()


def _spoiled(rng: Random, array: Any) -> Any:
    action = rng.randrange(7)
    if action == 0 and array.size and array.dtype.kind == "f":
        array.flat[rng.randrange(array.size)] = rng.choice(
            [np.nan, np.inf, -np.inf, 1e300 if array.itemsize == 8 else 1e30, -1.0]
        )
    elif action == 1:
        return array[..., :-1] if array.ndim else array
    elif action == 2:
        return array[None]
    elif action == 3:
        return array.T
    elif action == 4:
        return np.zeros((0,) * array.ndim)
    elif action == 5 and array.dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            return np.nan_to_num(array).astype(rng.choice(DTYPES))
    elif array.dtype.kind in "iu" and array.size:
        array.flat[0] = rng.choice([-1, 0, 99, 127])
    return array
