"""Which blocks of a long attention hold anything: most of a causal or a windowed one is never computed.

The rule is asked once per layer, a block of rows at a time; blocks that it allows in part are kept as long as
there is room for them, and asked for again where there is not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnscope.tiles.rules import Everywhere, Rule

EMPTY, PART, FULL = 0, 1, 2
_KEPT = 2**27  # bytes of blocks that are allowed in part


@dataclass(frozen=True)
class Sizes:
    """How many queries and keys a tile has."""

    queries: int = 256
    keys: int = 1024


def sizes_for(device: torch.device) -> Sizes:
    """Tiles that stay in the cache of a processor, or that fill a GPU."""
    return Sizes() if device.type == "cpu" else Sizes(4096, 8192)


@dataclass(frozen=True, eq=False)
class Tiling:
    """The tiles of one rule: `state[i, j]` is EMPTY, PART or FULL, `visible` counts each query's keys."""

    queries: int
    keys: int
    sizes: Sizes
    rule: Rule
    head: int
    state: Int[Tensor, "row column"]
    visible: Int[Tensor, " query"]
    parts: dict[tuple[int, int], Bool[Tensor, "query key"]] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        return self.visible.device

    @property
    def everywhere(self) -> bool:
        """Whether every query may look at every key."""
        return bool((self.state == FULL).all())

    def rows(self) -> Iterator[slice]:
        yield from _cut(self.queries, self.sizes.queries)

    def columns(self, rows: slice) -> list[slice]:
        """The blocks of keys that any of these queries may look at; the first one where there is none."""
        there = self.state[rows.start // self.sizes.queries].nonzero().flatten().tolist()
        every = list(_cut(self.keys, self.sizes.keys))
        unanswered = bool((self.visible[rows] == 0).any())
        return [each for i, each in enumerate(every) if i in there or (unanswered and i == 0)]

    def mask(self, rows: slice, columns: slice) -> Bool[Tensor, "query key"] | None:
        """Where these queries may look among these keys; None where that is everywhere."""
        place = rows.start // self.sizes.queries, columns.start // self.sizes.keys
        if int(self.state[place]) == FULL:
            return None
        found = self.parts.get(place)
        return self.rule.block(self.head, *_positions(rows, columns, self.device)) if found is None else found


def tiling(rule: Rule, head: int, queries: int, keys: int, sizes: Sizes, device: torch.device) -> Tiling:
    """Asks `rule` for every block once."""
    rows, columns = list(_cut(queries, sizes.queries)), list(_cut(keys, sizes.keys))
    state = torch.full((len(rows), len(columns)), FULL, dtype=torch.int8)
    visible = torch.full((queries,), keys, device=device)
    made = Tiling(queries, keys, sizes, rule, head, state, visible)
    if isinstance(rule, Everywhere):
        return made
    room = _KEPT
    for i, mine in enumerate(rows):
        visible[mine] = 0
        for j, those in enumerate(columns):
            block = rule.block(head, *_positions(mine, those, device))
            counts = block.sum(-1)
            visible[mine] += counts
            state[i, j] = _state(int(counts.sum()), block.numel())
            if state[i, j] == PART and room >= block.numel():
                room -= block.numel()
                made.parts[i, j] = block.contiguous()
    return made


def _state(there: int, of: int) -> int:
    return FULL if there == of else PART if there else EMPTY


def _cut(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _positions(rows: slice, columns: slice, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.arange(rows.start, rows.stop, device=device),
        torch.arange(columns.start, columns.stop, device=device),
    )
