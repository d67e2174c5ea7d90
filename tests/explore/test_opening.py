"""The first screen: the head that it opens at, its panes, the keys below it, and what `?` says of it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from transformers import BertConfig, BertModel

from attnscope.explore import questions as ask
from attnscope.explore import questions as evidence
from attnscope.explore.app import Explorer, Notices
from attnscope.explore.source import Source
from attnscope.explore.state import start
from attnscope.model.loaded import Model
from attnscope.session.opening import Opened
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

Explored = Callable[..., Explorer]
SAID = "most focused, not by its place"


class Unasked:
    """The demo, of which no head was asked for."""

    def __init__(self, source: Source) -> None:
        self.request, self.inputs, self.wanted = source.request, source.inputs, Wanted()
        self.scene, self.answer = source.scene, source.answer


def sharpest_of(weights: dict[tuple[int, int], np.ndarray]) -> tuple[int, int]:
    """By hand, from the weights: sharp, at no one offset, not on [CLS] and [SEP], not on the first key."""
    left = {}
    for head, rows in weights.items():
        count = len(rows)
        offsets = [int(key) - query for query, key in enumerate(rows.argmax(-1))]
        usual = max(sorted(set(offsets), key=offsets.index), key=offsets.count)
        fixed = offsets.count(usual) / (count - abs(usual)) >= 0.8
        special = rows[:, [0, count - 1]].sum(-1).mean() >= 0.5
        if not (fixed or special or rows[:, 0].mean() >= 0.5):
            left[head] = -(rows * np.log(np.where(rows > 0, rows, 1.0))).sum(-1).mean()
    return min(left, key=lambda head: left[head])


def test_it_opens_at_the_sharpest_head_that_position_does_not_explain(
    explored: Explored, demo: Source
) -> None:
    scene = demo.scene()
    places = [(layer, head) for layer in scene.tower.layers for head in range(scene.tower.heads)]
    every = {
        place: demo.answer(ask.OfHead(scene.text, scene.tower.pattern, *place)).weights for place in places
    }
    expected = sharpest_of(every)

    async def keys(app: Explorer, screen) -> None:
        assert app.state.place == expected != (0, 0)
        name = f"L{expected[0]} H{expected[1]}"
        assert screen.pane("head").startswith(name)
        assert screen.pane("status").startswith(f"{name}: {SAID}")
        assert screen.pane("status").endswith("? help  q quit")
        await screen.press("right")
        assert SAID not in screen.pane("status")

    explored(keys, source=Unasked(demo))


def test_heads_at_one_offset_and_on_special_tokens_stand_behind_and_say_why(demo: Source) -> None:
    state = start(demo.scene())
    measured = [demo.answer(question) for question in ask.grid_of(state)]
    why = evidence.explained(measured)
    assert why[0, 0] == evidence.PLACE, "it looks at the next token"
    assert (3, 11) not in why, "it looks at the antecedent"
    assert evidence.sharpest(measured) not in why
    assert evidence.sharpest([]) is None
    spread = [
        replace(each, scores={"entropy": replace(each.scores["entropy"], values=np.full((1, 12), np.nan))})
        for each in measured
    ]
    assert evidence.sharpest(spread) is None, "no number, no head"


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
def test_no_pane_is_empty_and_nothing_in_a_frame_is_cut_off(
    explored: Explored, demo: Source, size: tuple[int, int]
) -> None:
    async def keys(app: Explorer, screen) -> None:
        for press in ("escape", "x", "t", "p", "f"):
            await screen.press(press)
            for name in ("head", "looks", "looked", "grid", "main", "bars", "predicts", "ranking", "parts"):
                pane = app.pane(name)
                if not pane.display or not pane.content_size.height:
                    continue
                assert pane.text.strip(), f"{name} is empty after {press}"
                room = pane.content_size.width - 2
                for said in (pane.border_title, pane.border_subtitle):
                    assert len(str(said or "")) <= room, f"{said} has no room in {name} after {press}"
            assert screen.pane("status").endswith("? help  q quit")
            assert len(screen.pane("status")) <= size[0]

    explored(keys, source=Unasked(demo), size=size)


def test_a_model_without_an_answer_has_the_ranking_where_the_prediction_would_be(explored: Explored) -> None:
    config = BertConfig(
        vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=8
    )
    source = Source(ModelRequest(), Inputs(ids=[3, 4, 5, 6]), Wanted(0, 0), Notices())
    source._opened = Opened(Model(None, BertModel(config).eval(), None, None), None)

    async def keys(app: Explorer, screen) -> None:
        assert not app.pane("predicts").display
        assert app.pane("ranking").display
        assert "L0 H" in screen.pane("ranking")
        await screen.press("x")
        assert "predicts nothing that could change" in screen.pane("status")
        assert app.state.removed == ()

    explored(keys, source=source)


@pytest.mark.parametrize("size", [(80, 24)])
def test_a_text_without_a_blank_says_so_in_few_lines_and_has_the_ranking(
    explored: Explored, size: tuple[int, int]
) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.write("e", "I was watching the door.")
        assert screen.pane("predicts").split("\n")[0].startswith("no blank to fill: _ puts")
        assert app.pane("predicts").content_size.height == 2
        assert app.pane("ranking").display
        assert len([line for line in screen.pane("ranking").splitlines() if line.startswith("L")]) >= 3
        await screen.press("x")
        assert "nothing is predicted here: _ puts [MASK]" in screen.pane("status")
        assert app.state.removed == ()

    explored(keys, size=size)


def test_the_card_tells_the_signs_that_are_on_the_screen_and_no_others(explored: Explored) -> None:
    async def card(app: Explorer, screen) -> str:
        await screen.press("question_mark")
        shown = app.screen.query_one("#card").text
        await screen.press("a")
        assert len(app.screen_stack) == 1
        return " ".join(shown.split())

    async def keys(app: Explorer, screen) -> None:
        first = await card(app, screen)
        assert "How evenly a query spreads its weight" in first, "what colours the grid"
        assert "▸ the query" in first
        assert "masked" not in first, "every query of an encoder sees every key"
        assert "taken out" not in first.split("keys Tab")[0]
        assert "probability what the model itself gives" in first
        assert "tower" not in first, "it has one attention"
        assert all(word in first for word in ("jump to a head", "quit", "certificate in full", "mouse"))
        await screen.press("m", "x")
        second = await card(app, screen)
        assert "Mean of the largest weight" in second
        assert "How evenly" not in second
        assert "×× a head that was taken out" in second
        assert "without the same with the outputs of these heads replaced by zeros" in second
        assert "▸ the query" not in second
        await screen.press("f")
        third = await card(app, screen)
        assert "weight" in third
        assert "Enter open the first of the heads that were found" in third

    explored(keys, size=(140, 90))


def test_the_card_keeps_its_end_on_the_screen_when_the_terminal_gets_smaller(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.press("question_mark")
        for width, height in ((80, 24), (120, 50), (60, 20)):
            await screen.pilot.resize_terminal(width, height)
            await screen.pilot.pause()
            card = app.screen.query_one("#card").region
            assert 0 < card.y < card.bottom < height
            assert card.height == height - 2

    explored(keys, size=(100, 30))
