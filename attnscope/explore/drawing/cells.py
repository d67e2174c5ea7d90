"""Lines of styled cells: what is drawn at every key, without the cost of text that could wrap."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style, StyleType

Part = tuple[str, StyleType]


class Line:
    """Parts in a row; neighbours of one style are one part."""

    def __init__(self, *parts: Part) -> None:
        self.parts: list[Part] = []
        for text, style in parts:
            self.append(text, style)

    def append(self, text: str, style: StyleType = "") -> "Line":
        if text:
            if self.parts and self.parts[-1][1] == style:
                self.parts[-1] = (self.parts[-1][0] + text, style)
            else:
                self.parts.append((text, style))
        return self


class Cells:
    """Lines that are as long as they are: whoever shows them cuts what has no room."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def segments(self, console: Console) -> list[list[Segment]]:
        """The lines with the styles that the console has for their names."""
        plain = Style.null()
        return [
            [
                Segment(text, console.get_style(style, default=plain) if style else plain)
                for text, style in line.parts
            ]
            for line in self.lines
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.segments(console):
            yield from line
            yield Segment.line()
