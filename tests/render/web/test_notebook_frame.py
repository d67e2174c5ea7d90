"""The page in a notebook: in a frame of its own, which runs its scripts and reaches nothing else."""

from typing import Any

import made_every
import made_results as made
import pytest

from attnscope.render.present import notebook
from attnscope.results import HeadAttention


@pytest.fixture
def cell(browser: Any) -> Any:
    """A notebook's cell with the HTML of a result in it; scripts may be off."""
    contexts = []

    def shown(html: str, **settings: Any) -> Any:
        contexts.append(browser.new_context(offline=True, **settings))
        view = contexts[-1].new_page()
        view.heard = []
        view.on("pageerror", lambda error: view.heard.append(str(error)))
        view.on("dialog", lambda dialog: (view.heard.append(dialog.message), dialog.dismiss()))
        view.set_content(f"<!doctype html><title>notebook</title>{html}")
        return view

    yield shown
    for context in contexts:
        context.close()


@pytest.mark.parametrize(
    "result", [made.head(), made.overview(2, 3), made_every.hostile()], ids=["head", "several", "hostile"]
)
def test_the_frame_draws_the_page_once_it_is_opened(cell, result) -> None:
    view = cell(result._repr_html_())
    assert view.locator("img").is_visible()
    assert not view.locator("iframe").is_visible()
    view.locator("summary").click()
    frame = view.frame_locator("iframe")
    frame.locator("body[data-thumbnails]").wait_for(timeout=10_000)
    frame.get_by_role("tab", name="Matrix").click()
    frame.locator("#view rect.frame").wait_for()
    assert view.heard == []


def test_what_runs_in_the_frame_cannot_reach_the_notebook(cell) -> None:
    view = cell(made.head()._repr_html_())
    view.locator("summary").click()
    view.frame_locator("iframe").locator("body[data-thumbnails]").wait_for(timeout=10_000)
    inside = view.frames[1]
    assert (
        inside.evaluate("() => { try { return parent.document.title } catch (e) { return e.name } }")
        == "SecurityError"
    )


def test_where_scripts_do_not_run_picture_and_certificate_are_there(cell) -> None:
    head: HeadAttention = made.head()
    view = cell(head._repr_html_(), java_script_enabled=False)
    assert view.locator("img").is_visible()
    assert "certified" in view.inner_text("body")


def test_a_page_that_is_large_is_named_and_not_put_into_the_notebook(monkeypatch) -> None:
    monkeypatch.setattr(notebook, "MOST_FRAMED", 10_000)
    found = made.head()._repr_html_()
    assert "<iframe" not in found
    assert ".save('page.html')" in found
