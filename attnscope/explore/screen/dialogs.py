"""What lies over the panes for a moment: a card to read, a list to choose from, a line to write in."""

from collections.abc import Sequence
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from attnscope.explore.drawing.surface import Surface
from attnscope.explore.screen.pane import Pane
from attnscope.printable import printable


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
        self.call_after_refresh(self._to_the_end)

    def _to_the_end(self) -> None:
        self.query_one(Input).cursor_position = len(self._value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)
