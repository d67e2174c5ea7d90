"""A picture in all its pixels, in terminals that put pictures in the place of characters (kitty's protocol).

The pixels are sent once; then cells that hold nothing but a placeholder say by their colour which picture
and by two combining marks which part of it they are. So a picture is moved, cut and covered as text is, and
goes when its cells do. Sixels and iTerm's pictures are painted over the cells at a place of the screen
instead: whatever composes a screen of cells would paint over them, or they over it. There it stays half
blocks, as it does in tmux, which takes none of it through unless it is told to.

Protocol: https://sw.kovidgoyal.net/kitty/graphics-protocol/ (Unicode placeholders).
"""

import base64
import unicodedata
import zlib
from collections.abc import Mapping
from functools import cache

import numpy as np
from jaxtyping import UInt8
from rich.color import Color
from rich.style import Style

from attnscope.explore.drawing.surface import Cells, Line

_NUMBER = 217  # of our picture: it stands in 8 bits of a colour
_PLACEHOLDER = "\U0010eeee"
_PIECE = 4096  # characters of one escape sequence
ASKED = f"\x1b_Gi={_NUMBER},a=q,U=1,s=1,v=1,t=d,f=24;AAAA\x1b\\".encode()  # one pixel, to be tried
TAKEN = f"\x1b_Gi={_NUMBER};OK".encode()


def likely(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is one of those by its name; older ones of that name take no placeholders."""
    if "TMUX" in environment or "STY" in environment:
        return False
    named = environment.get("TERM", "") in ("xterm-kitty", "xterm-ghostty")
    return named or "KITTY_WINDOW_ID" in environment or environment.get("TERM_PROGRAM") == "ghostty"


def sent(pixels: UInt8[np.ndarray, "row column 3"], columns: int, rows: int) -> str:
    """The escape sequences that give the terminal these pixels, to be shown in so many cells."""
    payload = base64.b64encode(zlib.compress(pixels.tobytes(), 6)).decode("ascii")
    pieces = [payload[at : at + _PIECE] for at in range(0, len(payload), _PIECE)]
    high, wide = pixels.shape[:2]
    first = f"a=T,U=1,q=2,i={_NUMBER},f=24,o=z,s={wide},v={high},c={columns},r={rows}"
    keys = [first, *["q=2"] * (len(pieces) - 1)]
    more = [*["m=1"] * (len(pieces) - 1), "m=0"]
    return "".join(
        f"\x1b_G{key},{going};{piece}\x1b\\" for key, going, piece in zip(keys, more, pieces, strict=True)
    )


def forgotten() -> str:
    """What lets the terminal forget it."""
    return f"\x1b_Ga=d,d=I,i={_NUMBER},q=2\x1b\\"


def held(columns: int, rows: int) -> Cells:
    """The cells that it stands in."""
    marks, style = _marks(), Style(color=Color.from_ansi(_NUMBER))
    return Cells(
        [
            Line(
                ("".join(f"{_PLACEHOLDER}{marks[row]}{marks[column]}" for column in range(columns)), style),
                kept=_PLACEHOLDER,
            )
            for row in range(rows)
        ]
    )


def most() -> int:
    """As many rows, and as many columns, as can be told by a mark."""
    return len(_marks())


@cache
def _marks() -> list[str]:
    """The marks that number rows and columns: those above a letter that Unicode makes no letter with."""
    parts = [unicodedata.decomposition(chr(code)) for code in range(0xC0, 0x2000)]
    made_with = {int(code, 16) for each in parts if each and each[0] != "<" for code in each.split()}
    every = (code for code in range(0x300, 0x870) if unicodedata.combining(chr(code)) == 230)
    return [chr(code) for code in every if code not in made_with and not unicodedata.decomposition(chr(code))]
