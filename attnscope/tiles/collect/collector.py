"""One pass over the tiles of a head, for all that wants to see them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from attnscope.measures import Tile
from attnscope.tiles.softmax import Rows
from attnscope.tiles.stream import Stream


@runtime_checkable
class Collector(Protocol):
    """Sees tiles; those of the same rows come one after the other, and then `end` is called."""

    def see(self, rows: slice, columns: slice, tile: Tile) -> None: ...

    def end(self, rows: slice) -> None: ...


def collect(stream: Stream, collectors: Sequence[Collector]) -> Rows:
    """Shows every tile to every collector; what every row is divided by, and its output."""
    for rows, tiles in stream.blocks():
        for columns, tile in tiles:
            for each in collectors:
                each.see(rows, columns, tile)
        for each in collectors:
            each.end(rows)
    return stream.rows
