"""A console that is never printed: it turns renderables into lines of styled cells in our colours."""

import io
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style, StyleType
from rich.theme import Theme

from attnscope.explore.drawing.cells import Cells
from attnscope.render.terminal import ramps
from attnscope.render.terminal.ramps import Background

Lines = list[list[Segment]]
_PLAIN = Style.null()
DEPTHS = {"truecolor": "truecolor", "256": "256", "standard": "standard", "windows": "standard"}


class Surface:
    """`depth` is the terminal's depth of colour, None where it shows none; `background` light or dark.

    `colours` says whether cells can be told from one another by them, `shades` whether characters shade
    cells: without colours, and where these are few. `pixels` says that the terminal shows pictures, which it
    is given by `send` as soon as somebody can.
    """

    def __init__(
        self, depth: str | None, background: Background, no_color: bool = False, pixels: bool = False
    ) -> None:
        self.console = Console(
            file=io.StringIO(),
            force_terminal=True,
            color_system=DEPTHS.get(depth or ""),  # type: ignore[arg-type]
            no_color=no_color or depth is None,
            legacy_windows=False,
            emoji=False,
            markup=False,
            highlight=False,
        )
        self.console.push_theme(ramps.theme(background, depth) if depth else Theme({}))
        self.colours = self.console.color_system is not None and not self.console.no_color
        few = self.console.color_system not in ("truecolor", "256")
        self.shades = not self.colours or few
        self.pixels = pixels and not self.shades
        self.send: Callable[[str], object] | None = None
        self._styles: dict[StyleType, Style] = {"": _PLAIN}

    def style(self, name: StyleType) -> Style:
        """What a name of a style means here; nothing where it is unknown."""
        found = self._styles.get(name)
        if found is None:
            found = self._styles[name] = self.console.get_style(name, default=_PLAIN)
        return found

    def lines(self, drawn: RenderableType, width: int) -> Lines:
        """The lines of `drawn` in `width` cells; every cell has a style, as Textual's filters want it."""
        if isinstance(drawn, Cells):
            return drawn.segments(self.style)
        self.console.width = width
        options = self.console.options.update(width=width, height=None, highlight=False, markup=False)
        return [
            [Segment(each.text, each.style or _PLAIN) for each in line if each.text]
            for line in self.console.render_lines(drawn, options, pad=False)
        ]
