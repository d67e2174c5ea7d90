"""Writes results as JSON or npz files with hashes, and reads and checks them.

Both formats have a versioned schema and keys named after the axes. NaN is null in JSON and `nan` in npz.
Equal results give equal bytes. Only npz files hold the dense weights of an overview, the pixels of a
picture, and the samples and the spectrogram of a sound. Every error in a file is one line.

Hashes show which key or array was changed, so that damaged, edited or mixed files are found. Anyone can
write new hashes on purpose: only numbers that were recomputed (`again`) are marked as proved.
"""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from attnscope import incoming
from attnscope.errors import AttnscopeError, CertificateError, Damaged, Departs, InputError, is_out_of_memory
from attnscope.incoming import check_room
from attnscope.printable import steers
from attnscope.process.machine import gigabytes
from attnscope.results.base.origin import Verdict
from attnscope.results.base.presented import Arrays, Value
from attnscope.results.heads import HeadView, HeadWeights
from attnscope.results.result import KINDS, Result, name_of
from attnscope.results.scores import MeasureDescription
from attnscope.results.stored.again import view_follows
from attnscope.results.stored.arrays import parted
from attnscope.results.stored.codec import Place, decode, encode
from attnscope.results.stored.strict import LAYOUT, VERSION, exactly, strict

ARCHIVE, ARRAY = b"PK\x03\x04", b"\x93NUMPY"  # how the files begin


class Readable(Protocol):
    """A byte stream that reads on from its last position."""

    def read(self, size: int = -1, /) -> bytes: ...


def arrays_in(content: bytes, name: str) -> Arrays:
    """All arrays of an npz by name; error messages call the file `name`.

    `InputError` for another kind of file; `DoesNotFitError` where its arrays would not fit in memory.
    """
    with _whole(name), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        sizes: dict[str, int] = {}
        for member in members:
            with archive.open(member) as stream:
                sizes[_key(member)] = _size(stream, member.file_size)
        largest = max(sizes, key=sizes.__getitem__, default="")
        own = f" ('{largest}' alone {gigabytes(sizes[largest])})" if sizes else ""
        check_room(sum(sizes.values()), f"'{name}' unpacked", own)
        arrays: Arrays = {}
        for member in members:
            with archive.open(member) as stream:
                arrays[_key(member)] = _array(stream)
        return arrays


def _key(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def array_in(content: bytes, name: str) -> np.ndarray:
    """The array in an npy file's content."""
    with _whole(name):
        _size(io.BytesIO(content), len(content))
        return _array(io.BytesIO(content))


def _size(stream: Readable, most: int) -> int:
    """The size of an array in bytes by its header; `ValueError` where the file is smaller."""
    major, _ = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    count = 1
    for size in shape:
        count *= int(size)
    if min(shape, default=0) < 0 or count * max(dtype.itemsize, 1) > most:
        raise ValueError("an array says that it is larger than it is")
    return count * dtype.itemsize


def _array(stream: Readable) -> np.ndarray:
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):  # at its end an archive holds what was read against its checksum
        raise ValueError("something stands behind an array")
    return array


@contextmanager
def _whole(name: str) -> Iterator[None]:
    try:
        yield
    except AttnscopeError:
        raise
    except Exception as error:  # whatever zipfile, zlib, tokenize and NumPy make of them
        if is_out_of_memory(error):
            raise
        raise InputError(f"cannot read '{name}': it is damaged, or holds more than plain arrays") from error


@dataclass(frozen=True)
class MeasureListed:
    """A measure's description, with its `range` in words and its `formula`.

    In a formula a is the weight of query q on key k, mean the mean over queries, and f(x_k) what arrives of
    the value of k through the output projection.
    """

    described: MeasureDescription = field(metadata={"spread": True})
    range: str
    formula: str


@dataclass(frozen=True)
class MeasuresListing:
    """A list of measures of heads: all `measures`, or those requested."""

    measures: tuple[MeasureListed, ...]


LISTINGS = {"measures": MeasuresListing}


def measures_document(listing: MeasuresListing, answer: str) -> str:
    """The listing as JSON, one measure per line."""
    head = {"schema": f"attnscope.measures/{VERSION}", "answer": answer}
    begun = json.dumps(head, indent=2).removesuffix("\n}")
    rows = [
        asdict(each.described) | {"range": each.range, "formula": each.formula} for each in listing.measures
    ]
    body = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{begun},\n  "measures": [\n    {body}\n  ]\n}}\n'


_WORDS, _DIGESTS = tuple[str, ...], dict[str, str]
_ABOUT = ("schema", "layout", "asked_by", "asked_of")  # which are no fields of the result
_SCHEMA = re.compile(r"attnscope\.([a-z-]{1,40})/([0-9]{1,9})")
# what is said of a result in words, which is made anew whenever it is shown
SAID = {"answer", "next"}
NO_RESULT = "is no result of attnscope"


def schema(result: Result) -> str:
    """The schema name of a result: `attnscope.head/2`."""
    return f"attnscope.{name_of(type(result))}/{VERSION}"


def document(result: Result, *, npz: bool = False) -> dict[str, Value]:
    """The result as plain values and arrays; `npz` includes arrays that JSON leaves out."""
    told: dict[str, Value] = encode(result, npz=npz)
    asked = {"asked_by": encode(result.asked_by, npz=npz, hint=_WORDS)} if result.asked_by else {}
    files = {"asked_of": dict(result.asked_of)} if result.asked_of else {}
    return {"schema": schema(result)} | asked | files | told


def restored(told: Any, arrays: Arrays | None, name: str) -> Result:
    """Reads a document and its arrays as a result; error messages call it `name`."""
    said = told.get("schema") if isinstance(told, dict) else None
    match = _SCHEMA.fullmatch(said) if isinstance(said, str) else None
    if match is None:
        raise InputError(f"'{name}' {NO_RESULT}: it has no schema of its")
    _check_known(match, told.get("layout"), name)
    check_seal(told, arrays, name)
    try:
        return of_document(told, arrays, believed=False)
    except Departs as error:
        raise CertificateError(f"'{name}' is not as it was computed: {error}") from error
    except Damaged as error:
        raise InputError(f"'{name}' is damaged: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"'{name}' is damaged: its parts do not fit together") from error


def of_document(told: dict[str, Value], arrays: Arrays | None, believed: bool = True) -> Result:
    """The result of a document in the current layout; raises `Damaged` or `Departs`.

    Unless `believed` (from our own memory) its verdicts become `stored` at best, or `recomputed` where all it
    shows was computed again.

    """
    plain = exactly(told)
    kind = KINDS[plain["schema"].removeprefix("attnscope.").partition("/")[0]]
    own = {key: value for key, value in plain.items() if key not in (*_ABOUT, *SAID)}
    asked = decode(_WORDS, plain.get("asked_by", []), Place("asked_by", None, {}))
    files = decode(_DIGESTS, plain.get("asked_of", {}), Place("asked_of", None, {}))
    follow = kind in (HeadWeights, HeadView)
    result: Result = decode(kind, own, Place("", arrays, {}, believed, follow))
    object.__setattr__(result, "from_file", not believed)
    object.__setattr__(result, "asked_by", asked)
    object.__setattr__(result, "asked_of", files)
    if isinstance(result, HeadView) and not believed and not view_follows(result):
        raise Departs("the weights of its rows and columns are not those of its tokens")
    return result


def _check_known(match: re.Match[str], layout: Value, name: str) -> None:
    kind, version = match[1], int(match[2])
    if kind not in KINDS or version < 1:
        kinds = ", ".join(KINDS)
        raise InputError(f"'{name}' is {match[0]}, which this attnscope does not know: it reads {kinds}")
    if version != VERSION:
        other = "a newer" if version > VERSION else "another"
        read = f"it is {match[0]}, this one reads attnscope.{kind}/{VERSION}"
        raise InputError(f"'{name}' was written by {other} attnscope: {read}")
    if layout != LAYOUT:
        raise InputError(f"'{name}' was written by another attnscope: its layout is {layout!r}, not {LAYOUT}")


def as_json(result: Result, said: Mapping[str, Value] | None = None) -> str:
    """Strict JSON with one key, matrix row or token per line; `said` adds texts such as the answer."""
    plain = sealed(strict(_beside(result, said or {})))
    entries = [f"  {_written(key)}: {_laid_out(value)}" for key, value in plain.items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def as_json_line(result: Result, said: Mapping[str, Value], first: Mapping[str, Value]) -> str:
    """Strict JSON on one line; the entries of `first` come first."""
    return _written({**strict(dict(first)), **sealed(strict(_beside(result, said)))})


def _beside(result: Result, said: Mapping[str, Value]) -> dict[str, Value]:
    told = document(result)
    assert not told.keys() & SAID, "these keys are of the words alone"
    return {"schema": told.pop("schema"), **said, **told}


def as_npz(result: Result) -> bytes:
    """An npz archive for `np.load`, without pickles: arrays bit by bit, the rest as JSON in `meta`.

    {"npz": name} stands there in place of an array. Members are dated 1980, so that equal results give equal
    bytes. `InputError` for a result read from JSON without its arrays.

    """
    arrays: Arrays = result.npz_columns() if hasattr(result, "npz_columns") else {}
    plain = strict(parted(document(result, npz=True), arrays))
    meta = np.array(_written(sealed(plain, arrays)))
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, meta=meta, **arrays)
    return buffer.getvalue()


def _laid_out(value: Value) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n    " + ",\n    ".join(map(_written, value)) + "\n  ]"
    return _written(value)


def _written(value: Value) -> str:
    """JSON text with characters that could control a terminal escaped."""
    plain = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return plain if plain.isprintable() else "".join(map(_harmless, plain))


def _harmless(character: str) -> str:
    return json.dumps(character)[1:-1] if steers(character) else character


_TOLD = (".png", ".svg", ".pdf", ".csv")
_PICTURES = (b"\x89PNG", b"%PDF", b"<?xml", b"<svg", b"\xff\xd8\xff", b"GIF8")


def load(path: str | Path) -> Result:
    """Reads the result in a .npz or .json file that attnscope wrote; its content tells the format.

    `InputError` where there is no such file, or it cannot be read, is damaged, of a newer attnscope, or no
    result. What JSON leaves out (see `attnscope.results.stored.document`) is None in the result.
    """
    return stored(path)[0]


def stored(path: str | Path) -> tuple[Result, Any]:
    """The result in a file, and the raw document."""
    name = str(path)
    content = incoming.content(path)
    if not content.strip():
        raise InputError(f"'{name}' is empty")
    if content.startswith(ARCHIVE):
        told, arrays = _from_npz(content, name)
        return restored(told, arrays, name), told
    if content.startswith((*_PICTURES, b"# schema: attnscope.")) or Path(path).suffix.lower() in _TOLD:
        raise InputError(
            f"cannot read '{name}': pictures and CSV cannot be read again: give the .npz or .json"
        )
    told = _from_json(content, name)
    return restored(told, None, name), told


def stored_verdict(told: Any, place: tuple[int, int] | None = None) -> Verdict | None:
    """The verdict stored in a document, for the whole or for one head of an overview; None without one."""
    if place is not None:
        told = {"certificate": (told["by_tokens"] or told)["certificates"][place[0]][place[1]]}
    own = told.get("certificate")
    said = told.get("verdict", own.get("verdict") if isinstance(own, dict) else None)
    return next((each for each in Verdict if each == said), None)


def _from_json(content: bytes, name: str) -> Any:
    incoming.check_json_room(content, f"'{name}'")
    try:
        return json.loads(content.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            raise InputError(f"'{name}' {NO_RESULT}: give a .npz or .json that it wrote") from error
        raise InputError(f"'{name}' is damaged: {_where(error)}") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _where(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON from line {error.lineno} on"
    return "it is no JSON in UTF-8"


def _from_npz(content: bytes, name: str) -> tuple[Any, Arrays]:
    arrays = arrays_in(content, name)
    meta = arrays.pop("meta", None)
    if meta is None or meta.dtype.kind != "U" or meta.shape != ():
        raise InputError(f"'{name}' {NO_RESULT}: it is an npz without 'meta'")
    incoming.check_json_room(str(meta), f"'{name}'")
    try:
        return json.loads(str(meta), parse_constant=_refuse), arrays
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{name}' is damaged: its 'meta' is no JSON") from error


KEY = "digests"
_TEXT = re.compile(r'("(?:[^"\\]|\\.)*")')
_WHOLE = re.compile(r"\.0(?=[,\]}]|$)")


def sealed(plain: dict[str, Value], arrays: Arrays | None = None) -> dict[str, Value]:
    """The document with a hash of each key and, for an npz, of each array."""
    return plain | {KEY: dict(_hashes(plain, arrays))}


def check_seal(plain: dict[str, Value], arrays: Arrays | None, name: str) -> None:
    """Removes the hashes from a document and compares them; `CertificateError` where one differs."""
    said = plain.pop(KEY, None)
    found = dict(_hashes(plain, arrays))
    if not isinstance(said, dict) or (changed := sorted(_differing(said, found))):
        what = ", ".join(f"'{each}'" for each in changed[:3]) if isinstance(said, dict) else f"'{KEY}'"
        more = f" and {len(changed) - 3} more" if isinstance(said, dict) and len(changed) > 3 else ""
        raise CertificateError(f"'{name}' was changed after it was written: {what}{more} is not as it was")


def _differing(said: Mapping[str, Value], found: Mapping[str, str]) -> Iterator[str]:
    for key in {*said, *found}:
        if said.get(key) != found.get(key):
            yield ascii(str(key))[1:-1][:60]


def _hashes(plain: Mapping[str, Value], arrays: Arrays | None) -> Iterator[tuple[str, str]]:
    for key, value in plain.items():
        parts = _TEXT.split(json.dumps(value, sort_keys=True))
        # other programs write 1.0 as 1; what stands in a text stays
        parts[::2] = [_WHOLE.sub("", each) for each in parts[::2]]
        yield key, _hash("".join(parts).encode())
    for name, values in (arrays or {}).items():
        about = f"{values.dtype.str} {values.shape}".encode()
        yield f"{name}.npy", _hash(about, np.ascontiguousarray(values).tobytes())


def _hash(*contents: bytes) -> str:
    whole = hashlib.sha256()
    for content in contents:
        whole.update(content)
    return whole.hexdigest()[:32]
