"""One file of a corpus, read from its start to its end without holding it: texts, and what is none.

What cannot be read is handed on as `SetAside`, with its place and what stood there. Blank lines between texts
are none of either, and are counted.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any

from attnscope import incoming
from attnscope.analysis.claims.relations.treebank import read_block
from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import SetAside, Text


class Form(StrEnum):
    """How texts stand in a file."""

    LINES = "lines"
    FILE = "file"
    JSONL = "jsonl"
    CONLLU = "conllu"
    PARQUET = "parquet"


_BY_SUFFIX = {".jsonl": Form.JSONL, ".ndjson": Form.JSONL, ".conllu": Form.CONLLU, ".parquet": Form.PARQUET}
FIELD = "text"
_ROWS_AT_ONCE = 1024
_SHOWN = 2000  # characters of what is set aside that are kept where it is no text
Item = Text | SetAside | None  # None: a blank


@dataclass(frozen=True)
class Source:
    """A file, how texts stand in it, and in which field where they have several."""

    path: Path
    name: str
    form: Form
    field: str = FIELD

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes."""
        return incoming.sha256(self.path)

    def items(self) -> Iterator[Item]:
        """Everything in it, in its order; texts have no number yet."""
        return _READERS[self.form](self)


def form_of(path: Path, wanted: str | None) -> Form:
    """The form that is wanted, or else that which the suffix says; lines of text for any other."""
    if wanted is not None:
        if wanted not in [*Form]:
            raise InputError(f"no format '{wanted}': {', '.join(Form)}")
        return Form(wanted)
    return _BY_SUFFIX.get(path.suffix.lower(), Form.LINES)


def _lines(source: Source) -> Iterator[tuple[int, bytes | SetAside]]:
    for number, line in enumerate(incoming.lines(source.path, held=False), start=1):
        too_long = len(line) > incoming.LONGEST_LINE
        yield number, _too_long(f"{source.name}:{number}", line) if too_long else line


def _too_long(place: str, start: bytes) -> SetAside:
    shown = start[:_SHOWN].decode("utf-8", "backslashreplace")
    return SetAside(place, f"it is longer than {incoming.LONGEST_LINE:,} bytes", shown)


def _of_lines(source: Source) -> Iterator[Item]:
    for number, raw in _lines(source):
        place = f"{source.name}:{number}"
        if isinstance(raw, SetAside):
            yield raw
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeError:
            yield SetAside(place, "it is not valid UTF-8", raw.decode("utf-8", "backslashreplace")[:_SHOWN])
            continue
        yield Text(-1, place, text) if text.strip() else None


def _of_file(source: Source) -> Iterator[Item]:
    raw = incoming.content(source.path, most=incoming.LONGEST_LINE + 1).removeprefix(incoming.BOM)
    if len(raw) > incoming.LONGEST_LINE:
        yield _too_long(source.name, raw)
        return
    try:
        text = raw.decode("utf-8")
    except UnicodeError:
        yield SetAside(source.name, "it is not valid UTF-8", raw[:_SHOWN].decode("utf-8", "backslashreplace"))
        return
    yield Text(-1, source.name, text) if text.strip() else None


def _of_json_lines(source: Source) -> Iterator[Item]:
    for number, raw in _lines(source):
        place = f"{source.name}:{number}"
        if isinstance(raw, SetAside):
            yield raw
            continue
        if not raw.strip():
            yield None
            continue
        try:
            record = json.loads(raw)
        except (ValueError, RecursionError) as error:
            why = error.msg if isinstance(error, json.JSONDecodeError) else "no JSON in UTF-8"
            yield SetAside(place, f"it is no JSON: {why}", raw.decode("utf-8", "backslashreplace")[:_SHOWN])
            continue
        yield _of_record(record, place, source.field)


def _of_record(record: Any, place: str, field: str) -> Item:
    """The text of a record, or why there is none."""
    shown = json.dumps(record, ensure_ascii=False, default=str)[:_SHOWN]
    if not isinstance(record, dict):
        return SetAside(place, "it is no object with fields", shown)
    if field not in record:
        there = ", ".join(f"'{name}'" for name in record) or "none"
        return SetAside(place, f"it has no field '{field}': its fields are {there}", shown)
    value = record[field]
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        return SetAside(place, f"its field '{field}' is no text but {kind}", shown)
    if any("\ud800" <= character <= "\udfff" for character in value):
        return SetAside(place, f"its field '{field}' holds half a character", shown)
    return (
        Text(-1, place, value) if value.strip() else SetAside(place, f"its field '{field}' is empty", shown)
    )


def _of_treebank(source: Source) -> Iterator[Item]:
    block: list[bytes] = []
    first, size = 1, 0
    for number, raw in chain(_lines(source), [(0, b"")]):
        if isinstance(raw, SetAside):
            yield raw
        elif raw.strip():
            first, size = first if block else number, size + len(raw)
            block += [raw] if size <= incoming.LONGEST_LINE else []
            continue
        if size > incoming.LONGEST_LINE:
            yield _too_long(f"{source.name}:{first}", block[0])
        elif block:
            yield from _sentence(block, first, source)
        block, size = [], 0


def _sentence(block: list[bytes], first: int, source: Source) -> Iterator[Item]:
    place = f"{source.name}:{first}"
    try:
        sentence = read_block(block, source.name, first)
    except InputError as error:
        yield SetAside(place, str(error), b"\n".join(block).decode("utf-8", "backslashreplace")[:_SHOWN])
        return
    if sentence is not None:
        yield Text(-1, place, " ".join(sentence.words), sentence.words, sentence.tags)


def arrow() -> tuple[Any, Any]:
    """`pyarrow` and its Parquet; `InputError` that says how to get it where it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'attnscope[corpus]'") from error
    return pyarrow, pyarrow.parquet


def _of_parquet(source: Source) -> Iterator[Item]:
    """The values of one column, some at a time; `InputError` for no Parquet, and for no such column."""
    pyarrow, parquet = arrow()
    field, number = source.field, 0
    try:
        file = parquet.ParquetFile(source.path)
        there = file.schema_arrow.names
        if field not in there:
            raise InputError(f"no field '{field}' in '{source.name}': {', '.join(there)}")
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=[field]):
            for value in batch.column(0).to_pylist():
                number += 1
                yield _of_record({field: value}, f"{source.name}:{number}", field)
    except OSError as error:
        why = error.strerror or "it is no whole Parquet file"
        raise InputError(f"cannot read '{source.name}': {why}") from error
    except pyarrow.ArrowException as error:
        raise InputError(f"cannot read '{source.name}': it is no whole Parquet file") from error


_READERS: dict[Form, Callable[[Source], Iterator[Item]]] = {
    Form.LINES: _of_lines,
    Form.FILE: _of_file,
    Form.JSONL: _of_json_lines,
    Form.CONLLU: _of_treebank,
    Form.PARQUET: _of_parquet,
}
