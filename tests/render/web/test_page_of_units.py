"""A page by sentences or passages, and over pictures and sounds: what is chosen is shaded as it weighs."""

import base64
import io
import re
import wave
from pathlib import Path
from typing import Any

import cases_media
import numpy as np
import pytest
from typer.testing import CliRunner
from written_numbers import number_of

import attnscope as at
from attnscope.cli.app import app
from attnscope.render.saving import content
from attnscope.render.terminal.sheet import written

TEXT = "The door was open. A boy saw it!\n\nWas [MASK] cold?"
GROUPS = {  # positions of [CLS], of every part and of [SEP], counted by hand
    "sentence": ([0], [1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14], [15]),
    "passage": ([0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 13, 14], [15]),
}
READ = "[CLS] the door was open . a boy saw it ! was [MASK] cold ? [SEP]"
WEIGHTS = "() => [...document.querySelectorAll('#view text[data-key].number')].map(each => each.textContent)"
CELLS = "() => [...document.querySelectorAll('#view text.value')].map(each => each.textContent)"
CHOICE = '[data-choice="words"]'


@pytest.fixture(scope="module")
def reading() -> at.Reading:
    found = at.load("demo").read(TEXT)
    assert " ".join(found.tokens.names).lower() == READ.lower()
    return found


def plainly(weights: np.ndarray, groups: tuple[list[int], ...]) -> np.ndarray:
    """Added up over the tokens of a key, averaged over those of a query."""
    rows = [weights[query].astype(np.float64).mean(axis=0) for query in groups]
    return np.array([[row[key].sum() for key in groups] for row in rows])


def cells_of(screen: str, rows: int) -> list[str]:
    """The numbers of the matrix in a terminal, row after row."""
    lines = screen.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("query ↓")) + 1
    return [cell for line in lines[first : first + rows] for cell in line.split()[-rows:]]


def test_choosing_a_unit_sums_over_keys_and_averages_over_queries_as_the_terminal_does(
    opened: Any, go: Any, reading: at.Reading
) -> None:
    by = "passage"
    groups, tokens, shown = GROUPS[by], reading.head(1, 3).weights, reading.head(1, 3, by=by)
    expected = plainly(tokens, groups)
    with opened(shown, "#L1H3,view=matrix") as view:
        choice = view.locator(CHOICE)
        assert choice.locator("option").all_inner_texts() == ["tokens", f"{by}s"]
        assert choice.input_value() == "true", "it opens as it was asked"
        cells = view.evaluate(CELLS)
        assert cells == cells_of(written(shown, width=100), len(groups))
        assert [number_of(each) for each in cells] == pytest.approx(expected.ravel(), abs=0.0051)
        choice.select_option("false")
        view.wait_for_function(
            "many => document.querySelectorAll('#view text.value').length === many", arg=256
        )
        assert [number_of(each) for each in view.evaluate(CELLS)] == pytest.approx(tokens.ravel(), abs=0.0051)
        choice.select_option("true")
        for row, group in enumerate(groups):
            go(view, f"#L1H3,view=lines,q={group[0]}")
            told = [number_of(each) for each in view.evaluate(WEIGHTS)]
            assert told == pytest.approx(expected[row], abs=6e-4)


def test_a_sentence_goes_by_its_own_number_and_by_no_place_of_a_token(
    opened: Any, reading: at.Reading
) -> None:
    with opened(reading.head(1, 3, by="sentence"), "#L1H3,view=matrix,q=11,k=6") as view:
        assert view.inner_text("#reader h2") == "L1 H3 · 3 Was [MASK] cold?"
        assert re.match(r"3 Was \[MASK\] cold\? → 2 A boy saw it!: \.\d+$", view.inner_text("output.readout"))
        assert view.get_by_role("button", name="all queries again").inner_text() == "3 Was [MASK] cold? ✕"
        rows = [row.split() for row in view.locator("#lists section").first.locator("li").all_inner_texts()]
        assert sorted(row[0] for row in rows if row) == ["0", "1", "2", "3", "4"]
        view.locator(CHOICE).select_option("false")
        view.wait_for_function("document.querySelector('#reader h2').innerText === 'L1 H3 · 11 Was'")


def test_a_page_of_find_by_sentence_opens_on_sentences(
    opened: Any, reading: at.Reading, tmp_path: Path
) -> None:
    asked = ["find", TEXT, "-m", "demo", "--from", "3", "--to", "1", "--by", "sentence", "--controls", "20"]
    file = tmp_path / "found.html"
    ended = CliRunner().invoke(app, [*asked, "-q", "-o", str(file)], env={"HF_HUB_OFFLINE": "1"})
    assert ended.exit_code == 0, ended.stderr
    with opened(file.read_bytes()) as view:
        head = re.match(r"L(\d+) H(\d+) · 3 Was \[MASK\] cold\?$", view.inner_text("#reader h2"))
        assert head is not None
        layer, number = map(int, head.groups())
        expected = plainly(reading.head(layer, number).weights, GROUPS["sentence"])[3]
        assert view.locator("#text-query .t").count() == len(GROUPS["sentence"])
        rows = view.locator("#lists section").first.locator("li").all_text_contents()
        told = {int(row[0]): number_of(row[-4:]) for row in rows if row}
        assert told == pytest.approx(dict(enumerate(expected)), abs=6e-3)


def test_across_two_texts_the_sentences_of_both_stand_under_their_own_heading(opened: Any) -> None:
    read = at.load("demo-translate").read("The cat sleeps. The dog sleeps.")
    shown = read.head(1, 1, kind="cross", by="sentence")
    with opened(shown, "#L1H1,view=matrix") as view:
        headings = view.locator("#text .side, #reader .side").all_inner_texts()
        assert headings == ["what looks", "what is looked at"]
        sides = [view.locator(f"#text-{side} .t").all_inner_texts() for side in ("query", "key")]
        assert sides == [
            ["[BOS]", "le chat dort.", "le chien dort."],
            ["The cat sleeps.", "The dog sleeps.", "[EOS]"],
        ]
        labels = view.locator("#view svg text.label").all_text_contents()
        assert [each.split()[0] for each in labels] == ["0", "1", "2"] * 2


LEVEL = "i => +((document.getElementById(i).className.match(/ l(\\d+)/) || [0, 0])[1])"


@pytest.fixture(scope="module")
def grid():
    return cases_media.picture_grid(9)


@pytest.fixture(scope="module")
def spoken():
    return cases_media.spoken_head()


def levels(row: np.ndarray) -> list[int]:
    return [round(32 * float(np.float32(w)) ** 0.5) for w in row]


def test_a_page_of_a_picture_opens_on_the_head_and_the_patch_of_its_answer(opened, grid) -> None:
    most = np.nan_to_num(grid.weights)
    i, j, row, column = np.unravel_index(most.argmax(), most.shape)
    with opened(grid) as view:
        assert f"L{grid.overview.layers[i]} H{grid.overview.heads[j]}" in view.inner_text("h1")
        assert view.inner_text("#reader h2").startswith(
            f"L{grid.overview.layers[i]} H{grid.overview.heads[j]}"
        )
        assert view.locator("#lists .name b").first.inner_text() == f"r{row}c{column}"


def test_what_a_patch_looks_at_lies_in_shades_on_the_patches_and_each_where_it_is(opened, grid) -> None:
    weights, names = grid.overview.weights[1][2], grid.overview.key_tokens.names
    with opened(grid, "#L1H2,q=4") as view:
        shown = [view.evaluate(LEVEL, f"query{k}") for k in range(len(names))]
        assert shown == levels(weights[4])
        face = view.locator(".picture .face").last.bounding_box()
        high, wide = grid.picture.size
        for position in (1, 8, 15):
            row, column = divmod(position - 1, cases_media.COLUMNS)
            box = view.locator(f"#query{position}").bounding_box()
            assert (box["x"] - face["x"]) / face["width"] == pytest.approx(10 * column / wide, abs=0.01)
            assert (box["y"] - face["y"]) / face["height"] == pytest.approx(10 * row / high, abs=0.01)


def test_a_patch_is_chosen_by_click_and_left_by_keys_up_and_down_the_picture(opened, grid) -> None:
    with opened(grid, "#L0H1") as view:
        view.click("#query7")  # r1c1
        assert view.evaluate("location.hash").startswith("#L0H1,q=7")
        view.keyboard.press("ArrowDown")
        assert view.locator(".cell.chosen").get_attribute("id") == "query12"
        view.keyboard.press("ArrowLeft")
        assert view.locator(".cell.chosen").get_attribute("id") == "query11"
        view.hover("#query3")
        view.wait_for_function("() => document.querySelector('.cell.chosen').id === 'query3'")
        assert "q=11" in view.evaluate("location.hash")


def test_without_a_query_the_mean_of_all_is_laid_over_the_picture(opened) -> None:
    head = cases_media.picture_head(None)
    with opened(head) as view:
        assert "the mean over all queries" in view.inner_text("#reader h2")
        shown = [view.evaluate(LEVEL, f"query{k}") for k in range(len(head.head.key_tokens))]
    assert shown == levels(head.head.weights.mean(axis=0))


def test_a_picture_is_saved_with_its_patches_in_their_shades(opened, grid, tmp_path) -> None:
    with opened(grid, "#L1H2,q=4") as view:
        saved = []
        view.on("download", lambda each: saved.append(each))
        view.click("[data-save=svg]")
        view.wait_for_timeout(500)
        files = {each.suggested_filename: each for each in saved}
        (name,) = [name for name in files if name.endswith("picture.svg")]
        files[name].save_as(tmp_path / name)
    text = (tmp_path / name).read_text()
    assert text.count("<image") == 1
    assert text.count("<rect") == 1 + 15  # its ground, and each patch


def test_the_sound_in_the_page_is_what_the_model_heard(spoken) -> None:
    page = content(spoken, ".html").decode()
    blocks = [part.split("<")[0].split(">")[1].strip() for part in page.split("octet-stream")[1:]]
    (held,) = [block for block in blocks if block.startswith("UklGR")]
    with wave.open(io.BytesIO(base64.b64decode(held))) as heard:
        assert (heard.getnchannels(), heard.getframerate(), heard.getsampwidth()) == (1, 16000, 2)
        samples = np.frombuffer(heard.readframes(heard.getnframes()), "<i2") / 32767
    assert np.abs(samples - spoken.sound.wave).max() < 1 / 32767


def test_as_a_sound_is_played_the_words_that_look_at_its_frame_are_underlined(opened, spoken) -> None:
    weights = spoken.head.weights
    with opened(spoken) as view:
        view.focus("#text-key")
        view.keyboard.press("Space")
        view.wait_for_function("() => document.querySelector('audio').currentTime > 0.1")
        view.keyboard.press("Space")
        view.wait_for_function("() => document.querySelector('audio').paused")
        seen = view.evaluate(
            """async () => {
              const audio = document.querySelector('audio'), found = [];
              audio.currentTime = 0;
              await audio.play();
              while (!audio.paused && audio.currentTime < 0.4) {
                await new Promise(requestAnimationFrame);
                const at = document.querySelector('.cell.chosen');
                if (!at) continue;
                const unders = [...document.querySelectorAll('#text-query .t')]
                  .map(t => +((t.className.match(/ u(\\d)/) || [0, 0])[1]));
                found.push([+at.dataset.at, audio.currentTime, unders]);
              }
              audio.pause();
              return found;
            }"""
        )
        assert view.locator(".cell.chosen").count() == 0
    assert len({frame for frame, *_ in seen}) > 5
    for frame, seconds, unders in seen:
        assert abs(seconds - 0.02 * frame) < 0.06
        assert unders == [int(6.4 * w**0.5) for w in weights[:, frame]]


def test_a_tap_on_a_frame_chooses_it_and_the_sound_goes_on_from_there(browser, spoken, tmp_path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(content(spoken, ".html"))
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, offline=True, has_touch=True, is_mobile=True
    )
    view = context.new_page()
    view.goto(file.as_uri())
    view.wait_for_selector("body[data-thumbnails]")
    view.tap("#key12")
    assert "k=12" in view.evaluate("location.hash")
    assert view.evaluate("document.querySelector('audio').currentTime") == pytest.approx(0.24, abs=1e-3)
    assert view.evaluate("document.documentElement.scrollWidth") <= 390
    after = view.locator("#key39").bounding_box()  # silence behind the sound, apart from it
    last = view.locator("#key24").bounding_box()
    assert after["x"] > last["x"] + last["width"] + 3
    view.keyboard.press("ArrowRight")
    assert "k=13" in view.evaluate("location.hash")
    context.close()
