"""What a page holds beside its document: numbers and tables, deflated and in base64, each under a name.

And what all of its markup uses: text escaped, a number on its shade, the strip that says what shades mean.
"""

import base64
import html
import json
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.color_triplet import ColorTriplet

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.palette import Ground, luminance
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.sheet.table import Scale

_EVEN = 0.179  # of the luminance on which black and white are read alike
LEVEL = 6  # of the compression of texts: beyond it little is won
# codes of weights repeat in runs and nowhere else: to look for more takes seven times as long for nothing
_RUNS = (1, zlib.DEFLATED, 15, 9, zlib.Z_RLE)


@dataclass(eq=False)
class Blocks:
    """The blocks of one page, in the order in which they were added."""

    packed: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def pack(content: bytes) -> str:
        return base64.b64encode(zlib.compress(content, LEVEL)).decode()

    @staticmethod
    def pack_runs(content: bytes) -> str:
        """Packs codes."""
        packer = zlib.compressobj(*_RUNS)
        return base64.b64encode(packer.compress(content) + packer.flush()).decode()

    def keep(self, packed: str) -> str:
        """The name under which the page finds again what was packed, one block or several in a line each."""
        name = f"b{len(self.packed)}"
        self.packed[name] = packed
        return name

    def add(self, content: bytes) -> str:
        return self.keep(self.pack(content))

    def floats(self, values: np.ndarray) -> str:
        """Numbers in single precision, row by row."""
        return self.add(np.ascontiguousarray(values, dtype="<f4").tobytes())

    def json(self, value: object) -> str:
        return self.add(as_json(value).encode())

    @property
    def size(self) -> int:
        """How many bytes of the page they take."""
        return sum(map(len, self.packed.values()))

    def elements(self) -> str:
        """The elements of the page; base64 holds nothing that could end one."""
        opening = '<script type="application/octet-stream" id="'
        return "".join(f'{opening}{name}">{text}</script>\n' for name, text in self.packed.items())


def escape(text: str) -> str:
    """`text` for an element or an attribute: no character of it is markup, or turns what stands beside it."""
    return html.escape(printable(text, LEFT_TO_RIGHT))


def shaded(scale: Scale, value: float) -> str:
    """The style of an element of the class `shade`: its colours on light and, as the page is, on dark."""
    light, dark = scale.paper(value)[0], scale.paper(value, "dark")[0]
    return f"--l:{light};--i:{_ink(light)};--d:{dark};--j:{_ink(dark)}"


def _ink(background: str) -> str:
    """Black or white, whichever is read better on it: one of them always has a contrast of 4.5."""
    return "#fff" if luminance(ColorTriplet(*bytes.fromhex(background[1:]))) < _EVEN else "#000"


def as_json(value: object) -> str:
    """Strict JSON for a `<script>`, with all the texts that `value` holds."""
    written = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def plain(value: Any) -> Any:
    """Arrays as lists, numbers that are none as null, texts harmless."""
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
    """Numbers in so many significant digits: more than a page prints, and few bytes."""
    if values.ndim:
        return [short(each, digits) for each in values]
    number = float(values)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None  # type: ignore[return-value]


_STOPS = 8  # colours of a strip, between which a browser mixes
_WHOLE = Scale(0.0, 1.0)


def strip(scale: Scale | Weights, low: str, high: str) -> str:
    """A line that is read as `0 none [strip] .98 all of it`."""
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
