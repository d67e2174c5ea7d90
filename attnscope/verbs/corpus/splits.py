"""Cuts a corpus into numbered splits, which depend on its sources alone.

A split is about so many bytes, cut out of a source where it can be read from its middle, and the last one no
less than half of that. Small sources stand together in one. Of large groups of rows, and of what is
compressed, whoever plans hands on what stands there, so that nothing is read twice.

The least is about a thousand sentences: among fewer there are not many of near length, so that batches are
filled up more, and a split that is certified costs as much beyond its texts as fifty sentences. Of a large
model these would take minutes, in which no bar moves and a kill loses all: it has smaller splits (`share`),
down to the sentences of a batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from attnscope.errors import InputError
from attnscope.verbs.corpus.engine import SetAside, Span, Split, Text
from attnscope.verbs.corpus.source import BrokenArchive, Form, Source, parquet, position
from attnscope.verbs.corpus.texts import held, items, raw_lines, refusal, values

LEAST, MOST = 2**16, 2**18  # bytes of a split
FEWEST, MANY = 64, 2**14  # splits that a corpus has where it is large enough, and of a large model at most
_LIGHT = 2**27  # bytes of weights: larger models have smaller splits
_QUICKER = 64  # as often as a core an accelerator does in the same time what a model takes, at least
_SMALLEST = 1 / 32

_UNPACKED = 3  # bytes of text that a byte of a compressed file usually becomes: how far a run is, about


@dataclass(frozen=True)
class Plan:
    """All spans of a corpus; `size` is the bytes of a split, `whole` those of the corpus."""

    spans: tuple[Span, ...]
    size: int
    whole: int

    @classmethod
    def of(cls, spans: Sequence[Span], share: float = 1.0) -> "Plan":
        """A plan of these spans, with splits of a `share` of the usual size."""
        whole = sum(map(_size, spans))
        least, most = int(LEAST * share), min(max(int(MOST * share), whole // MANY), MOST)
        near = min(max(whole // FEWEST, least), most)
        number = max(round(whole / near), 1)
        return cls(tuple(spans), max(-(-whole // number), least), whole)

    @property
    def about(self) -> int:
        """Least number of splits."""
        return max(1, -(-self.whole // self.size))

    def splits(self) -> Iterator[Split]:
        """All splits, in order."""
        held: list[Span] = []
        number = taken = through = 0
        for piece in self._pieces():
            if held and taken + piece.size > self.size:
                yield Split(number, tuple(held), through)
                held, taken, through, number = [], 0, 0, number + 1
            held.append(piece.span)
            taken += piece.size
            through += piece.size if piece.through is None else piece.through
        if held:
            yield Split(number, tuple(held), through)

    def _pieces(self) -> "Iterator[_Piece]":
        for span in self.spans:
            if span.source.form is Form.PARQUET:
                yield from _rows(span, self.size)
            elif span.source.form is Form.FILE:
                yield _Piece(span, _size(span))
            elif span.source.from_its_start:
                yield from _in_order(span, self.size)
            else:
                end = span.start + _size(span)
                for at in range(span.start, end, self.size):
                    last = min(at + self.size, end)
                    yield _Piece(replace(span, start=at, end=last), last - at)


def share(weights: int, device: str) -> float:
    """Size of splits as a share of the usual, by the model's bytes of weights and its device.

    Time per text grows with the weights. No clock is used: a resumed run finds the same splits anywhere.
    """
    light = _LIGHT if device == "cpu" else _LIGHT * _QUICKER
    return min(max(light / max(weights, 1), _SMALLEST), 1.0)


@dataclass(frozen=True)
class _Piece:
    """A span that is not cut further, and its bytes; `through` are the bytes it counts as progress."""

    span: Span
    size: int
    through: int | None = None


def _size(span: Span) -> int:
    if span.source.packing is not None and span.end is None:
        return _UNPACKED * int(span.source.size)
    if span.source.form is not Form.PARQUET:
        return int(span.source.size if span.end is None else span.end) - span.start
    groups = _groups(span.source)
    rows = sum(rows for rows, _ in groups)
    share = ((rows if span.end is None else span.end) - span.start) / max(rows, 1)
    return int(share * sum(size for _, size in groups))


def _groups(source: Source) -> list[tuple[int, int]]:
    with parquet(source) as file:
        found = []
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            columns = [group.column(i) for i in range(group.num_columns)]
            mine = [each for each in columns if each.path_in_schema.partition(".")[0] == source.field]
            found.append((group.num_rows, sum(each.total_uncompressed_size for each in mine)))
    return found


def _in_order(span: Span, size: int) -> Iterator[_Piece]:
    """Pieces of whole lines, with their content, of a source that is read once from its start.

    In a compressed source the compressed bytes measure progress, as the size of the content is unknown.
    """
    blocks = span.source.form is Form.CONLLU
    lines: list[bytes] = []
    start = taken = at = told = 0
    with span.source.opened(0, span.end) as content:
        try:
            for at, line in raw_lines(span, content):
                if taken >= size and (not blocks or not line.strip()):
                    through, told = _through(span, content, told)
                    yield _Piece(held(span, start, lines), taken, through)
                    lines, start, taken = [], at, 0
                lines.append(line)
                taken += len(line) + 1
        except BrokenArchive as error:
            if lines:
                yield _Piece(held(span, start, lines), taken)
            yield _Piece(replace(span, start=start + taken, end=None, held=error), 1)
            return
        through, told = _through(span, content, told)
        if lines:
            yield _Piece(held(span, start, lines), taken, through)


def _through(span: Span, content: IO[bytes], told: int) -> tuple[int | None, int]:
    """Bytes of progress since `told`, and in all; None and `told` for a source that is not compressed."""
    if span.end is not None or (at := position(content)) is None:
        return None, told
    return _UNPACKED * at - told, _UNPACKED * at


def _rows(span: Span, size: int) -> Iterator[_Piece]:
    at, end = 0, span.end
    for rows, taken in _groups(span.source):
        first, last = max(at, span.start), at + rows if end is None else min(at + rows, end)
        at += rows
        if first >= last:
            continue
        group = replace(span, start=first, end=last)
        if taken <= size:
            yield _Piece(group, taken)
            continue
        column: list[Any] = []
        bytes_ = 0
        for number, value in values(group):
            column.append(value)
            bytes_ += len(value) if isinstance(value, str) else 1
            if bytes_ >= size:
                own = replace(group, start=number + 1 - len(column), end=number + 1, held=column)
                yield _Piece(own, bytes_)
                column, bytes_ = [], 0
        if column:
            yield _Piece(replace(group, start=last - len(column), end=last, held=column), bytes_)


def everything(sources: Sequence[Source]) -> tuple[Span, ...]:
    """Spans of all sources, each whole."""
    return tuple(Span(index, source) for index, source in enumerate(sources))


def first_texts(spans: Sequence[Span], most: int) -> tuple[int, tuple[Span, ...]]:
    """Number of texts, counted up to `most`, and the spans that hold no more than these.

    `InputError` where there is none at all, which takes a walk through everything.
    """
    texts = blanks = 0
    first: str | None = None
    for index, span in enumerate(spans):
        for at, item in items(span):
            if isinstance(item, SetAside):
                if span.source.strict:
                    raise InputError(refusal(span, item))
                first = first or f"{placed(span.source.name, item.line)}: {item.why}"
            blanks += item is None
            texts += isinstance(item, Text)
            if texts == most:
                return texts, (*spans[:index], replace(span, end=at + 1))
    if not texts:
        names = ", ".join(f"'{span.source.name}'" for span in spans)
        raise InputError(f"no text in {names}: {first or ('nothing but blank lines' if blanks else 'empty')}")
    return texts, tuple(spans)


def check_tags(spans: Sequence[Span], wanted: Mapping[str, str]) -> None:
    """Raises `InputError` where no word has a tag that an option names; reads until all are found."""
    if any(span.source.form is not Form.CONLLU for span in spans):
        raise InputError("--from-pos and --to-pos need words with their part of speech: a .conllu file")
    found: set[str] = set()
    for span in spans:
        for _, item in items(span):
            if isinstance(item, Text):
                found.update(item.tags or ())
                if found.issuperset(wanted.values()):
                    return
    option, tag = next((option, tag) for option, tag in wanted.items() if tag not in found)
    raise InputError(f"{option}: no word is {tag}: {', '.join(sorted(found))}")


def placed(name: str, line: int) -> str:
    """Place of a text: `texts.txt:12`; of a source that is one text, its name."""
    return f"{name}:{line}" if line else name
