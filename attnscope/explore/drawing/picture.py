"""A picture in half blocks, as the model saw it, bright where the query looks."""

import numpy as np
from jaxtyping import Float
from rich.style import Style

from attnscope.explore.drawing.cells import Cells, Line
from attnscope.results import Picture

_FAINT = 0.25  # of the brightness, where a query gives nothing


def picture(seen: Picture, weights: Float[np.ndarray, "row column"], width: int, height: int) -> Cells:
    """The pixels in at most `width` by `height` cells, two above one another in each.

    What a patch is given says how bright it is: all of the brightness for the largest weight.
    """
    high, wide = seen.size
    scale = min(width / wide, 2 * height / high)
    columns, rows = max(int(wide * scale), 1), max(int(high * scale) // 2 * 2, 2)
    down = (np.arange(rows) + 0.5) * high / rows
    across = (np.arange(columns) + 0.5) * wide / columns
    pixels = seen.image[np.ix_(down.astype(int), across.astype(int))]
    patch_rows = np.minimum(down * weights.shape[0] / seen.covered[0], weights.shape[0] - 1).astype(int)
    patch_columns = np.minimum(across * weights.shape[1] / seen.covered[1], weights.shape[1] - 1).astype(int)
    given = np.nan_to_num(weights)[np.ix_(patch_rows, patch_columns)]
    bright = _FAINT + (1 - _FAINT) * given / (float(given.max(initial=0.0)) or 1.0)
    shown = np.rint(255 * np.clip(pixels * bright[..., None], 0, 1)).astype(int).tolist()
    return Cells([_line(shown[row], shown[row + 1]) for row in range(0, rows, 2)])


def _line(above: list[list[int]], below: list[list[int]]) -> Line:
    line = Line()
    for upper, lower in zip(above, below, strict=True):
        line.append("▀", Style.parse(f"{_colour(upper)} on {_colour(lower)}"))
    return line


def _colour(parts: list[int]) -> str:
    return f"#{parts[0]:02x}{parts[1]:02x}{parts[2]:02x}"
