"""Does a cross-attention head look at the syllable that is being written, and how far off is it?

The rows of a decoder's map are the tokens that it reads, and each row predicts the token after it. So a
syllable can be looked for in two rows: the one that WRITES it, before it ([BOS] for the first), and the one
that READS it, its own, which already writes the next. A row's time is the middle of the encoder's position
with the largest weight ("peak") or the weighted mean of all of them ("centre"); it is held against the
middle of the time in which the syllable is heard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.demo.train.sound.clips import Clip
from attnscope.demo.train.sound.spelling import LASTS, POSITIONS

# The row that writes a syllable, the row that reads it, and that row again, held against the next syllable.
ROWS = ("writes", "reads", "reads_next")
AT_ONCE = 50  # clips
MIDDLES = (torch.arange(POSITIONS) + 0.5) * LASTS  # seconds


@dataclass(frozen=True)
class Look:
    """Means over syllables: seconds off by peak and by centre, share of the weight on the syllable.

    One value per layer and head, and one for the mean of all heads' weights.
    """

    peak: Float[Tensor, "layer head"]
    centre: Float[Tensor, "layer head"]
    share: Float[Tensor, "layer head"]
    mean_peak: float
    mean_centre: float
    mean_share: float


def off(weights: Float[Tensor, "*head position"], begins: float, ends: float) -> Tensor:
    """Of one row: seconds from peak and from centre to the syllable's middle, and the weight on the syllable.

    Axes of what comes out: those three, then those of `weights` but for the last. A position counts as the
    syllable's if they share any time.
    """
    middle = (begins + ends) / 2
    inside = (begins < MIDDLES + LASTS / 2) & (ends > MIDDLES - LASTS / 2)
    return torch.stack(
        [
            (MIDDLES[weights.argmax(-1)] - middle).abs(),
            (weights @ MIDDLES - middle).abs(),
            weights[..., inside].sum(-1),
        ]
    )


def look(cross_weights: Callable[[Sequence[Clip]], Tensor], clips: Sequence[Clip]) -> dict[str, Look]:
    """How far off every head is in these clips, for each of ROWS."""
    heads: dict[str, list[Tensor]] = {name: [] for name in ROWS}
    means: dict[str, list[Tensor]] = {name: [] for name in ROWS}
    for start in range(0, len(clips), AT_ONCE):
        some = clips[start : start + AT_ONCE]
        for one, weights in zip(some, cross_weights(some), strict=True):
            for index in range(len(one.times)):
                for name, (row, syllable) in _rows(index, len(one.times)).items():
                    heads[name].append(off(weights[:, :, row], *one.times[syllable]))
                    means[name].append(off(weights[:, :, row].mean((0, 1)), *one.times[syllable]))
    return {name: _mean(heads[name], means[name]) for name in ROWS}


def _rows(index: int, count: int) -> dict[str, tuple[int, int]]:
    """By name, the row of syllable `index` and the syllable that the row is held against."""
    rows = {"writes": (index, index), "reads": (index + 1, index)}
    return rows | ({"reads_next": (index + 1, index + 1)} if index + 1 < count else {})


def _mean(heads: list[Tensor], means: list[Tensor]) -> Look:
    each, one = torch.stack(heads).mean(0), torch.stack(means).mean(0).tolist()
    return Look(each[0], each[1], each[2], *one)


def by_diagonal(clips: Sequence[Clip], sounded: bool = False) -> float:
    """Mean seconds off of a rule that hears nothing: every syllable an equal part of the clip.

    `sounded`: of the time from the first sound to the last, which only an oracle knows.
    """
    wrong: list[float] = []
    for one in clips:
        start, end = (one.times[0][0], one.times[-1][1]) if sounded else (0.0, one.seconds)
        for index, (begins, ends) in enumerate(one.times):
            guess = start + (end - start) * (index + 0.5) / len(one.times)
            wrong.append(abs(guess - (begins + ends) / 2))
    return sum(wrong) / len(wrong)
