"""The page of every kind of result: on light and dark, on a desk and a phone, and without its script."""

import html
from collections.abc import Iterator
from dataclasses import replace

import cases_cite
import cases_flow
import made_corpus
import made_every
import made_results as made
import numpy as np
import pytest
from made_blocks import grid, ranking, sheet

from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.scale import Scale
from attnscope.render.web.sheet import section

EVERY = made_every.every()
TRIED = EVERY | {"with links": made_corpus.linked(), "of nothing": cases_cite.citation("from", "none")}
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


@pytest.mark.parametrize("kind", TRIED)
def test_a_page_has_nothing_that_axe_complains_of_and_does_not_scroll_sideways(opened, kind) -> None:
    with opened(TRIED[kind]) as view:
        assert told(view) == []
        view.emulate_media(color_scheme="dark")
        view.wait_for_selector(':root[data-theme="dark"]', state="attached")
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
