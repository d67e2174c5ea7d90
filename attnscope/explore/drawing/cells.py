"""Lines of styled cells: what is drawn at every key, without the cost of text that could wrap."""

from collections.abc import Callable, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style, StyleType

Part = tuple[str, StyleType]


class Line:
    """Parts in a row; neighbours of one style are one part."""

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
        """The parts as they are printed; made once for a line that is drawn again as it is."""
        if self._segments is None:
            self._segments = [Segment(text, style(name)) for text, name in self.parts]
        return self._segments


class Cells:
    """Lines that are as long as they are: whoever shows them cuts what has no room."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def segments(self, style: Callable[[StyleType], Style]) -> list[list[Segment]]:
        """The lines with what the names of their styles mean."""
        return [line.segments(style) for line in self.lines]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.segments(lambda name: console.get_style(name, default=Style.null())):
            yield from line
            yield Segment.line()
