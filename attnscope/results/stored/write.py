"""A result as one JSON document, or as an npz archive: the two files that can be read again.

Both have a versioned schema and keys named by the words of the axes. Numbers that are no numbers are null
in JSON and `nan` in npz. The same result gives the same bytes. The dense weights of an overview, the pixels
of a picture and the samples and the spectrogram of a sound stand in their npz only.
"""

import io
import json
from collections.abc import Mapping

import numpy as np

from attnscope.results.base.parts import Arrays, Value
from attnscope.results.result import Result
from attnscope.results.stored.arrays import parted
from attnscope.results.stored.document import document
from attnscope.results.stored.strict import strict
from attnscope.tokens import steers


def as_json(result: Result) -> str:
    """Strict JSON; one key a line, one row of a matrix or one token a line."""
    plain = strict(document(result))
    entries = [f"  {_written(key)}: {_laid_out(value)}" for key, value in plain.items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def as_json_line(result: Result, first: Mapping[str, Value]) -> str:
    """The same document on one line, behind what comes `first`."""
    return _written({**strict(dict(first)), **strict(document(result))})


def as_npz(result: Result) -> bytes:
    """An archive that `np.load` reads without pickles: the arrays bit by bit, the rest as JSON in `meta`.

    There {"npz": name} stands where an array belongs.

    Its members are all dated 1980, never now. `InputError` for what was read from JSON without its arrays.
    """
    arrays: Arrays = {}
    meta = _written(strict(parted(document(result, npz=True), arrays)))
    columns: Arrays = result.npz_columns() if hasattr(result, "npz_columns") else {}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, meta=np.array(meta), **arrays, **columns)
    return buffer.getvalue()


def _laid_out(value: Value) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n    " + ",\n    ".join(map(_written, value)) + "\n  ]"
    return _written(value)


def _written(value: Value) -> str:
    """Characters as they are, but for those that could steer the terminal on which a document is printed."""
    plain = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return plain if plain.isprintable() else "".join(map(_harmless, plain))


def _harmless(character: str) -> str:
    return json.dumps(character)[1:-1] if steers(character) else character
