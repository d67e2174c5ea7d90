"""One pass over the tiles of a head, for all that wants to see them; several heads at the same time.

Each head has a thread, where more threads for one tile would be of less use: an operation on a tile is short,
so that two threads that meet at the end of each cost a third more than two that do not meet. torch lets go
of Python while it computes.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from attnscope.measures import Tile
from attnscope.tiles.softmax import Rows
from attnscope.tiles.stream import Stream

_MOST = 16  # heads at a time: each holds the logits of a block of its rows
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Collector(ABC):
    """Sees tiles; those of the same rows come one after the other, and then `end` is called."""

    @abstractmethod
    def see(self, rows: slice, columns: slice, tile: Tile) -> None: ...

    def end(self, rows: slice) -> None:  # noqa: B027 - of use to some
        """For most there is nothing left to do then."""


def collect(stream: Stream, collectors: Sequence[Collector]) -> Rows:
    """Shows every tile to every collector; what every row is divided by, and its output."""
    for rows, tiles in stream.blocks():
        for columns, tile in tiles:
            for each in collectors:
                each.see(rows, columns, tile)
        for each in collectors:
            each.end(rows)
    return stream.rows


class Halt(Collector):
    """A collector that ends the work of its thread after the block that is being computed."""

    def __init__(self) -> None:
        self.wanted = threading.Event()

    def see(self, rows: slice, columns: slice, tile: Tile) -> None:
        pass

    def end(self, rows: slice) -> None:
        if self.wanted.is_set():
            raise InterruptedError("the work on the other heads has ended")


def side_by_side(
    work: Callable[[Item, Halt], Answer], items: Sequence[Item], device: torch.device
) -> Iterator[Answer]:
    """What `work` makes of each item, in their order; on a GPU one after the other, which fills it.

    Where it is left before the end, because an item failed or nobody waits any longer, the others halt.
    """
    threads, halt = torch.get_num_threads(), Halt()
    workers = min(threads, len(items), _MOST)
    if device.type != "cpu" or workers < 2:
        yield from (work(item, halt) for item in items)
        return

    @torch.no_grad()
    def one(item: Item) -> Answer:
        return work(item, halt)

    with _threads(threads // workers, threads), ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(one, item) for item in items]
        try:
            for each in waiting:
                yield each.result()
        finally:
            halt.wanted.set()
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _threads(within: int, after: int) -> Iterator[None]:
    torch.set_num_threads(within)
    try:
        yield
    finally:
        torch.set_num_threads(after)
