"""Heads at the same time: the same answers in the same order, and an end for all where one fails."""

import threading

import pytest
import torch

from attnscope.tiles.collectors import Halt, side_by_side

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    assert torch.get_num_threads() == 4, "threads are as they were"
    torch.set_num_threads(before)


def test_answers_come_in_order_whoever_is_first():
    later = threading.Event()

    def work(item: int, halt: Halt) -> tuple[int, int]:
        if item == 0:
            assert later.wait(20), "the second is worked on at the same time"
        later.set()
        return item, torch.get_num_threads()

    assert list(side_by_side(work, (0, 1), CPU)) == [(0, 2), (1, 2)]


def test_one_item_or_a_gpu_has_every_thread():
    def work(item: int, halt: Halt) -> tuple[int, bool]:
        return torch.get_num_threads(), threading.current_thread() is threading.main_thread()

    assert list(side_by_side(work, (7,), CPU)) == [(4, True)]
    assert list(side_by_side(work, (7, 8), torch.device("meta"))) == [(4, True)] * 2


def test_where_one_fails_the_others_halt_after_their_block():
    started, halted = threading.Event(), threading.Event()

    def work(item: int, halt: Halt) -> int:
        if item == 0:
            assert started.wait(20)
            raise LookupError("no such head")
        started.set()
        assert halt.wanted.wait(20)
        try:
            halt.end(slice(0, 5))
        except InterruptedError:
            halted.set()
            raise
        return item

    with pytest.raises(LookupError, match="no such head"):
        list(side_by_side(work, (0, 1), CPU))
    assert halted.wait(20)


def test_gradients_are_off_in_every_thread():
    weight = torch.ones(3, requires_grad=True)

    def work(item: int, halt: Halt) -> bool:
        return (weight * item).requires_grad

    with torch.no_grad():
        assert list(side_by_side(work, (1, 2, 3), CPU)) == [False] * 3
