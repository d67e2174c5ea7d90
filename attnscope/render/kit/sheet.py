"""An empty page on which things are placed to the inch from its upper left corner."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnscope.render.kit.page import DPI, FAINT, INK
from attnscope.render.kit.sentence import SetText
from attnscope.render.kit.shown_figure import ShownFigure
from attnscope.render.kit.typesetting import line_height

MARGIN = 0.4
TITLE, SUBTITLE = 10.5, 7.5
TITLE_ROOM = 0.42  # from the top of a panel's title to its content
_SUBTITLE_RISE = 5.0  # points from the content of a panel up to the base line
CHIP = "#b23a00"
RULE = "#dcdcdc"


@dataclass(frozen=True)
class Sheet:
    """A page of `width` by `height` inches; every `top` is the distance from its upper edge."""

    figure: Figure
    width: float
    height: float

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        bottom = self.height - top - height
        return self.figure.add_axes(
            (left / self.width, bottom / self.height, width / self.width, height / self.height)
        )

    def write(
        self,
        left: float,
        base: float,
        text: str,
        size: float,
        weight: str = "normal",
        color: str = INK,
        ha: str = "left",
    ) -> None:
        """One line with its base line at `base`."""
        place = (left / self.width, 1 - base / self.height)
        self.figure.text(
            *place, text, size=size, weight=weight, color=color, ha=ha, va="baseline", parse_math=False
        )

    def title(self, left: float, top: float, title: str, subtitle: str = "", zoom: float = 1.0) -> None:
        """The two lines above a panel whose content begins at `top`, `zoom` times as large as usual."""
        self.write(left, top - title_rise(zoom) / 72, title, zoom * TITLE, "bold")
        if subtitle:
            self.write(left, top - _SUBTITLE_RISE / 72, subtitle, zoom * SUBTITLE, color=FAINT)

    def paragraph(self, left: float, top: float, lines: list[str], size: float, color: str = FAINT) -> None:
        for i, line in enumerate(lines):
            self.write(left, top + (i + 0.78) * line_height(size), line, size, color=color)

    def set(self, left: float, top: float, text: SetText) -> None:
        """A text that was set, its marked token white on a chip."""
        for i, line in enumerate(text.lines):
            base = top + text.base + i * text.pitch
            for indent, run in line:
                if not run.chosen:
                    self.write(left + indent, base, run.text, text.size)
                    continue
                inner = left + indent + run.pad(text.size)
                place = (inner / self.width, 1 - base / self.height)
                box = {"boxstyle": "round,pad=0.14,rounding_size=0.2", "facecolor": CHIP, "edgecolor": "none"}
                self.figure.text(
                    *place, run.text, size=text.size, weight="bold", color="white", bbox=box,
                    va="baseline", parse_math=False,
                )  # fmt: skip


def title_rise(zoom: float = 1.0) -> float:
    """Points from the content of a panel up to the base line of its title."""
    return _SUBTITLE_RISE + 1.6 * zoom * SUBTITLE


def sheet(width: float, height: float) -> Sheet:
    return Sheet(ShownFigure(figsize=(width, height), dpi=DPI, facecolor="white"), width, height)
