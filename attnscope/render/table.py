"""Every row of a result, exact: for CSV, for data frames and for the numbers of a page.

Its sheet makes them.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict

from attnscope.render.kit.csv import Row, cell, exact
from attnscope.render.sheet.scale import missing
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets import sheet_of
from attnscope.results import Result
from attnscope.results.stored.document import schema


def as_csv(result: Result) -> str:
    """Comment lines with what this is and where it comes from, one heading line, then a row per fact."""
    sheet = sheet_of(result)
    buffer = io.StringIO()
    buffer.writelines(f"# {key}: {cell(str(value))}\n" for key, value in _comments(result, sheet))
    lines = ([cell(each) if isinstance(each, str) else each for each in row] for row in _rows(sheet))
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


def rows(result: Result) -> Iterator[Row]:
    """The heading line and the rows below it."""
    return _rows(sheet_of(result))


def _rows(sheet: Sheet) -> Iterator[Row]:
    columns = sheet.table().columns
    yield tuple(each.name for each in columns)
    yield from zip(*(map(_cell, each.values) for each in columns), strict=True)


def _cell(value: object) -> object:
    """A number as the shortest text that reads back as the same, nothing for none."""
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
