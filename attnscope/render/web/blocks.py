"""Data blocks of a page (deflated, in base64), and helpers for escaped text, shades and images."""

import base64
import html
import json
import math
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import UInt8
from rich.color_triplet import ColorTriplet

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.palette import Ground, luminance
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.sheet.table import Scale
from attnscope.render.sheets.media import Original, medium_words
from attnscope.results import PictureAttention, PictureHeads, Sound, SoundAttention, SoundHeads

_EVEN = 0.179  # of the luminance on which black and white are read alike
LEVEL = 6  # of the compression of texts: beyond it little is won
# codes of weights repeat in runs and nowhere else: to look for more takes seven times as long for nothing
_RUNS = (1, zlib.DEFLATED, 15, 9, zlib.Z_RLE)


@dataclass(eq=False)
class Blocks:
    """The data blocks of one page by name, in order of addition."""

    packed: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def pack(content: bytes) -> str:
        return base64.b64encode(zlib.compress(content, LEVEL)).decode()

    @staticmethod
    def pack_runs(content: bytes) -> str:
        """Pack codes, with a compression that suits runs of equal bytes."""
        packer = zlib.compressobj(*_RUNS)
        return base64.b64encode(packer.compress(content) + packer.flush()).decode()

    def keep(self, packed: str) -> str:
        """Keep a packed block, and return the name under which the page finds it."""
        name = f"b{len(self.packed)}"
        self.packed[name] = packed
        return name

    def add(self, content: bytes) -> str:
        return self.keep(self.pack(content))

    def floats(self, values: np.ndarray) -> str:
        """Add numbers in single precision, row by row."""
        return self.add(np.ascontiguousarray(values, dtype="<f4").tobytes())

    def json(self, value: object) -> str:
        return self.add(as_json(value).encode())

    @property
    def size(self) -> int:
        """Bytes of the blocks in the page."""
        return sum(map(len, self.packed.values()))

    def elements(self) -> str:
        """The `<script>` elements that hold the blocks; base64 cannot end an element."""
        opening = '<script type="application/octet-stream" id="'
        return "".join(f'{opening}{name}">{text}</script>\n' for name, text in self.packed.items())


def escape(text: str) -> str:
    """`text` escaped for an element or an attribute, without control characters."""
    return html.escape(printable(text, LEFT_TO_RIGHT))


def paragraph(text: str, kind: str) -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def shaded(scale: Scale, value: float) -> str:
    """Style attribute of a shaded element: its colours in light and in dark mode."""
    light, dark = scale.paper(value)[0], scale.paper(value, "dark")[0]
    return f"--l:{light};--i:{_ink(light)};--d:{dark};--j:{_ink(dark)}"


def _ink(background: str) -> str:
    """Black or white, whichever is easier to read on `background` (contrast 4.5 or more)."""
    return "#fff" if luminance(ColorTriplet(*bytes.fromhex(background[1:]))) < _EVEN else "#000"


def as_json(value: object) -> str:
    """Strict JSON for a `<script>`, with `<`, `>` and `&` escaped."""
    written = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def plain(value: Any) -> Any:
    """`value` for JSON: arrays as lists, NaN and infinity as None, texts without control characters."""
    if isinstance(value, str):
        return printable(value, LEFT_TO_RIGHT)
    if isinstance(value, dict):
        return {plain(str(key)): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def short(values: np.ndarray, digits: int = 6) -> list[Any]:
    """Numbers rounded to `digits` significant digits, None for NaN and infinity."""
    if values.ndim:
        return [short(each, digits) for each in values]
    number = float(values)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None  # type: ignore[return-value]


_STOPS = 8  # colours of a strip, between which a browser mixes
_WHOLE = Scale(0.0, 1.0)


def strip(scale: Scale | Weights, low: str, high: str) -> str:
    """Markup of a colour strip between the texts of its ends: `0 none [strip] .98 all of it`."""
    parts = [i / _STOPS for i in range(_STOPS + 1)]
    if isinstance(scale, Weights):
        paper, values = _WHOLE, [scale.shade(part * scale.top) for part in parts]
    else:
        paper, values = scale, [scale.low + part * (scale.high - scale.low) for part in parts]
    grounds: tuple[tuple[str, Ground], ...] = (("l", "light"), ("d", "dark"))
    style = ";".join(
        f"--{name}:linear-gradient(90deg,{','.join(paper.paper(each, ground)[0] for each in values)})"
        for name, ground in grounds
    )
    return f'<span class="ends">{escape(low)} <i class="strip" style="{style}"></i> {escape(high)}</span>'


_SIDE = 300  # pixels of the longer side of a picture


def original(block: Original) -> str:
    """Markup of the picture as the model saw it; the page's script uses it too."""
    pixels = np.rint(np.clip(block.picture.image, 0.0, 1.0) * 255).astype(np.uint8)
    source = f"data:image/png;base64,{_base64(png(pixels))}"
    side = "width" if pixels.shape[1] > pixels.shape[0] else "height"
    shown = f'<img id="original" src="{source}" {side}="{_SIDE}" alt="{escape(block.picture.described)}">'
    told = paragraph(block.picture.described, "told")
    return f"<figure><figcaption>{escape(block.title)}</figcaption>{shown}{told}</figure>"


def of_picture(found: PictureAttention | PictureHeads) -> dict[str, Any]:
    """Sizes of a picture and of its patches, and the key of each patch."""
    picture = found.picture
    return {
        "described": medium_words(found),
        "size": picture.size,
        "covered": picture.covered,
        "patches": found.gaze.keys.shape,
        "keys": found.gaze.keys.ravel(),
    }


def of_sound(found: SoundAttention | SoundHeads, blocks: Blocks) -> dict[str, Any]:
    """Sound, spectrogram and frames, each where it exists, and the key of each frame.

    Frames of the silence that the model reads after the sound follow its own.
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
    """WAV file of a sound in 16 bits; samples beyond -1 to 1 are scaled down."""
    loudest = max(float(np.abs(sound.wave).max(initial=0.0)), 1.0)
    samples = np.rint(sound.wave / loudest * 32767).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, sound.rate, 2 * sound.rate, 2, 16)
    parts = (
        b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    )
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts


def png(pixels: UInt8[np.ndarray, "height width 3"]) -> bytes:
    """Pixels as a PNG, with the same bytes every time."""
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
