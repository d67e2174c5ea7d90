"""Sizes and depths of colour: what a screen of 80 by 24 holds, of 140 by 40, and one that is too small."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.text import Text

from attnscope.explore.app import Explorer
from attnscope.explore.drawing import grid
from attnscope.explore.drawing.sentence import sentence, set_sentence
from attnscope.explore.drawing.surface import Surface, part_words, window
from attnscope.explore.showing import side
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


@pytest.mark.parametrize(
    ("size", "depth"), [((60, 16), "truecolor"), ((80, 24), "standard"), ((140, 40), None)]
)
def test_no_pane_is_wider_or_higher_than_its_room(
    explored: Explored, size: tuple[int, int], depth: str | None
) -> None:
    async def keys(app: Explorer, screen) -> None:
        for name in ("head", "looks", "looked", "grid", "bars"):
            pane = app.pane(name)
            wide = max((sum(each.cell_length for each in line) for line in pane.drawn), default=0)
            assert 0 < wide <= pane.content_size.width, name
        assert set("[◆") & set(screen.pane("grid")), "the chosen head"
        assert "▸" in screen.pane("main"), "the query's row"

    explored(keys, size=size, depth=depth, no_color=depth is None)


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


def test_a_surface_draws_what_a_console_of_that_depth_prints() -> None:
    drawn = Text("weight", style="weight.40")
    for depth in ("truecolor", "256", "standard"):
        surface = Surface(depth, "dark")
        (line,) = surface.lines(drawn, 20)
        out = io.StringIO()
        same = Console(file=out, force_terminal=True, color_system=depth, legacy_windows=False)
        same.print(Text("weight", style=line[0].style), end="")
        first = io.StringIO()
        again = Console(file=first, force_terminal=True, color_system=depth, legacy_windows=False)
        from attnscope.render.terminal import console

        again.push_theme(console.theme("dark", depth))
        again.print(drawn, end="")
        assert out.getvalue() == first.getvalue()


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
        every = side.heads_measured(app.state, find)
        for cells in (3, 4, 5):
            for head in every.values():
                text = grid._written(head, cells)
                assert "…" not in text
                assert len(text) == cells
                assert float(text) == pytest.approx(head.value, abs=0.51 if cells == 3 else 0.051)

    explored(keys)


def test_names_over_columns_are_whole_words_that_do_not_touch(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        lines = screen.pane("main").splitlines()[:4]
        numbers = next(i for i, line in enumerate(lines) if "query" in line)
        named = [word for line in lines[:numbers] for word in line.split()]
        assert sorted(named) == sorted(app.state.scene.keys.names)
        for line in lines[:numbers]:
            for word in line.split():
                number = str(app.state.scene.keys.names.index(word))
                end = line.index(word) + len(word)
                assert lines[numbers][:end].split()[-1] == number, "it ends where its column does"

    explored(keys)
