"""Parquet, read and written by Arrow: the only door to it, opened only where a Parquet file is asked for."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.errors import InputError
from attnscope.session.corpus.measuring.chunk_file import Measured
from attnscope.session.corpus.run.folder import stream_whole
from attnscope.tokens import printable

_AT_ONCE = 1024


def arrow() -> tuple[Any, Any]:
    """`pyarrow` and its Parquet; `InputError` that says how to get it where it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'attnscope[corpus]'") from error
    return pyarrow, pyarrow.parquet


def column(path: Path, name: str, field: str) -> Iterator[Any]:
    """The values of one column, some at a time; `InputError` for no Parquet, and for no such column."""
    pyarrow, parquet = arrow()
    shown = printable(name)
    try:
        file = parquet.ParquetFile(path)
        there = file.schema_arrow.names
        if field not in there:
            raise InputError(
                f"no field '{printable(field)}' in '{shown}': {', '.join(map(printable, there))}"
            )
        for batch in file.iter_batches(batch_size=_AT_ONCE, columns=[field]):
            yield from batch.column(0).to_pylist()
    except OSError as error:
        why = error.strerror or "it is no whole Parquet file"
        raise InputError(f"cannot read '{shown}': {why}") from error
    except pyarrow.ArrowException as error:
        raise InputError(f"cannot read '{shown}': it is no whole Parquet file") from error


def write_rows(place: Path, chunks: Iterable[Measured]) -> None:
    """A row for each text and head: where the text stands, its tokens, layer, head, and every measure.

    Written by Arrow a chunk at a time, whole or not at all; the same rows give the same bytes.
    """
    pyarrow, parquet = arrow()

    def write(file: Any) -> None:
        writer = None
        try:
            for chunk in chunks:
                table = _table(pyarrow, chunk)
                writer = writer or parquet.ParquetWriter(file, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()

    try:
        stream_whole(place, write)
    except OSError as error:
        raise InputError(f"cannot write '{printable(str(place))}': {error.strerror or error}") from error


def _table(pyarrow: Any, chunk: Measured) -> Any:
    rows = chunk.rows
    assert rows is not None, "rows were asked for"
    texts, heads = len(rows.numbers), len(chunk.layers) * len(chunk.heads)
    layers = np.repeat(np.array(chunk.layers, np.int32), len(chunk.heads))
    columns = {
        "text": np.repeat(rows.numbers, heads),
        "place": pyarrow.array([place for place in rows.places for _ in range(heads)], pyarrow.string()),
        "tokens": np.repeat(rows.tokens, heads).astype(np.int32),
        "layer": np.tile(layers, texts),
        "head": np.tile(np.tile(np.array(chunk.heads, np.int32), len(chunk.layers)), texts),
    }
    for i, name in enumerate(chunk.measures):
        values = rows.values[:, i].reshape(-1)
        columns[name] = pyarrow.array(values, mask=np.isnan(values))
    return pyarrow.table(columns)
