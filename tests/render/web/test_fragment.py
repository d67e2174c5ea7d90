"""A page inside another one, or in a notebook: neither knows the other's names, styles, keys and address."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cases_find
import made_every
import made_results as made
import pytest

from attnscope.errors import InputError
from attnscope.render import present as notebook
from attnscope.render.saving import content
from attnscope.render.sheet.said import named
from attnscope.render.sheets import sheet_of
from attnscope.render.web.room import Beside
from attnscope.results import HeadAttention

HOST = (
    "body{font:30px serif;color:rgb(1,2,3)} p{color:rgb(9,9,9)} #page,svg,h1{display:none!important}"
    "table,td,th{border:9px solid red!important} .page{background:pink} button{border-radius:30px}"
)
PUT = "html => { document.body.appendChild(document.createElement('div')).innerHTML = html }"
SHOWN = ".page[data-thumbnails]"


def fragment(result: Any) -> str:
    return content(result, ".html", beside=Beside(fragment=True)).decode()


@pytest.fixture
def host(browser: Any) -> Any:
    """A page of somebody else around fragments, offline; what is heard of it must be nothing."""

    @contextmanager
    def of(*fragments: str, head: str = "", wait: bool = True, **settings: Any) -> Iterator[Any]:
        context = browser.new_context(offline=True, viewport={"width": 900, "height": 800}, **settings)
        context.set_default_timeout(8_000)
        view, heard = context.new_page(), []
        view.on("pageerror", lambda error: heard.append(str(error)))
        view.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
        inside = '<p id="view">between</p>'.join(fragments)
        view.set_content(f"<!doctype html><title>host</title>{head}<style>{HOST}</style><p>x</p>{inside}")
        if wait:
            for i in range(len(fragments)):
                view.locator(SHOWN).nth(i).wait_for()
        yield view
        assert heard == []
        context.close()

    return of


def test_a_fragment_has_no_frame_and_no_blank_line_at_which_markdown_would_end_it() -> None:
    for result in made_every.together().values():
        told = fragment(result)
        assert told.startswith('<div class="attnscope"')
        assert told.endswith("</div>\n")
        assert not any(each in told for each in ("<html", "<body", "<head>", "<main", "\n\n", "http-equiv"))


def test_each_fragment_keeps_its_place_at_its_own_element_and_none_touches_the_address(host) -> None:
    first, second = fragment(made.overview(2, 3)), fragment(made.overview(3, 4))
    opening = '<div class="attnscope" data-at="#L1H2,q=3,view=lines"'
    with host(first, second.replace('<div class="attnscope"', opening, 1)) as view:
        view.evaluate("location.hash = 'L0H1'")  # the host's own, of which no fragment is a part
        one, two = (view.locator(".attnscope").nth(i) for i in (0, 1))
        assert two.locator(".page").get_attribute("data-ready") == "#L1H2,q=3,view=lines lines"
        one.get_by_role("tab", name="Lines").click()
        one.locator('.page[data-view="lines"]').wait_for()
        assert "view=lines" in one.get_attribute("data-at")
        assert two.get_attribute("data-at") == "#L1H2,q=3,view=lines"
        assert view.evaluate("location.hash") == "#L0H1"


def test_where_markup_is_put_in_without_its_script_answer_proof_and_tables_stand(host) -> None:
    """`innerHTML` runs no script and makes no shadow: what stands beside the template is all there is."""
    found = cases_find.finding()
    with host(wait=False) as view:
        view.evaluate(PUT, fragment(found))
        told = view.locator(".attnscope").inner_text()
        assert sheet_of(found).answer in told
        rows = view.locator(".attnscope > table").first.locator("tbody tr").all_inner_texts()
        assert any(named(found, found.ranking[0]) in row for row in rows)
        assert view.locator(".attnscope > :is(table, h2) :is(a, [id], [style], svg)").count() == 0
        assert view.locator("[onerror], [onload], iframe").count() == 0


def test_a_hostile_text_is_text_with_its_script_and_without(host) -> None:
    with host(wait=False) as view:
        view.evaluate(PUT, fragment(made_every.hostile()))
        assert view.locator(".attnscope p").first.is_visible()
        assert view.locator("[onerror], [onload], .attnscope img").count() == 0
    with host(fragment(made_every.hostile())) as view:
        assert view.locator(".page [onerror], .page [onload]").count() == 0


def test_keys_outside_of_a_fragment_are_not_its_own(host) -> None:
    with host(fragment(made.overview(2, 3))) as view:
        ready = view.locator(".page").get_attribute("data-ready")
        view.locator("body > p").first.click()
        view.keyboard.press("2")
        view.keyboard.press("]")
        view.wait_for_timeout(100)
        assert view.locator(".page").get_attribute("data-ready") == ready


def test_a_link_to_a_head_is_followed_inside(host) -> None:
    with host(fragment(made.overview(2, 3))) as view:
        link = view.locator('.page a[href^="#L1"]').first
        wanted = link.get_attribute("href")
        link.click()
        view.locator(f'.page[data-ready^="{wanted}"]').wait_for()
        assert view.evaluate("location.hash") == ""


def test_the_styles_of_neither_reach_the_other(host) -> None:
    with host(fragment(cases_find.finding())) as view:
        own = "element => { const s = getComputedStyle(element); return [s.color, s.fontSize, s.fontFamily] }"
        assert view.locator("body > p").first.evaluate(own)[0] == "rgb(9, 9, 9)"
        assert view.locator("body").evaluate(own)[:2] == ["rgb(1, 2, 3)", "30px"]
        assert view.locator(".page").evaluate(own)[1] == "14.5px"
        assert "serif" not in view.locator(".page").evaluate(own)[2].replace("sans-serif", "")
        cell = view.locator(".page .ranking td").first
        assert cell.evaluate("cell => getComputedStyle(cell).borderTopWidth") != "9px"
        assert view.locator(".page h1").is_visible()


@pytest.mark.parametrize(
    ("head", "scheme", "theme"),
    [
        ("", "dark", "light"),  # who does not say that he knows of dark stays white
        ('<meta name="color-scheme" content="light dark">', "dark", "dark"),
        ("<style>body{background:#101418}</style>", "light", "dark"),
    ],
)
def test_a_fragment_is_as_light_or_dark_as_what_it_stands_on(host, head, scheme, theme) -> None:
    with host(fragment(made.head()), head=head, color_scheme=scheme) as view:
        assert view.locator(".page").get_attribute("data-theme") == theme


def test_a_fragment_follows_when_its_host_turns_dark(host) -> None:
    with host(fragment(made.head())) as view:
        view.evaluate("document.documentElement.dataset.theme = 'dark'")
        view.locator('.page[data-theme="dark"]').wait_for()
        view.evaluate("document.documentElement.dataset.theme = 'light'")
        view.locator('.page[data-theme="light"]').wait_for()


def test_where_the_host_lets_no_script_run_answer_and_tables_are_there(host) -> None:
    found = cases_find.finding()
    head = """<meta http-equiv="Content-Security-Policy" content="script-src 'none'">"""
    with host(fragment(found), head=head, wait=False) as view:
        view.locator(".page #answer").wait_for()
        assert view.locator(".page .ranking tbody tr").first.is_visible()
        assert not view.locator(".page #page").is_visible()


def test_a_notebook_that_sets_markup_and_runs_its_scripts_anew_shows_it(host) -> None:
    with host(wait=False) as view:
        view.evaluate(
            """html => {
              const out = document.body.appendChild(document.createElement('div'));
              out.innerHTML = html;
              for (const each of out.querySelectorAll('script')) {
                const again = document.createElement('script');
                again.textContent = each.textContent;
                each.replaceWith(again);
              }
            }""",
            made.head().page()._repr_html_(),
        )
        view.locator(SHOWN).wait_for()


def test_a_narrow_column_of_a_wide_window_has_the_layout_of_a_phone(host) -> None:
    with host(fragment(made.overview(2, 3)), head="<style>body{max-width:500px}</style>") as view:
        assert view.locator("#lists").evaluate("lists => getComputedStyle(lists).position") == "sticky"
        assert view.evaluate("document.documentElement.scrollWidth") <= 900


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


@pytest.mark.parametrize("result", [made.overview(2, 3), made_every.hostile()], ids=["several", "hostile"])
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


def test_the_picture_is_as_light_or_dark_as_the_notebook(cell) -> None:
    view = cell(made.head()._repr_html_(), color_scheme="dark")
    assert "invert" in view.locator("img").evaluate("img => getComputedStyle(img).filter")
    view.evaluate("document.body.dataset.jpThemeLight = 'true'")
    assert view.locator("img").evaluate("img => getComputedStyle(img).filter") == "none"
