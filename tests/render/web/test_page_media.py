"""Pictures and sounds in a page: patches and frames are chosen like words, a sound plays as they look."""

import base64
import io
import wave

import cases_media
import numpy as np
import pytest

from attnscope.render.saving import content

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


def test_patches_that_a_window_does_not_read_are_left_as_they_are(opened) -> None:
    with opened(cases_media.window_head()) as view:
        assert view.locator(".picture .cell").count() == 6


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
