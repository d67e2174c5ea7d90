"""Pages on paper, in colours that the system forces, and without scripts: nothing that matters is lost."""

from typing import Any

import cases_media
import made_every
import made_reports
import made_results as made
import pytest

from attnscope.render.saving import content
from attnscope.render.web.room import Beside

A4, LETTER = 703, 725  # pixels between the margins

# a printer looks when the handler is done and what it promised is kept, but waits for no timer
PRINT = """async () => {
  dispatchEvent(new Event('beforeprint'));
  for (let i = 0; i < 2000; i++) await null;
}"""
BLANK = """() => {
  const alpha = (one, i) => i % 4 === 3 && one;
  const seen = [...document.querySelectorAll('canvas')].filter(each => each.checkVisibility());
  const pixels = each => each.getContext('2d').getImageData(0, 0, each.width, each.height).data;
  return seen.filter(each => !pixels(each).some(alpha)).length;
}"""
# a letter of a drawing may stand in the margin
BEYOND = """most => [...document.querySelectorAll('body *')]
  .filter(each => each.checkVisibility() && !each.closest('.text'))
  .map(each => [each.tagName, each.getBoundingClientRect().right - (each.closest('svg') ? 30 : 1)])
  .filter(([_, right]) => right > most)"""


@pytest.fixture
def printed(browser: Any, tmp_path: Any) -> Any:
    """A page as a printer sees it, of a browser that is dark, on paper of a width."""
    contexts = []

    def of(page: bytes, width: int = A4) -> Any:
        file = tmp_path / "x.html"
        file.write_bytes(page)
        contexts.append(browser.new_context(offline=True, color_scheme="dark"))
        view = contexts[-1].new_page()
        view.goto(file.as_uri())
        view.wait_for_selector("body[data-thumbnails]")
        view.evaluate(PRINT)
        assert view.evaluate("document.documentElement.dataset.theme") == "light"
        assert view.evaluate(BLANK) == 0
        view.emulate_media(media="print")
        view.set_viewport_size({"width": width, "height": 1000})
        return view

    yield of
    for context in contexts:
        context.close()


@pytest.mark.parametrize("kind", made_every.every())
def test_every_page_fits_on_paper_in_light_colours_with_its_origin_at_the_foot(printed, kind) -> None:
    view = printed(content(made_every.every()[kind], ".html"))
    assert view.evaluate(BEYOND, A4) == []
    controls = view.locator("#controls, .command button, select, .next")
    assert not any(each.is_visible() for each in controls.all())
    assert "attnscope" in view.inner_text("footer")
    assert "x.html#" in view.inner_text("#where")


def test_a_report_has_all_its_parts_on_paper(printed) -> None:
    view = printed(content(made_reports.report(), ".html"), LETTER)
    assert view.evaluate(BEYOND, LETTER) == []
    tops = [
        view.locator(each).first.bounding_box()["y"]
        for each in ("#answer", "#reader .text", "#lists", "#sheet .ranking", "#view svg", "#below svg")
    ]
    assert tops == sorted(tops)
    assert view.get_by_role("heading", name="Proof").is_visible()


def test_what_was_moved_and_opened_for_paper_is_as_it_was_afterwards(printed) -> None:
    view = printed(content(made.overview(2, 3), ".html"))
    assert view.locator("#sheet details[open]").count() > 0
    view.evaluate("dispatchEvent(new Event('afterprint'))")
    view.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    assert view.locator("#sheet details[open]").count() == 0
    assert view.locator("aside > #lists").count() == 1


def test_a_table_of_numbers_stays_on_the_screen(printed) -> None:
    view = printed(content(made_reports.report(), ".html"))
    assert view.locator("#view").is_visible()
    view.evaluate("location.hash = '#view=numbers'")
    view.wait_for_selector("body[data-view=numbers]", state="attached")
    assert not view.locator("#view").is_visible()


def test_a_report_is_one_page_from_the_text_to_the_proof(opened) -> None:
    with opened(made_reports.report()) as view:
        assert {"Map", "Proof"}.isdisjoint(view.get_by_role("tab").all_inner_texts())
        for name in ("Map of queries and keys", "Proof"):
            assert view.get_by_role("region", name=name).is_visible()
        view.locator("#below circle[role=button]").first.click()
        view.locator("#below line.link").first.wait_for(state="attached")


@pytest.mark.parametrize(
    ("made_laid", "name"), [(cases_media.picture_head, "picture"), (cases_media.sound_head, "sound")]
)
def test_a_report_over_a_medium_begins_with_it(opened, made_laid, name) -> None:
    laid = made_laid()
    page = content(made_reports.report(laid.head), ".html", beside=Beside(laid=laid))
    with opened(page) as view:
        view.locator(f".board.{name}").wait_for()
        assert view.locator("#tab-matrix").get_attribute("aria-selected") == "true"


def test_forced_colours_leave_shades_marks_and_the_chosen_tab(browser, tmp_path) -> None:
    file = tmp_path / "x.html"
    file.write_bytes(content(made.overview(2, 3), ".html"))
    context = browser.new_context(offline=True, forced_colors="active")
    view = context.new_page()
    view.goto(file.as_uri())
    view.wait_for_selector("body[data-thumbnails]")
    ground = "each => getComputedStyle(each).backgroundColor"
    shades = {each.evaluate(ground) for each in view.locator('#text-query .t[class*=" l"]').all()}
    assert len(shades) > 1
    assert view.locator("#view svg").first.evaluate(ground) == "rgba(0, 0, 0, 0)"  # the shades are below it
    borders = [
        each.evaluate("each => getComputedStyle(each).borderBottomColor")
        for each in view.get_by_role("tab").all()
    ]
    assert borders.count(borders[0]) == 1
    context.close()


def test_without_scripts_answer_tables_and_origin_stand(browser, tmp_path) -> None:
    file = tmp_path / "x.html"
    context = browser.new_context(offline=True, java_script_enabled=False)
    view = context.new_page()
    for result in made_every.every().values():
        file.write_bytes(content(result, ".html"))
        view.goto(file.as_uri())
        assert view.inner_text("#answer")
        assert view.locator("noscript .alarm").is_visible()
        assert all(each.is_visible() for each in view.locator("#sheet table").all())
        assert "attnscope" in view.inner_text("footer")
    context.close()


def test_a_page_in_a_frame_without_an_origin_follows_links_and_keeps_its_state(browser, tmp_path) -> None:
    (tmp_path / "x.html").write_bytes(content(made.overview(2, 3), ".html"))
    host = tmp_path / "host.html"
    host.write_text('<!doctype html><iframe sandbox="allow-scripts" width="700" height="600" src="x.html">')
    context, heard = browser.new_context(offline=True), []
    view = context.new_page()
    view.on("console", lambda line: heard.append(line.text))
    view.on("pageerror", lambda error: heard.append(str(error)))
    view.goto(host.as_uri())
    frame = view.frame_locator("iframe")
    frame.locator("body[data-thumbnails]").wait_for()
    frame.locator('a[href^="#L1"]').first.click()
    frame.locator('body[data-ready^="#L1"]').wait_for()
    frame.get_by_role("tab", name="Lines").click()
    frame.locator('body[data-ready*="view=lines"]').wait_for()
    assert heard == []
    assert view.evaluate("location.hash") == ""
    context.close()
