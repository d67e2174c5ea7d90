"""Splits a picture or a sound into exchangeable pieces, one for each position of the attention.

A piece of a picture is the pixels of a patch, whether the model gets them whole or as patches; where several
patches are merged to one position, it is all of them. A piece of a sound is the samples of a frame, or its
columns of the spectrogram. `attnscope.model.media` finds which part belongs to which position; where it
cannot, there are no pieces.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.results import Contents, Picture, Sound
from attnscope.tokens import Frames, Patches, Tokens

_FEATURES, _SAMPLES, _PIXELS = "input_features", "input_values", "pixel_values"
Order = Int[np.ndarray, " piece"]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Indices of each piece in a model input: `at[p]` into the flattened `values` of the input `name`.

    `positions[p]` is the position of the attention that stands for piece `p`. All pieces are of one size.
    """

    name: str
    values: Tensor
    at: Int[Tensor, "piece number"]
    positions: tuple[int, ...]
    of: Contents

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def contents(self) -> Order:
        """A number for each piece's content, equal for pieces that are equal in every value."""
        held = self.values.flatten().cpu()[self.at].float().numpy()
        return np.asarray(np.unique(held, axis=0, return_inverse=True)[1]).reshape(-1)

    def exchanged(self, sources: Order) -> Tensor:
        """The input with piece `sources[p]` at the place of each piece `p`; the rest unchanged."""
        given = self.values.flatten()
        at = self.at.to(given.device)
        changed = given.clone()
        changed[at] = given[at[torch.as_tensor(sources, device=given.device)]]
        return changed.reshape(self.values.shape)

    def at_positions(self, positions: Iterable[int]) -> list[int]:
        """Numbers of the pieces at these positions of the attention, leaving out positions without one."""
        number = {position: p for p, position in enumerate(self.positions)}
        return [number[each] for each in positions if each in number]


def pieces_of(
    inputs: Mapping[str, Any], read: Tokens, keys: Tokens, medium: Picture | Sound | None
) -> Pieces | None:
    """The pieces at the positions `keys` of an attention; None where the layout is unknown.

    `read` are the positions of the part that reads the picture or the sound itself. Silence that a processor
    added behind the end of a sound is no piece.
    """
    stretch = next(iter(keys.stretches), None)
    if isinstance(stretch, Patches) and isinstance(medium, Picture):
        return _of_picture(inputs, read, stretch, medium)
    if isinstance(stretch, Frames) and isinstance(medium, Sound):
        return _of_sound(inputs, stretch, medium)
    return None


def _of_picture(inputs: Mapping[str, Any], read: Tokens, patches: Patches, picture: Picture) -> Pieces | None:
    pixels = inputs[_PIXELS]
    numbers = torch.arange(pixels.numel()).reshape(pixels.shape)
    if pixels.ndim == 4 and len(pixels) == 1:
        at = _of_pixels(numbers[0], patches, picture.covered)
    else:
        at = _of_cut_pixels(numbers.flatten(0, -2), read, patches)
    if at is None:
        return None
    there = [(p, place) for p, place in enumerate(patches.positions) if place >= 0]
    chosen = at[[p for p, _ in there]]
    return Pieces(_PIXELS, pixels, chosen, tuple(place for _, place in there), Contents.PICTURE)


def _of_pixels(
    numbers: Int[Tensor, "channel height width"], patches: Patches, covered: tuple[int, int]
) -> Int[Tensor, "piece number"] | None:
    """Indices of every patch's pixels, row by row; None where patches do not divide the covered area."""
    high, wide = covered[0] // patches.rows, covered[1] // patches.columns
    if not high or not wide or (high * patches.rows, wide * patches.columns) != covered:
        return None
    cut = numbers[:, : covered[0], : covered[1]].reshape(-1, patches.rows, high, patches.columns, wide)
    return cut.permute(1, 3, 0, 2, 4).reshape(patches.count, -1)


def _of_cut_pixels(
    numbers: Int[Tensor, "patch own"], read: Tokens, patches: Patches
) -> Int[Tensor, "piece number"] | None:
    """Indices of each piece in pixels given as patches, where squares of patches may have been merged."""
    fine = next((each for each in read.stretches if isinstance(each, Patches)), None)
    if fine is None or fine.rows % patches.rows or max(fine.positions) >= len(numbers):
        return None
    side = fine.rows // patches.rows
    if (patches.rows * side, patches.columns * side) != (fine.rows, fine.columns):
        return None
    cut = numbers[list(fine.positions)].reshape(patches.rows, side, patches.columns, side, -1)
    return cut.permute(0, 2, 1, 3, 4).reshape(patches.count, -1)


def _of_sound(inputs: Mapping[str, Any], frames: Frames, sound: Sound) -> Pieces | None:
    heard = min(int(np.ceil(sound.seconds / frames.seconds - 1e-9)), frames.count)
    for name in (_FEATURES, _SAMPLES):
        values = inputs.get(name)
        if isinstance(values, Tensor) and (at := _in_time(values, frames, sound)) is not None:
            at = at[:heard]
            return Pieces(name, values, at, frames.positions[: len(at)], Contents.SOUND)
    return None


def _in_time(values: Tensor, frames: Frames, sound: Sound) -> Int[Tensor, "piece number"] | None:
    """Indices of each frame along the time axis, without an incomplete last frame; None if no axis fits."""
    numbers = torch.arange(values.numel()).reshape(values.shape)
    if values.ndim == 2:
        axis, step = 1, round(frames.seconds * sound.rate)
    else:
        steps = {each: round(values.shape[each] / frames.count) for each in range(1, values.ndim)}
        fits = [a for a, k in steps.items() if k and abs(values.shape[a] - k * frames.count) <= k]
        if len(fits) != 1:
            return None
        axis, step = fits[0], steps[fits[0]]
    count = min(frames.count, values.shape[axis] // step)
    return numbers.narrow(axis, 0, count * step).movedim(axis, 0).reshape(count, -1)
