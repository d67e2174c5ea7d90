"""A page as a reader has it: it opens on its answer, reads like a text, and both lists follow what is chosen.

Light and dark, wide and narrow, by pointer, keys and address.
"""

import re
from dataclasses import replace

import cases_find
import made_results as made
import numpy as np
import pytest

import attnscope as at
from attnscope.render.kit import numbers
from attnscope.render.saving import content
from attnscope.render.sheet.said import named
from attnscope.render.web.page import as_page
from attnscope.render.web.room import Beside
from attnscope.results import Overview
from attnscope.results.base.evidence import Opening
from attnscope.verbs.find.sheet import sheet as finding

TEXT = "The cat sat on the mat because it was tired."
CHOSEN = "#reader .chosen"
LISTED = """all => all.filter(r => r.style.visibility !== "hidden")
  .map(r => r.querySelector("small").textContent)"""


@pytest.fixture(scope="module")
def overview() -> Overview:
    return at.load("demo").read(TEXT).overview()


@pytest.fixture(scope="module")
def page(overview: Overview) -> bytes:
    return as_page(overview, beside=Beside(opening=Opening(overview.most_telling(), 0)))


def largest(weights: np.ndarray) -> list[str]:
    """The positions of the eight largest, the first of equals first."""
    return [str(i) for i in np.argsort(-weights, kind="stable")[:8]]


def test_a_page_of_heads_opens_on_the_head_and_the_link_that_its_sentence_names(
    opened, page, overview
) -> None:
    link = overview.most_telling()
    with opened(page) as view:
        said = view.inner_text("h1")
        names = [overview.query_tokens.names[link.query], overview.key_tokens.names[link.key]]
        assert said.startswith(
            f"L{overview.layers[link.layer]} H{overview.heads[link.head]} looks from {names[0]} at {names[1]}"
        )
        assert view.locator(CHOSEN).get_attribute("id") == f"query{link.query}"
        assert view.inner_text("#reader h2").startswith(f"L{overview.layers[link.layer]} H{link.head}")
        assert "No shuffled texts were read" in view.inner_text("#why")


def test_a_page_of_a_translation_names_the_word_that_is_written_where_a_query_looks(page) -> None:
    model = at.load("demo-translate")
    across = model.read(
        "The old woman gave the child a red apple.", target="la vieille femme donne une pomme rouge"
    )
    link = across.overview().most_telling()
    told = as_page(across.overview(), beside=Beside(opening=Opening(link, 0))).decode()
    names = across.overview().query_tokens.names
    assert f"</b>, where {names[link.query + 1]} comes next, at" in told
    assert "comes next" not in page.decode()


def test_the_text_stands_there_as_it_was_typed_with_its_blanks(opened, page) -> None:
    with opened(page) as view:
        letters = view.locator("#text-query").evaluate("e => e.textContent")
        assert letters.removeprefix("[CLS]").removesuffix("[SEP]").strip() == TEXT


def test_both_lists_are_the_largest_of_the_row_and_of_the_column_of_the_chosen_token(
    opened, go, page, overview
) -> None:
    with opened(page) as view:
        for layer, head, token in ((3, 7, 12), (0, 3, 4), (2, 10, 0)):
            go(view, f"#L{layer}H{head},q={token}")
            weights = overview.weights[layer][head]
            at_, by = view.locator("#lists section").all()
            assert at_.locator("li").evaluate_all(LISTED) == largest(weights[token])
            assert by.locator("li").evaluate_all(LISTED) == largest(weights[:, token])


def test_the_pointer_shows_another_token_and_leaves_the_chosen_one_in_the_address(opened, page) -> None:
    with opened(page, "#L3H11,q=10") as view:
        view.hover("#query2")
        view.wait_for_function("() => document.querySelector('#reader .chosen').id === 'query2'")
        assert view.evaluate("location.hash") == "#L3H11,q=10"
        assert view.inner_text("#lists h2").startswith("cat looks at")
        view.mouse.move(5, 5)
        view.wait_for_function("() => document.querySelector('#reader .chosen').id === 'query10'")


def test_what_is_looked_at_is_darker_the_more_it_is_and_what_looks_is_underlined(
    opened, page, overview
) -> None:
    weights = overview.weights[3][11]
    with opened(page, "#L3H11,q=10") as view:
        levels = [
            view.evaluate(
                "i => +((document.getElementById('query' + i).className.match(/ l(\\d+)/) || [0, 0])[1])", i
            )
            for i in range(len(weights))
        ]
        unders = [
            view.evaluate(
                "i => +((document.getElementById('query' + i).className.match(/ u(\\d)/) || [0, 0])[1])", i
            )
            for i in range(len(weights))
        ]
    assert levels == [round(32 * float(np.float32(w)) ** 0.5) for w in weights[10]]
    assert unders == [int(6.4 * w**0.5) for w in weights[:, 10]]


def test_keys_lead_through_the_text_and_along_the_strongest_link(opened, page, overview) -> None:
    with opened(page, "#L3H11,q=10") as view:
        view.focus("#text-query")
        view.keyboard.press("ArrowRight")
        view.wait_for_function("() => location.hash === '#L3H11,q=11'")
        view.wait_for_function("() => document.getElementById('said').textContent.startsWith('was looks at')")
        view.keyboard.press("End")
        view.wait_for_function("() => location.hash === '#L3H11,q=14'")
        view.keyboard.press("Home")
        view.wait_for_function("() => location.hash === '#L3H11,q=0'")
        strongest = int(overview.weights[3][11][0].argmax())
        view.wait_for_function("() => document.querySelector('#reader .chosen').id === 'query0'")
        view.keyboard.press("Enter")
        view.wait_for_function("q => location.hash === '#L3H11,q=' + q", arg=strongest)


def test_a_click_in_a_list_goes_to_its_token(opened, page) -> None:
    with opened(page, "#L3H11,q=10") as view:
        view.locator("#lists li").first.click()
        view.wait_for_function("() => location.hash === '#L3H11,q=2'")


def test_a_long_text_is_a_view_of_its_own_with_a_ruler_and_contexts_in_its_lists(opened, go) -> None:
    random, names = np.random.default_rng(2), [f"w{i}" for i in range(270)]
    plain = made.overview(2, 2, names)
    weights = random.dirichlet(np.full(270, 0.05), size=(2, 2, 270))
    found = replace(plain, weights=tuple(tuple(each) for each in weights))
    with opened(found) as view:
        assert view.locator("#tabs button").first.inner_text() == "Text"
        assert view.locator(".ruler").is_visible()
        view.locator("#query100").click()
        best = int(weights[0][0][100].argmax())
        go(view, "#L0H0,q=100")
        row = view.locator("#lists li").first
        assert f"w{best - 1}" in row.inner_text()
        assert f"w{best + 1}" in row.inner_text() or best == 269
        go(view, "#L0H0,q=100,view=matrix")
        assert not view.locator("#reader").is_visible()
        assert view.locator("#lists").is_visible()


def test_from_110_to_260_tokens_the_whole_matrix_stands_in_sight_beside_the_text(opened) -> None:
    tokens = 250
    with opened(made.overview(2, 12, [f"word{i}" for i in range(tokens)])) as view:
        matrix = view.locator("#view .figure").bounding_box()
        text = view.locator("#text-query").bounding_box()
        assert matrix["y"] + matrix["height"] <= 800
        assert view.locator("#view canvas").first.bounding_box()["width"] >= tokens
        assert text["x"] + text["width"] <= matrix["x"]
        assert text["y"] < 300
        assert view.locator("#lead canvas").is_visible()
        view.set_viewport_size({"width": 1000, "height": 800})
        view.wait_for_function(
            "() => document.querySelector('#view .figure').getBoundingClientRect().left < 100"
        )
        view.set_viewport_size({"width": 1280, "height": 800})


def test_the_head_that_a_long_page_opens_on_has_all_its_digits(opened) -> None:
    names = [f"w{i}" for i in range(130)]
    head = made.head(names)
    weights = np.full((2, 2, 130, 130), 1 / 130)
    weights[1, 0] = head.weights
    plain = made.overview(2, 2, names)
    found = replace(plain, weights=tuple(tuple(each) for each in weights))
    mine = replace(head, layer=found.layers[1], head=found.heads[0])
    with opened(
        as_page(found, beside=Beside((mine,))), f"#L{mine.layer}H{mine.head},q=7,view=matrix"
    ) as view:
        listed = view.locator("#lists section").first.locator(".n").all_inner_texts()
        assert listed == [numbers.weight(each, 3) for each in sorted(head.weights[7], reverse=True)[:8]]


def test_a_tap_chooses_a_token_on_a_phone(browser, tmp_path, page) -> None:
    file = tmp_path / "x.html"
    file.write_bytes(page)
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, offline=True)
    view = context.new_page()
    view.goto(file.as_uri())
    view.wait_for_selector("body[data-thumbnails]")
    wide = view.evaluate("document.documentElement.scrollWidth")
    view.tap("#query2")
    view.wait_for_function("() => location.hash.includes('q=2')")
    assert view.locator("#lists").is_visible()
    context.close()
    assert wide <= 390


def test_a_finding_has_the_clearest_of_each_control_as_a_dot_and_its_own_first_head_as_a_line() -> None:
    found = cases_find.finding()
    drawn = content(found, ".html").decode().split('class="heap" role="img"')[1].split("</svg>")[0]
    assert 0 < drawn.count("<circle") <= np.isfinite(found.controls.best_excess).sum()
    assert f">{named(found, found.ranking[0])} " in drawn
    assert drawn.count('class="own"') == 2


def test_the_heads_of_a_group_stand_under_its_heading_in_a_page() -> None:
    found = cases_find.finding()
    told = content(found, ".html").decode()
    headings = re.findall(r'<th scope="colgroup" colspan="\d+"><span>([^<]*)<', told)
    sections = next(block.sections for block in finding(found).blocks if getattr(block, "sections", ()))
    assert len(sections) > 1
    assert headings == [heading for _, heading in sections]
    row = f'<th scope="row">{named(found, found.ranking[0])}<'
    assert told.index(headings[0]) < told.index(row) < told.index(headings[1])


SEEN = """sections => sections.map(each => {
  const rows = [...each.querySelectorAll("li")].filter(row => row.getClientRects().length);
  const there = rows.filter(row => row.style.visibility !== "hidden");
  return [there.length, each.querySelector(".rest").innerText];
})"""


@pytest.mark.parametrize(("width", "tokens"), [(390, 14), (1280, 200)])
def test_what_a_list_has_no_room_for_is_counted_and_summed(browser, tmp_path, width, tokens) -> None:
    of = made.overview(1, 2, [f"w{i}" for i in range(tokens)])
    weights, query, key = of.dense_weights[0][1], 9, 3
    file = tmp_path / "x.html"
    file.write_bytes(as_page(of))
    context = browser.new_context(viewport={"width": width, "height": 844}, offline=True)
    view = context.new_page()
    view.goto(f"{file.as_uri()}#L0H1,q={query},k={key}")
    view.wait_for_selector("body[data-thumbnails]")
    found = view.eval_on_selector_all("#lists section", SEEN)
    context.close()
    for (shown, told), values in zip(found, (weights[query], weights[:, key]), strict=True):
        count, *together = re.findall(r"<?\.?\d+", told)
        assert int(count) == tokens - shown
        left = float(np.sort(values)[::-1][shown:].sum())
        assert [float(each.strip("<")) for each in together] == (
            [pytest.approx(left, abs=0.0101)] * (tokens < 200)
        )
        assert 0 < shown <= 8
    assert any(shown < 8 for shown, _ in found) == (width == 390 or tokens == 200)
