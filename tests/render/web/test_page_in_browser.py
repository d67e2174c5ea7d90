"""The page as somebody uses it: in a browser without a network, with the mouse, the keys and the address.

Every test fails on any request, any error and any line in the browser's console (see conftest).
"""

import base64
from dataclasses import replace
from itertools import product
from urllib.parse import unquote

import cases_flow
import made_every
import made_results as made
import numpy as np
import pytest
from written_numbers import number_of

from attnscope.analysis.heads.view import viewed
from attnscope.render.kit import numbers
from attnscope.render.kit.palette import RAMPS, WEIGHT, between
from attnscope.render.saving import content
from attnscope.render.sheets import Focus
from attnscope.render.web.page import as_page
from attnscope.render.web.room import Beside
from attnscope.results import HeadAttention, Overview, Special, Verdict
from attnscope.tokens import Token, Tokens
from attnscope.vocabulary import Unit

WEIGHTS = (
    """() => [...document.querySelectorAll('#view text[data-key].number')].map(each => each.textContent)"""
)

ENDS_WITH = """text => document.querySelector('output').innerText.endsWith(text)"""


def told(weight: float) -> str:
    """As a page prints it."""
    rounded = int(weight * 1e4 + 0.5) / 1e4
    return numbers.weight(rounded or float(weight), 4)


@pytest.fixture(scope="module")
def overview() -> Overview:
    return made.overview(3, 4)


@pytest.fixture(scope="module")
def head() -> HeadAttention:
    return made.head()


def test_the_weights_of_all_heads_are_printed_as_they_are(opened, go, overview) -> None:
    with opened(overview, "#L0H0&query=3&view=lines") as view:
        for i, layer in enumerate(overview.layers):
            for j, head in enumerate(overview.heads):
                go(view, f"#L{layer}H{head}&query=3&view=lines")
                assert view.evaluate(WEIGHTS) == [told(each) for each in overview.weights[i][j][3]]


def test_masked_cells_are_blank_and_say_that_they_are_masked(opened) -> None:
    masked = made.head(causal=True)
    with opened(masked, "#L3H11&view=matrix&query=2&key=5") as view:
        assert "masked" in view.inner_text("output")
        values = view.locator("#view svg text.value").count()
        size = masked.weights.shape[0]
        assert values == size * (size + 1) // 2
        canvas = "c => [...c.getContext('2d').getImageData(5, 2, 1, 1).data]"
        assert view.locator("#view canvas").first.evaluate(canvas) == [0, 0, 0, 0]


def test_pointing_at_a_cell_tells_its_weight_and_a_click_keeps_it(opened, head) -> None:
    rows, columns = head.weights.shape
    with opened(head, "#L3H11&view=matrix") as view:
        box = view.locator("#view rect.frame").bounding_box()
        x, y = box["x"] + box["width"] * (4 + 0.5) / columns, box["y"] + box["height"] * (7 + 0.5) / rows
        view.mouse.move(x, y)
        view.wait_for_function(ENDS_WITH, arg=told(head.weights[7, 4]))
        assert head.query_tokens.names[7] in view.inner_text("output")
        view.mouse.click(x, y)
        view.wait_for_function("() => location.hash.includes('q=7,k=4')")


def test_a_click_in_the_grid_opens_that_head_and_keys_go_on_from_there(opened, overview) -> None:
    with opened(overview, f"#L{overview.layers[0]}H{overview.heads[0]}&view=matrix") as view:
        box = view.locator("#lead canvas").bounding_box()
        across, down = len(overview.heads), len(overview.layers)
        view.mouse.click(box["x"] + box["width"] * 2.5 / across, box["y"] + box["height"] * 1.5 / down)
        view.wait_for_function(
            f"() => location.hash.startsWith('#L{overview.layers[1]}H{overview.heads[2]}')"
        )
        view.keyboard.press("]")
        view.wait_for_function(
            f"() => location.hash.startsWith('#L{overview.layers[2]}H{overview.heads[2]}')"
        )
        view.keyboard.press(",")
        view.wait_for_function(
            f"() => location.hash.startsWith('#L{overview.layers[2]}H{overview.heads[1]}')"
        )
        view.wait_for_selector(f'body[data-ready^="#L{overview.layers[2]}H{overview.heads[1]}"]')
        view.locator("#view").focus()
        view.keyboard.press("Escape")
        view.wait_for_function("() => location.hash.includes('q=none')")
        view.keyboard.press("ArrowDown")
        view.wait_for_function("() => location.hash.includes('q=0')")


def test_a_head_that_is_chosen_with_shift_is_laid_beside_the_other_in_a_colour_of_its_own(
    opened, overview
) -> None:
    layers, h = overview.layers, overview.heads
    with opened(overview, f"#L{layers[0]}H{h[0]}&query=3&view=lines&heads=L{layers[1]}H{h[1]}") as view:
        colours = view.locator("#view svg path").evaluate_all(
            "all => [...new Set(all.map(p => p.getAttribute('stroke')))]"
        )
        assert len(colours) == 2
        assert view.locator(".legend .chip").all_inner_texts() == [
            f"L{layers[0]} H{h[0]}",
            f"L{layers[1]} H{h[1]}",
        ]


def test_an_address_opens_the_view_again(opened, overview) -> None:
    asked = f"#L{overview.layers[2]}H{overview.heads[3]}&query=2&view=matrix&special=renormalise&scale=row"
    with opened(overview, asked) as view:
        assert view.locator('#tabs [aria-selected="true"]').inner_text() == "Matrix"
        assert view.locator('[data-choice="special"]').input_value() == "renormalise"
        assert f"L{overview.layers[2]} H{overview.heads[3]}" in view.inner_text("#reader h2")
        view.locator('[data-choice="scale"]').select_option("max")
        told = f"#L{overview.layers[2]}H{overview.heads[3]},q=2,"
        view.wait_for_function("told => location.hash.startsWith(told)", arg=told)
        assert {"special=renormalise", "scale=max"} <= set(view.evaluate("location.hash").split(","))


def test_an_address_that_means_nothing_here_opens_what_there_is(opened, go, overview) -> None:
    with opened(overview) as view:
        for asked in (
            "#L99H99&query=999",
            "#query=-1&view=nothing",
            "#%E0%A4%A&view=%",
            "#L1H1&special=<b>&pairs=A-C",
        ):
            go(view, asked)
            assert view.locator("#view svg").count() > 0


def test_words_and_special_tokens_are_those_of_the_session(opened, go, paired) -> None:
    with opened(paired) as view:
        for words, special in product((False, True), Special):
            exact = viewed(paired, by=Unit.WORD if words else Unit.TOKEN, special=special)
            go(view, f"#L3H11&view=lines&words={int(words)}&special={special.value}&query=2")
            row = exact.query_row(2)
            assert view.evaluate(WEIGHTS) == [told(each) for each in exact.weights[row]]
            names = view.locator("#view svg text[data-query]").evaluate_all(
                "all => all.map(t => t.lastChild.textContent)"
            )
            assert names == list(exact.query_tokens.names)


@pytest.fixture(scope="module")
def paired() -> HeadAttention:
    """A head over two texts, with words of several pieces and special tokens."""
    names = ["[CLS]", "un", "##told", "tale", "[SEP]", "re", "##told", "[SEP]"]
    spans = [None, (0, 2), (2, 6), (7, 11), None, (0, 2), (2, 6), None]
    words, parts = [None, 0, 0, 1, None, 0, 0, None], [0, 0, 0, 0, 0, 1, 1, 1]
    texts = ("untold tale", "retold")
    items = tuple(
        Token(
            i, name, "" if span is None else texts[part][slice(*span)], span, word, part, special=span is None
        )
        for i, (name, span, word, part) in enumerate(zip(names, spans, words, parts, strict=True))
    )
    tokens = Tokens(texts, items)
    return replace(made.head(names), query_tokens=tokens, key_tokens=tokens)


def test_one_text_of_a_pair_looks_at_the_other(opened, paired) -> None:
    with opened(paired, "#L3H11&view=lines&pairs=A-B&query=3") as view:
        assert view.evaluate(WEIGHTS) == [told(each) for each in paired.weights[3, 5:]]
        assert view.locator("#view svg text[data-query]").count() == 5


def test_the_products_of_query_and_key_add_up_to_the_score_that_the_result_holds(opened, head) -> None:
    with opened(head, "#L3H11&view=product&query=6&key=2") as view:
        sums = view.locator(".sum").evaluate("p => [Number(p.dataset.sum), Number(p.dataset.score)]")
        assert sums == pytest.approx([head.scores[6, 2]] * 2, rel=1e-6)
        view.locator("#view summary").click()
        view.locator("#view details td").first.wait_for()
        rows = view.locator("#view details tbody tr").all_inner_texts()
        products = [number_of(row.split("\t")[-1]) for row in rows]
        assert products == pytest.approx(list(head.q[6] * head.k[2]), abs=6e-4)
        assert len(products) == head.q.shape[1]


def test_heads_without_queries_and_keys_say_which_command_writes_them(opened, overview, head) -> None:
    inside = replace(
        head,
        layer=overview.layers[0],
        head=overview.heads[0],
        query_tokens=overview.query_tokens,
        key_tokens=overview.key_tokens,
    )
    page = as_page(overview, beside=Beside((inside,)))
    with opened(page, f"#L{overview.layers[1]}H{overview.heads[1]}&view=product") as view:
        assert f"--layer {overview.layers[1]} --head {overview.heads[1]}" in view.inner_text("#view code")


ATTACKS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "'-alert(1)-'",
    '"onmouseover="alert(1)',
    "{{constructor.constructor('alert(1)')()}}",
    "<!--",
    "]]><script>alert(1)",
    "&lt;script&gt;",
    "<a href=javascript:alert(1)>x</a>",
    "<style>*{background:url(//evil)}</style>",
    "\u2028alert(1)\u2029",
    "<iframe srcdoc='<script>parent.alert(1)</script>'>",
    "<base href=//evil>",
    "<meta http-equiv=refresh content=0;url=//evil>",
]


def test_a_list_of_attacks_in_tokens_titles_and_model_names_runs_nothing(opened) -> None:
    tokens = made_every.tokens_called(ATTACKS, " ".join(ATTACKS))
    plain = made.head([f"t{i}" for i in range(len(ATTACKS))])
    model = replace(plain.provenance, model="".join(ATTACKS), requested="".join(ATTACKS))
    bad = replace(
        plain,
        query_tokens=tokens,
        key_tokens=tokens,
        provenance=model,
        module=ATTACKS[0],
        notes=tuple(ATTACKS),
    )
    with opened(as_page(bad, Focus(), Beside(command=" ".join(ATTACKS)))) as view:
        for name in view.locator("#tabs button").all_inner_texts():
            view.get_by_role("tab", name=name, exact=True).click()
            view.wait_for_selector(f'#tabs button[aria-selected="true"]:text-is("{name}")')
        view.mouse.move(500, 400)
        assert ATTACKS[0] in view.inner_text("body")
        assert view.locator("iframe, a[href], base, style").count() == 1  # the page's own style
        assert view.title().startswith("L3 H11")


def test_the_policy_of_the_file_refuses_a_script_and_a_request_of_anybody_else(
    browser, tmp_path, head
) -> None:
    """The check of the check: a page that was tampered with is stopped by its own policy."""
    file = tmp_path / "page.html"
    bad = b"<script>document.title = 'owned'</script><img src='http://127.0.0.1:9/x.png'></body>"
    file.write_bytes(content(head, ".html").replace(b"</body>", bad))
    context = browser.new_context()
    view, refused = context.new_page(), []
    view.on("console", lambda line: refused.append(line.text))
    view.goto(file.as_uri())
    view.wait_for_selector("body[data-thumbnails]")
    title = view.title()
    context.close()
    assert title != "owned"
    assert sum("Content Security Policy" in each for each in refused) == 2


def test_a_failed_certificate_cannot_be_overlooked(opened, head) -> None:
    certificate = replace(head.certificate, verdict=Verdict.FAILED, reason="weights differ")
    failed = replace(head, certificate=certificate)
    with opened(failed, "#L3H11&view=matrix") as view:
        assert view.get_by_role("alert").is_visible()
        assert "FAILED" in view.inner_text("#verdict")
        view.emulate_media(media="print")
        assert view.get_by_role("alert").is_visible()
        view.emulate_media(media="screen")
        assert "FAILED" in saved(view, "svg").decode()


def test_one_failed_head_of_many_is_marked_in_the_grid_and_named_when_it_is_open(opened, overview) -> None:
    rows = [list(row) for row in overview.certificates]
    rows[1][2] = replace(rows[1][2], verdict=Verdict.FAILED)
    found = replace(overview, certificates=tuple(map(tuple, rows)))
    with opened(found, f"#L{overview.layers[1]}H{overview.heads[2]}") as view:
        assert view.locator("#lead text.mark.failed").count() == 1
        assert "FAILED" in view.inner_text("#of-head")


def saved(view, kind: str) -> bytes:
    """What the page hands out as a file."""
    with view.expect_download() as waiting:
        view.locator(f'[data-save="{kind}"]').click()
    return waiting.value.path().read_bytes()


def test_the_view_is_saved_as_svg_and_as_png(opened, head) -> None:
    with opened(head, "#L3H11&view=matrix") as view:
        svg = saved(view, "svg").decode()
        png = saved(view, "png")
    assert svg.startswith("<svg")
    assert "L3 H11" in svg
    assert not {"var(--", 'class="'} & {each for each in ("var(--", 'class="') if each in svg}
    pixels = unquote(svg.split("data:image/png;base64,")[1].split('"')[0])
    assert base64.b64decode(pixels).startswith(b"\x89PNG")
    assert told(head.weights[0, 0])[:3] in svg
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000


def test_the_colours_of_a_matrix_are_those_of_figures_and_in_the_dark_those_of_dark_terminals(
    opened, head
) -> None:
    """The square root of the weight on the ramp of the palette, within the 256 colours of a canvas."""
    read = "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]"
    seen = {}
    with opened(head, "#L3H11&view=matrix") as view:
        for theme in ("light", "dark"):
            if view.evaluate("document.documentElement.dataset.theme") != theme:
                view.get_by_title("light or dark").click()
            seen[theme] = np.array(view.locator("#view canvas").first.evaluate(read)).reshape(-1, 4)[:, :3]
        view.get_by_title("light or dark").click()
    for theme, colours in seen.items():
        expected = [between(RAMPS[theme][WEIGHT], each**0.5) for each in head.weights.ravel().tolist()]
        assert np.abs(colours - np.array(expected)).max() <= 3


def test_tabs_and_tables_are_there_for_who_cannot_see_the_pictures(opened, head) -> None:
    with opened(head, "#L3H11&view=matrix") as view:
        assert view.get_by_role("tablist").count() == 1
        assert view.locator("#view svg[role=img][aria-label]").count() == 1
        view.locator("#view summary").click()
        view.locator("#view details td").first.wait_for()
        cells = view.locator("#view table tbody tr").first.locator("td").all_inner_texts()
        assert len(cells) == head.weights.shape[1]
        assert cells[0] == numbers.weight_cell(head.weights[0, 0], 3)


ARABIC = ["[CLS]", "سلام", "(القط", "قط.", "على", "الباب", "[SEP]"]
IN_ORDER = """strip => {
  // what stands in lines of its own, and what stands under the pointer laid out as such
  const lines = ['#view output', '#view h2', '#view p', 'caption', '#page h2', 'h1'].join();
  const shown = [...document.querySelectorAll(lines)].map(each => each.textContent);
  const told = [...document.querySelectorAll('title, [title], [aria-label]')].map(each =>
    each.getAttribute('title') || each.getAttribute('aria-label') || each.textContent);
  const place = document.querySelector('#view').appendChild(document.createElement('div'));
  const laid = [...shown, ...told].filter(each => /[\u0600-\u06ff]/.test(each));
  const wrong = laid.filter(text => {
    place.textContent = strip ? text.replaceAll('\u200e', '') : text;
    place.style.whiteSpace = 'pre';
    const node = place.firstChild, range = document.createRange();
    const from = [...node.data].map((letter, i) => {
      range.setStart(node, i), range.setEnd(node, i + 1);
      return /[0-9A-Za-z→]/.test(letter) ? range.getBoundingClientRect().left : null;
    }).filter(each => each !== null);
    return from.some((x, i) => i && x <= from[i - 1]);
  });
  place.remove();
  return [laid.length, wrong];
}"""


@pytest.mark.parametrize("view_name", ["matrix", "product"])
def test_numbers_keep_their_order_beside_names_that_run_from_the_right(opened, view_name: str) -> None:
    with opened(made.head(ARABIC), f"#L2H5&view={view_name}&query=2&key=4") as view:
        count, wrong = view.evaluate(IN_ORDER, False)
        assert (wrong, count > 8) == ([], True)
        assert view.evaluate(IN_ORDER, True)[1] or view_name != "matrix", "without the marks they do not"


def test_a_map_a_grid_and_a_flow_keep_the_order_of_numbers_beside_such_names(opened) -> None:
    long = made.tokens([*ARABIC[:-1], *ARABIC[1:-1], "قال", "[SEP]"])
    found = cases_flow.flow()
    assert len(long) == len(found.tokens)
    for result in (
        made.overview(3, 4, ARABIC), made.projection(made.head(ARABIC)), replace(found, tokens=long)
    ):  # fmt: skip
        with opened(result) as view:
            count, wrong = view.evaluate(IN_ORDER, False)
            assert (wrong, count > 4) == ([], True)
