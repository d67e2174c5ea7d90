"""How pictures are dressed: title, size, dots, caption and bare axes change nothing that is drawn in them."""

import io
import re
import struct
import warnings
from dataclasses import replace
from pathlib import Path

import made_reports as reports
import made_results as made
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from attnscope.errors import InputError
from attnscope.render import saving
from attnscope.render.figure import figure_of, panels
from attnscope.render.kit.words import own_name
from attnscope.render.look import Look
from attnscope.render.terminal.console import background
from attnscope.results import Verdict

FOLDER = "/home/somebody/secret project/tiny-bert"


def texts(figure: Figure) -> list[str]:
    found = (text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))
    return [text for text in found if text]


def local_head(verdict: Verdict = Verdict.CERTIFIED):
    head = made.head(["the", "cat", "sat"], verdict=verdict)
    pinned = replace(
        head.provenance, requested=FOLDER, model=FOLDER, revision=None, digest="sha256:" + "5" * 64
    )
    return replace(head, provenance=pinned)


def dots(png: bytes) -> tuple[int, int]:
    return struct.unpack(">II", png[16:24])


def test_no_path_and_no_hash_is_in_a_picture_unless_the_caption_is_full() -> None:
    usual, full = (
        " ".join(texts(figure_of(local_head(), look=Look(caption=each)))) for each in ("short", "full")
    )
    assert "tiny-bert" in usual
    for told in ("secret", "somebody", "5555"):
        assert told not in usual
        assert told in full
    drawn = saving.content(local_head(), ".svg")
    assert b"secret" not in drawn  # nor in its metadata
    assert b"sha256:5555" in drawn
    assert b"secret" in saving.content(local_head(), ".svg", look=Look(caption="full"))


@pytest.mark.parametrize(
    ("model", "called"),
    [
        ("bert-base-uncased", "bert-base-uncased"),
        ("owner/model", "owner/model"),
        ("/a/b/model", "b/model"),
        ("/a/b/model/", "b/model"),
        ("./model", "model"),
        ("a/b/c", "c"),
        ("C:\\Users\\me\\model", "me/model"),
        ("/c/hub/models--owner--model/snapshots/0123456789abcdef", "owner/model"),
        (".", "."),
        ("/home/a/bert-fine/model", "bert-fine/model"),
        ("runs/bert/checkpoint-500", "bert/checkpoint-500"),
        ("~/bert/0123456789abcdef", "bert/0123456789abcdef"),
        ("/home/model/tiny", "tiny"),
    ],
)
def test_a_folder_is_called_by_its_own_name_and_a_hub_id_as_it_is(model: str, called: str) -> None:
    assert own_name(model) == called


def test_a_title_takes_the_place_of_the_heading_and_none_leaves_it_out() -> None:
    usual, own, none = (
        texts(figure_of(made.head(), look=Look(title=each))) for each in (None, "My $x$", "none")
    )
    assert "L3 H11" in usual
    assert "encoder self-attention · bert-base-uncased" in [*usual, *own]
    assert "My $x$" in own
    assert "L3 H11" not in [*own, *none]
    assert len(none) == len(usual) - 2, "what it is, and of which model"


@pytest.mark.parametrize("look", [Look(bare=True), Look(title="none", caption="none")])
def test_a_failure_that_a_picture_does_not_show_is_noticed_and_stands_in_its_metadata(look: Look) -> None:
    heard: list[str] = []
    drawn = saving.content(local_head(Verdict.FAILED), ".png", look=look, notice=heard.append)
    assert heard == ["the picture does not say that its certificate is FAILED: only its metadata do"]
    assert "✗ FAILED".encode() in drawn
    saving.content(local_head(), ".png", look=look, notice=heard.append)
    saving.content(local_head(Verdict.FAILED), ".png", notice=heard.append)
    assert len(heard) == 1


@pytest.mark.parametrize("size", [(3.3, 2.5), (12.0, 4.0), (2.0, 7.0)])
def test_a_picture_is_as_large_as_it_was_asked_to_be_in_every_format(size: tuple[float, float]) -> None:
    look, head = Look(size=size, dpi=150), made.head(["the", "cat", "sat", "on"])
    assert dots(saving.content(head, ".png", look=look)) == tuple(round(150 * side) for side in size)
    svg = saving.content(head, ".svg", look=look).decode()
    sides = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert sides is not None
    assert [float(side) for side in sides.groups()] == pytest.approx([72 * side for side in size], rel=1e-4)
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", saving.content(head, ".pdf", look=look))
    assert box is not None
    assert [float(side) for side in box.groups()] == pytest.approx([72 * side for side in size], rel=1e-4)


def test_a_small_map_keeps_its_letters() -> None:
    figure = figure_of(made.projection(), look=Look(size=(3.3, 3.5), bare=True))
    assert figure.zoom == 1.0  # type: ignore[attr-defined]
    assert figure.get_size_inches() == pytest.approx((3.3, 3.5))


def test_the_text_of_an_svg_is_text_with_a_family_to_fall_back_on() -> None:
    svg = saving.content(made.head(["the", "cat", "naïve"]), ".svg").decode()
    assert ">naïve</text>" in svg
    families = re.findall(r"font-family: ([^;\"]*)|font: [^;\"]*px ([^;\"]*)", svg)
    assert families
    assert all((first or second).rstrip().endswith("sans-serif") for first, second in families)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"size": "3.3"}, "no size '3.3': width x height in inches, such as 6x4"),
        ({"size": "0x4"}, "no size '0x4'"),
        ({"size": "1..2x4"}, r"no size '1\.\.2x4'"),
        ({"size": (float("nan"), 2)}, "no size 'nanx2'"),
        ({"size": (1, 2, 3)}, "no size '1x2x3'"),
        ({"dpi": 5}, "5 dots per inch: a picture has 10 to 2400"),
        ({"caption": "long"}, "no caption 'long': short, full, none"),
        ({"bare": True, "title": "x"}, "a bare picture has neither title nor caption"),
        ({"bare": True, "caption": "full"}, "a bare picture has neither title nor caption"),
    ],
)
def test_what_no_picture_can_look_like_is_refused(words: dict, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Look(**words)


def test_more_dots_than_a_png_can_have_are_refused() -> None:
    with pytest.raises(InputError, match=r"no room for 2400 dots per inch: at most 327"):
        saving.content(made.head(["a", "b"]), ".png", look=Look(size="200x2", dpi=2400))


def test_a_report_has_a_file_for_each_panel(tmp_path: Path) -> None:
    result = reports.report(made.head(made.DOOR[:6]))
    heard: list[str] = []
    written = saving.save(result, tmp_path / "r-{panel}.png", look=Look(dpi=50), notice=heard.append)
    names = ["text", "scores", "weights", "map", "contributions", "numbers"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"r-{name}.png" for name in names)
    assert written == [tmp_path / f"r-{name}.png" for name in names]
    assert not heard
    assert list(panels(result, Look(bare=True))) == names[1:]
    with pytest.raises(InputError, match="only the picture of a report has panels"):
        saving.check_panels([Path("r-{panel}.csv")], "Report")
    with pytest.raises(InputError, match="only the picture of a report has panels"):
        saving.save(made.head(), tmp_path / "h-{panel}.png")


def test_the_library_takes_the_same_words(tmp_path: Path) -> None:
    head = made.head(["the", "cat", "sat"], verdict=Verdict.FAILED)
    figure = head.plot(title="Mine", size=(4, 3), dpi=80)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")  # type: ignore[union-attr]
    assert dots(drawn.getvalue()) == (320, 240)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        head.save(tmp_path / "x.png", bare=True, size="4x3", dpi=80)
    assert dots((tmp_path / "x.png").read_bytes()) == (320, 240)
    assert "FAILED" in str(heard[0].message)
    with pytest.raises(InputError, match="and the look out"):
        head.save(tmp_path / "x.csv", bare=True)
    with pytest.raises(InputError, match="are those of a page: leave ax or these out"):
        head.plot(Figure().subplots(), title="x")
    with pytest.raises(TypeError):
        head.plot(colour="red")


@pytest.mark.parametrize(
    ("wanted", "environment", "found"),
    [
        ("light", {}, "light"),
        ("DARK", {"ATTNSCOPE_THEME": "light"}, "dark"),
        (None, {"ATTNSCOPE_THEME": "light", "COLORFGBG": "15;0"}, "light"),
        ("auto", {"ATTNSCOPE_THEME": "light", "COLORFGBG": "15;0"}, "dark"),
        (None, {"COLORFGBG": "15;0"}, "dark"),
        (None, {"COLORFGBG": "0;default;15"}, "light"),
        (None, {"COLORFGBG": "0;7"}, "light"),
        (None, {"COLORFGBG": "15;8"}, "dark"),
        (None, {"COLORFGBG": "default;default"}, "unknown"),
        (None, {"ATTNSCOPE_THEME": "", "COLORFGBG": ""}, "unknown"),
    ],
)
def test_what_is_said_first_counts(wanted: str | None, environment: dict[str, str], found: str) -> None:
    assert background(wanted, environment) == found


@pytest.mark.parametrize(
    ("wanted", "environment", "where"),
    [("blue", {}, "--theme"), (None, {"ATTNSCOPE_THEME": "\x1b[31m"}, "ATTNSCOPE_THEME")],
)
def test_a_theme_that_there_is_not_is_refused(
    wanted: str | None, environment: dict[str, str], where: str
) -> None:
    with pytest.raises(InputError, match=f"^{where}: no theme '.*': auto, light, dark$") as refused:
        background(wanted, environment)
    assert "\x1b" not in str(refused.value)
