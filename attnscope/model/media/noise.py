"""A picture or a sound of noise, where any will do: to see which matrices of a model make what."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from attnscope.process.ending import temporary_folder

_SIZE, _RATE = 224, 16_000  # pixels to a side; samples of one second


@contextmanager
def noise(medium: str) -> Iterator[Path]:
    """A file of it, of an `image` or of `audio`, for as long as this lasts."""
    random = np.random.default_rng(0)
    with temporary_folder() as folder:
        if medium == "image":
            from PIL import Image

            path = Path(folder) / "noise.png"
            Image.fromarray(random.integers(0, 256, (_SIZE, _SIZE, 3), np.uint8)).save(path)
        else:
            import soundfile

            path = Path(folder) / "noise.wav"
            soundfile.write(path, random.uniform(-0.5, 0.5, _RATE), _RATE)
        yield path
