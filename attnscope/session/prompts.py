"""Many prompts: each a text with named parts, its fields.

    a line of a file                                  the text alone
    a line of JSON                                    {"text": "...", "spans": {"a": "Mary", "b": [9, 13]}}
    a template and a row of a table                   "{a} gave {b} the book"

`field:a` names the tokens of a field wherever tokens are named, and where a text or an answer is asked for,
such as `--answer field:a`, the field's own words. Of JSON every other text is a field as well, and of a table
every column.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any

from attnscope import incoming
from attnscope.errors import AttnscopeError, InputError, nearest
from attnscope.spans import every_span
from attnscope.tokens import Section, Tokens

FIELD, TEXT, SPANS, LABEL = "field:", "text", "spans", "label"
JSON_LINES = (".jsonl", ".ndjson")  # files whose lines are objects
_TEXTS = ("answer", "against", "to", "replacement", "patch_from")  # options whose values are texts
Place = tuple[int, int]


@dataclass(frozen=True)
class Field:
    """A field's words, and the characters of the prompt that they stand at, (first, end).

    Without `places` it is found by its words, which may be named as tokens are: `door#2`.
    """

    text: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Prompt:
    """A text and its named parts, the fields."""

    text: str
    fields: Mapping[str, Field] = field(default_factory=dict)


def prompt_of(given: str | Mapping[str, Any]) -> Prompt:
    """A prompt from a text, or from an object with a text and fields; `InputError` for anything else."""
    if isinstance(given, str):
        return Prompt(given)
    text, spans = given.get(TEXT), given.get(SPANS, {})
    if not isinstance(text, str):
        there = ", ".join(map(str, given)) or "none"
        raise InputError(f"it has no text under '{TEXT}': its keys are {there}")
    if not isinstance(spans, Mapping):
        raise InputError(f'\'{SPANS}\' is no object of names: write {{"a": "Mary", "b": [9, 13]}}')
    others = {name: Field(each) for name, each in given.items() if name != TEXT and isinstance(each, str)}
    return Prompt(text, others | {name: _span(str(name), each, text) for name, each in spans.items()})


def prompt_in_json(line: str) -> Prompt:
    """The prompt in a line of JSON."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        why = f": {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"it is no JSON{why}") from error
    if not isinstance(given, dict):
        raise InputError(f'it is no object: write {{"{TEXT}": "..."}}')
    return prompt_of(given)


def _span(name: str, given: Any, text: str) -> Field:
    if isinstance(given, Field):
        return given
    if isinstance(given, str):
        return Field(given)
    whole = isinstance(given, list | tuple) and len(given) == 2 and all(type(each) is int for each in given)
    if not whole or not 0 <= given[0] < given[1] <= len(text) or not text[given[0] : given[1]].strip():
        raise InputError(
            f"the span '{name}' is neither words nor characters of the text: write \"Mary\" or [first, end], "
            f"0 to {len(text)}"
        )
    return Field(text[given[0] : given[1]], ((given[0], given[1]),))


class Template:
    """A prompt template with fields in braces, `"{a} gave {b} the book"`; doubled braces are literal."""

    def __init__(self, text: str) -> None:
        try:
            parts = list(Formatter().parse(text))
        except ValueError as error:
            raise InputError(f"no template: {error}: a brace that is text is written twice") from error
        if any(form or turned or (name is not None and not name) for _, name, form, turned in parts):
            raise InputError("the template has a field without a plain name: write {a}")
        self.parts = [(text, name) for text, name, _, _ in parts]
        self.names = tuple(dict.fromkeys(name for _, name in self.parts if name is not None))
        if not self.names:
            raise InputError("the template has no field: write one as {a}, a column of the table")

    def check(self, columns: Sequence[str]) -> None:
        """Raises `InputError` for a field that is no column of the table."""
        for name in self.names:
            if name not in columns:
                near = "".join(f"did you mean {{{each}}}? " for each in nearest(name, columns))
                raise InputError(f"the table has no column '{name}': {near}it has {', '.join(columns)}")

    def filled(self, row: Mapping[str, str]) -> Prompt:
        """The prompt of a table row; `InputError` where a cell that it needs is empty."""
        text, places = "", dict[str, list[Place]]()
        for before, name in self.parts:
            text += before
            if name is not None:
                if not row.get(name, "").strip():
                    raise InputError(f"its cell '{name}' is empty")
                places.setdefault(name, []).append((len(text), len(text) + len(row[name])))
                text += row[name]
        return Prompt(text, {name: Field(each, tuple(places.get(name, ()))) for name, each in row.items()})


Made = Callable[[], Prompt]  # makes a prompt; `InputError` for bad input


def prompts_of(
    texts: str | Sequence[str | Mapping[str, Any]], fill: Sequence[Mapping[str, str]] | None = None
) -> tuple[Made, ...]:
    """Functions that each make one prompt, of a text or of a filled template; `InputError` for none."""
    if fill is None:
        if isinstance(texts, str) or not texts:
            raise InputError("give a list of texts, one at least, or a template and rows to fill it with")
        return tuple(partial(prompt_of, each) for each in texts)
    if not isinstance(texts, str) or not fill:
        raise InputError("fill has the rows of one template: give that as a text, and a row at least")
    template = Template(texts)
    columns = tuple(dict.fromkeys(name for row in fill for name in row))
    template.check(columns)
    return tuple(partial(template.filled, row) for row in fill)


@dataclass(frozen=True)
class Row:
    """A table row with its line number; a sound one has as many `cells` as `columns`."""

    number: int
    columns: tuple[str, ...]
    cells: tuple[str, ...]

    @property
    def by_name(self) -> dict[str, str]:
        if len(self.cells) != len(self.columns):
            raise InputError(f"it has {len(self.cells)} cells, the table has {len(self.columns)} columns")
        return dict(zip(self.columns, (cell.strip() for cell in self.cells), strict=True))


def rows_of(table: Path) -> tuple[Row, ...]:
    """Rows of a CSV file whose first line names the columns; tabs or semicolons may part cells."""
    text = incoming.text(incoming.content(table).removeprefix(incoming.BOM), incoming.named(table))
    first = text.partition("\n")[0]
    parted = next((sign for sign in ",;\t" if sign in first), ",")
    reader = csv.reader(text.splitlines(keepends=True), delimiter=parted)
    try:
        read = [(reader.line_num, tuple(cells)) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise InputError(f"{incoming.named(table)}:{reader.line_num}: no table: {error}") from error
    if len(read) < 2:
        raise InputError(f"no row in {incoming.named(table)}: its first line names the columns")
    columns = tuple(each.strip() for each in read[0][1])
    if len(set(columns)) < len(columns) or not all(columns):
        raise InputError(f"{incoming.named(table)} names a column twice, or not at all: {', '.join(columns)}")
    return tuple(Row(number, columns, cells) for number, cells in read[1:])


def texts_of_fields(options: Mapping[str, Any], prompt: Prompt) -> dict[str, str]:
    """The options whose value names a field, with the field's words as their new value.

    `InputError` for a field that the prompt lacks.
    """
    return {
        name: _meant(value, prompt.fields)
        for name in _TEXTS
        if isinstance(value := options.get(name), str) and value.startswith(FIELD)
    }


def _meant(name: str, fields: Mapping[str, Field]) -> str:
    own = name.removeprefix(FIELD)
    if own not in fields:
        raise InputError(f"no field '{own}': the prompt has {', '.join(fields) or 'none'}")
    return fields[own].text


def with_fields(tokens: Tokens, prompt: Prompt) -> Tokens:
    """Tokens with a section for each of the prompt's fields, so that `field:a` names its tokens."""
    fields = (
        Section("field", name, places[0], places[-1] - places[0] + 1)
        for name, field in prompt.fields.items()
        for places in _places(field, prompt, tokens)
    )
    return replace(tokens, marked=(*tokens.marked, *fields))


def _places(field: Field, prompt: Prompt, tokens: Tokens) -> Iterator[Sequence[int]]:
    if not field.places:
        yield from every_span(tokens, field.text)
    for place in field.places:
        start = _start_in(prompt, place, tokens.texts[0] if tokens.texts else "")
        if start is None:  # a mask, which the model may spell otherwise
            nth = len(_starts(prompt.text[: place[1]], field.text))
            yield from every_span(tokens, f"{field.text}#{nth}") or every_span(tokens, field.text)[:1]
        elif found := _tokens_at((start, start + len(field.text)), tokens):
            yield found


def _start_in(prompt: Prompt, place: Place, read: str) -> int | None:
    """Character of the read text at which a place of the prompt begins; None where it is not found.

    The read text may have more around the prompt, as a chat has, and masks may be spelled otherwise.
    """
    if (before := read.find(prompt.text)) >= 0:
        return before + place[0]
    word = prompt.text[slice(*place)]
    own, starts = _starts(prompt.text, word), _starts(read, word)
    return starts[own.index(place[0])] if len(own) == len(starts) else None


def _starts(text: str, word: str) -> list[int]:
    return [i for i in range(len(text)) if text.startswith(word, i)]


def _tokens_at(place: Place, tokens: Tokens) -> list[int]:
    start, end = place
    return [
        i
        for i, token in enumerate(tokens.items)
        if token.part == 0 and token.span is not None and token.span[0] < end and token.span[1] > start
    ]


@dataclass(frozen=True)
class Line:
    """One line of a file, `number` from 1 with blank lines counted.

    It is a text, `in_json` an object with one, or the `row` of a table that fills the `template`.
    """

    number: int
    raw: bytes = b""
    in_json: bool = False
    row: Row | None = None
    template: Template | None = None

    @property
    def prompt(self) -> Prompt:
        """The line's text and fields; raises `InputError` where it has none."""
        if self.row is not None and self.template is not None:
            return self.template.filled(self.row.by_name)
        return prompt_in_json(self.text) if self.in_json else Prompt(self.text)

    @property
    def text(self) -> str:
        """The line as text; raises `InputError` where it is no UTF-8."""
        try:
            return self.raw.decode("utf-8")
        except UnicodeError as error:
            raise InputError("the text is not valid UTF-8") from error

    def refused(self, error: AttnscopeError) -> str:
        """JSON record of a line without an answer: number, error and exit code."""
        return json.dumps({"line": self.number, "error": str(error), "exit_code": error.exit_code})


def read_lines(file: Path) -> tuple[Line, ...]:
    """The non-blank lines of `file`, `-` for standard input; `InputError` where there is none."""
    in_json = file.suffix.lower() in JSON_LINES
    lines = tuple(Line(number, raw, in_json) for number, raw in incoming.whole_lines(file) if raw.strip())
    if not lines:
        raise InputError(f"no text in {incoming.named(file)}: it takes one a line")
    return lines


def fill_in(template: str, table: Path) -> tuple[Line, ...]:
    """A line for each row of the table, which fills the template; `InputError` for a missing column."""
    whole, rows = Template(template), rows_of(table)
    whole.check(rows[0].columns)
    return tuple(Line(row.number, row=row, template=whole) for row in rows)


@dataclass(frozen=True)
class LabelledText:
    """A text and the label of its group, "" without one; `name` is its `line` in error messages.

    `fields` are its named parts.
    """

    line: int
    text: str
    label: str = ""
    name: str = ""
    fields: Mapping[str, Field] = field(default_factory=dict)


def labelled_in(file: Path) -> Iterator[LabelledText]:
    """Labelled texts of a file: lines `LABEL<tab>text`, or JSON with `text` and `label`."""
    for line in read_lines(file):
        name = f"{incoming.called(file)}:{line.number}"
        if not line.in_json:
            label, tab, text = line.text.partition("\t")
            yield LabelledText(line.number, *((text, label.strip()) if tab else (label, "")), name)
            continue
        try:
            prompt = line.prompt
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        own = prompt.fields.get(LABEL)
        yield LabelledText(line.number, prompt.text, "" if own is None else own.text, name, prompt.fields)
