"""Whatever stands in a stored result, no character of it steers a terminal, a picture, a page or a table."""

import base64
import csv
import io
import json
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html import unescape
from typing import Any

import made_every
import made_results as made
import pytest
from golden_text import printed
from rich.console import Group
from rich.text import Text

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.render.files import as_csv
from attnscope.render.kit.csv import cell
from attnscope.render.present import html, summary, text
from attnscope.render.saving import content
from attnscope.render.sheets import NO_PICTURE
from attnscope.render.terminal.console import Paper
from attnscope.render.terminal.sheet import screen
from attnscope.render.web.page import as_page
from attnscope.results import Result

# a window's title, a colour, a bell, a return, C1's own CSI, half a character, a turned line, new lines
CONTROLS = "\x1b]0;t\x07\x1b[31m\r\x9b2J\udc9b\u202e\u2066\u2028\n\x00\x7f=x"
NAMES_OF_OURS = {
    "symbol",
    "kernel",
    "dtype",
    "unit",
    "strong",
    "least",
    "most",
    "low",
    "high",
    "task",
    "shown",
    "vector",
}
NAMED_OUTSIDE = {"versions", "elsewhere", "by_name"}
EVERY = made_every.every()


def hostile(part: Any, field: str = "") -> Any:
    """The same with controls at the end of every text in it, but where only words of our own can stand."""
    if isinstance(part, str) and not isinstance(part, Enum):
        return part if field in NAMES_OF_OURS else part + CONTROLS
    if is_dataclass(part) and not isinstance(part, type):
        inside = {
            each.name: hostile(getattr(part, each.name), each.name) for each in fields(part) if each.init
        }
        return replace(part, **inside)
    if type(part) in (tuple, list):
        return type(part)(hostile(each, field) for each in part)
    if type(part) is dict:
        ending = CONTROLS if field in NAMED_OUTSIDE else ""
        return {f"{key}{ending}" if ending else key: hostile(each, field) for key, each in part.items()}
    return part


def steering(shown: str) -> set[str]:
    """The characters that steer, by what Unicode says of them; ends of lines, joiners and our mark do not."""
    return {
        each
        for each in shown
        if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")
        and each not in "\n\u200c\u200d\u200e"
    }


@pytest.fixture(params=EVERY)
def result(request: pytest.FixtureRequest) -> Result:
    made_one: Result = hostile(EVERY[request.param])
    return made_one


def test_the_texts_that_are_tried_do_steer() -> None:
    for each in CONTROLS.replace("\n", "").replace("=x", ""):
        assert each in "]0;t[31m2J" or steering(each)
    assert not steering(printable(CONTROLS))
    assert sum(CONTROLS in str(each) for each in parts_of(hostile(EVERY["Overview"]))) > 40


def parts_of(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif is_dataclass(part):
        for each in fields(part):
            yield from parts_of(getattr(part, each.name))
    elif isinstance(part, tuple | list):
        for each in part:
            yield from parts_of(each)


def test_nothing_steers_the_terminal(result: Result) -> None:
    for colour in (None, "truecolor"):
        shown = printed(Group(*screen(result, 80)), 80, colour=colour)
        assert not steering(re.sub(r"\x1b\[[0-9;]*m", "", shown))
    assert "\\x1b[31m" in shown


def test_a_console_sends_nothing_that_steers_but_its_own_colours() -> None:
    stream = io.StringIO()
    paper = Paper(file=stream, force_terminal=True, color_system="truecolor", width=200)
    paper.print(Text(CONTROLS, style="red"), CONTROLS, "[b]x[/b] :smile:")
    assert steering(stream.getvalue()) == {"\x1b"}
    assert not steering(re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()))
    assert "[b]x[/b] :smile:" in stream.getvalue()


def test_nothing_steers_in_a_picture(result: Result) -> None:
    if type(result) in NO_PICTURE:
        pytest.skip("has no picture")
    drawn = content(result, ".svg")
    assert not steering(unescape(drawn.decode()))


def test_nothing_steers_in_a_page(result: Result) -> None:
    page = as_page(result).decode()
    assert not steering(unescape(page))
    (document,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    packed = re.findall(r'<script type="application/octet-stream" id="\w+">([^<]*)</script>', page)
    blocks = (base64.b64decode(each) for each in packed)
    unpacked = (each if each.startswith(b"RIFF") else zlib.decompress(each) for each in blocks)
    written = [document, *(each.decode() for each in unpacked if each.startswith((b"{", b"[")))]
    for each in written:
        for one in texts_in(json.loads(each)):
            assert not steering(one)
            assert "\n" not in one


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from texts_in(each)


def test_nothing_steers_in_a_table_and_a_row_is_a_line(result: Result) -> None:
    written = as_csv(result)
    assert not steering(written)
    heading, *rows = csv.reader(line for line in written.splitlines() if not line.startswith("# "))
    assert {len(row) for row in rows} <= {len(heading)}


def test_nothing_steers_where_python_shows_a_result(result: Result) -> None:
    assert not steering(summary(result) + text(result, width=80))


def test_nothing_steers_in_a_notebook() -> None:
    assert not steering(unescape(html(hostile(made.overview(2, 3)))))


def test_an_error_is_one_line_whatever_it_names() -> None:
    said = str(InputError(f"no file '{CONTROLS}'"))
    assert not steering(said)
    assert "\n" not in said
    assert said.startswith(r"no file '\x1b]0;t\x07\x1b[31m␍\x9b2J\udc9b\u202e")


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ("=1+2", "'=1+2"),
        ("+x", "'+x"),
        ("-5+cmd|' /C calc'!A0", "'-5+cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("＝1+1", "'＝1+1"),
        (" =x", " '=x"),
        ("a,=x", "a,'=x"),
        ('a; "=x', "a; \"'=x"),
        ("\t=x", "⇥=x"),
        ("-", "-"),
        ("=", "="),
        ("-0.31", "-0.31"),
        ("-1e-05", "-1e-05"),
        ("0.1, -0.2", "0.1, -0.2"),
        ("##ing", "##ing"),
        ("a=b", "a=b"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_stays_a_text(given: str, held: str) -> None:
    assert cell(given) == held


def test_numbers_stay_numbers_beside_a_text_that_is_a_formula() -> None:
    names = ["=1+2", "-", "@x", "-5"]
    head = made.head(names)
    rows = list(csv.DictReader(line for line in as_csv(head).splitlines() if not line.startswith("# ")))
    texts = {value for row in rows for value in row.values()}
    assert {"'=1+2", "-", "'@x", "-5"} <= texts
    assert not texts & {"=1+2", "@x"}
    numbers = [value for row in rows for name, value in row.items() if name in ("weight", "score", "scaled")]
    assert numbers
    assert all(float(each) or True for each in numbers if each)
    assert any(each.startswith("-") for each in numbers)
