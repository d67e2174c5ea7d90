"""Golden pictures: what a result looks like, held against a small PNG under `golden/`.

`ATTNSCOPE_REGENERATE=1 pytest tests/render/test_golden_pictures.py` writes the files anew: look at them.
Letters are drawn a little otherwise by each version of FreeType and each processor, so blocks of dots are
compared, each by its mean colour: a moved edge changes them a little, another shade or row much.
"""

import io
import os

import numpy as np
from golden_text import GOLDEN
from PIL import Image

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.look import Look
from attnscope.render.saving import content
from attnscope.results import Result

DPI, BLOCK = 60, 12  # dots of an inch, and of a side of a block
# of 255, by how much the blocks of pictures alike differ, all together and one alone: matplotlib 3.10.0 and
# 3.11.2 by up to 2.8 and 30, a swapped row or another scale by 11 or more and 90 or more
RMS, WORST = 4.0, 45.0


def drawn(result: Result, focus: Focus = WHOLE) -> Image.Image:
    with Image.open(io.BytesIO(content(result, ".png", focus, Look(dpi=DPI)))) as picture:
        return picture.convert("RGB")


def apart(first: Image.Image, second: Image.Image) -> tuple[float, float]:
    """The RMS over all blocks of how far two pictures are apart, and the most of any; 255 of other sizes."""
    if max(abs(a - b) for a, b in zip(first.size, second.size, strict=True)) > 2:
        return 255.0, 255.0
    sides = tuple(side // BLOCK for side in second.size)
    both = (each.resize(sides, Image.Resampling.BOX) for each in (first, second))
    difference = np.subtract(*(np.asarray(each, float) for each in both))
    return float(np.sqrt((difference**2).mean())), float(np.abs(difference).max())


def alike(first: Image.Image, second: Image.Image) -> bool:
    whole, one = apart(first, second)
    return whole <= RMS and one <= WORST


def golden(name: str, result: Result, focus: Focus = WHOLE) -> Image.Image:
    """The picture of that name, after it was written anew where that was asked for."""
    path = GOLDEN / f"{name}.png"
    if os.environ.get("ATTNSCOPE_REGENERATE"):
        few = drawn(result, focus).quantize(
            128, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
        )
        few.save(path, optimize=True)
    with Image.open(path) as picture:
        return picture.convert("RGB")
