"""Reads the texts of a corpus: spans of sources, from start to end, without holding them.

Of lines that is what begins in a range of bytes: a split may cut through a line, and each belongs to one. A
sentence of a treebank belongs to the blank line before it. Of Parquet it is a range of rows. What cannot be
read is handed on as `SetAside`, with its place and what stood there; blanks are none of either.

What the next splits hold is fetched while those before them are measured (`ahead`): by one thread of the
command, a few splits ahead; on Ray by each actor, one ahead. What lies on this machine its workers read
themselves; what is fetched travels to them with its split, as what is compressed does.
"""

import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import IO, Any

from attnscope import incoming
from attnscope.analysis.treebank import read_block
from attnscope.errors import InputError
from attnscope.verbs.corpus.engine import SetAside, Span, Split, Text
from attnscope.verbs.corpus.source import BrokenArchive, Form, parquet

_ROWS_AT_ONCE = 1024
_SHOWN = 2000  # characters of what is set aside that are kept where it is no text
Item = Text | SetAside | None  # None: a blank
At = tuple[int, Item]  # the byte or row at which it begins


@dataclass
class Reading:
    """Iterates over the texts of a split; afterwards has the counts of texts, blanks and lines.

    `lines` are the lines or rows of each source, by its number.
    """

    split: Split
    texts: int = 0
    blanks: int = 0
    lines: dict[int, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Text | SetAside]:
        for span in self.split.spans:
            before = self.lines.setdefault(span.index, 0)
            for _, item in items(span, self):
                if item is None:
                    self.blanks += 1
                    continue
                if isinstance(item, SetAside) and span.source.strict:
                    raise InputError(refusal(span, item))
                placed = replace(item, line=item.line + before) if before and item.line else item
                if isinstance(placed, Text):
                    placed = replace(placed, number=self.texts)
                    self.texts += 1
                yield placed


def items(span: Span, counting: Reading | None = None) -> Iterator[At]:
    """All items of a span in order, by position; texts have no number yet. `counting` gets the lines."""
    counting = counting or Reading(Split(0, ()), lines={span.index: 0})
    try:
        yield from _READERS[span.source.form](span, counting)
    except BrokenArchive as error:
        yield -1, SetAside(span.index, counting.lines[span.index] + 1, str(error), "")


def refusal(span: Span, item: SetAside) -> str:
    """The error message for an item that cannot be read, with its place in the source."""
    row = span.source.form is Form.PARQUET
    after = f" after {'row' if row else 'byte'} {span.start:,}" if span.start else ""
    where = f"{'row' if row else 'line'} {item.line}{after}: " if item.line else ""
    return f"cannot read '{span.source.name}': {where}{item.why}; --broken skip sets such aside"


@contextmanager
def _opened(span: Span, start: int = 0) -> Iterator[IO[bytes]]:
    if isinstance(span.held, BrokenArchive):
        raise span.held
    if span.held is not None:
        yield io.BytesIO(span.held)
        return
    with span.source.opened(start, span.end) as file:
        yield file


def raw_lines(span: Span, content: IO[bytes] | None = None) -> Iterator[tuple[int, bytes]]:
    """Lines that belong to a span, each with the byte at which it begins; `content` is an open stream.

    In a treebank a blank line begins what belongs together, so a span begins and ends with one.
    """
    blocks, start = span.source.form is Form.CONLLU, 0 if span.held is not None else span.start
    own = not (blocks and start)
    before = max(start - 1, 0)  # whether a line begins at `start` is seen at the byte before it
    with _opened(span, before) if content is None else nullcontext(content) as file:
        lines = ((before + at, line) for at, line in incoming.lines_of(file))
        if start:
            next(lines, None)
        for at, line in lines:
            breaks = not blocks or not line.strip()
            if breaks and span.end is not None and at >= span.end:
                return
            own = own or breaks
            if own:
                begins = at == 0 and span.held is None  # what is held was read in this way before
                yield at, line.removeprefix(incoming.BOM) if begins else line


def held(span: Span, start: int, lines: Iterable[bytes]) -> Span:
    """The span with these lines as its content, from `start` on."""
    return replace(span, start=start, end=None, held=b"\r\n".join([*lines, b""]))


def _lines(span: Span, counting: Reading) -> Iterator[tuple[int, int, bytes | SetAside]]:
    before = counting.lines[span.index]
    for number, (at, line) in enumerate(raw_lines(span), start=1):
        counting.lines[span.index] = before + number
        yield number, at, _too_long(span, number, line) if len(line) > incoming.LONGEST_LINE else line


def _too_long(span: Span, number: int, start: bytes) -> SetAside:
    return SetAside(
        span.index, number, f"it is longer than {incoming.LONGEST_LINE:,} bytes", _shown(start[:_SHOWN])
    )


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")[:_SHOWN]


def _of_lines(read: Callable[[bytes, Span, int], Item], span: Span, counting: Reading) -> Iterator[At]:
    for number, at, raw in _lines(span, counting):
        yield at, raw if isinstance(raw, SetAside) else read(raw, span, number)


def _text(raw: bytes, span: Span, number: int) -> Item:
    try:
        text = raw.decode("utf-8")
    except UnicodeError:
        return SetAside(span.index, number, "it is not valid UTF-8", _shown(raw))
    return Text(-1, span.index, number, text) if text.strip() else None


def _of_file(span: Span, counting: Reading) -> Iterator[At]:
    raw = whole_file(span).removeprefix(incoming.BOM)
    long = len(raw) > incoming.LONGEST_LINE
    yield 0, _too_long(span, 0, raw) if long else _text(incoming.without_end(raw), span, 0)


def whole_file(span: Span) -> bytes:
    """The bytes of a file that is one text, up to just over the longest that is read."""
    with _opened(span) as file:
        return file.read(incoming.LONGEST_LINE + len(incoming.BOM) + 1)


def _json(raw: bytes, span: Span, number: int) -> Item:
    if not raw.strip():
        return None
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "no JSON in UTF-8"
        return SetAside(span.index, number, f"it is no JSON: {why}", _shown(raw))
    return _of_record(record, span, number)


def _of_record(record: Any, span: Span, number: int) -> Item:
    field = span.source.field

    def aside(why: str) -> SetAside:
        shown = json.dumps(record, ensure_ascii=False, default=str)[:_SHOWN]
        return SetAside(span.index, number, why, shown)

    if not isinstance(record, dict):
        return aside("it is no object with fields")
    if field not in record:
        there = ", ".join(f"'{name}'" for name in record) or "none"
        return aside(f"it has no field '{field}': its fields are {there} (--field)")
    value = record[field]
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        return aside(f"its field '{field}' is no text but {kind}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        return aside(f"its field '{field}' holds half a character")
    return Text(-1, span.index, number, value) if value.strip() else aside(f"its field '{field}' is empty")


def _of_treebank(span: Span, counting: Reading) -> Iterator[At]:
    block: list[bytes] = []
    first, begun, size = 1, 0, 0
    for number, at, raw in chain(_lines(span, counting), [(0, 0, b"")]):
        if isinstance(raw, SetAside):
            yield at, raw
        elif raw.strip():
            first, begun = (first, begun) if block else (number, at)
            size += len(raw)
            block += [raw] if size <= incoming.LONGEST_LINE else []
            continue
        if size > incoming.LONGEST_LINE:
            yield begun, _too_long(span, first, block[0])
        elif block and (item := _sentence(block, first, span)) is not None:
            yield begun, item
        block, size = [], 0


def _sentence(block: list[bytes], first: int, span: Span) -> Item:
    try:
        sentence = read_block(block, span.source.name, first)
    except InputError as error:
        why = re.sub(rf"^{re.escape(span.source.name)}:[0-9]+: ", "", str(error))
        return SetAside(span.index, first, why, _shown(b"\n".join(block)))
    if sentence is None:
        return None
    return Text(-1, span.index, first, " ".join(sentence.words), sentence.words, sentence.tags)


def _of_parquet(span: Span, counting: Reading) -> Iterator[At]:
    before, name = counting.lines[span.index], span.source.field
    for number, (at, value) in enumerate(values(span), start=1):
        counting.lines[span.index] = before + number
        yield at, _of_record({name: value}, span, number)


def values(span: Span) -> Iterator[tuple[int, Any]]:
    """Rows of a Parquet span: each row's number in the source, and its value in the text column."""
    if span.held is not None:
        yield from enumerate(span.held)
        return
    with parquet(span.source) as file:
        groups, first, at = [], None, 0
        for group in range(file.num_row_groups):
            end = at + file.metadata.row_group(group).num_rows
            if end > span.start and (span.end is None or at < span.end):
                first = at if first is None else first
                groups.append(group)
            at = end
        number = first or 0
        for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=groups, columns=[span.source.field]):
            for value in batch.column(0).to_pylist():
                if span.end is not None and number >= span.end:
                    return
                if number >= span.start:
                    yield number, value
                number += 1


_READERS: dict[Form, Callable[[Span, Reading], Iterator[At]]] = {
    Form.LINES: partial(_of_lines, _text),
    Form.FILE: _of_file,
    Form.JSONL: partial(_of_lines, _json),
    Form.CONLLU: _of_treebank,
    Form.PARQUET: _of_parquet,
}


SPLITS = 4


def ahead(splits: Iterable[Split]) -> Iterator[Split]:
    """The splits, with remote content fetched ahead by a thread; errors come in their order."""
    coming = iter(splits)

    def one() -> Split | None:
        split = next(coming, None)
        return None if split is None else fetched(split)

    pool = ThreadPoolExecutor(1, "attnscope-ahead")
    waiting = deque(pool.submit(one) for _ in range(SPLITS))  # from now on: the model may not be open yet
    return _handed(one, pool, waiting)


def _handed(
    one: Callable[[], Split | None], pool: ThreadPoolExecutor, waiting: deque[Future[Split | None]]
) -> Iterator[Split]:
    try:
        while (split := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(one))
            yield split
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def fetched(split: Split) -> Split:
    """The split with the content of its remote spans fetched."""
    return replace(split, spans=tuple(map(_fetched, split.spans)))


def _fetched(span: Span) -> Span:
    if span.held is not None or span.source.place.local is not None:
        return span
    if span.source.form is Form.PARQUET:
        return replace(span, held=[value for _, value in values(span)])
    if span.source.form is Form.FILE:
        try:
            return replace(span, held=whole_file(span))
        except BrokenArchive as error:
            return replace(span, held=error)
    return held(span, span.start, [line for _, line in raw_lines(span)])
