"""Sizes and depths of colour, rows of several lines, pictures and sounds."""

from collections.abc import Callable
from pathlib import Path

import media_models
import numpy as np
import pytest

from attnscope.explore import grid, matrix, showing
from attnscope.explore.app import Explorer, Notices
from attnscope.explore.questions import OfParts
from attnscope.explore.scatter import picture
from attnscope.explore.sentence import sentence, set_sentence
from attnscope.explore.showing import parts_within
from attnscope.explore.source import Source
from attnscope.explore.surface import Surface, part_words, window
from attnscope.results import Picture
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.tokens import Token, Tokens

Explored = Callable[..., Explorer]


def test_a_screen_that_is_too_small_says_what_is_needed(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        told = " ".join(screen.pane("small").split())
        assert told == "explore needs 60 x 16 cells: here are 20 x 5"
        await screen.pilot.resize_terminal(80, 24)
        await screen.settled()
        assert not app.board.has_class("small")
        assert "certified" in screen.pane("head")

    explored(keys, size=(20, 5))


def test_without_colours_shades_are_characters_and_every_cell_has_a_style(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        assert set(screen.pane("grid")) & set("░▒▓█")
        assert "opened█" in screen.pane("looks")
        segments = [
            each for name in ("grid", "main", "looks") for line in app.pane(name).drawn for each in line
        ]
        assert all(each.style is not None for each in segments)

    explored(keys, depth=None, no_color=True)


def test_a_window_follows_the_cursor_and_says_what_it_shows() -> None:
    assert list(window(5, 9, 3)) == [0, 1, 2, 3, 4]
    assert list(window(50, 5, 0)) == [0, 1, 2, 3, 4]
    assert list(window(50, 5, 20)) == [18, 19, 20, 21, 22]
    assert list(window(50, 5, 49)) == [45, 46, 47, 48, 49]
    assert part_words(window(50, 5, 20), 50, "queries") == "queries 18-22 of 50"
    assert part_words(range(3), 3, "queries") == ""


def tokens(*names: str) -> Tokens:
    items = tuple(Token(i, name, name, None, None) for i, name in enumerate(names))
    return Tokens((" ".join(names),), items)


def test_pieces_stand_in_a_sentence_as_the_word_that_they_are() -> None:
    laid = set_sentence(tokens("sa", "##tai", "##ta", "si", "##su", "##"), 0, 4, 60, 1, marks=False)
    line = sentence("", laid, None, 0, None, Surface("truecolor", "dark")).lines[0]
    assert "".join(text for text, _ in line.parts).strip() == "sataita sisu ##"
    assert laid.at(4 + len("sa"), 0) == 1, "a click on a part of the word is meant for that token"


def test_the_end_of_a_long_sentence_fills_its_lines() -> None:
    many = tokens(*(f"word{i}" for i in range(40)))
    for lines in (1, 2):
        laid = set_sentence(many, 39, margin=4, width=46, lines=lines, marks=False)
        assert laid.runs[-1].token == 39
        assert laid.runs[-1].line == lines - 1
        assert not laid.more
        assert laid.before
        first = laid.runs[0].token
        widest = 46 - 4 - 2
        wider = set_sentence(tokens(*many.names[first - 1 :]), 0, 4, 46, 9, marks=False)
        assert wider.lines > lines, "one token more has no room"
        assert all(run.start + len(run.text) <= widest for run in laid.runs)


def test_a_number_that_has_no_room_in_its_cell_loses_decimals_and_is_never_cut(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        find = app.desk.find
        every = showing.heads_measured(app.state, find)
        for cells in (3, 4, 5):
            for head in every.values():
                text = grid._written(head, cells)
                assert "…" not in text
                assert len(text) == cells
                assert float(text) == pytest.approx(head.value, abs=0.51 if cells == 3 else 0.051)

    explored(keys)


def test_a_place_in_a_tall_row_is_that_row() -> None:
    laid = matrix.Laid(range(4, 7), range(2), margin=5, cells=6, above=2, lines=3)
    assert [laid.at(5, y) for y in (1, 2, 4, 5, 10, 11)] == [None, (4, 0), (4, 0), (5, 0), (6, 0), None]


def test_parts_keep_to_the_lines_that_there_are_and_list_the_strongest_keys(
    explored: Explored,
) -> None:
    async def keys(app: Explorer, screen) -> None:
        found, query = app.desk.find(OfParts.of(app.state, *app.state.place)), 3
        weights = found.head.weights[query]
        counts = []
        for height in range(4, 24):
            lines = app.surface.lines(parts_within(found, query, None, 108, height), 108)
            told = ["".join(each.text for each in line) for line in lines]
            assert len(told) <= height
            table = next((i for i, each in enumerate(told) if each.startswith("key")), None)
            if table is None:
                assert height < 11, "the sum alone"
                continue
            listed = [int(each.split()[0]) for each in told[table + 1 :] if each[:2].strip().isdigit()]
            assert listed == sorted(np.argsort(-weights, kind="stable")[: len(listed)].tolist())
            counts.append(len(listed))
        assert counts == sorted(counts)
        assert counts[0] == 3
        assert counts[-1] == len(weights), "all of them where there is room"

    explored(keys, size=(140, 40))


@pytest.mark.parametrize("name", ["vit", "whisper"])
def test_a_query_lies_over_the_picture_or_the_sound(explored: Explored, tmp_path: Path, name: str) -> None:
    folder = media_models.save(name, tmp_path)
    if name == "vit":
        given = Inputs(image=media_models.picture_file(tmp_path))
    else:
        given = Inputs(audio=media_models.sound_file(tmp_path), target="is in")  # else it writes to its limit
    source = Source(ModelRequest(str(folder)), given, Wanted(0, 0), Notices())

    async def keys(app: Explorer, screen) -> None:
        first = screen.pane("main")
        assert "certified" in screen.pane("head")
        assert "weight" in first
        assert (name == "vit") == ("patch" in first)
        assert name == "whisper" or "▀" in first, "the picture itself"
        await screen.press("full_stop", "tab", "tab", "down")
        assert app.state.place == (0, 1)
        assert app.state.query == 1 + app.state.scene.first
        assert screen.pane("main") != first

    explored(keys, source=source, size=(140, 40))


def test_the_decoders_own_words_are_no_sound(tmp_path: Path) -> None:
    folder = media_models.save("whisper", tmp_path)
    given = Inputs(audio=media_models.sound_file(tmp_path), target="what is in")
    source = Source(ModelRequest(str(folder)), given, Wanted(), Notices())
    first = source.scene()
    mediums = {tower.kind: source.scene(tower=tower.pattern).medium for tower in first.towers}
    assert mediums["decoder"] == ""
    assert mediums["cross"] == first.medium != ""
    assert mediums["encoder"] == first.medium
    words = source.scene(tower=next(tower.pattern for tower in first.towers if tower.kind == "decoder"))
    assert list(words.queries.labels) == list(words.keys.labels)
    assert list(words.queries.labels[-2:]) == ["is", "in"]


def test_a_picture_is_bright_where_the_query_looks_and_has_the_colours_of_its_pixels() -> None:
    """Two patches side by side, red and green; all the weight lies on the green one."""
    pixels = np.zeros((2, 4, 3))
    pixels[:, :2, 0], pixels[:, 2:, 1] = 1.0, 1.0
    seen = Picture("two.png", "", pixels, (2, 4))
    (line,) = picture(seen, np.array([[0.0, 1.0]]), 4, 1).lines
    drawn = [(text, style.color.get_truecolor()) for text, style in line.parts]
    assert [(text, tuple(colour)) for text, colour in drawn] == [("▀▀", (64, 0, 0)), ("▀▀", (0, 255, 0))]
