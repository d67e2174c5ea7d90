"""Matplotlib figures and pages: inks, frames, text lines, and placement in inches."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import Op, PdfFile, PdfPages
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from rich.color_triplet import ColorTriplet

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.palette import CHOSEN, FAINT, INK, readable_on
from attnscope.render.kit.typesetting import SetText, drawing, line_height
from attnscope.render.look import DPI, look_now

_SIDES = re.compile(r'(?<=\swidth=")([\d.]+)(pt"\s+height=")([\d.]+)(?=pt")')


class ShownFigure(Figure):
    """A matplotlib figure that notebooks show without pyplot, written `zoom` times its drawn size."""

    zoom = 1.0

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with drawing():
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Save the figure like matplotlib, `zoom` times as large."""
        if self.zoom == 1.0 or isinstance(fname, PdfPages):
            super().savefig(fname, **kwargs)
            return
        named = Path(fname).suffix[1:] if isinstance(fname, str | Path) else ""
        format = (kwargs.pop("format", None) or named or "png").lower()
        if format == "pdf":
            with ZoomedPages(fname, metadata=kwargs.pop("metadata", None)) as pages:
                pages.savefig(self, **kwargs)
        elif format == "svg":
            drawn = io.BytesIO()
            super().savefig(drawn, format=format, **kwargs)
            content = _SIDES.sub(self._larger, drawn.getvalue().decode(), count=1).encode()
            if hasattr(fname, "write"):
                fname.write(content)
            else:
                Path(fname).write_bytes(content)
        else:
            dpi = kwargs.pop("dpi", "figure")
            dots = self.dpi if dpi in (None, "figure") else float(dpi)
            super().savefig(fname, format=format, dpi=self.zoom * dots, **kwargs)

    def _larger(self, sides: re.Match[str]) -> str:
        width, height = (f"{self.zoom * float(side):.6g}" for side in (sides[1], sides[3]))
        return f"{width}{sides[2]}{height}"


class ZoomedPages(PdfPages):
    """PDF whose pages are scaled by the `zoom` of their figures."""

    def savefig(self, figure: Any = None, **kwargs: Any) -> None:
        self._ensure_file().zoom = getattr(figure, "zoom", 1.0)
        super().savefig(figure, **kwargs)  # type: ignore[no-untyped-call]

    def _ensure_file(self) -> "_ZoomedFile":
        if self._file is None:
            self._file = _ZoomedFile(self._filename, metadata=self._metadata)  # type: ignore[no-untyped-call]
        return self._file


class _ZoomedFile(PdfFile):
    zoom = 1.0

    def newPage(self, width: float, height: float) -> None:
        super().newPage(self.zoom * width, self.zoom * height)  # type: ignore[no-untyped-call]
        if self.zoom != 1.0:
            self.output(self.zoom, 0, 0, self.zoom, 0, 0, Op.concat_matrix)  # type: ignore[no-untyped-call]


EDGE = 1 + 1e-9  # so that no side ends a hair below a whole number of dots


@dataclass(frozen=True)
class Frame:
    """Width and height of the axes, and the room for tick labels and axis words around them.

    On a small page the axes may shrink to `share` of both and stay legible.
    """

    width: float
    height: float
    left: float
    top: float
    share: float = 1.0


@dataclass(frozen=True)
class Line:
    """A line of text around a picture, its size in points."""

    text: str
    size: float
    weight: str = "normal"
    color: str = INK


def write_lines(figure: Figure, lines: Sequence[Line], left: float, top: float) -> None:
    """Write lines one below the other from `top`, in inches from the page's lower left corner."""
    width, height = figure.get_size_inches()
    for line in lines:
        top -= line_height(line.size)
        place = (left / width, (top + 0.25 * line_height(line.size)) / height)
        text = printable(line.text, LEFT_TO_RIGHT)
        figure.text(*place, text, size=line.size, weight=line.weight, color=line.color, parse_math=False)


def ink_on(drawn: ScalarMappable, value: float) -> str:
    """Black or white, whichever is easier to read on the colour of `value`."""
    red, green, blue, _ = drawn.to_rgba(np.array([value]), bytes=True)[0].tolist()
    return readable_on(ColorTriplet(red, green, blue)).hex


MARGIN = 0.4
TITLE, SUBTITLE = 10.5, 7.5
TITLE_ROOM = 0.42  # from the top of a panel's title to its content
_SUBTITLE_RISE = 5.0  # points from the content of a panel up to the base line
RULE = "#dcdcdc"


@dataclass(frozen=True)
class Sheet:
    """A page of `width` by `height` inches; every `top` is the distance from its upper edge.

    The page is centred in the figure, which may be larger where the user asked for a size.
    """

    figure: Figure
    width: float
    height: float

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        wide, high = self.figure.get_size_inches()
        return self.figure.add_axes((*self._place(left, top + height), width / wide, height / high))

    def _place(self, left: float, top: float) -> tuple[float, float]:
        wide, high = self.figure.get_size_inches()
        return (left + (wide - self.width) / 2) / wide, 1 - (top + (high - self.height) / 2) / high

    def write(
        self,
        left: float,
        base: float,
        text: str,
        size: float,
        weight: str = "normal",
        color: str = INK,
        **style: Any,
    ) -> None:
        """Write one line with its base line at `base`."""
        style |= {"size": size, "weight": weight, "color": color, "va": "baseline", "parse_math": False}
        self.figure.text(*self._place(left, base), printable(text, LEFT_TO_RIGHT), **style)

    def title(self, left: float, top: float, title: str, subtitle: str = "", zoom: float = 1.0) -> None:
        """Write title and subtitle above a panel whose content begins at `top`."""
        self.write(left, top - title_rise(zoom) / 72, title, zoom * TITLE, "bold")
        if subtitle:
            self.write(left, top - _SUBTITLE_RISE / 72, subtitle, zoom * SUBTITLE, color=FAINT)

    def paragraph(self, left: float, top: float, lines: list[str], size: float, color: str = FAINT) -> None:
        for i, line in enumerate(lines):
            self.write(left, top + (i + 0.78) * line_height(size), line, size, color=color)

    def set(self, left: float, top: float, text: SetText) -> None:
        """Draw a typeset text, its marked token white on a chip."""
        for i, line in enumerate(text.lines):
            base = top + text.base + i * text.pitch
            for indent, run in line:
                if not run.chosen:
                    self.write(left + indent, base, run.text, text.size)
                    continue
                form = "round,pad=0.14,rounding_size=0.2"
                chip = {"boxstyle": form, "facecolor": CHOSEN, "edgecolor": "none"}
                start = left + indent + run.pad(text.size)
                self.write(start, base, run.text, text.size, "bold", "white", bbox=chip)


def title_rise(zoom: float = 1.0) -> float:
    """Points from the top of a panel's content to the base line of its title."""
    return _SUBTITLE_RISE + 1.6 * zoom * SUBTITLE


def sheet(width: float, height: float) -> Sheet:
    """An empty page of that size, centred in a figure of the size that the user asked for."""
    size = look_now().sides
    zoom = 1.0 if size is None else min(size[0] / width, size[1] / height)
    sides = (width, height) if size is None else (EDGE * size[0] / zoom, EDGE * size[1] / zoom)
    figure = ShownFigure(figsize=sides, dpi=DPI, facecolor="white")
    figure.zoom = zoom
    return Sheet(figure, width, height)
