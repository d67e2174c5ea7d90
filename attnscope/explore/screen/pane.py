"""A pane: shows a drawing in the cells that it has, drawn anew when these change or when it shows another.

And what lies over the panes for a moment: a card to read, a list to choose from, a line to write in.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.geometry import Region
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from attnscope.explore.drawing.surface import Lines, Surface
from attnscope.printable import LEFT_TO_RIGHT, printable

Subtitle = str | Callable[[int, int], str]
Drawing = Callable[[int, int], RenderableType]
_PLAIN = Style.null()
_MORE = "PgDn: more"
_ENDS = 4  # cells of a frame beside what stands in it


class Pane(Widget):
    """`show` takes a function of width and height in cells; nothing is drawn again under the same `key`."""

    class Pressed(Message):
        """A cell of a pane was clicked."""

        def __init__(self, pane: "Pane", x: int, y: int) -> None:
            super().__init__()
            self.pane, self.x, self.y = pane, x, y

    class Wheeled(Message):
        """The wheel was turned over a pane: 1 down, -1 up."""

        def __init__(self, pane: "Pane", step: int) -> None:
            super().__init__()
            self.pane, self.step = pane, step

    def __init__(self, surface: Surface, *, id: str, focusable: bool = False) -> None:
        super().__init__(id=id)
        self.can_focus = focusable
        self._surface = surface
        self._drawing: Drawing = lambda width, height: Text()
        self._key: Any = None
        self._room: Any = None
        self._subtitle: Subtitle = ""
        self._title = self._told = ""
        self.drawn: Lines = []
        self._first = 0

    def show(self, key: Any, drawing: Drawing, title: str = "", subtitle: Subtitle = "") -> None:
        """The drawing, unless that of the same key stands there in the same size.

        A subtitle may say which part of all there is has room here.
        """
        size = self.content_size
        self._subtitle = subtitle
        if title != self._title:
            self._title, self.border_title = title, Text(printable(title, LEFT_TO_RIGHT))  # never markup
        if self._room == size and self._key == key:
            self._under()
            return
        if self._key != key and self._first:
            self._first = 0
            self.refresh()
        self._drawing, self._key, self._room = drawing, key, size
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        if self._room is not None:
            self._room = self.content_size
            self._draw()

    def _under(self) -> None:
        subtitle = self._subtitle if isinstance(self._subtitle, str) else self._subtitle(*self.content_size)
        if self.id in ("main", "card") and self.more:
            whole = f"{subtitle} · {_MORE}" if subtitle else _MORE
            subtitle = whole if cell_len(whole) <= self.content_size.width - _ENDS else _MORE
        if subtitle != self._told:
            self._told, self.border_subtitle = subtitle, Text(printable(subtitle, LEFT_TO_RIGHT))

    def _draw(self) -> None:
        width, height = self.content_size
        if width > 0 and height > 0:
            before, self.drawn = self.drawn, self._surface.lines(self._drawing(width, height), width)
            self._refresh_lines(before, height)
        self._under()

    def _refresh_lines(self, before: Lines, height: int) -> None:
        """Only what is another line than before: to compose a screen takes longer than to draw it."""
        count = min(max(len(before), len(self.drawn)), height)
        width = self.content_size.width
        changed = [Region(0, y, width, 1) for y in range(count) if before[y : y + 1] != self.drawn[y : y + 1]]
        if self._first:
            self.refresh()
        elif changed:
            self.refresh(*changed)

    @property
    def text(self) -> str:
        """What stands in the pane, without styles: for tests, and for whoever listens."""
        return "\n".join("".join(segment.text for segment in line) for line in self.drawn)

    def page(self, step: int) -> None:
        """Scroll by most of a page."""
        height = self.content_size.height
        last = max(len(self.drawn) - height, 0)
        self._first = min(max(self._first + step * max(height - 2, 1), 0), last)
        self._under()
        self.refresh()

    @property
    def more(self) -> bool:
        """Whether there are lines below what is seen."""
        return self._first + self.content_size.height < len(self.drawn)

    def render_line(self, y: int) -> Strip:
        width, number = self.content_size.width, y + self._first
        line = self.drawn[number] if number < len(self.drawn) else []
        return Strip(line or [Segment("", _PLAIN)]).adjust_cell_length(width, _PLAIN)

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is not None:
            self.post_message(self.Pressed(self, place.x, place.y + self._first))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Wheeled(self, 1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Wheeled(self, -1))


class Card(ModalScreen[None]):
    """Something to read; every key but those that scroll closes it."""

    BINDINGS: ClassVar = [
        Binding("pageup,up", "page(-1)", show=False),
        Binding("pagedown,down,space", "page(1)", show=False),
    ]

    def __init__(self, surface: Surface, title: str, shown: RenderableType, lines: int) -> None:
        super().__init__()
        self._pane, self._shown, self._title, self._lines = Pane(surface, id="card"), shown, title, lines

    def compose(self) -> ComposeResult:
        yield self._pane

    def on_mount(self) -> None:
        self._fit(self.app.size.height)
        self._pane.show("card", lambda width, height: self._shown, self._title, "any key closes")

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.height)

    def _fit(self, height: int) -> None:
        self._pane.styles.height = min(self._lines + 2, height - 2)

    def action_page(self, step: int) -> None:
        self._pane.page(step)

    def on_key(self, event: object) -> None:
        if getattr(event, "key", "") not in ("pageup", "pagedown", "up", "down", "space"):
            event.stop()  # type: ignore[attr-defined]
            self.dismiss()

    def on_click(self) -> None:
        self.dismiss()


class Choice(ModalScreen[str | None]):
    """A list, of which one is chosen by Enter or the mouse; what is typed leaves those that hold it."""

    BINDINGS: ClassVar = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str, options: Sequence[tuple[str, str]], chosen: str) -> None:
        super().__init__()
        self._title, self._options, self._chosen, self._typed = title, options, chosen, ""

    def compose(self) -> ComposeResult:
        with Vertical(id="choice"):
            yield OptionList(id="options")

    def on_mount(self) -> None:
        self._fill()
        self.query_one(OptionList).focus()

    def _fill(self) -> None:
        entries = [option for option in self._options if self._typed in option[0]] or list(self._options)
        names = [name for name, _ in entries]
        listed = self.query_one(OptionList)
        listed.clear_options()
        wide = max(map(len, names))
        listed.add_options(
            [Option(_entry(f"{name:<{wide}}  {meaning}"), id=name) for name, meaning in entries]
        )
        listed.highlighted = names.index(self._chosen) if self._chosen in names and not self._typed else 0
        frame = self.query_one("#choice", Vertical)
        frame.border_title, frame.border_subtitle = (
            self._title,
            Text(self._typed or "type to narrow, Enter takes"),
        )

    def on_key(self, event: object) -> None:
        character, key = getattr(event, "character", None), getattr(event, "key", "")
        if key == "backspace":
            self._typed = self._typed[:-1]
        elif character and character.isprintable() and character.strip():
            self._typed += character.casefold()
        else:
            return
        event.stop()  # type: ignore[attr-defined]
        self._fill()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_leave(self) -> None:
        self.dismiss(None)


def _entry(line: str) -> Text:
    return Text(printable(line), no_wrap=True, overflow="ellipsis")


class Line(ModalScreen[str | None]):
    """A line to write in at the bottom of the screen: Enter takes it, Esc leaves all as it was."""

    BINDINGS: ClassVar = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str, value: str) -> None:
        super().__init__()
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        written = Input(self._value, id="line", select_on_focus=False)
        written.cursor_blink = False
        written.border_title, written.border_subtitle = (
            self._title,
            "Enter takes it, Esc leaves all as it was",
        )
        yield written

    def on_mount(self) -> None:
        written = self.query_one(Input)
        self.call_after_refresh(setattr, written, "cursor_position", len(self._value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)
