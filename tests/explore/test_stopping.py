"""What takes long is stopped where nobody wants it any more, and heads come before the grid."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from attnscope.explore import questions as ask
from attnscope.explore.asking import Desk, Failed, Work

HEAD = ask.OfHead("text", "encoder x", 0, 0)
MAP = ask.OfMap("text", "encoder x", 0, 0)
GRID = ask.OfLayer("text", "encoder x", 0, (0, 1), ("entropy",))


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what() and time.monotonic() < end:
        time.sleep(0.005)
    assert what()


class Slow:
    """Every question waits until it is let go; a map counts without end."""

    def __init__(self) -> None:
        self.begun: list[ask.Question] = []
        self.let_go = threading.Event()
        self.turns = 0

    def answer(self, question: ask.Question) -> str:
        self.begun.append(question)
        if isinstance(question, ask.OfMap):
            while True:
                self.turns += 1
        if not self.let_go.wait(20):
            raise AssertionError("nobody let it go")
        return "known"


@pytest.fixture
def slow() -> Slow:
    return Slow()


def test_a_map_that_nobody_wants_ends_in_the_middle_and_the_next_question_is_begun(
    slow: Slow,
) -> None:
    desk = Desk(slow, lambda _: None)
    desk.want([MAP])
    until(lambda: slow.turns > 0)
    other = ask.OfPair("text", "encoder x", 1, 2)
    desk.want([other])
    until(lambda: other in slow.begun)
    until(lambda: not [each for each in threading.enumerate() if each.name == "explore: stoppable"])
    turns = slow.turns
    time.sleep(0.05)
    assert slow.turns == turns, "it counts no more"
    assert desk.find(MAP) is None
    slow.let_go.set()
    until(lambda: desk.find(other) == "known")
    desk.close()


def test_what_runs_the_model_is_never_cut_off(slow: Slow) -> None:
    desk = Desk(slow, lambda _: None)
    desk.want([GRID])
    until(lambda: GRID in slow.begun)
    desk.want([])
    slow.let_go.set()
    until(lambda: desk.find(GRID) == "known")
    desk.close()
    assert not any(each.stoppable for each in (HEAD, GRID, ask.OfAbsence("text", "encoder x", ((0, 0),))))


def test_no_layer_of_the_grid_is_begun_while_a_head_is_waited_for(slow: Slow) -> None:
    desk = Desk(slow, lambda _: None)
    desk.want([GRID, HEAD, replace(GRID, layer=1)])
    until(lambda: HEAD in slow.begun)
    time.sleep(0.05)
    assert slow.begun == [HEAD]
    slow.let_go.set()
    until(lambda: not desk.open)
    assert slow.begun == [HEAD, GRID, replace(GRID, layer=1)]
    desk.close()


def test_work_that_goes_wrong_is_an_answer_and_stopping_what_is_done_changes_nothing() -> None:
    done = Work(lambda: Failed("no"))
    until(lambda: done.done)
    done.stop()
    assert done.answer == Failed("no")
