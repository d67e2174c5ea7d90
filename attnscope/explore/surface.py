"""Lines of styled cells, which are drawn at every key press faster than wrapping text.

`Surface` turns any renderable into such lines by a console that never prints.
"""

import io
from collections.abc import Callable, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style, StyleType
from rich.theme import Theme

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.terminal import console
from attnscope.render.terminal.console import Background, Paper

Part = tuple[str, StyleType]
Lines = list[list[Segment]]
_PLAIN = Style.null()
DEPTHS = {"truecolor": "truecolor", "256": "256", "standard": "standard", "windows": "standard"}


class Line:
    """A line of styled parts; neighbours with the same style are merged."""

    def __init__(self, *parts: Part) -> None:
        self.parts: list[Part] = []
        self._segments: list[Segment] | None = None
        for text, style in parts:
            self.append(text, style)

    def append(self, text: str, style: StyleType = "") -> "Line":
        if text:
            self._segments = None
            if self.parts and self.parts[-1][1] == style:
                self.parts[-1] = (self.parts[-1][0] + text, style)
            else:
                self.parts.append((text, style))
        return self

    def segments(self, style: Callable[[StyleType], Style]) -> list[Segment]:
        """The line as Rich segments; cached."""
        if self._segments is None:
            parts = self.parts
            self._segments = [Segment(printable(text, LEFT_TO_RIGHT), style(name)) for text, name in parts]
        return self._segments


class Cells:
    """Lines of any length; the pane that shows them crops them."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def segments(self, style: Callable[[StyleType], Style]) -> list[list[Segment]]:
        """The lines as Rich segments, with style names resolved by `style`."""
        return [line.segments(style) for line in self.lines]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.segments(lambda name: console.get_style(name, default=Style.null())):
            yield from line
            yield Segment.line()


def window(count: int, room: int, cursor: int) -> range:
    """Range of `room` indices out of `count` around `cursor`; all of them where they fit."""
    if count <= room:
        return range(count)
    room = max(room, 1)
    first = min(max(cursor - room // 2, 0), count - room)
    return range(first, first + room)


def part_words(shown: range, count: int, noun: str) -> str:
    """The visible part, `queries 40-62 of 251`; empty where all are shown."""
    if len(shown) >= count or not shown:
        return ""
    return f"{noun} {shown[0]}-{shown[-1]} of {count}"


class Surface:
    """Renders to lines of styled cells in the terminal's `depth` of colour (None: no colour).

    `colours` is true where cells can have colours, `shades` where characters shade cells, for want of colours
    or of enough of them.
    """

    def __init__(self, depth: str | None, background: Background, no_color: bool = False) -> None:
        self.console = Paper(
            file=io.StringIO(),
            force_terminal=True,
            color_system=DEPTHS.get(depth or ""),  # type: ignore[arg-type]
            no_color=no_color or depth is None,
            legacy_windows=False,
        )
        self.console.push_theme(console.theme(background, depth) if depth else Theme({}))
        self.colours = self.console.color_system is not None and not self.console.no_color
        few = self.console.color_system not in ("truecolor", "256")
        self.shades = not self.colours or few
        self._styles: dict[StyleType, Style] = {"": _PLAIN}

    def style(self, name: StyleType) -> Style:
        """The Rich style of a name; an empty style where the name is unknown."""
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = self.console.get_style(name, default=_PLAIN)
        return style

    def lines(self, drawn: RenderableType, width: int) -> Lines:
        """`drawn` as lines of `width` cells; every segment has a style, as Textual's filters need."""
        if isinstance(drawn, Cells):
            return drawn.segments(self.style)
        self.console.width = width
        options = self.console.options.update(width=width, height=None, highlight=False, markup=False)
        return [
            [Segment(segment.text, segment.style or _PLAIN) for segment in line if segment.text]
            for line in self.console.render_lines(drawn, options, pad=False)
        ]
