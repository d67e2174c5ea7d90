"""What stands beside the result: a row for each text and head as Parquet, and what could not be measured."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.errors import InputError
from attnscope.session.corpus.chunk_file import Measured
from attnscope.session.corpus.folder import ASIDE, Folder, stream_whole
from attnscope.session.corpus.source import arrow
from attnscope.tokens import printable


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


def write_aside(folder: Folder, chunks: Iterable[Measured]) -> Path:
    """Where the file of all that could not be measured is: place, reason and text as JSON, one a line.

    An empty file where nothing was set aside.
    """
    place = folder.path / ASIDE

    def write(file: Any) -> None:
        for chunk in chunks:
            for aside in chunk.set_aside:
                file.write((json.dumps(asdict(aside), ensure_ascii=False) + "\n").encode("utf-8", "replace"))

    stream_whole(place, write)
    return place
