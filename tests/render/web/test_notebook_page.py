"""A result in a notebook: its picture, and its page where that is asked for."""

from typing import Any

import made_every
import made_results as made
import pytest

from attnscope.errors import InputError
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
def test_the_cell_draws_the_page(cell, result) -> None:
    assert "<template" not in result._repr_html_()
    view = cell(result.page()._repr_html_())
    view.locator(".page[data-thumbnails]").wait_for(timeout=10_000)
    view.get_by_role("tab", name="Matrix").click()
    view.locator("#view rect.frame").wait_for()
    assert view.heard == []


def test_where_scripts_do_not_run_picture_and_certificate_are_there(cell) -> None:
    head: HeadAttention = made.head()
    view = cell(head._repr_html_(), java_script_enabled=False)
    assert view.locator("img").is_visible()
    assert "certified" in view.inner_text("body")


def test_a_page_that_is_large_is_refused_and_not_put_into_the_notebook(monkeypatch) -> None:
    monkeypatch.setattr(notebook, "MOST_FRAMED", 10_000)
    with pytest.raises(InputError, match=r"\.save\('page\.html'\)"):
        made.head().page()


def test_a_page_says_in_a_console_how_to_see_it() -> None:
    told = repr(made.head().page())
    assert "\n" not in told
    assert ".save('page.html')" in told
    assert len(told) < 200


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_is_as_light_or_dark_as_the_notebook(cell, theme: str) -> None:
    view = cell(made.head()._repr_html_(), color_scheme=theme)
    turned = view.locator("img").evaluate("img => getComputedStyle(img).filter")
    assert ("invert" in turned) == (theme == "dark")
    view.evaluate("document.body.dataset.jpThemeLight = 'true'")
    assert view.locator("img").evaluate("img => getComputedStyle(img).filter") == "none"
