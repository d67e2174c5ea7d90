"""What goes wrong is said in one line where its answer would stand, and the explorer goes on."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from attnscope.errors import InputError, ModelUnavailableError
from attnscope.explore import questions as ask
from attnscope.explore.app import Explorer, Notices
from attnscope.explore.source import Source
from attnscope.model.loaded import Model
from attnscope.model.loading.answering import task_of
from attnscope.results import Verdict
from attnscope.session.opening import Opened
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted

Explored = Callable[..., Explorer]


class Broken:
    """The demo, of which one kind of question is answered otherwise."""

    def __init__(self, source: Source, kind: type, answer: Callable[[Any], Any]) -> None:
        self._source, self._kind, self._answer = source, kind, answer
        self.request, self.inputs, self.wanted = source.request, source.inputs, source.wanted
        self.refused: Exception | None = None

    def scene(self, *asked: Any) -> Any:
        if self.refused is not None:
            raise self.refused
        return self._source.scene(*asked)

    def answer(self, question: ask.Question) -> Any:
        found = self._source.answer(question)
        return self._answer(found) if type(question) is self._kind else found


def failing(found: Any) -> Any:
    raise InputError("the head fell off")


def with_verdict(verdict: Verdict) -> Callable[[Any], Any]:
    def changed(found: Any) -> Any:
        return replace(found, certificate=replace(found.certificate, verdict=verdict, reason="on purpose"))

    return changed


def broken_model(fails: Callable[[], Any]) -> Source:
    """A tiny model of our own, in the middle of which something goes wrong."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, intermediate_size=8
    )
    module = BertForMaskedLM(config).eval()
    source = Source(ModelRequest(), Inputs(ids=[3, 4, 5, 6]), Wanted(0, 0), Notices())
    source._opened = Opened(Model(None, module, None, None), task_of(module))

    def after(layer: Any, given: Any, made: Any) -> Any:
        return fails()

    module.bert.encoder.layer[1].register_forward_hook(after)
    return source


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "memory"),
        (RuntimeError("the size of tensor a (4) must match"), "must match"),
    ],
)
def test_a_model_that_fails_in_the_middle_is_said_and_what_was_read_stays(
    explored: Explored, raised: Exception, said: str
) -> None:
    """Layer 0 is read by a run that ends behind it; the run for all others fails in layer 1."""

    def fails() -> Any:
        raise raised

    async def keys(app: Explorer, screen) -> None:
        assert "certified" in screen.pane("head")
        await screen.press("right_square_bracket")
        assert app.state.place == (1, 0)
        assert said in " ".join(screen.pane("head").split()) + " ".join(screen.pane("main").split())
        await screen.press("left_square_bracket", "full_stop")
        assert app.state.place == (0, 1)
        assert "certified" in screen.pane("head")

    explored(keys, source=broken_model(fails))


def test_numbers_that_are_none_fail_the_certificate_of_their_layer_and_of_no_other(
    explored: Explored,
) -> None:
    def fails() -> Any:
        return torch.full((1, 4, 24), torch.nan)

    async def keys(app: Explorer, screen) -> None:
        assert "certified" in screen.pane("head")
        await screen.press("slash", "2", ".", "1", "enter")
        assert app.state.place == (2, 1)
        assert "certified" not in screen.pane("head")

    explored(keys, source=broken_model(fails))


def test_a_model_that_cannot_be_opened_is_one_line_on_the_screen(explored: Explored, demo: Source) -> None:
    source = Broken(demo, ask.OfHead, failing)
    source.refused = ModelUnavailableError("no model nowhere")

    async def keys(app: Explorer, screen) -> None:
        assert app.state is None
        assert screen.pane("status") == "no model nowhere"
        await screen.press("e", "x", "f", "t", "right", "y", "s", "escape")
        assert app.is_running

    explored(keys, source=source)


def test_a_head_that_cannot_be_read_says_so_and_the_next_question_is_answered(
    explored: Explored, demo: Source
) -> None:
    source = Broken(demo, ask.OfHead, failing)

    async def keys(app: Explorer, screen) -> None:
        assert "the head fell off" in screen.pane("head")
        assert "the head fell off" in screen.pane("main")
        await screen.press("t")
        assert "exp(" in screen.pane("main")

    explored(keys, source=source)


def test_a_mistake_of_our_own_is_named_and_does_not_end_the_explorer(
    explored: Explored, demo: Source
) -> None:
    source = Broken(demo, ask.OfPrediction, lambda found: 1 / 0)

    async def keys(app: Explorer, screen) -> None:
        assert "ZeroDivisionError" in screen.pane("predicts")
        await screen.press("right")
        assert "certified" in screen.pane("head")

    explored(keys, source=source)


def test_a_failed_certificate_cannot_be_overlooked(explored: Explored, demo: Source) -> None:
    source = Broken(demo, ask.OfHead, with_verdict(Verdict.FAILED))

    async def keys(app: Explorer, screen) -> None:
        assert "✗ FAILED" in screen.pane("head")
        assert "do not trust these numbers" in screen.pane("proof")
        assert app.pane("proof").display
        assert "✗ FAILED" in app.pane("main")._title
        assert app.board.has_class("failed"), "its frame is red"

    explored(keys, source=source)


def test_a_doubtful_certificate_says_why_and_a_good_one_only_when_asked(
    explored: Explored, demo: Source
) -> None:
    source = Broken(demo, ask.OfHead, with_verdict(Verdict.PARTIAL))

    async def keys(app: Explorer, screen) -> None:
        assert "~ partial · on purpose" in screen.pane("proof")
        assert not app.board.has_class("failed")

    explored(keys, source=source)

    async def good(app: Explorer, screen) -> None:
        assert not app.pane("proof").display
        await screen.press("c")
        assert "faults tried" in screen.pane("proof")

    explored(good)


def test_a_bad_verdict_of_another_head_stands_in_its_cell_of_the_grid(
    explored: Explored, demo: Source
) -> None:
    def changed(found: Any) -> Any:
        bad = replace(found.certificates[0][4], verdict=Verdict.FAILED)
        return replace(found, certificates=((*found.certificates[0][:4], bad, *found.certificates[0][5:]),))

    source = Broken(demo, ask.OfLayer, changed)

    async def keys(app: Explorer, screen) -> None:
        assert [line.count("✗") for line in screen.pane("grid").splitlines()] == [0, 1, 1, 1, 1]

    explored(keys, source=source)

    async def whole(app: Explorer, screen) -> None:
        assert "✗" not in screen.pane("grid")

    explored(whole)


def test_a_file_of_no_known_kind_is_refused_and_nothing_is_written(explored: Explored, tmp_path) -> None:
    async def keys(app: Explorer, screen) -> None:
        await screen.write("o", str(tmp_path / "x.docx"))
        for _ in range(500):
            if "must end in" in app.message:
                break
            await screen.pilot.pause(0.02)
        assert "must end in .png" in app.message

    explored(keys)
    assert list(tmp_path.iterdir()) == []


def test_a_bug_is_told_without_anything_that_steers(
    explored: Explored, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def action_leave(explorer: Explorer) -> None:
        name = "\x1b]0;stolen\x9b2J\u202e"  # which Textual shows among the variables as well
        raise RuntimeError(f"not one of {name}")

    monkeypatch.setattr(Explorer, "action_leave", action_leave)

    async def keys(app: Explorer, screen) -> None:
        await screen.pilot.press("q")

    with pytest.raises(RuntimeError, match="not one of"):
        explored(keys)
    told = capsys.readouterr().err
    assert r"not one of \x1b]0;stolen\x9b2J\u202e" in told
    assert not [each for each in told if each != "\n" and not each.isprintable()]
