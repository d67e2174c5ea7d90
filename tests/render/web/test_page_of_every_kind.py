"""Pages that have every block between them, on light and dark, desk, phone and paper, without scripts."""

import html
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cases_flow
import cases_media
import made_every
import made_reports
import made_results as made
import numpy as np
import pytest
from made_blocks import grid, ranking, sheet

from attnscope.render.saving import content
from attnscope.render.sheet.blocks import Passage
from attnscope.render.sheet.table import Scale
from attnscope.render.sheets import sheet_of
from attnscope.render.web.room import Beside
from attnscope.render.web.sheet import section

EVERY = made_every.every()
AXE = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
DRAWN = (
    "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)))"  # a page draws later on
)
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


def told(view) -> list[str]:
    """What axe-core finds wrong, with the first element that it finds it in."""
    view.evaluate(DRAWN)
    found = AXE.run(view).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found]


def look_at_every_view(view) -> None:
    """The one that it opened on comes last."""
    for name in view.locator("#tabs button").all_inner_texts()[::-1]:
        view.get_by_role("tab", name=name, exact=True).click()
        view.wait_for_selector(f'#tabs button[aria-selected="true"]:text-is("{name}")')
        assert len(view.inner_text("#view")) > 20


def test_every_block_stands_on_one_of_the_pages_that_are_tried() -> None:
    blocks, tried = (
        {type(block) for each in map(sheet_of, results.values()) for block in (*each.every, *each.more)}
        for results in (EVERY, made_every.together())
    )
    assert {each.__name__ for each in blocks - tried} == {"Overlay", "Map"}  # as in Overlays, and the report


@pytest.mark.parametrize("kind", made_every.TOGETHER)
def test_every_view_is_drawn_and_axe_complains_of_nothing_and_nothing_scrolls_sideways(opened, kind) -> None:
    with opened(EVERY[kind]) as view:
        assert "Proof" in view.locator("#tabs button, #below h2").all_inner_texts()
        assert told(view) == []
        view.emulate_media(color_scheme="dark")
        view.wait_for_selector(':root[data-theme="dark"]', state="attached")
        look_at_every_view(view)
        view.set_viewport_size(PHONE)
        try:
            assert view.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            assert told(view) == []
        finally:
            view.set_viewport_size(DESK)


def test_what_a_flow_says_of_tokens_stands_in_its_text(opened) -> None:
    flow = cases_flow.flow()
    with opened(flow) as view:
        spans = view.query_selector_all("#sheet .passage >> nth=0 >> .w")
        assert len(spans) == len(flow.tokens)
        place = int(np.nanargmax(np.abs(flow.ablated.effects)))
        assert f"({flow.ablated.effects[place]:.7g})" in spans[place].get_attribute("title")
        assert "chosen" in spans[flow.query].get_attribute("class")
        assert not view.is_visible(".read"), "the text is there once"


def test_the_name_of_a_head_in_a_table_opens_it_and_what_has_no_room_leads_to_the_numbers(opened, go) -> None:
    with opened(EVERY["Difference"]) as view:
        links = view.query_selector_all('#sheet .ranking a[href^="#L"]')
        address = links[1].get_attribute("href")
        assert address != links[0].get_attribute("href")
        links[1].click()
        view.wait_for_selector(f'body[data-ready^="{address}"]')
    with opened(EVERY["Composition"]) as view:
        go(view, "#view=proof")
        view.click('#sheet [href="#view=numbers"] >> nth=0')
        view.wait_for_selector('#tab-numbers[aria-selected="true"]')
        assert view.evaluate("document.getElementById('tabs').getBoundingClientRect().top") < 700
        assert not view.query_selector('#sheet a[href^="#L"]'), "it holds no weights: its heads lead nowhere"


def hostile() -> Iterator[str]:
    named = made_every.HOSTILE
    tokens = made_every.tokens_called([named, "<img src=x onerror=alert(1)>"], named)
    yield section(sheet(blocks=(ranking(names=(named, named, named), title=named, of=named),)), leads=True)
    yield section(sheet(blocks=(replace(grid(2, 2), title=named, says=named),)), leads=True)
    block = Passage(named, tokens, np.array([0.1, 0.2]), Scale(0.0, 1.0), str, says=named)
    yield section(sheet(blocks=(block,)))


def test_no_text_of_any_block_is_markup() -> None:
    for page in hostile():
        assert "<script" not in page
        assert "<img" not in page
        assert html.escape(made_every.HOSTILE) in page


def test_a_text_of_five_hundred_tokens_and_a_thousand_heads_have_pages_of_reasonable_bytes() -> None:
    words = [f"w{i}" for i in range(500)]
    tokens = made.tokens(words)
    values = np.linspace(-1, 1, len(tokens))
    passage = section(sheet(blocks=(Passage("long", tokens, values, Scale.around(values), str),)))
    assert 'class="passage long"' in passage
    assert len(passage) < 120_000
    many = section(sheet(blocks=(grid(32, 32),)), leads=True)
    assert many.count("<td class") == 32 * 32 - 1
    assert len(many) < 260_000


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


@pytest.mark.parametrize("kind", made_every.TOGETHER)
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


def test_a_report_over_a_medium_begins_with_it(opened) -> None:
    laid = cases_media.sound_head()
    page = content(made_reports.report(laid.head), ".html", beside=Beside(laid=laid))
    with opened(page) as view:
        view.locator(".board.sound").wait_for()
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
    for result in made_every.together().values():
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
