"""A picture and a sound as a page knows them: pixels as a PNG in an address, levels as numbers."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from jaxtyping import UInt8

from attnscope.render.media.words import medium_words
from attnscope.render.web.blocks import Blocks
from attnscope.results import PictureAttention, PictureHeads, SoundAttention, SoundHeads


def of_picture(found: PictureAttention | PictureHeads) -> dict[str, Any]:
    """The picture as the model saw it, and which key each of its patches is."""
    picture = found.picture
    pixels = np.rint(np.clip(picture.image, 0.0, 1.0) * 255).astype(np.uint8)
    return {
        "source": f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}",
        "described": medium_words(found),
        "size": picture.size,
        "covered": picture.covered,
        "patches": found.gaze.keys.shape,
        "keys": found.gaze.keys.ravel(),
    }


def of_sound(found: SoundAttention | SoundHeads, blocks: Blocks) -> dict[str, Any]:
    """The spectrogram, where there is one, and which key each frame is."""
    heard = found.spectrogram
    levels = None if heard is None else blocks.floats(heard.levels)
    return {
        "described": medium_words(found),
        "seconds": found.sound.seconds,
        "levels": levels,
        "shape": None if heard is None else heard.levels.shape,
        "step": None if heard is None else heard.seconds,
        "frame": found.seconds,
        "keys": found.gaze.keys,
    }


def png(pixels: UInt8[np.ndarray, "height width 3"]) -> bytes:
    """Pixels as a PNG, the same bytes every time."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
