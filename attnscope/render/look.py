"""The style of a picture: title, size, resolution and caption.

A `Look` changes no number; a `Focus` says what is shown. `dressed` puts a look in force while a figure is
made, and `look_now` returns it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeAlias

from attnscope.errors import InputError
from attnscope.printable import printable

CAPTIONS = ("short", "full", "none")
NO_TITLE = "none"
DPI = 200
_LEAST_SIDE, _MOST_SIDE = 0.5, 200.0  # inches
_LEAST_DPI, _MOST_DPI = 10, 2400
_SIZE = re.compile(r"\s*([\d.]+)\s*[x×X,]\s*([\d.]+)\s*")

Size: TypeAlias = tuple[float, float]  # width and height in inches


@dataclass(frozen=True)
class Look:
    """Style options of a picture; by default a heading, a short caption, and the size its labels need.

    `title` replaces the heading, `none` drops it. `size` is width and height in inches, `dpi` the dots per
    inch of a PNG. `caption` is `short`, `full` with everything about the numbers' origin, or `none`. `bare`
    leaves the axes alone. Raises `InputError` for an impossible value.
    """

    title: str | None = None
    size: Size | str | None = None
    dpi: int = DPI
    bare: bool = False
    caption: str = "short"

    def __post_init__(self) -> None:
        if self.caption not in CAPTIONS:
            raise InputError(f"no caption '{self.caption}': {', '.join(CAPTIONS)}")
        if not _LEAST_DPI <= self.dpi <= _MOST_DPI:
            raise InputError(f"{self.dpi} dots per inch: a picture has {_LEAST_DPI} to {_MOST_DPI}")
        if self.bare and (self.title not in (None, NO_TITLE) or self.caption == "full"):
            raise InputError("a bare picture has neither title nor caption: leave one of the two out")
        if self.size is not None:
            object.__setattr__(self, "size", _sides(self.size))

    @property
    def sides(self) -> Size | None:
        """Width and height in inches, None where the picture takes the size that its labels need."""
        return None if self.size is None else _sides(self.size)

    @property
    def in_full(self) -> bool:
        """True where the caption tells everything about the numbers' origin."""
        return self.caption == "full"

    @property
    def headed(self) -> bool:
        return not self.bare and self.title not in ("", NO_TITLE)

    @property
    def captioned(self) -> bool:
        return not self.bare and self.caption != "none"

    def heading(self, usual: str) -> str:
        """The picture's heading: the given title, else `usual`; empty for none."""
        return "" if not self.headed else usual if self.title is None else printable(self.title)


USUAL = Look()
_now: ContextVar[Look] = ContextVar("look", default=USUAL)


@contextmanager
def dressed(look: Look, remark: str = "") -> Iterator[None]:
    """Context manager: figures made within have this look; a given title is followed by `remark`."""
    if remark and look.headed and look.title is not None:
        look = replace(look, title=f"{look.title} · {remark}")
    before = _now.set(look)
    try:
        yield
    finally:
        _now.reset(before)


def look_now() -> Look:
    """The look that is in force."""
    return _now.get()


def _sides(size: Size | str) -> Size:
    told = size if isinstance(size, str) else "x".join(f"{side:g}" for side in size)
    found = _SIZE.fullmatch(told)
    try:
        width, height = (float(side) for side in found.groups()) if found else (0.0, 0.0)
    except ValueError:
        width = height = 0.0
    if not all(_LEAST_SIDE <= side <= _MOST_SIDE for side in (width, height)):
        asked = f"no size '{told}'"
        raise InputError(
            f"{asked}: width x height in inches, such as 6x4, each {_LEAST_SIDE:g} to {_MOST_SIDE:g}"
        )
    return width, height
