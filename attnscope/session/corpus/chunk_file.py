"""The file of a chunk: totals of its texts, what was set aside, what was proved, and rows where asked for.

An npz of plain arrays with JSON in `meta`, the same bytes for the same chunk.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attnscope.analysis.corpus.totals import Totals
from attnscope.session.corpus.engine.interface import SetAside

_FAST = 1  # what a higher level saves in bytes costs five times its time
SCHEMA = "attnscope.corpus-chunk/4"


@dataclass(frozen=True, eq=False)
class Proved:
    """What full captures of some texts say: heads by verdict, and how far reading them alone differs."""

    certified: Mapping[str, int] = field(default_factory=dict)
    sampled: int = 0
    unlike: float = 0.0
    provenance: Mapping[str, Any] | None = None

    def merged(self, later: "Proved") -> "Proved":
        """With what was proved in a later chunk."""
        names = dict.fromkeys((*self.certified, *later.certified))
        return Proved(
            {name: self.certified.get(name, 0) + later.certified.get(name, 0) for name in names},
            self.sampled + later.sampled,
            max(self.unlike, later.unlike),
            self.provenance or later.provenance,
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """What each text gives: its number in the corpus, its tokens, where it stands, and all values."""

    numbers: Int[np.ndarray, " text"]
    tokens: Int[np.ndarray, " text"]
    places: tuple[str, ...]
    values: Float[np.ndarray, "text measure layer head"]


@dataclass(frozen=True, eq=False)
class Measured:
    """A chunk that is measured.

    `measures`, `layers`, `heads`, `kind` and `tower` say what the axes are; `absent` why a measure has no
    meaning for this model. `unknown` counts pieces that the tokenizer cannot spell, `padded` texts that were
    filled up, `cut` those that were cut.
    """

    number: int
    measures: tuple[str, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    kind: str
    tower: str
    texts: int
    tokens: int
    longest: int
    limit: int | None
    unknown: int
    padded: int
    cut: int
    set_aside: tuple[SetAside, ...]
    absent: Mapping[str, str]
    proved: Proved
    totals: Totals
    rows: Rows | None = None


_PLAIN = (
    "number", "measures", "layers", "heads", "kind", "tower", "texts", "tokens", "longest", "limit",
    "unknown", "padded", "cut", "absent",
)  # fmt: skip


def written(measured: Measured) -> bytes:
    """The bytes of the file."""
    meta = {
        "schema": SCHEMA,
        **{name: getattr(measured, name) for name in _PLAIN},
        "set_aside": [asdict(aside) for aside in measured.set_aside],
        "proved": asdict(measured.proved),
    }
    arrays = measured.totals.arrays()
    if (rows := measured.rows) is not None:
        meta["places"] = list(rows.places)
        arrays |= {"numbers": rows.numbers, "lengths": rows.tokens, "values": rows.values}
    buffer = io.BytesIO()
    plain = json.dumps(meta, ensure_ascii=True, sort_keys=True)
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in {"meta": np.array(plain), **arrays}.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")  # of no time: the same bytes for the same chunk
            file.writestr(entry, content.getvalue(), zipfile.ZIP_DEFLATED, _FAST)
    return buffer.getvalue()


class NotAChunkError(Exception):
    """The bytes are no whole chunk file."""


def read(content: bytes) -> Measured:
    """The chunk again; `NotAChunkError` for anything else."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop("meta")))
        if meta["schema"] != SCHEMA:
            raise NotAChunkError(f"it is {meta['schema']}")
        return _made(meta, arrays)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise NotAChunkError("it is damaged") from error


def _made(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Measured:
    plain = {name: meta[name] for name in _PLAIN}
    for name in ("measures", "layers", "heads"):
        plain[name] = tuple(plain[name])
    rows = None
    if "values" in arrays:
        values = arrays.pop("values")
        rows = Rows(arrays.pop("numbers"), arrays.pop("lengths"), tuple(meta["places"]), values)
    return Measured(
        **plain,
        set_aside=tuple(SetAside(**aside) for aside in meta["set_aside"]),
        proved=Proved(**meta["proved"]),
        totals=Totals.from_arrays(arrays),
        rows=rows,
    )
