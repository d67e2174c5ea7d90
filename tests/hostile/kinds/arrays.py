"""Arrays for `attnscope sdpa`: typed, from files of every form and from standard input, sound or not."""

import io
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from .. import draw
from ..commands import others, written
from ..invocation import Invocation
from ..material import Material
from . import planted

ARRAYS = (*"qkvx", "wq", "wk", "wv", "wo", "bq", "bk", "bv", "additive_wq", "additive_wk", "additive_v")
NAMED = ("query_names", "key_names", "token_names", "dims", "value_dims", "nothing", "")


def make(rng: Random, here: Path, material: Material) -> Invocation:
    argv, stdin = ["sdpa"], b""
    if draw.chance(rng, 0.5):
        sets = rng.choice(
            [("q", "k", "v"), ("q", "k", "v"), ("x", "wq", "wk", "wv"), ("x", "wq", "wk", "wv", "wo")]
        )
        for name in sets:
            argv += [f"--{name}", _typed_or_file(rng, here, name)]
    else:
        content = draw.json_bytes(rng, _document(rng))
        if draw.chance(rng, 0.3):
            argv, stdin = ["sdpa", "-"], content
        else:
            suffix = rng.choice([".json", ".json", ".npz", ".npy", "", ".csv"])
            (here / f"given{suffix}").write_bytes(_archive(rng, here) if suffix == ".npz" else content)
            argv = ["sdpa", f"given{suffix}"]
    argv += others(rng, "sdpa", rng.choice([0, 0, 1, 2, 3]), odd=0.4)
    return Invocation(tuple(argv + (written(rng) if draw.chance(rng, 0.2) else [])), stdin=stdin)


def _rows(rng: Random) -> list[list[Any]]:
    """A matrix, mostly of the sizes that fit one another."""
    odd = draw.chance(rng, 0.3)
    rows, columns = (rng.choice([0, 1, 2, 3, 50]) if odd else 2 for _ in range(2))
    return [[_cell(rng) for _ in range(columns)] for _ in range(rows)]


def _cell(rng: Random) -> Any:
    return (
        rng.choice([0, 1, -1, 2.5])
        if draw.chance(rng, 0.9)
        else rng.choice([1e308, 1e-320, -1e200, 1e16, 10**30, True, *draw.JSONS[:20]])
    )


def _typed_or_file(rng: Random, here: Path, name: str) -> str:
    rows = _rows(rng)
    sort = rng.randrange(10)
    if sort < 6:
        typed = "; ".join(",".join(str(cell) for cell in row) for row in rows)
        return (
            typed
            if draw.chance(rng, 0.85)
            else rng.choice([typed.replace(",", " "), draw.value(rng), typed + draw.odd(rng), typed + ";;"])
        )
    suffix = rng.choice([".csv", ".json", ".npy"])
    file = here / f"{name}{suffix}"
    if suffix == ".csv":
        separator = rng.choice([",", ",", ";", "\t"])
        content = "\n".join(separator.join(str(cell) for cell in row) for row in rows)
        content = f"{draw.text(rng)}\n{content}" if draw.chance(rng, 0.3) else content
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
    elif suffix == ".json":
        file.write_bytes(draw.json_bytes(rng, rows if draw.chance(rng, 0.7) else draw.json_value(rng)))
    else:
        file.write_bytes(_npy(rng, here, rows))
    if draw.chance(rng, 0.15):
        file.write_bytes(draw.changed_bytes(rng, file.read_bytes()))
    return file.name


def _npy(rng: Random, here: Path, rows: Any) -> bytes:
    if draw.chance(rng, 0.1):
        return planted.object_array(here)
    made = io.BytesIO()
    dtype = rng.choice(["float64", "float32", "float16", "int8", "bool", "complex64", "U5", "datetime64[D]"])
    try:
        with np.errstate(all="ignore"):
            np.save(made, np.array(rows).astype(dtype), allow_pickle=False)
    except (ValueError, TypeError, OverflowError):
        np.save(made, np.zeros((2, 2)))
    return made.getvalue()


def _document(rng: Random) -> Any:
    sets = rng.choice([ARRAYS[:3], ARRAYS[:3], ARRAYS[3:7], ARRAYS[3:8], ARRAYS[3:11], ARRAYS])
    made: dict[str, Any] = {name: _rows(rng) for name in sets}
    for name in rng.sample(NAMED, rng.choice([0, 0, 1, 2])):
        made[name] = rng.choice(
            [["a", "b"], [draw.text(rng), "b"], "ab", [], [1, 2], ["a", "a"], draw.json_value(rng)]
        )
    return draw.changed_json(rng, made, ARRAYS) if draw.chance(rng, 0.3) else made


def _archive(rng: Random, here: Path) -> bytes:
    """An .npz of arrays, some of them no matrices."""
    members = {f"{name}.npy": _npy(rng, here, _rows(rng)) for name in ("q", "k", "v")}
    if draw.chance(rng, 0.2):
        members["query_names.npy"] = _npy(rng, here, ["a", "b"])
    content = draw.zipped(members)
    return content if draw.chance(rng, 0.8) else draw.changed_bytes(rng, content)
