"""A picture and a sound as a page knows them: a PNG and a WAV in an address, levels as numbers."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from jaxtyping import UInt8

from attnscope.render.sheets.media import medium_words
from attnscope.render.sheets.picture import Original
from attnscope.render.web.blocks import Blocks, escape
from attnscope.render.web.ranking import paragraph
from attnscope.results import PictureAttention, PictureHeads, Sound, SoundAttention, SoundHeads

_SIDE = 300  # pixels of the longer side of a picture


def original(block: Original) -> str:
    """The picture as the model saw it, which the page's script takes from here."""
    pixels = np.rint(np.clip(block.picture.image, 0.0, 1.0) * 255).astype(np.uint8)
    source = f"data:image/png;base64,{_base64(png(pixels))}"
    side = "width" if pixels.shape[1] > pixels.shape[0] else "height"
    shown = f'<img id="original" src="{source}" {side}="{_SIDE}" alt="{escape(block.picture.described)}">'
    told = paragraph(block.picture.described, "told")
    return f"<figure><figcaption>{escape(block.title)}</figcaption>{shown}{told}</figure>"


def of_picture(found: PictureAttention | PictureHeads) -> dict[str, Any]:
    """How large the picture is, and which key each of its patches is."""
    picture = found.picture
    return {
        "described": medium_words(found),
        "size": picture.size,
        "covered": picture.covered,
        "patches": found.gaze.keys.shape,
        "keys": found.gaze.keys.ravel(),
    }


def of_sound(found: SoundAttention | SoundHeads, blocks: Blocks) -> dict[str, Any]:
    """What is heard and its spectrogram, where these are there, and which key each frame is.

    Behind the sound's own frames stand those of the silence that the model reads after its end.
    """
    heard, own = found.spectrogram, found.gaze.keys.tolist()
    heads = found.head if isinstance(found, SoundAttention) else found.overview
    every = [place for stretch in heads.key_tokens.stretches for place in stretch.positions]
    levels = None if heard is None else blocks.floats(heard.levels)
    return {
        "described": medium_words(found),
        "seconds": found.sound.seconds,
        "wave": None if found.sound.samples is None else blocks.keep(_base64(wav(found.sound))),
        "levels": levels,
        "shape": None if heard is None else heard.levels.shape,
        "step": None if heard is None else heard.seconds,
        "frame": found.seconds,
        "keys": own if tuple(every[: len(own)]) != tuple(own) else every,
        "own": len(own),
    }


def wav(sound: Sound) -> bytes:
    """Its samples, from -1 to 1, in 16 bits; one that is louder is played as loud as there is room."""
    loudest = max(float(np.abs(sound.wave).max(initial=0.0)), 1.0)
    samples = np.rint(sound.wave / loudest * 32767).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, sound.rate, 2 * sound.rate, 2, 16)
    parts = (
        b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    )
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts


def png(pixels: UInt8[np.ndarray, "height width 3"]) -> bytes:
    """Pixels as a PNG, the same bytes every time."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
