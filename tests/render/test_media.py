"""Every kind of result in every medium: answer and numbers are there, nothing is cut, nothing steers."""

import base64
import csv
import html
import io
import json
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import made_every
import made_results as made
import numpy as np
import pytest
from golden_text import printed
from matplotlib.figure import Figure
from pages_read import Page
from PIL import Image
from rich.console import Group
from rich.text import Text

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.render.figure import figure_of, pages
from attnscope.render.files import as_csv, as_json
from attnscope.render.kit.numbers import harmless_cell
from attnscope.render.look import Look
from attnscope.render.present import html as notebook
from attnscope.render.present import summary, text
from attnscope.render.saving import content, picture_suffixes, suffixes
from attnscope.render.sheets import no_picture, sheet_of
from attnscope.render.terminal.console import Paper
from attnscope.render.terminal.sheet import screen
from attnscope.render.web.page import as_page
from attnscope.results import Report, Verdict

EVERY = made_every.every()
KINDS = pytest.mark.parametrize("kind", EVERY)
PICTURED = pytest.mark.parametrize("kind", [kind for kind in EVERY if not no_picture(type(EVERY[kind]))])
DRAWN_APART = (  # by code of their own
    *("HeadAttention", "HeadTerms", "Projection", "Report", "Worked", "PictureHeads", "SoundHeads"),
    *("Finding", "Senses", "Thumbnails"),
)
# a window's title, a colour, a bell, a return, C1's own CSI, half a character, a turned line, new lines
CONTROLS = "\x1b]0;t\x07\x1b[31m\r\x9b2J\udc9b\u202e\u2066\u2028\n\x00\x7f=x"
OUR_WORDS = {
    *("symbol", "kernel", "dtype", "unit", "strong", "least", "most"),
    *("low", "high", "task", "shown", "vector"),
}
NAMED_OUTSIDE = {"versions", "elsewhere", "by_name"}
OF_PANELS = {"Why", "Report", "HeadTerms", "Dimensions", "Worked", "ScaleStudy", "Prediction", "Verification"}
PROVES_NOTHING = {"Prediction", "LayeredPrediction", "Contributions", "Outline", "ScaleStudy"}


def hostile(part: Any, field: str = "") -> Any:
    """`part` with controls at the end of every text in it, but where only words of our own can stand."""
    if isinstance(part, str) and not isinstance(part, Enum):
        return part if field in OUR_WORDS else part + CONTROLS
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


def texts_of(part: Any) -> Iterator[str]:
    """All texts in a result or a document."""
    if isinstance(part, str):
        yield part
    elif is_dataclass(part):
        yield from texts_of([getattr(part, each.name) for each in fields(part)])
    elif isinstance(part, tuple | list):
        for each in part:
            yield from texts_of(each)
    elif isinstance(part, dict):
        yield from texts_of([*part, *part.values()])


def test_the_texts_that_are_tried_do_steer() -> None:
    for each in CONTROLS.replace("\n", "").replace("=x", ""):
        assert each in "]0;t[31m2J" or steering(each)
    assert not steering(printable(CONTROLS))
    assert sum(CONTROLS in str(each) for each in texts_of(hostile(EVERY["Overview"]))) > 40


@KINDS
def test_in_a_terminal(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result, answer = EVERY[kind], " ".join(sheet_of(EVERY[kind]).answer.split())
    for width in (40, 80, 140):
        shown = printed(Group(*screen(result, width)), width)
        assert len(shown.splitlines()) > 2
        assert max(map(len, shown.splitlines())) <= width
        assert " ".join(shown.split()).startswith(answer)
    monkeypatch.setenv("COLUMNS", "60")
    assert str(result) == result.text(width=60)
    for colour in (None, "truecolor"):
        shown = printed(Group(*screen(hostile(result), 80)), 80, colour=colour)
        assert not steering(re.sub(r"\x1b\[[0-9;]*m", "", shown))
    assert "\\x1b[31m" in shown
    assert result.verdict is (None if kind in PROVES_NOTHING else Verdict.CERTIFIED)


@KINDS
def test_where_python_shows_it(kind: str) -> None:
    line = repr(EVERY[kind])
    assert len(line) < 200
    assert line.startswith(f"<{kind} ")
    assert kind in PROVES_NOTHING or line.endswith("✓ certified>")
    evil = hostile(EVERY[kind])
    assert not steering(summary(evil) + text(evil, width=80))
    assert "\n" not in repr(evil)


@KINDS
def test_on_a_page_without_a_script(kind: str) -> None:
    page, of = content(EVERY[kind], ".html").decode(), sheet_of(EVERY[kind])
    shown = html.unescape(re.sub(r"<[^>]+>", "", page.split('<script type="application/json"')[0]))
    if 'class="said"' in page:  # else it opens on a link, and its answer stands in the sheet
        assert of.answer in shown
    if 'class="blocks"' not in page:
        of_a_head = ("HeadAttention", "HeadWeights", "HeadView", "HeadTerms", "Thumbnails")
        assert kind in of_a_head or not of.every
        return
    for block in (*of.every, *of.more):
        for column in getattr(getattr(block, "table", None), "headed", ()):
            numbers = [column.text(row) for row in range(len(block.names))]
            assert all(each in shown for each in numbers), (block.title, column.heading)


@KINDS
def test_nothing_steers_on_a_page(kind: str) -> None:
    page = as_page(hostile(EVERY[kind])).decode()
    assert not steering(html.unescape(page))
    (document,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    packed = re.findall(r'<script type="application/octet-stream" id="\w+">([^<]*)</script>', page)
    blocks = (base64.b64decode(each) for each in packed)
    unpacked = (each if each.startswith(b"RIFF") else zlib.decompress(each) for each in blocks)
    for written in (document, *(each.decode() for each in unpacked if each.startswith((b"{", b"[")))):
        for each in texts_of(json.loads(written)):
            assert not steering(each)
            assert "\n" not in each


@KINDS
def test_in_tables_and_documents(kind: str, tmp_path: Path) -> None:
    result = EVERY[kind]
    assert json.loads(as_json(result))["answer"] == sheet_of(result).answer
    written = as_csv(hostile(result))
    assert not steering(written)
    heading, *rows = csv.reader(line for line in written.splitlines() if not line.startswith("# "))
    assert {len(row) for row in rows} <= {len(heading)}, "a row is a line"
    with pytest.raises(InputError, match="the name must end in"):
        result.save(tmp_path / "a.docx")


@KINDS
def test_what_has_no_picture_says_so_in_one_line(kind: str, tmp_path: Path) -> None:
    result = EVERY[kind]
    if not no_picture(type(result)):
        assert picture_suffixes(type(result)) == (".png", ".svg", ".pdf")
        return
    assert picture_suffixes(type(result)) == ()
    assert ".png" not in suffixes(type(result))
    for draw in (lambda: figure_of(result), result.plot):
        with pytest.raises(InputError, match="has no picture: it is") as error:
            draw()
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"cannot write '.*a\.png': the name must end in"):
        result.save(tmp_path / "a.png")
    assert result._repr_png_() is None
    assert Page(result._repr_html_()).text == result.text(width=80)


@PICTURED
def test_in_a_notebook(kind: str) -> None:
    result = EVERY[kind]
    png, page = result._repr_png_(), result._repr_html_()
    assert len(page) <= 60_000
    assert "://" not in page, "no address; letters of it may stand in a picture by chance"
    assert "<script" not in page
    tags = Page(page).tags
    assert {tag for tag, _ in tags} <= {"div", "img", "pre", "style"}
    assert all(set(attributes) <= {"style", "src", "alt", "width", "class"} for _, attributes in tags)
    assert [attributes["alt"] for tag, attributes in tags if tag == "img"] == [repr(result).strip("<>")]
    assert png is not None
    seen = []
    for each in (png, Page(page).image):
        with Image.open(io.BytesIO(each)) as picture:
            assert picture.format == "PNG"
            assert min(picture.size) > 100
            seen.append(np.asarray(picture.convert("RGB")))
    assert np.array_equal(*seen), "one is the other, but for what is left clear"


def looks_like(saved: Path, shown: bytes | None) -> bool:
    """Whether a picture of a notebook, which has fewer points and colours, is that of a file."""
    assert shown is not None
    with Image.open(io.BytesIO(shown)) as few, Image.open(saved) as full:
        alike = few.convert("RGB").resize((120, 90)), full.convert("RGB").resize((120, 90))
        return float(np.abs(np.subtract(*(np.asarray(each, float) for each in alike))).mean()) < 4


@PICTURED
def test_in_a_picture(kind: str, tmp_path: Path) -> None:
    result = EVERY[kind]
    assert len(pages(result)) == (6 if type(result) is Report else 1)
    assert result.save(tmp_path / "new" / "a.png") == tmp_path / "new" / "a.png"
    other = EVERY["Overview" if kind == "Report" else "Report"]
    assert looks_like(tmp_path / "new" / "a.png", result._repr_png_())
    assert not looks_like(tmp_path / "new" / "a.png", other._repr_png_())
    bare = figure_of(result, look=Look(bare=True, size="5x4"))
    assert bare.get_size_inches() * bare.zoom == pytest.approx((5, 4))  # type: ignore[attr-defined]
    assert isinstance(result.plot(), Figure)
    figure = Figure(figsize=(5, 4))
    axes = figure.subplots()
    if kind in OF_PANELS:
        with pytest.raises(InputError, match="leave ax out"):
            result.plot(axes)
    else:
        assert result.plot(axes) is axes
        assert axes.has_data()
        figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize("kind", DRAWN_APART)
def test_nothing_steers_in_a_picture(kind: str) -> None:
    assert not steering(html.unescape(content(hostile(EVERY[kind]), ".svg").decode()))


def test_a_console_sends_nothing_that_steers_but_its_own_colours() -> None:
    stream = io.StringIO()
    paper = Paper(file=stream, force_terminal=True, color_system="truecolor", width=200)
    paper.print(Text(CONTROLS, style="red"), CONTROLS, "[b]x[/b] :smile:")
    assert steering(stream.getvalue()) == {"\x1b"}
    assert not steering(re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()))
    assert "[b]x[/b] :smile:" in stream.getvalue()


def test_nothing_steers_in_a_notebook() -> None:
    assert not steering(html.unescape(notebook(hostile(made.overview(2, 3)))))


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
    assert harmless_cell(given) == held


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
