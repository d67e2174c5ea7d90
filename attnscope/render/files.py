"""Files for other programs: JSON, CSV and npz in full precision, and scripts that recompute claims.

`FORMATS` is the table of them by suffix. JSON and npz are written, and read again, in
`attnscope.results.stored`; the rows of CSV, of data frames and of the numbers of a page are those that the
sheet makes. A further format is a function from a result to text or bytes and its entry in the table.

`OWN` is what one kind alone has, links and word times as other tools read them:

.pharaoh   0-0 1-2: source-target from 0, one line a pair (fast_align, Moses, awesome-align)
.tsv       what `--gold` and `--learn` read again: of links every word, of times word, begin and end
.srt .vtt  one cue a word
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

from attnscope.register import kind_of, there
from attnscope.render.kit.numbers import Row, exact, harmless_cell
from attnscope.render.script import as_script, has_script
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import missing
from attnscope.render.sheets import sheet_of
from attnscope.results import Result
from attnscope.results.stored import document
from attnscope.results.stored.document import as_npz, schema


def as_csv(result: Result) -> str:
    """CSV: comment lines with subject and provenance, a heading line, then the sheet's rows."""
    sheet = sheet_of(result)
    buffer = io.StringIO()
    buffer.writelines(f"# {key}: {harmless_cell(str(value))}\n" for key, value in _comments(result, sheet))
    lines = ([harmless_cell(each) if isinstance(each, str) else each for each in row] for row in _rows(sheet))
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


def rows(result: Result) -> Iterator[Row]:
    """The heading line and the table's rows."""
    return _rows(sheet_of(result))


def _rows(sheet: Sheet) -> Iterator[Row]:
    columns = sheet.table().columns
    yield tuple(each.name for each in columns)
    yield from zip(*(map(_cell, each.values) for each in columns), strict=True)


def _cell(value: object) -> object:
    """A float as the shortest text that reads back as the same number, a missing value as ''."""
    return "" if missing(value) else exact(value) if isinstance(value, float) else value


def _comments(result: Result, sheet: Sheet) -> Iterator[tuple[str, object]]:
    yield "schema", schema(result)
    yield "subject", sheet.title
    yield "setting", sheet.setting
    yield from sheet.record
    if result.verdict is not None:
        yield "verdict", result.verdict.value
    yield "answer", sheet.answer
    yield from (("note", told) for told in (*sheet.told, *sheet.details))
    yield from (("proof", told) for _, told in sheet.proof)
    for origin in sheet.origins:
        for key, value in asdict(origin).items():
            if isinstance(value, dict):
                value = ", ".join(f"{name} {version}" for name, version in sorted(value.items()))
            elif isinstance(value, list | tuple):
                value = " ".join(map(str, value))
            yield key, "" if value is None else value
    yield from (("text", each) for each in sheet.texts)
    if sheet.messages:
        yield "messages", sheet.messages


def said(result: Result) -> dict[str, str]:
    """The answering sentence and the next command, as the screen shows them."""
    sheet = sheet_of(result)
    told = {"answer": sheet.answer, "next": sheet.next.command if sheet.next else ""}
    return {key: words for key, words in told.items() if words}


def as_json(result: Result) -> str:
    """JSON document with one key per line."""
    return document.as_json(result, said(result))


def as_json_line(result: Result, first: Mapping[str, object]) -> str:
    """JSON document on one line; the keys of `first` come first."""
    return document.as_json_line(result, said(result), first)


FORMATS: dict[str, Callable[[Result], str | bytes]] = {".npz": as_npz, ".csv": as_csv, ".json": as_json}
SCRIPT = ".py"


def formats(kind: type[Result]) -> tuple[str, ...]:
    """File suffixes that this kind of result can be written with."""
    return *FORMATS, *_own(kind), *([SCRIPT] if has_script(kind) else [])


def _own(kind: type[Result]) -> Mapping[str, str]:
    of_verb = kind_of(kind)
    return {} if of_verb is None else of_verb.files


def numbers(result: Result, suffix: str) -> bytes:
    """The file content of a result for `suffix`, one of its `formats`."""
    own = _own(type(result))
    write = as_script if suffix == SCRIPT else there(own[suffix]) if suffix in own else FORMATS[suffix]
    content = write(result)
    return content.encode() if isinstance(content, str) else content


__all__ = ["FORMATS", "SCRIPT", "as_csv", "as_json", "as_json_line", "as_npz", "formats", "numbers"]
