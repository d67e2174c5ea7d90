"""A picture as the model saw it, bright where the query looks, in half blocks."""

import numpy as np
from jaxtyping import Float, UInt8
from rich.style import Style

from attnscope.explore.drawing.surface import Cells, Line
from attnscope.render.kit.scale import by_root
from attnscope.results import Picture

_FAINT = 0.25  # of the brightness, where a query gives nothing
Weights = Float[np.ndarray, "row column"]


def picture(seen: Picture, weights: Weights, width: int, height: int) -> Cells:
    """The pixels in at most `width` by `height` cells, two above one another in each.

    What a patch is given says how bright it is, on the scale of all weights.
    """
    columns, rows = size(seen, width, height)
    shown = lit(seen, weights, columns, 2 * rows).tolist()
    return Cells([_line(shown[row], shown[row + 1]) for row in range(0, 2 * rows, 2)])


def size(seen: Picture, width: int, height: int) -> tuple[int, int]:
    """Columns and rows of the cells that it fills: a cell is twice as high as it is wide."""
    high, wide = seen.size
    scale = min(width / wide, 2 * height / high)
    return max(int(wide * scale), 1), max(int(high * scale) // 2, 1)


def lit(seen: Picture, weights: Weights, columns: int, rows: int) -> UInt8[np.ndarray, "row column 3"]:
    """So many of its pixels, each as bright as its patch is given weight."""
    high, wide = seen.size
    down = (np.arange(rows) + 0.5) * high / rows
    across = (np.arange(columns) + 0.5) * wide / columns
    pixels = seen.image[np.ix_(down.astype(int), across.astype(int))]
    patch_rows = np.minimum(down * weights.shape[0] / seen.covered[0], weights.shape[0] - 1).astype(int)
    patch_columns = np.minimum(across * weights.shape[1] / seen.covered[1], weights.shape[1] - 1).astype(int)
    shades = by_root(len(weights)).shades(np.nan_to_num(weights))
    bright = _FAINT + (1 - _FAINT) * shades[np.ix_(patch_rows, patch_columns)]
    whole: UInt8[np.ndarray, "row column 3"] = np.rint(
        255 * np.clip(pixels * bright[..., None], 0, 1)
    ).astype(np.uint8)
    return whole


def _line(above: list[list[int]], below: list[list[int]]) -> Line:
    line = Line()
    for upper, lower in zip(above, below, strict=True):
        line.append("▀", Style.parse(f"{_colour(upper)} on {_colour(lower)}"))
    return line


def _colour(parts: list[int]) -> str:
    return f"#{parts[0]:02x}{parts[1]:02x}{parts[2]:02x}"
