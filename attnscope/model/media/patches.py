"""Which position of a model stands for which patch of a picture, found by changing pixels.

The patch size stands in the model's config. The patches' positions are found by trial: noise is put on the
rows (then the columns) of patches whose number has a certain bit, and the input of the first attention layer
must change at exactly the positions of these patches. Learned tokens beside the patches are found the same
way, by changing the parameter. No architecture is known by name, and the model stays as it is.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from attnscope.model.anatomy.sites import Site
from attnscope.tokens import Patches, Token, Tokens

_LEARNED = {"regist": "REG", "detect": "DET", "dist": "DIST", "cls": "CLS", "class": "CLS"}
_MOVED = 1e-3  # share of the largest change above which a change is more than rounding


class _Seen(Exception):
    """Raised inside a forward pass to end it once the layer's input has been recorded."""


@dataclass(frozen=True)
class Grid:
    """A picture cut into patches of `high` by `wide` pixels."""

    rows: int
    columns: int
    high: int
    wide: int


@dataclass(frozen=True, eq=False)
class Reader:
    """The part of a model that reads pictures or sounds, with its attention modules and the first of them."""

    module: nn.Module
    first: Site
    sites: tuple[Site, ...]

    def setting(self, name: str) -> Any:
        """A config entry of this part, or of the vision part of a joint config; None without one."""
        config = getattr(self.module, "config", None)
        for holder in (config, getattr(config, "vision_config", None)):
            if (value := getattr(holder, name, None)) is not None:
                return value
        return None

    @torch.no_grad()
    def entering(
        self, inputs: Mapping[str, Any], changed: Mapping[str, Tensor] | None = None
    ) -> Float[Tensor, "position dim"]:
        """The first attention layer's input for `inputs`, with some parameters `changed`.

        Windows of a picture that are read side by side follow one another. Attention before that layer
        returns zeros, so that every position depends on its own patch alone.
        """
        seen: list[Tensor] = []
        others = [site.module for site in self.sites if site.module is not self.first.module]

        def look(_module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            seen.extend(each for each in (*given, *named.values()) if isinstance(each, Tensor))
            raise _Seen

        with ExitStack() as stack, suppress(_Seen):
            stack.enter_context(self.first.module.register_forward_pre_hook(look, with_kwargs=True))
            for module in others:
                stack.enter_context(module.register_forward_hook(_mute))
            functional_call(self.module, dict(changed or {}), (), dict(inputs))
        return seen[0].float().flatten(0, -2)

    def learned(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters outside of layers that may be learned tokens, with their paths."""
        for path, parameter in self.module.named_parameters():
            parts = set(path.split("."))
            if not parts & {"weight", "bias"} and not any(part.isdigit() for part in parts):
                yield path, parameter


def _mute(_module: nn.Module, _given: Any, answer: Any) -> Any:
    if isinstance(answer, Tensor):
        return torch.zeros_like(answer)
    return (torch.zeros_like(answer[0]), *answer[1:])


def reader_of(model: nn.Module, sites: Sequence[Site], name: str = "pixel_values") -> Reader | None:
    """The innermost part of `model` that takes the input `name` and has attention; None without one."""
    for path, module in reversed(list(model.named_modules())):
        if name in inspect.signature(type(module).forward).parameters:
            stem = f"{path}." if path else ""
            if inside := tuple(site for site in sites if site.path.startswith(stem)):
                return Reader(module, inside[0], inside)
    return None


def grid_of(patch_size: Any, height: int, width: int) -> Grid | None:
    """The grid of patches of a `height` x `width` picture; None where no patch size fits."""
    pair = patch_size if isinstance(patch_size, list | tuple) else (patch_size, patch_size)
    if len(pair) != 2 or not all(isinstance(side, int) and side > 0 for side in pair):
        return None
    high, wide = pair
    return Grid(height // high, width // wide, high, wide) if height >= high and width >= wide else None


def patch_positions(
    reader: Reader, pixels: Float[Tensor, "1 channel height width"], grid: Grid
) -> Int[Tensor, "row column"] | None:
    """Position of every patch in the first layer's input; None unless each patch has its own."""
    height, width = pixels.shape[-2:]
    noise = noise_like(pixels)
    before = reader.entering({"pixel_values": pixels})

    def touched(area: Bool[Tensor, "#height #width"]) -> Bool[Tensor, " position"]:
        after = reader.entering({"pixel_values": pixels + noise * area.to(pixels)})
        return moved(before, after)

    row = (torch.arange(height) // grid.high)[:, None]
    column = (torch.arange(width) // grid.wide)[None, :]
    patches = touched((row < grid.rows) & (column < grid.columns))
    if int(patches.sum()) != grid.rows * grid.columns:
        return None
    numbers = []
    for place, count in ((row, grid.rows), (column, grid.columns)):
        number = torch.zeros(len(before), dtype=torch.long)
        for bit in range((count - 1).bit_length()):
            with_bit, without = touched(place >> bit & 1 == 1), touched(place >> bit & 1 == 0)
            if not torch.equal(with_bit ^ without, patches):
                return None  # a position that reads more than one patch, or none
            number += with_bit.long() << bit
        numbers.append(number[patches])
    at = patches.nonzero()[:, 0]
    if sorted(zip(*(number.tolist() for number in numbers), strict=True)) != [
        (i, j) for i in range(grid.rows) for j in range(grid.columns)
    ]:
        return None
    places = torch.empty(grid.rows, grid.columns, dtype=torch.long)
    places[numbers[0], numbers[1]] = at
    return places


def noise_like(tensor: Tensor) -> Tensor:
    """Normal noise in the tensor's shape, equal at every call; a layer norm would remove a constant."""
    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0)).to(tensor)


def moved(
    before: Float[Tensor, "position dim"], after: Float[Tensor, "position dim"]
) -> Bool[Tensor, " position"]:
    """Mask of the positions whose vectors changed by more than rounding."""
    change = (after - before).abs().amax(-1).cpu()
    return change > _MOVED * change.max()


def patch_tokens(
    reader: Reader, pixels: Float[Tensor, "1 channel height width"], grid: Grid | None
) -> tuple[Tokens, bool]:
    """Named tokens of the first layer's positions, and whether the patches among them were found.

    Patches are called `r3c5`; learned tokens after their parameter, the class token `[CLS]`; all others by
    their number.
    """
    before = reader.entering({"pixel_values": pixels})
    names = [f"#{position}" for position in range(len(before))]
    places = None if grid is None else patch_positions(reader, pixels, grid)
    if places is None or grid is None:
        return Tokens((), tuple(position_token(name) for name in names)), False
    special = set(range(len(names))) - set(places.flatten().tolist())
    for path, parameter in reader.learned() if special else ():
        after = reader.entering({"pixel_values": pixels}, {path: parameter + noise_like(parameter)})
        mine = set(moved(before, after).nonzero()[:, 0].tolist())
        if mine and mine <= special:
            for i, position in enumerate(sorted(mine)):
                names[position] = learned_name(path, i, len(mine))
    for row, positions in enumerate(places.tolist()):
        for column, position in enumerate(positions):
            names[position] = f"r{row}c{column}"
    items = tuple(position_token(name, special=i in special) for i, name in enumerate(names))
    return Tokens((), items, (laid_out(places.flatten().tolist(), grid),)), True


def laid_out(positions: list[int], grid: Grid) -> Patches:
    """Patches of the grid at these positions, listed one by one only where they are not consecutive."""
    follow = positions == list(range(positions[0], positions[0] + len(positions)))
    return Patches(positions[0], grid.rows, grid.columns, () if follow else tuple(positions))


def learned_name(path: str, i: int, count: int) -> str:
    """`[CLS]` or `[REG2]`: name of the `i`-th of `count` positions of a learned parameter."""
    own = path.rpartition(".")[2].lower()
    short = next((name for part, name in _LEARNED.items() if part in own), own.upper())
    return f"[{short}{i}]" if count > 1 or short in ("REG", "DET") else f"[{short}]"


def position_token(name: str, special: bool = False) -> Token:
    """A token for a position without text; its id is -1, which is in no vocabulary."""
    return Token(-1, name, name, None, None, special=special)


def window_tokens(
    reader: Reader, site: Site, pixels: Float[Tensor, "1 channel height width"], grid: Grid, size: int
) -> list[Tokens] | None:
    """Named tokens of each window of `size` positions that a layer reads (Swin); None if not found.

    A layer may have merged squares of patches by then, and shifted its windows.
    """
    for side in (1, 2, 4, 8, 16):
        merged = Grid(grid.rows // side, grid.columns // side, grid.high * side, grid.wide * side)
        if (positions := patch_positions(replace(reader, first=site), pixels, merged)) is not None:
            break
    else:
        return None
    flat = positions.flatten().tolist()
    windows = []
    for start in range(0, max(flat) + 1, size):
        places = [place - start if start <= place < start + size else -1 for place in flat]
        names = {place: f"r{i // merged.columns}c{i % merged.columns}" for i, place in enumerate(places)}
        items = tuple(position_token(names.get(i, "[PAD]"), special=i not in names) for i in range(size))
        windows.append(Tokens((), items, (Patches(0, merged.rows, merged.columns, tuple(places)),)))
    return windows


def patches_in_blocks(grid: Grid, side: int) -> Tokens:
    """Tokens of patches ordered in blocks of `side` x `side`, block by block (Qwen2-VL)."""
    order = [
        (row + i, column + j)
        for row in range(0, grid.rows, side)
        for column in range(0, grid.columns, side)
        for i in range(side)
        for j in range(side)
    ]
    items = tuple(position_token(f"r{row}c{column}") for row, column in order)
    places = sorted(range(len(order)), key=lambda position: order[position])
    return Tokens((), items, (laid_out(places, grid),))


def patches_in_rows(grid: Grid, count: int) -> Tokens:
    """`count` tokens: the grid's patches row by row, then padding."""
    names = [f"r{row}c{column}" for row in range(grid.rows) for column in range(grid.columns)]
    padding = [position_token("[PAD]", special=True)] * (count - len(names))
    return Tokens((), (*map(position_token, names), *padding), (Patches(0, grid.rows, grid.columns),))
