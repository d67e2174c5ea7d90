"""What each text gave: a file of Parquet that each split leaves beside its part, and all of them as one.

A row is a text and a head: the number of the text, where it stands, its tokens, layer, head and each measure.
In the file of a split texts and lines count from its start, and sources are numbers.
"""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from attnscope.verbs.corpus.folder import Folder
from attnscope.verbs.corpus.part import Part
from attnscope.verbs.corpus.source import Source
from attnscope.verbs.corpus.splits import placed
from attnscope.verbs.corpus.store import Place


class RowsOfSplit:
    """The rows of a split, compressed as they come."""

    def __init__(self, measures: Sequence[str], layers: Sequence[int], heads: Sequence[int]) -> None:
        self.measures, self.layers, self.heads = measures, layers, heads
        self._buffer = io.BytesIO()
        self._writer: Any = None

    def add(self, texts: Mapping[str, Sequence[int]], values: np.ndarray) -> None:
        """Those of some texts: `text`, `source`, `line` and `tokens` of each, `text measure layer head`."""
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        count, heads = len(values), len(self.layers) * len(self.heads)
        layers = np.repeat(np.array(self.layers, np.int32), len(self.heads))
        columns: dict[str, Any] = {
            name: np.repeat(np.array(each, np.int64), heads) for name, each in texts.items()
        }
        columns["layer"] = np.tile(layers, count)
        columns["head"] = np.tile(np.tile(np.array(self.heads, np.int32), len(self.layers)), count)
        for i, name in enumerate(self.measures):
            flat = values[:, i].reshape(-1)
            columns[name] = pyarrow.array(flat, mask=np.isnan(flat))
        table = pyarrow.table(columns)
        if self._writer is None:
            self._writer = ParquetWriter(self._buffer, table.schema, compression="zstd")
        self._writer.write_table(table)

    def content(self) -> bytes:
        """The bytes of the file, none where no text was measured."""
        if self._writer is not None:
            self._writer.close()
        return self._buffer.getvalue()


@dataclass
class AllRows:
    """All rows in one file, part by part in their order; the same rows give the same bytes."""

    file: IO[bytes]
    folder: Folder
    sources: Sequence[Source]
    texts: int = 0
    lines: Counter[int] = field(default_factory=Counter)
    _writer: Any = None

    @classmethod
    @contextmanager
    def into(cls, place: Place, folder: Folder, sources: Sequence[Source]) -> "Iterator[AllRows]":
        """Those that are added, whole or not at all."""
        with place.writing() as file:
            rows = cls(file, folder, sources)
            try:
                yield rows
            finally:
                if rows._writer is not None:
                    rows._writer.close()

    def add(self, part: Part) -> None:
        """The rows of each of its splits."""
        from pyarrow.parquet import ParquetFile, ParquetWriter

        for rows in part.rows:
            own = ParquetFile(io.BytesIO(self.folder.rows(rows))) if rows.name else None
            for table in () if own is None else _tables(own, self.texts, self.lines, self.sources):
                self._writer = self._writer or ParquetWriter(self.file, table.schema)
                self._writer.write_table(table)
            self.texts += rows.read
            self.lines.update(rows.lines)


def _tables(file: Any, texts: int, lines: Mapping[int, int], sources: Sequence[Source]) -> Iterable[Any]:
    import pyarrow

    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        at = [table.column(name).to_numpy() for name in ("text", "source", "line")]
        places = [
            placed(sources[source].name, line and line + lines.get(source, 0))
            for source, line in zip(at[1].tolist(), at[2].tolist(), strict=True)
        ]
        tokens = table.column("tokens").cast(pyarrow.int32())
        named = {"text": at[0] + texts, "place": pyarrow.array(places, pyarrow.string()), "tokens": tokens}
        rest = table.column_names[4:]
        yield pyarrow.table({**named, **{name: table.column(name) for name in rest}})
