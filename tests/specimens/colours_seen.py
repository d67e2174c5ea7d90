"""What the eye gets of a colour, as terminals show it: its lightness and contrast, measured independently."""

import numpy as np
from rich.color import Color

# black to bright white, as four kinds of terminal show them
SIXTEEN = {
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "vga": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa "
    "555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "windows": "0c0c0c c50f1f 13a10e c19c00 0037da 881798 3a96dd cccccc "
    "767676 e74856 16c60c f9f1a5 3b78ff b4009e 61d6d6 f2f2f2",
    "macos": "000000 990000 00a600 999900 0000b2 b200b2 00a6b2 bfbfbf "
    "666666 e50000 00d900 e5e500 0000ff e500e5 00e5e5 e5e5e5",
}
RGB = tuple[int, int, int]


def seen(colour: Color | None, terminal: str = "xterm") -> RGB:
    """What the eye gets: xterm's formula for 256 colours, each terminal's own sixteen."""
    assert colour is not None
    if colour.triplet is not None:
        return tuple(colour.triplet)
    number = colour.number
    assert number is not None
    if number < 16:
        red, green, blue = bytes.fromhex(SIXTEEN[terminal].split()[number])
        return red, green, blue
    if number >= 232:
        return (8 + 10 * (number - 232),) * 3
    steps = ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
    red, green, blue = (55 + 40 * step if step else 0 for step in steps)
    return red, green, blue


def linear(colour: RGB) -> np.ndarray:
    parts = np.array(colour) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour: RGB) -> np.ndarray:
    """CIE 1976 L*a*b* under D65, from sRGB."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    whole = np.array(matrix) @ linear(colour) / np.array([0.9505, 1.0, 1.089])
    root = np.where(whole > (6 / 29) ** 3, np.cbrt(whole), whole / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(one: RGB, other: RGB) -> float:
    """WCAG 2: from 1 to 21; 4.5 is enough for small text, 3 for large."""
    low, high = sorted(float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other))
    return (high + 0.05) / (low + 0.05)
