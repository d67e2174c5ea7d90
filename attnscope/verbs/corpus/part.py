"""A part: the Parquet file of the measurements of some consecutive splits of a corpus.

Its columns are the arrays of what is kept of all values (`Totals`): moments, a sketch of where values lie,
and the outermost texts. Moments are held apart for every other text, so that a head can be chosen on one half
and judged by the other, and by the length of texts. A text without the value (NaN) does not count.

Counts, what was set aside and what was proved stand as JSON in the file's metadata. Parts that follow one
another are merged to one; lines, which each part counts from its own start, are then counted from the start
of the first.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attnscope.verbs.corpus.engine import SetAside
from attnscope.verbs.corpus.moments import ByLength, Moments, Outer, Sketch, Statistic
from attnscope.verbs.corpus.result import CorpusText

SCHEMA = "attnscope.corpus-part/1"
_META = b"attnscope"
_COUNTED = ("splits", "read", "texts", "tokens", "unknown", "padded", "cut", "blanks")
HALVES = 2
_MOMENTS = ("count", "mean", "squares")
_CLASSES = ("classes", "texts", "tokens")


@dataclass(frozen=True, eq=False)
class Totals:
    """All statistics of some texts' values; a `statistic` is measure, layer and head."""

    moments: Moments
    lengths: ByLength
    sketch: Sketch
    outer: Outer

    @classmethod
    def of(
        cls,
        values: Float[np.ndarray, "text measure layer head"],
        numbers: Int[np.ndarray, " text"],
        texts: Sequence[CorpusText],
    ) -> "Totals":
        """Statistics of texts, by their numbers, which rise in the order of the corpus and never repeat."""
        statistics = int(np.prod(values.shape[1:]))
        return cls(
            Moments.of(values, numbers % HALVES, HALVES),
            ByLength.of(values, np.array([each.tokens for each in texts], np.int64)),
            Sketch.of(values.reshape(len(values), statistics)),
            Outer.of(values, numbers, texts),
        )

    def merged(self, later: "Totals") -> "Totals":
        """Statistics with those of later texts added."""
        return Totals(
            self.moments.merged(later.moments),
            self.lengths.merged(later.lengths),
            self.sketch.merged(later.sketch),
            self.outer.merged(later.outer),
        )

    @property
    def least(self) -> Statistic:
        """The lowest value of every statistic."""
        return np.asarray(self.outer.values[0, 0])

    @property
    def largest(self) -> Statistic:
        """The highest value of every statistic."""
        return np.asarray(self.outer.values[1, 0])

    def quantiles(self, levels: Sequence[float]) -> Float[np.ndarray, "level measure layer head"]:
        """Quantiles of every statistic, clipped to its least and largest value."""
        found = self.sketch.quantiles(levels, self.least.size).reshape(len(levels), *self.least.shape)
        return np.asarray(np.clip(found, self.least, self.largest))

    def moved(self, place: Callable[[str], str]) -> "Totals":
        """The totals, with each text's `place` mapped to its place in the corpus."""
        texts = {number: replace(each, place=place(each.place)) for number, each in self.outer.texts.items()}
        return replace(self, outer=replace(self.outer, texts=texts))

    def arrays(self) -> dict[str, np.ndarray]:
        """The totals as arrays by name, for a file."""
        texts = [(number, asdict(each)) for number, each in self.outer.texts.items()]
        return {
            **{name: getattr(self.moments, name) for name in _MOMENTS},
            **{f"length_{name}": getattr(self.lengths.moments, name) for name in _MOMENTS},
            **{f"length_{name}": _narrow(getattr(self.lengths, name)) for name in _CLASSES},
            "steps": _narrow(np.diff(self.sketch.entry, prepend=0)),
            "times": _narrow(self.sketch.times),
            "outer": self.outer.values,
            "outer_places": _narrow(self.outer.places() + 1),
            "outer_texts": np.frombuffer(json.dumps(texts).encode(), np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Totals":
        """The totals from the arrays of a file."""
        whole, apart = (
            Moments(*(arrays[f"{beginning}{name}"] for name in _MOMENTS)) for beginning in ("", "length_")
        )
        classes, texts_of, tokens = (arrays[f"length_{name}"].astype(np.int64) for name in _CLASSES)
        lengths = ByLength(classes, texts_of, tokens, apart)
        sketch = Sketch(np.cumsum(arrays["steps"], dtype=np.int64), arrays["times"].astype(np.int64))
        texts = {
            number: CorpusText(**each)
            for number, each in json.loads(arrays["outer_texts"].tobytes().decode())
        }
        numbers = np.array([-1, *texts], np.int64)[arrays["outer_places"]]
        return cls(whole, lengths, sketch, Outer(arrays["outer"], numbers, texts))


def _narrow(whole: Int[np.ndarray, "..."]) -> np.ndarray:
    return whole.astype(np.min_scalar_type(int(whole.max(initial=0))))


@dataclass(frozen=True, eq=False)
class Proved:
    """Certificates of sampled texts: heads by verdict, and how far reading a text alone differs.

    Alone they were compared in `held` of `queries` queries. `untried` is the number of heads of which it is
    unknown whether their answers act, `beside` is what carries tokens to one another beside the attention.
    `failed` are the texts of which something differs from what was measured, each with the reason.
    """

    certified: Mapping[str, int] = field(default_factory=dict)
    sampled: int = 0
    unlike: float = 0.0
    provenance: Mapping[str, Any] | None = None
    failed: tuple[SetAside, ...] = ()
    held: int = 0
    queries: int = 0
    untried: int = 0
    beside: tuple[str, ...] = ()

    def merged(self, later: "Proved") -> "Proved":
        """Certificates with those of a later part added."""
        names = dict.fromkeys((*self.certified, *later.certified))
        return Proved(
            {name: self.certified.get(name, 0) + later.certified.get(name, 0) for name in names},
            self.sampled + later.sampled,
            max(self.unlike, later.unlike),
            self.provenance or later.provenance,
            self.failed + later.failed,
            self.held + later.held,
            self.queries + later.queries,
            max(self.untried, later.untried),
            tuple(dict.fromkeys((*self.beside, *later.beside))),
        )


@dataclass(frozen=True)
class RowsFile:
    """A file with a row for each text and head; its texts and lines count from the start of the split.

    Where it was put together with others, it is the bytes from `start` on of the file `within`.
    """

    name: str
    read: int
    lines: Mapping[int, int]
    size: int = 0
    within: str = ""
    start: int = 0


@dataclass(frozen=True, eq=False)
class Part:
    """Measurements of `splits` splits, from the one numbered `first` on.

    `measures`, `layers`, `heads`, `kind` and `tower` say what the axes are; `absent` why a measure has no
    meaning for this model. Of the `read` texts, `texts` were measured. `unknown` counts pieces that the
    tokenizer cannot spell, `padded` texts that were filled up, `cut` those that were cut. `lines` are those
    of each source, by its number.
    """

    first: int
    measures: tuple[str, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    kind: str
    tower: str
    limit: int | None
    longest: int
    lines: Mapping[int, int]
    set_aside: tuple[SetAside, ...]
    absent: Mapping[str, str]
    proved: Proved
    totals: Totals
    splits: int = 1
    read: int = 0
    texts: int = 0
    tokens: int = 0
    unknown: int = 0
    padded: int = 0
    cut: int = 0
    blanks: int = 0
    rows: tuple[RowsFile, ...] = ()

    def merged(self, later: "Part") -> "Part":
        """This part with the one that follows it, as one part."""
        sources = dict.fromkeys((*self.lines, *later.lines))

        def place_further(place: str) -> str:
            source, line = map(int, place.split(":"))
            return f"{source}:{self._further(source, line)}"

        return replace(
            self,
            **{name: getattr(self, name) + getattr(later, name) for name in _COUNTED},
            longest=max(self.longest, later.longest),
            lines={each: self.lines.get(each, 0) + later.lines.get(each, 0) for each in sources},
            set_aside=self.set_aside + self._moved(later.set_aside),
            absent={**self.absent, **later.absent},
            proved=self.proved.merged(replace(later.proved, failed=self._moved(later.proved.failed))),
            totals=self.totals.merged(later.totals.moved(place_further)),
            rows=self.rows + later.rows,
        )

    def _further(self, source: int, line: int) -> int:
        """A line number of a later part, counted from this part's start; 0 (source is one text) stays 0."""
        return line and line + self.lines.get(source, 0)

    def _moved(self, later: tuple[SetAside, ...]) -> tuple[SetAside, ...]:
        return tuple(replace(aside, line=self._further(aside.source, aside.line)) for aside in later)

    def written(self) -> bytes:
        """The part as bytes of a Parquet file, the same for the same part."""
        meta = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "totals"}
        meta |= {
            "schema": SCHEMA,
            "set_aside": [[aside.source, aside.line, aside.why, aside.text] for aside in self.set_aside],
            "proved": asdict(self.proved),
            "rows": [asdict(each) for each in self.rows],
        }
        return _parquet(self.totals.arrays(), meta)


class NotAPartError(Exception):
    """The bytes are no complete part."""


def read(content: bytes) -> Part:
    """Reads a part from bytes; `NotAPartError` where they are none."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        table = ParquetFile(io.BytesIO(content)).read(use_threads=False)
        meta = json.loads(table.schema.metadata[_META])
        if meta.pop("schema") != SCHEMA:
            raise NotAPartError("another attnscope wrote it")
        arrays = {name: _array(table.column(name), *how) for name, how in meta.pop("arrays").items()}
        return _made(meta, arrays)
    except (OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException) as error:
        raise NotAPartError("it is no part of a run") from error


def _made(meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Part:
    proved, rows = meta.pop("proved"), meta.pop("rows")
    failed = tuple(SetAside(**each) for each in proved.pop("failed"))
    beside = tuple(proved.pop("beside"))
    return Part(
        measures=tuple(meta.pop("measures")),
        layers=tuple(meta.pop("layers")),
        heads=tuple(meta.pop("heads")),
        lines=_numbered(meta.pop("lines")),
        set_aside=tuple(SetAside(*aside) for aside in meta.pop("set_aside")),
        proved=Proved(failed=failed, beside=beside, **proved),
        rows=tuple(RowsFile(**{**each, "lines": _numbered(each["lines"])}) for each in rows),
        totals=Totals.from_arrays(arrays),
        **meta,
    )


def _numbered(by_name: Mapping[str, int]) -> dict[int, int]:
    return {int(name): value for name, value in by_name.items()}


def _parquet(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> bytes:
    """A Parquet file of one row with every array, flat; shapes and `meta` stand in its metadata."""
    import pyarrow
    from pyarrow.parquet import write_table

    columns, how = {}, {}
    for name, array in arrays.items():
        ends = _column(np.array([0, array.size]))
        columns[name] = pyarrow.LargeListArray.from_arrays(ends, _column(array))
        how[name] = [array.dtype.str, array.shape]
    text = json.dumps({**meta, "arrays": how}, ensure_ascii=True, sort_keys=True)
    table = pyarrow.table(columns).replace_schema_metadata({_META: text.encode()})
    buffer = io.BytesIO()
    write_table(
        table, buffer, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False
    )
    return buffer.getvalue()


def _column(numbers: np.ndarray) -> Any:
    """Numbers as a flat Arrow array; `pyarrow.array` would import pandas wherever that is installed."""
    import pyarrow

    plain = np.ascontiguousarray(numbers).reshape(-1)
    kind = pyarrow.from_numpy_dtype(plain.dtype)
    return pyarrow.Array.from_buffers(kind, len(plain), [None, pyarrow.py_buffer(plain)])


def _array(column: Any, kind: str, shape: list[int]) -> np.ndarray:
    """The array in a column of one row; other functions of pyarrow would import pandas."""
    import pyarrow

    values, numbers = column.combine_chunks().values, np.dtype(kind)
    if values.type != pyarrow.from_numpy_dtype(numbers) or values.null_count:
        raise NotAPartError(f"a column of {values.type} where {numbers} should be")
    if not len(values):
        return np.zeros(shape, numbers)
    found = np.frombuffer(values.buffers()[1], numbers, len(values), values.offset * numbers.itemsize)
    return found.reshape(shape)
