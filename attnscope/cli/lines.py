"""Texts from a file, one a line: blank lines are no texts, and every text keeps the number of its line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope import incoming
from attnscope.errors import AttnscopeError, InputError

if TYPE_CHECKING:
    from rich.text import Text

    from attnscope.results import Result
    from attnscope.session.prompts import Prompt, Row, Template

JSON_LINES = (".jsonl", ".ndjson")  # files whose lines are objects


@dataclass(frozen=True)
class Line:
    """One line as it was read; `number` counts from 1 and counts blank lines too.

    It is a text, `in_json` an object with one, or the `row` of a table that fills the `template`.
    """

    number: int
    raw: bytes = b""
    in_json: bool = False
    row: "Row | None" = None
    template: "Template | None" = None

    @property
    def prompt(self) -> "Prompt":
        """The text and its fields; raises `InputError` where it is none."""
        from attnscope.session.prompts import Prompt, prompt_in_json

        if self.row is not None and self.template is not None:
            return self.template.filled(self.row.by_name)
        return prompt_in_json(self.text) if self.in_json else Prompt(self.text)

    @property
    def text(self) -> str:
        """Raises `InputError` where it is no UTF-8."""
        try:
            return self.raw.decode("utf-8")
        except UnicodeError as error:
            raise InputError("the text is not valid UTF-8") from error

    def refused(self, error: AttnscopeError) -> str:
        """The record of a line that has no answer: why, and the exit code that it deserves."""
        return json.dumps({"line": self.number, "error": str(error), "exit_code": error.exit_code})


def summary(codes: Mapping[int, int], result: "Result | None" = None) -> str:
    """The last record of many lines: how many there were, which failed, and the exit code of all.

    `codes` has the exit code of every line by its number; the `result` of all together follows, where there
    is one.
    """
    failed = [number for number, code in codes.items() if code]
    counts = {"lines": len(codes), "answered": len(codes) - len(failed), "failed": failed}
    told = {"summary": {**counts, "exit_code": max(codes.values())}}
    if result is None:
        return json.dumps(told)
    from attnscope.render.files import as_json_line

    return as_json_line(result, told)


def read_lines(file: Path) -> tuple[Line, ...]:
    """The lines of `file`, `-` for standard input, that hold a text; `InputError` where there is none."""
    in_json = file.suffix.lower() in JSON_LINES
    lines = tuple(Line(number, raw, in_json) for number, raw in incoming.whole_lines(file) if raw.strip())
    if not lines:
        raise InputError(f"no text in {incoming.named(file)}: it takes one a line")
    return lines


def fill_in(template: str, table: Path) -> tuple[Line, ...]:
    """A line for each row of the table, which fills the template; `InputError` where they do not fit."""
    from attnscope.session.prompts import Template, rows_of

    whole, rows = Template(template), rows_of(table)
    whole.check(rows[0].columns)
    return tuple(Line(row.number, row=row, template=whole) for row in rows)


@dataclass(frozen=True)
class NumberedText:
    """A text of many, as it is told with its answer: `name` is `texts.txt:7`."""

    name: str
    number: int
    text: str

    def heading(self, width: int) -> "list[Text]":
        """The line above the answer on a screen."""
        from rich.text import Text

        rule = "─" * max(2, min(width, 80) - len(self.name) - 4)
        return [Text(), Text.assemble("── ", (self.name, "bold"), f" {rule}", no_wrap=True)]

    def document(self, result: "Result") -> str:
        """The answer as one line of JSON, which begins with the number and the text."""
        from attnscope.render.files import as_json_line

        return as_json_line(result, {"line": self.number, "text": self.text})
