"""A result in a notebook, on an Axes, in a table and at a path; nothing of its texts becomes a page's own."""

import html
import io
import re
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import cases_compare
import made_every
import made_outlines
import made_reports
import made_results as made
import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from pages_read import Page
from PIL import Image

from attnscope.errors import InputError
from attnscope.results import Overview, Prediction, Result, Verdict

matplotlib.use("agg")
EVERY = made_every.every()


def test_the_picture_is_first_and_what_is_proved_below_it() -> None:
    head = made.head()
    several = made.overview(2, 3, verdicts={(1, 2): Verdict.FAILED})
    for result, told in (
        (head, "✓ certified: recomputed, equal to the model's"),
        (several, "✓ certified: 5 of 6 heads recomputed, equal to the model's · ✗ FAILED: 1 of 6 heads"),
        (EVERY["Prediction"], "the model's own answer, nothing changed"),
    ):
        page = Page(result._repr_html_())
        assert [tag for tag, _ in page.tags] == ["div", "style", "img", "div"]
        assert page.text == f"{told} · .page() is interactive"


def test_a_large_picture_has_fewer_dots_and_is_shown_as_wide_as_it_was(tmp_path: Path) -> None:
    for count, shrunk in ((5, False), (42, True)):
        result = made.head([f"w{i}" for i in range(count)])
        page = Page(result._repr_html_())
        (shown,) = (attributes["width"] for tag, attributes in page.tags if tag == "img")
        with Image.open(result.save(tmp_path / "a.png")) as saved, Image.open(io.BytesIO(page.image)) as held:
            assert abs(int(shown) - saved.width / 200 * 96) < 2
            assert (held.width < 0.9 * saved.width / 200 * 144) is shrunk


def test_a_picture_follows_the_theme_and_a_photo_keeps_its_own_light() -> None:
    head, photo = (Page(each._repr_html_()) for each in (made.head(), EVERY["PictureAttention"]))
    with Image.open(io.BytesIO(head.image)) as picture:
        clear = np.asarray(picture.convert("RGBA"))[..., 3] == 0
        assert clear[0].all(), "no white page around it"
        assert 0.3 < clear.mean() < 0.99
    assert [attributes.get("class") for tag, attributes in head.tags if tag == "img"] == ["attnscope"]
    with Image.open(io.BytesIO(photo.image)) as picture:
        assert np.asarray(picture.convert("RGBA"))[..., 3].min() == 255
    assert [attributes.get("class") for tag, attributes in photo.tags if tag == "img"] == [None]
    style = re.findall(r"<style>(.*?)</style>", made.head()._repr_html_())
    assert all("prefers-color-scheme:dark" in each for each in style)
    assert len(style) == 1


def test_texts_that_look_like_tags_stay_texts() -> None:
    head = made_every.hostile()
    predicted = replace(made_reports.masked(head, [1]), tokens=head.query_tokens, provenance=head.provenance)
    outlined = replace(made_outlines.outline(), architecture=made_every.HOSTILE)  # which has no picture
    for result in (head, predicted, outlined):
        page = result._repr_html_()
        assert {tag for tag, _ in Page(page).tags} <= {"div", "img", "pre", "style"}
        assert "<script" not in page
        assert "onerror=alert" not in re.sub(r"&lt;.*?&gt;", "", page)
    assert made_every.HOSTILE in " ".join(Page(outlined._repr_html_()).text.split())
    assert html.escape(made_every.HOSTILE)[:20] in head._repr_html_()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"key": "cat"}, "a key goes with a query"),
        ({"show": "values"}, "nothing of a head is called 'values'"),
        ({"ax": 3}, "ax is an Axes of matplotlib, not int"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(asked: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made.head().plot(**asked)


def test_what_is_drawn_is_what_is_saved(tmp_path: Path) -> None:
    head = made.head()
    whole, scores = head.save(tmp_path / "a.svg"), head.save(tmp_path / "b.svg", show="scores")
    assert whole.read_bytes() != scores.read_bytes()
    assert EVERY["Report"].save(tmp_path / "r.pdf").read_bytes().count(b"/Type /Page ") == 6
    with pytest.raises(InputError, match="leave show, query, key, scale and the look out"):
        head.save(tmp_path / "a.csv", show="scores")


def test_a_file_that_cannot_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("mine")
    for place in ("folder.png", "file/a.png"):
        with pytest.raises(InputError, match="cannot write"):
            made.head().save(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder.png"]


def test_a_character_that_no_font_has_is_warned_of(tmp_path: Path) -> None:
    head = made.head()
    tokens = made_every.tokens_called(["\U00013000", *"abcdefghijkl"], "\U00013000")
    with pytest.warns(UserWarning, match="no installed font has"):
        replace(head, query_tokens=tokens).save(tmp_path / "a.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head.save(tmp_path / "b.png")


def test_a_head_is_a_table_of_queries_and_keys() -> None:
    pytest.importorskip("pandas")
    head = made.head(made.DOOR[:5], made.DOOR[:3])
    frame = head.to_pandas()
    assert np.array_equal(frame.to_numpy(), head.weights)
    assert list(frame.index) == list(head.query_tokens.labels)
    assert list(frame.columns) == list(head.key_tokens.labels)
    assert (frame.index.name, frame.columns.name) == ("query", "key")
    assert frame.attrs == {"verdict": "certified"}
    values = head.to_pandas("v")
    assert values.shape == (3, head.v.shape[1])
    assert (values.index.name, values.columns.name) == ("key", "dimension")


def test_labels_of_a_table_are_unique_whatever_tokens_are_called() -> None:
    pytest.importorskip("pandas")
    tokens = made_every.tokens_called(["a@2", "b", "a", "a"], "a@2 b a a")
    assert len(set(tokens.labels)) < 4
    head = replace(made.head(["w", "x", "y", "z"]), query_tokens=tokens, key_tokens=tokens)
    frame = head.to_pandas()
    assert list(frame.index) == ["a@2 (0)", "b", "a@2 (2)", "a@3"]
    assert frame.columns.is_unique


def test_an_overview_is_a_table_of_layers_and_heads() -> None:
    pytest.importorskip("pandas")
    grid = made.overview(3, 4)
    frame = grid.to_pandas()
    assert np.array_equal(frame.to_numpy(), grid.main.values)
    assert frame.loc[2, 3] == grid.main.values[2, 3]
    both = made.measured(grid, "entropy", "distance").to_pandas()
    assert np.array_equal(both["distance"].to_numpy(), _values(grid, "distance"))
    assert both.columns.names == ["measure", "head"]


def _values(grid: Overview, name: str) -> np.ndarray:
    return np.asarray(made.measured(grid, name).main.values)


@pytest.mark.parametrize("result", EVERY.values(), ids=EVERY)
def test_every_result_is_a_table_with_numbers_as_numbers(result: Result) -> None:
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert len(frame)
    assert frame.columns.is_unique
    for name in ("weight", "value", "probability", "x", "layer", "weight_error"):
        if name in frame.columns:
            assert pandas.api.types.is_numeric_dtype(frame[name]), name


def test_a_table_has_the_numbers_of_its_result() -> None:
    pytest.importorskip("pandas")
    projection, prediction = made.projection(), EVERY["Prediction"]
    points = projection.to_pandas()
    keys = points[points.side == "key"]
    assert np.array_equal(keys[["x", "y"]].to_numpy(), projection.keys)
    assert isinstance(prediction, Prediction)
    guesses = [each.probability for each in prediction.blanks[0].guesses]
    assert list(prediction.to_pandas().probability) == guesses
    compared = cases_compare.texts()
    weights = compared.to_pandas().query("fact == 'weight' and side == 'b'")
    assert np.array_equal(weights.value.to_numpy(), compared.b.weights)
    assert made.verification().to_pandas().shape[0] == 48


def test_without_pandas_a_table_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pip install 'attnscope\[pandas\]'"):
        made.head().to_pandas()


def test_a_notebook_shows_a_result_and_its_picture_once() -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    formatter = formatters.DisplayFormatter()
    bundle, _ = formatter.format(made.head())
    # a viewer takes the richest of these, which is the HTML
    assert set(bundle) == {"text/plain", "text/html", "image/png"}
    assert bundle["text/html"].count("<img") == 1
    assert bundle["text/plain"] == repr(made.head())
    page, _ = formatter.format(made.head().plot())
    assert set(page) == {"text/plain", "image/png"}
    axes, _ = formatter.format(made.head().plot(Figure().subplots()))
    assert set(axes) == {"text/plain"}
    text, _ = formatter.format(made_outlines.outline())
    assert set(text) == {"text/plain", "text/html"}


def test_a_picture_is_drawn_once_for_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnscope.render import present as notebook

    drawn = []
    content = notebook.content
    monkeypatch.setattr(
        notebook, "content", lambda *given, **look: drawn.append(given) or content(*given, **look)
    )
    head = made.head()
    assert head._repr_html_()
    assert head._repr_png_() == head._repr_png_()
    assert [suffix for _, suffix in drawn].count(".png") == 1
