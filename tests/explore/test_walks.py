"""Keys in, state and cells out: walks through the bundled demo model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.cells import cell_len
from textual.geometry import Offset

import attnscope
from attnscope.explore import questions
from attnscope.explore.app import Explorer
from attnscope.explore.source import Source
from attnscope.explore.state import View
from attnscope.render.kit.numbers import chance
from attnscope.render.terminal.console import theme
from attnscope.results import HeadAttention
from attnscope.session.choosing import choose
from attnscope.session.listener import Quiet
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.reading import read_inputs
from attnscope.session.wanted import Wanted

JUMP = ("slash", "3", ".", "1", "1", "enter")  # typed, as a person does
Explored = Callable[..., Explorer]


def test_the_reference_head_is_found_from_the_grid_in_nine_keys(explored: Explored) -> None:
    """L3 H11 looks from a masked pronoun at its antecedent (the card of the demo, "Antecedents")."""
    walk = ["tab", "left", "left", "left", "f"]

    async def keys(app: Explorer, screen) -> None:
        assert app.state.name == "L0 H0"
        assert "7 [MASK] → 8 opened" in screen.pane("head")
        await screen.press(*walk[:4])
        assert "7 [MASK] → 5 door" in screen.pane("head")
        await screen.press("f")
        told = " ".join(screen.pane("main").split())
        assert "L3 H11 stands out most" in told
        assert "(o writes a .csv of all)" in told
        assert "-o FILE" not in told, "no option can be given here"
        found = app.desk.find(questions.view_of(app.state))
        for place in found.ranking[:4]:
            await screen.press("enter")
            walk.append("enter")
            assert app.state.place == (found.layers[place[0]], found.heads[place[1]])
            if app.state.name == "L3 H11":
                break
        assert "7 [MASK] → 5 door .976 · ✓ certified" in screen.pane("head")

    explored(keys)
    assert len(walk) < 10


def test_the_head_that_is_shown_is_that_of_a_run_that_looks_at_it_alone(
    explored: Explored, demo: Source
) -> None:
    """The oracle is a run of its own that ends behind layer 2, and of which nothing is kept."""
    chosen = choose(demo._opened.model, Wanted(2, 7), Quiet(), sensed=False)
    alone = OpenedHeads(
        read_inputs(replace(demo._opened, chosen=chosen), demo.inputs, Quiet()), chosen
    ).head()

    async def keys(app: Explorer, screen) -> None:
        await screen.press("right_square_bracket", "right_square_bracket", *["full_stop"] * 7)
        assert app.state.name == "L2 H7"
        shown = app.desk.find(questions.head_of(app.state))
        assert isinstance(shown, HeadAttention)
        np.testing.assert_allclose(shown.weights, alone.weights, atol=1e-6)
        weight = f"{alone.weights[7].max():.3f}".removeprefix("0")
        assert weight in screen.pane("head")
        assert weight in screen.pane("bars").splitlines()[1]

    explored(keys)


def test_a_click_goes_to_the_head_the_pair_or_the_token_below_it(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        grid = app.pane("grid")
        await screen.pilot.click(
            grid, offset=Offset(1 + 3 + 2 * 5, 1 + 1 + 2)
        )  # border, margin, two cells each
        await screen.settled()
        assert app.state.place == (2, 5)
        lines = screen.pane("main").splitlines()
        row = next(i for i, line in enumerate(lines) if "5 door" in line)
        await screen.pilot.click(app.pane("main"), offset=Offset(cell_len(lines[row]), row + 1))
        await screen.settled()
        assert app.state.query == 5
        assert app.state.key is not None
        words = screen.pane("looks")
        await screen.pilot.click(app.pane("looks"), offset=Offset(words.index("watching") + 2, 0))
        await screen.settled()
        assert app.state.query == 3

    explored(keys)


def test_a_changed_sentence_is_read_without_opening_the_model_again(explored: Explored, demo: Source) -> None:
    opened = demo._opened

    async def keys(app: Explorer, screen) -> None:
        await screen.press(*JUMP)
        await screen.write("e", "I was watching the door when [MASK] fell.")
        assert app.state.scene.text == "I was watching the door when [MASK] fell."
        assert app.state.place == (3, 11)
        assert "fell" in screen.pane("looks")
        assert demo._opened is opened
        await screen.press("e", "x", "escape")
        assert app.state.scene.text.endswith("fell.")

    explored(keys)


def test_a_head_that_is_out_has_the_answer_before_beside_the_one_without_it(
    explored: Explored, demo: Source
) -> None:
    """The oracle is a run of the model in which a hook of our own sets the output of the head to 0."""
    reading = read_inputs(demo._opened, demo.inputs, Quiet())
    model = demo._opened.model
    query = reading.encoded.tokens.names.index("[MASK]")
    size = model.module.config.hidden_size // model.module.config.num_attention_heads
    head = slice(11 * size, 12 * size)

    def without(layer: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        changed = given[0].clone()
        changed[..., head] = 0.0
        return (changed, *given[1:])

    def chances() -> torch.Tensor:
        with torch.no_grad():
            return model.module(**reading.inputs).prediction_logits[0, query].double().softmax(-1)

    before = chances()
    (output,) = [
        each for name, each in model.module.named_modules() if name.endswith("layer.3.attention.output.dense")
    ]
    hook = output.register_forward_pre_hook(without)
    after = chances()
    hook.remove()

    async def keys(app: Explorer, screen) -> None:
        await screen.press(*JUMP)
        untouched = screen.pane("predicts")
        await screen.press("x")
        assert app.state.removed == ((3, 11),)
        assert app.pane("predicts")._title == "predicts · L3 H11 out"
        shown = screen.pane("predicts")
        headings, *rows = shown.splitlines()[1:]
        assert headings.split() == ["token", "before", "without"]
        for row in rows[:5]:
            name, *numbers = row.replace(" %", "%").split()
            (number,) = model.tokenizer.convert_tokens_to_ids([name])
            both = float(before[number]), float(after[number])
            told = [[chance(each, decimals).replace(" %", "%") for each in both] for decimals in (1, 2)]
            assert numbers in told
        assert len(set(rows[0].replace(" %", "%").split()[1:])) == 2, "it makes a difference that is seen"
        assert "other heads ±" in " ".join(shown.split())
        assert "probability" not in shown, "the table from before has no place under this heading"
        assert "××" in screen.pane("grid")
        assert "L3 H11" in screen.pane("main")
        await screen.press("escape")
        assert "without" in screen.pane("predicts"), "in every view"
        await screen.press("x")
        assert app.state.removed == ()
        assert app.state.view is View.MATRIX
        assert screen.pane("predicts") == untouched
        assert "×" not in screen.pane("grid")

    explored(keys)


def test_a_second_sentence_stands_beside_the_first_with_what_differs(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.write("b", "I was watching the door when [MASK] fell.")
        assert app.state.view is View.BESIDE
        shown = screen.pane("main")
        assert "fell" in shown
        assert "other tokens at 1 position: 8 opened / fell" in " ".join(shown.split())
        await screen.write("b", "I slept.")
        shown = " ".join(screen.pane("main").split())
        assert "no difference" in shown, "texts of other lengths are not held against each other"

    explored(keys, size=(140, 40))


def test_the_score_the_map_and_measures_come_and_go_by_their_keys(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.press("t")
        assert "exp(" in screen.pane("main")
        await screen.press("p")
        shown = screen.pane("main")
        assert "trustworthiness" in shown
        assert "●" in shown
        assert "○" in shown
        points = {
            each.text: each.style.color
            for line in app.pane("main").drawn
            for each in line
            if each.style and each.text in ("●", "○")
        }
        styles = theme("dark", "truecolor").styles
        assert points == {"●": styles["query"].color, "○": styles["key"].color}
        await screen.press("p")
        assert app.state.view is View.MATRIX
        before = screen.pane("grid")
        await screen.press("m")
        assert app.state.measure == "confidence"
        assert screen.pane("grid") == before, "without a change of head only the shades change"
        await screen.press("M", "n", "e", "x", "t", "enter")
        assert app.state.measure == "next"

    explored(keys)


def test_words_and_special_tokens_are_joined_and_left_out(explored: Explored) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.press("S")
        assert "[CLS]" not in screen.pane("looks")
        assert "hide" in str(app.pane("main")._title)
        await screen.press("S", "S", "w")
        assert "by words" in str(app.pane("main")._title)

    explored(keys)


def test_what_is_on_the_screen_is_saved(explored: Explored, tmp_path: Path) -> None:
    target = tmp_path / "x.npz"

    async def keys(app: Explorer, screen) -> None:
        await screen.write("slash", "2.4")
        await screen.write("o", str(target))
        await told(app, screen, "wrote")
        assert app.message == f"wrote {target}"
        before = target.read_bytes()
        await screen.write("o", str(target))
        assert "is there already: nothing was written" in app.message
        assert target.read_bytes() == before

    explored(keys)
    assert attnscope.results.load(target).name == "L2 H4"
    assert target.stat().st_size > 1000


def test_one_key_writes_a_page_of_what_is_seen_under_a_name_that_no_file_has(
    explored: Explored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def keys(app: Explorer, screen) -> None:
        await screen.write("slash", "2.4")
        for name in ("L2H4.html", "L2H4-2.html"):
            await screen.pilot.press("s")
            await told(app, screen, "wrote")
            assert app.message == f"wrote {name}"
            assert f"wrote {name}" in screen.pane("status")

    explored(keys)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["L2H4-2.html", "L2H4.html"]
    page = (tmp_path / "L2H4.html").read_text()
    assert "L2 H4" in page
    assert page == (tmp_path / "L2H4-2.html").read_text()


async def told(app: Explorer, screen, words: str) -> None:
    """Wait until the bottom line begins so."""
    for _ in range(1000):
        if app.message.startswith(words):
            return
        await screen.pilot.pause(0.02)
    raise AssertionError(app.message)


def test_the_command_of_a_view_makes_it_again(explored: Explored, capsys: pytest.CaptureFixture[str]) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.press(*JUMP, "y", "q")

    app = explored(keys)
    (line,) = app.commands
    assert line == (
        "attnscope heads 'I was watching the door when [MASK] opened.' -m demo --layer 3 --head 11 "
        "--query '[MASK]'"
    )
