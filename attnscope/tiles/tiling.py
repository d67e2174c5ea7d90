"""The tensors of a long attention call, its mask as a rule, and the tiling that the rule implies.

A `LongCall` is an `AttentionCall` without query-key matrices: its mask is a `Rule`, evaluated once per layer
in blocks of rows. Most of a causal or windowed attention is never computed. A tile is a run of blocks
without any masked pair, or one block that is partly masked; masks are kept while there is room, and else
evaluated again.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.arithmetic import Operands
from attnscope.attention import AttentionCall
from attnscope.errors import InputError

Queries = Int[Tensor, " query"]
Keys = Int[Tensor, " key"]
MayLook = Callable[[int, Queries, Keys], Bool[Tensor, "query key"]]
EMPTY, PART, FULL = 0, 1, 2
_KEPT = 2**27  # bytes of blocks that are allowed in part
_LIKE = 4  # how many of them a new one is compared with


@runtime_checkable
class Rule(Protocol):
    """The mask of a long call, one block at a time; `per_head` says whether heads differ."""

    @property
    def per_head(self) -> bool: ...

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        """True where these queries may attend to these keys."""
        ...


@dataclass(frozen=True)
class Everywhere:
    """The rule without a mask: every query may attend to every key."""

    per_head: bool = False

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        return torch.ones(len(queries), len(keys), dtype=torch.bool, device=queries.device)


@dataclass(frozen=True, eq=False)
class Written:
    """The rule from a dense mask, as of a model that makes its own masks."""

    allowed: Bool[Tensor, "#head query key"]

    @property
    def per_head(self) -> bool:
        return len(self.allowed) > 1

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        one = self.allowed[head if self.per_head else 0]
        return one[queries][:, keys].to(queries.device)


@dataclass(frozen=True, eq=False)
class Symbolic:
    """The rule from a function `may_look`; equal for all heads unless `per_head`."""

    may_look: MayLook
    per_head: bool = False

    def block(self, head: int, queries: Queries, keys: Keys) -> Bool[Tensor, "query key"]:
        return self.may_look(head, queries, keys)


EVERYWHERE = Everywhere()


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows in full: the `weights` of the model's own kernel, by head.

    `rows` are positions of queries, in order.
    """

    rows: Int[Tensor, " row"]
    weights: Mapping[int, Float[Tensor, "row key"]]


@dataclass(frozen=True, eq=False)
class LongCall(AttentionCall):
    """An attention call without query-key matrices, unless the model wrote them itself.

    `rule` is the mask, and `allowed` is None; `weights` are empty, except for those in a `sample` of rows.
    Tensors stay on the model's device.
    """

    rule: Rule = EVERYWHERE
    sample: Sample | None = field(default=None)

    def rows(self, queries: Sequence[int]) -> AttentionCall:
        """Some queries as a dense call, with the model's weights if all are in the `sample`."""
        places = torch.tensor([*queries], dtype=torch.long, device=self.q.device)
        every = torch.arange(self.k.shape[1], device=places.device)
        heads = range(self.heads if self.rule.per_head else 1)
        allowed = None
        if not isinstance(self.rule, Everywhere):
            allowed = torch.stack([self.rule.block(head, places, every) for head in heads])
        sampled = {} if self.sample is None else {row: i for i, row in enumerate(self.sample.rows.tolist())}
        mine = [sampled.get(query, -1) for query in queries]
        own = self.sample.weights if self.sample is not None and -1 not in mine else {}
        plain = {each.name: getattr(self, each.name) for each in fields(AttentionCall)}
        return replace(
            AttentionCall(**plain).rows(queries),
            allowed=None if allowed is None or bool(allowed.all()) else allowed,
            weights={head: weights[mine] for head, weights in own.items()},
        )

    def operands(self, head: int) -> Operands:
        raise InputError(f"layer {self.layer} was read in tiles: what needs its whole scores is not there")

    def added(self, head: int) -> dict[str, Float[Tensor, "query key"]]:
        """Raises `InputError`: a tiled call has no dense scores."""
        raise InputError(f"layer {self.layer} was read in tiles: what is added to its scores is not there")

    def allowed_matrix(self, head: int) -> Bool[Tensor, "query key"]:
        """Raises `InputError`: a tiled call has no dense mask."""
        raise InputError(f"layer {self.layer} was read in tiles: where its queries may look is a rule")


@dataclass(frozen=True)
class Sizes:
    """Tile sizes: queries per tile, keys at most, and `grain`, the keys per block of the rule.

    `held` is how many tiles of a block of queries are kept from the first pass to the second.
    """

    queries: int = 512
    keys: int = 1024
    grain: int = 512
    held: int = 24

    def __post_init__(self) -> None:
        assert self.keys % self.grain == 0, "a tile is made of whole blocks"


def sizes_for(device: torch.device) -> Sizes:
    """The tile sizes for a device: small for a CPU cache, large for a GPU."""
    return Sizes() if device.type == "cpu" else Sizes(4096, 8192, 1024, 4)


class Room:
    """Reusable memory for the tiles of one block of queries, since allocation is slow."""

    def __init__(self, like: Tensor, sizes: Sizes) -> None:
        self.like, self.most = like, sizes.queries * sizes.keys
        self.made: list[Float[Tensor, " pair"]] = []
        self.taken = 0

    def clear(self) -> None:
        """Releases all memory for the next block."""
        self.taken = 0

    def take(self) -> Float[Tensor, " pair"]:
        """A buffer for one tile."""
        if self.taken == len(self.made):
            self.made.append(self.like.new_empty(self.most))
        self.taken += 1
        return self.made[self.taken - 1]


def laid_out(room: Float[Tensor, " pair"], rows: slice, columns: slice) -> Float[Tensor, "query key"]:
    """The part of a buffer that these queries and keys need, as a matrix."""
    shape = rows.stop - rows.start, columns.stop - columns.start
    return room[: shape[0] * shape[1]].view(shape)


@dataclass(frozen=True, eq=False)
class Mask:
    """The mask of a tile as numbers: `ceiling` is inf or -inf, `factor` 1 or 0 (faster than booleans)."""

    allowed: Bool[Tensor, "query key"]
    ceiling: Float[Tensor, "query key"]
    factor: Float[Tensor, "query key"]


def mask_of(allowed: Bool[Tensor, "query key"]) -> Mask:
    factor = allowed.float()
    return Mask(allowed, (factor - 0.5) * torch.inf, factor)


@dataclass(frozen=True, eq=False)
class Tiling:
    """The tiles of one rule: `state[i][j]` is EMPTY, PART or FULL, `visible` counts each query's keys."""

    queries: int
    keys: int
    sizes: Sizes
    rule: Rule
    head: int
    state: list[list[int]]
    visible: Int[Tensor, " query"]
    parts: dict[tuple[int, int], Mask] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        return self.visible.device

    @property
    def everywhere(self) -> bool:
        """Whether nothing is masked."""
        return all(state == FULL for row in self.state for state in row)

    def rows(self) -> Iterator[slice]:
        yield from _cut(self.queries, self.sizes.queries)

    def columns(self, rows: slice) -> list[slice]:
        """The key tiles that any of these queries may attend to; the first block for a query without keys."""
        grain, most = self.sizes.grain, self.sizes.keys // self.sizes.grain
        states = self.state[rows.start // self.sizes.queries]
        runs: list[range] = []
        for i, state in enumerate(states):
            grows = runs and runs[-1].stop == i and len(runs[-1]) < most
            if grows and state == FULL == states[i - 1]:
                runs[-1] = range(runs[-1].start, i + 1)
            elif state != EMPTY:
                runs.append(range(i, i + 1))
        if bool((self.visible[rows] == 0).any()) and (not runs or runs[0].start > 0):
            runs.insert(0, range(1))
        return [slice(each.start * grain, min(each.stop * grain, self.keys)) for each in runs]

    def mask(self, rows: slice, columns: slice) -> Mask | None:
        """The mask of these queries and keys; None where nothing is masked."""
        place = rows.start // self.sizes.queries, columns.start // self.sizes.grain
        if self.state[place[0]][place[1]] == FULL:
            return None
        if place in self.parts:
            return self.parts[place]
        return mask_of(self.rule.block(self.head, *_positions(rows, columns, self.device)))


def tiling(rule: Rule, head: int, queries: int, keys: int, sizes: Sizes, device: torch.device) -> Tiling:
    """Makes the tiling by evaluating the rule once for every pair."""
    rows, grain = list(_cut(queries, sizes.queries)), sizes.grain
    state = [[FULL] * -(-keys // grain) for _ in rows]
    visible = torch.full((queries,), keys, device=device)
    made = Tiling(queries, keys, sizes, rule, head, state, visible)
    if isinstance(rule, Everywhere):
        return made
    shelf = _Shelf()
    for i, mine in enumerate(rows):
        visible[mine] = 0
        for those in _cut(keys, sizes.keys):
            allowed = rule.block(head, *_positions(mine, those, device))
            counts = _blocks(allowed, grain).sum(-1, dtype=torch.int32)
            visible[mine] += counts.sum(-1)
            blocks = list(_cut(those.stop - those.start, grain))
            for j, (block, there) in enumerate(zip(blocks, counts.sum(0).tolist(), strict=True)):
                place = i, those.start // grain + j
                state[i][place[1]] = _state(there, len(allowed) * (block.stop - block.start))
                if state[i][place[1]] == PART and (mask := shelf.keep(allowed[:, block])):
                    made.parts[place] = mask
    return made


class _Shelf:
    """A cache of masks with a memory limit; equal masks are shared."""

    def __init__(self) -> None:
        self.room, self.last = _KEPT, deque[Mask](maxlen=_LIKE)

    def keep(self, allowed: Bool[Tensor, "query key"]) -> Mask | None:
        for mask in self.last:
            if torch.equal(mask.allowed, allowed):
                return mask
        self.room -= 9 * allowed.numel()
        if self.room < 0:
            return None
        self.last.append(mask_of(allowed.contiguous()))
        return self.last[-1]


def _blocks(allowed: Bool[Tensor, "query key"], grain: int) -> Bool[Tensor, "query block {grain}"]:
    missing = -allowed.shape[1] % grain
    whole = torch.nn.functional.pad(allowed, (0, missing)) if missing else allowed
    return whole.reshape(len(whole), -1, grain)


def _state(there: int, of: int) -> int:
    return FULL if there == of else PART if there else EMPTY


def _cut(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _positions(rows: slice, columns: slice, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.arange(rows.start, rows.stop, device=device),
        torch.arange(columns.start, columns.stop, device=device),
    )
