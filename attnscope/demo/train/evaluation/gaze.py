"""Does a cross-attention head look at the shape that a word speaks of?

The rows of a decoder's map are the words that it reads, and each row decides on the word after it. So three
rows belong to a shape: that of "a" decides on the colour, that of the colour word on the form, and that of
the form word already on what comes next. For each of them: the share of its weight on the patches that show
the shape, and whether its largest weight lies there. Chance is the share of the patches that show it.

The control lays the same row of the picture before over this one: what looks at the same place in every
picture looks there as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnscope.demo.train.corpora import pictures

Weights = NDArray[np.float64]
Look = Callable[[NDArray[np.uint8], Sequence[str]], NDArray[np.float32]]  # axes: layer head row patch
ROWS = {"a": 0, "colour": 1, "form": 2}  # how many rows below that of "a"; [BOS] is row 0


@dataclass(frozen=True)
class Gaze:
    """By row: the weight on the shape and how often the largest is there, `layer head`, and for the mean."""

    shapes: int
    chance: float
    weight: dict[str, Weights]
    found: dict[str, Weights]
    control: dict[str, Weights]
    mean_weight: dict[str, float]
    mean_found: dict[str, float]
    mean_control: dict[str, float]

    def best(self, row: str) -> tuple[int, int]:
        """(layer, head) with the largest weight on the shape in this row."""
        layer, head = divmod(int(self.weight[row].argmax()), self.weight[row].shape[1])
        return layer, head


def on_shape(shape: pictures.Shape) -> NDArray[np.bool_]:
    """Which columns of a map show the shape: the patches behind the class token."""
    return np.concatenate([[False], pictures.patches(shape)])


def look(weights_of: Look, drawn: Iterable[tuple[pictures.Scene, NDArray[np.uint8]]]) -> Gaze:
    """Read the true sentence of every picture and see where each row looks."""
    seen: dict[str, list[tuple[Weights, Weights, Weights]]] = {row: [] for row in ROWS}
    mean: dict[str, list[tuple[float, float, float]]] = {row: [] for row in ROWS}
    before: dict[str, Weights] = {}
    chance = []
    for scene, picture in drawn:
        maps = weights_of(picture, scene.words).astype(np.float64)
        for shape, place in zip(scene.shapes, scene.places(), strict=True):
            there = on_shape(shape)
            chance.append(there.mean())
            for row, below in ROWS.items():
                line = maps[:, :, place + below]
                other = before.get(row, line)
                seen[row].append(
                    (line[..., there].sum(-1), there[line.argmax(-1)], other[..., there].sum(-1))
                )
                average, far = line.mean((0, 1)), other.mean((0, 1))
                mean[row].append((average[there].sum(), there[average.argmax()], far[there].sum()))
        before = {row: maps[:, :, scene.places()[0] + below] for row, below in ROWS.items()}
    return Gaze(
        len(chance), float(np.mean(chance)),
        *({row: np.mean([each[part] for each in seen[row]], 0) for row in ROWS} for part in range(3)),
        *({row: float(np.mean([each[part] for each in mean[row]])) for row in ROWS} for part in range(3)),
    )  # fmt: skip


def summary(chosen: Gaze, reported: Gaze) -> dict[str, Any]:
    """For each row the head that was best on the selection set, on other pictures, beside all heads' mean."""
    result: dict[str, Any] = {"chance": round(reported.chance, 4)}
    for row in ROWS:
        layer, head = chosen.best(row)
        result[row] = {
            "layer": layer,
            "head": head,
            "weight": round(float(reported.weight[row][layer, head]), 4),
            "found": round(float(reported.found[row][layer, head]), 4),
            "control": round(float(reported.control[row][layer, head]), 4),
            "mean_weight": round(reported.mean_weight[row], 4),
            "mean_found": round(reported.mean_found[row], 4),
            "mean_control": round(reported.mean_control[row], 4),
            "weights": np.round(reported.weight[row], 3).tolist(),
        }
    return result
