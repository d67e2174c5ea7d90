"""A run over a corpus in its folder: what is not measured yet is measured, then all is merged to a result.

Beside it stand rows of each text and head as Parquet, where asked for, and texts that could not be measured.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.errors import InputError
from attnscope.results.claims.corpus import GAIN, Corpus
from attnscope.session.corpus import merging
from attnscope.session.corpus.chunk_file import Measured
from attnscope.session.corpus.chunks import CHUNK, Census, chunks
from attnscope.session.corpus.engine.interface import Chunk, Engine
from attnscope.session.corpus.folder import ASIDE, Folder, NotWrittenError, stream_whole
from attnscope.session.corpus.measurer import CorpusRecipe
from attnscope.session.corpus.source import Source, arrow
from attnscope.session.listener import Listener


@dataclass(frozen=True)
class Run:
    """What is measured (`recipe`) of which texts, the first `limit` of them, and where it is kept."""

    recipe: CorpusRecipe
    sources: Sequence[Source]
    limit: int | None
    counted: Census
    folder: Folder
    listener: Listener

    def tell_resumed(self) -> None:
        """Say how much was measured before."""
        kept, texts = sum(map(self._is_there, range(self.counted.chunks))), self.counted.texts
        if kept:
            measured = f"{min(kept * CHUNK, texts):,} of {texts:,} texts were measured before"
            self.listener.notice(f"{measured}: going on in {self.folder.path}")

    def _is_there(self, number: int) -> bool:
        return self.folder.chunk(number).exists()

    def measure(self, engine: Engine, done: Callable[[int, int], None] | None) -> None:
        """Measure every chunk that is not there yet, and write it at once.

        `done` is told how many texts are through, of how many; a spinner turns where nobody is told.
        """
        through, texts = 0, self.counted.texts
        tell = done or (lambda through, texts: None)

        def left() -> Iterator[Chunk]:
            nonlocal through
            for chunk in chunks(self.sources, self.limit):
                if self.folder.has(chunk.number):
                    through += len(chunk.texts)
                    tell(through, texts)
                else:
                    yield chunk

        coming = left()
        first = next(coming, None)
        if first is None:
            return
        tell(through, texts)
        with self.listener.working("measuring") if done is None else nullcontext():
            for finished in engine(self.recipe, chain([first], coming), self.listener):
                try:
                    self.folder.keep(finished.number, finished.content)
                except NotWrittenError as error:
                    kept = f"{through:,} of {texts:,} texts are measured and kept"
                    raise InputError(f"{error}: {kept}, the same command goes on from there") from error
                through += finished.texts
                tell(through, texts)

    def result(self, rows: Path | None) -> Corpus:
        """All chunks in their order as one result; what each text gave is written to `rows`, if anywhere."""
        linked = self.recipe.linked
        with self.listener.working("adding up"):
            whole = merging.merged(self._chunks())
            aside = write_aside(self.folder, self._chunks())
            if not whole.counts["texts"]:
                limit = None if whole.last is None else whole.last.limit
                why = merging.with_limit(next(iter(whole.aside), ""), limit)
                raise InputError(f"no text could be read: {why}; all of it stands in {aside}")
            if rows is not None:
                write_rows(rows, self._chunks())
        shown = GAIN if linked is not None else ""
        corpus = merging.result(whole, self.sources, self.counted, linked, shown)
        read, model = corpus.read, corpus.provenance.model
        if read.left_out:
            self.listener.notice(f"set aside {read.left_out:,} of the texts and lines: {aside}")
        if read.unknown:
            self.listener.notice(f"{model} cannot spell {read.unknown:,} pieces: read as unknown")
        return corpus

    def _chunks(self) -> Iterator[Measured]:
        """The chunks in their order."""
        for number in range(self.counted.chunks):
            chunk = self.folder.done(number)
            if chunk is None:
                raise InputError(f"'{self.folder.chunk(number)}' is damaged: give the same command again")
            yield chunk


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
        raise InputError(f"cannot write '{place}': {error.strerror or error}") from error


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
