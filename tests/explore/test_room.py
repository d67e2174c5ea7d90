"""A short sentence on a large screen: rows of several lines, and under them the parts of the score."""

from collections.abc import Callable

import numpy as np

from attnscope.explore.app import Explorer
from attnscope.explore.drawing import matrix
from attnscope.explore.questions import OfParts, needed, parts_of
from attnscope.explore.showing.side import parts_within
from attnscope.explore.source import Source

Explored = Callable[..., Explorer]


def test_a_large_screen_shows_the_parts_of_the_score_of_the_pair_under_the_cursor(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        parts = app.pane("parts")
        assert parts.display
        assert "weight" in parts.text
        assert parts.size.height + app.pane("main").outer_size.height <= 36
        before = parts.text
        await screen.press("tab", "down")
        assert parts.text != before
        row, column = (
            app.state.query,
            int(app.desk.find(parts_of(app.state)).head.weights[app.state.query].argmax()),
        )
        tokens = app.state.scene.queries
        assert parts.text.startswith(f"{row} {tokens.names[row]} → {column} {tokens.names[column]}: q·k ")
        await screen.press("t")
        assert not parts.display, "the view has them all"
        await screen.press("t")
        assert parts.display
        await screen.pilot.resize_terminal(80, 24)
        await screen.settled()
        assert not parts.display
        assert not any(isinstance(each, OfParts) for each in app.desk.open), "nor are they asked"
        await screen.pilot.resize_terminal(140, 40)
        await screen.settled()
        assert "q·k" in parts.text, "asked again"

    explored(keys, size=(140, 40))


def test_parts_are_asked_only_where_they_are_shown(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        assert not app.pane("parts").display
        assert parts_of(app.state) not in needed(app.state)
        assert parts_of(app.state) in needed(app.state, parts=True)
        assert app.desk.find(parts_of(app.state)) is None

    explored(keys, size=(80, 24))


def test_rows_of_few_tokens_are_higher_and_a_click_on_any_line_of_one_is_meant_for_it(
    explored: Explored, demo: Source
) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.write("e", "It works.")
        main = app.pane("main")
        lines = main.text.split("\n")
        names = {
            name: next(i for i, line in enumerate(lines) if f" {name} " in line[:14])
            for name in ("It", "works")
        }
        assert names["works"] - names["It"] == 2, "two lines a row"
        assert not lines[names["It"] + 1].strip(), "its second is colour alone"
        first, second = (_cells(main.drawn[names["It"] + i])[14:] for i in (0, 1))
        assert len(first) == len(second) > 20
        assert [style for _, style in first] == [style for _, style in second]
        for below in (0, 1):
            await screen.pilot.click(main, offset=(main.content_size.width // 4, names["works"] + below + 1))
            await screen.settled()
            assert app.state.query == 2

    explored(keys, size=(140, 40))


def test_a_place_in_a_tall_row_is_that_row() -> None:
    laid = matrix.Laid(range(4, 7), range(2), margin=5, cells=6, above=2, lines=3)
    assert [laid.at(5, y) for y in (1, 2, 4, 5, 10, 11)] == [None, (4, 0), (4, 0), (5, 0), (6, 0), None]


def test_parts_keep_to_the_lines_that_there_are_and_list_the_strongest_keys(
    explored: Explored,
) -> None:
    async def keys(app: Explorer, screen) -> None:
        found, query = app.desk.find(parts_of(app.state)), 3
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


def _cells(line) -> list[tuple[str, object]]:
    """Every cell of a line with its style."""
    return [(character, each.style) for each in line for character in each.text]
