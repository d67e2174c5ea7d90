"""Widgets of the explorer: panes, the board that arranges them, and modal card, list and input line."""

import time
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
from textual.containers import Container, Vertical
from textual.geometry import Region
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from attnscope.explore import grid as heads
from attnscope.explore import matrix, showing, views
from attnscope.explore import questions as ask
from attnscope.explore.showing import Find, Part, head
from attnscope.explore.state import State, View
from attnscope.explore.surface import Lines, Surface
from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.results import Verdict

Subtitle = str | Callable[[int, int], str]
Drawing = Callable[[int, int], RenderableType]
_PLAIN = Style.null()
_MORE = "PgDn: more"
_ENDS = 4  # cells of a frame beside what stands in it


class Pane(Widget):
    """A pane that draws a function of its width and height, and only again under another `key` or size."""

    class Pressed(Message):
        """Message: the user clicked a cell of a pane."""

        def __init__(self, pane: "Pane", x: int, y: int) -> None:
            super().__init__()
            self.pane, self.x, self.y = pane, x, y

    class Wheeled(Message):
        """Message: the user turned the wheel over a pane, 1 down, -1 up."""

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
        """Show a drawing, unless the pane already shows the one with this key in this size.

        A `subtitle` may be a function of the pane's size.
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
        """Refresh only the lines that changed, because composing a screen takes longer than drawing it."""
        count = min(max(len(before), len(self.drawn)), height)
        width = self.content_size.width
        changed = [Region(0, y, width, 1) for y in range(count) if before[y : y + 1] != self.drawn[y : y + 1]]
        if self._first:
            self.refresh()
        elif changed:
            self.refresh(*changed)

    @property
    def text(self) -> str:
        """The pane's text without styles, for tests and screen readers."""
        return "\n".join("".join(segment.text for segment in line) for line in self.drawn)

    def page(self, step: int) -> None:
        """Scroll by most of a page, down for 1, up for -1."""
        height = self.content_size.height
        last = max(len(self.drawn) - height, 0)
        self._first = min(max(self._first + step * max(height - 2, 1), 0), last)
        self._under()
        self.refresh()

    @property
    def more(self) -> bool:
        """True where there are lines below the visible ones."""
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
    """A modal card to read; every key but those that scroll closes it."""

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
    """A modal list to choose from; typing narrows it to the options that contain the typed text."""

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
    """A modal input line at the bottom of the screen: Enter accepts it, Esc cancels."""

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


LEAST = (60, 16)  # cells
PANES = (
    *("small", "head", "proof", "looks", "looked"),
    *("grid", "ranking", "predicts", "main", "bars", "parts", "status"),
)
_FOCUSABLE = ("looks", "grid", "main")
_WIDE, _TALL = 120, 34
_NOTHING = 4  # lines that say why nothing is predicted
_PREDICTS, _RANKING = 7, (9, 16)  # lines that there are at least, of the ranking also at most
_PARTS = 5  # lines of the parts of a score that there are at least, its frame among them
_PATIENCE = 0.25  # seconds that the head before is left standing


class Board(Container):
    """The container of all panes; `draw` shows a state, with the answers that `find` knows."""

    class Sized(Message):
        """Message: the board's size has changed."""

    def __init__(self, surface: Surface) -> None:
        super().__init__(id="board", classes="empty")
        self._surface = surface
        self._drawn: tuple[State, Find] | None = None
        self._full, self._since = False, 0.0
        self._panes = {name: Pane(surface, id=name, focusable=name in _FOCUSABLE) for name in PANES}
        self._left = Container(*map(self.pane, ("grid", "ranking", "predicts")), id="left")

        upper = Container(*map(self.pane, ("main", "bars")), id="upper")
        self._rest = Container(upper, self.pane("parts"), id="rest")

    def compose(self) -> ComposeResult:
        yield from map(self.pane, ("small", "head", "proof", "looks", "looked"))
        yield Container(self._left, self._rest, id="body")
        yield self.pane("status")

    def pane(self, name: str) -> Pane:
        return self._panes[name]

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.set_class(width < LEAST[0] or height < LEAST[1], "small")
        self.set_class(width >= _WIDE, "wide")
        self.set_class(height >= _TALL, "tall")
        too_small = Text(f"explore needs {LEAST[0]} x {LEAST[1]} cells: here are {width} x {height}")
        self.pane("small").show((width, height), lambda w, h: too_small)
        self.call_after_refresh(self._again)
        self.post_message(self.Sized())

    def _again(self) -> None:
        if self._drawn is not None:
            self.draw(*self._drawn, full=self._full, since=self._since)

    def say(self, line: Text, key: object) -> None:
        """Show the bottom line."""
        self.pane("status").show(key, lambda w, h: line)

    def wait(self, why: Text) -> None:
        """Show one text in the main pane, before a model is open or where it cannot be opened."""
        self.pane("main").show(why.plain, lambda w, h: why)

    def draw(self, state: State, find: Find, *, full: bool, since: float) -> None:
        """Draw every pane whose content has changed, the certificate in `full` on request.

        Until a new head is known, the panes keep the head before for a short time after `since`.
        """
        self._drawn, self._full, self._since = (state, find), full, since
        self._lay(state, find)
        self._show(
            {"grid": showing.of_grid(state, find, self._surface), "ranking": showing.of_ranking(state, find)}
        )
        if find(ask.head_of(state)) is None and time.monotonic() - since < _PATIENCE:
            return
        self.remove_class("empty")
        self._show(
            {
                "head": showing.of_header(state, find),
                "looks": showing.of_sentence(state, find, self._surface, False),
                "looked": showing.of_sentence(state, find, self._surface, True),
                "main": views.of_main(state, find, self._surface),
                "bars": showing.of_bars(state, find),
                **({"parts": showing.of_parts(state, find)} if self.explains(state) else {}),
                "predicts": views.of_prediction(state, find),
            }
        )
        self._prove(state, find, full)

    def _show(self, parts: dict[str, Part]) -> None:
        for name, part in parts.items():
            self.pane(name).show(part.key, part.drawing, part.title, part.subtitle)

    def explains(self, state: State) -> int:
        """Lines left under the matrix for the score's parts; 0 where these are too few."""
        if not self.has_class("wide") or state.view is not View.MATRIX or state.scene.medium:
            return 0
        room = self.size.height - 4 - matrix.lines_needed(len(state.scene.queries), len(state.scene.keys))
        return room if room >= _PARTS else 0

    def _lay(self, state: State, find: Find) -> None:
        self.set_class(state.view is not View.MATRIX, "viewing")
        width, height = self.size
        wide = heads.wide(state, max(2 * width // 5 - 2, 20))
        self._left.styles.width = max(wide, min(26, width // 3)) + 2
        lines = showing.lines_of(state, find, self._surface, width, height)
        for name, count in zip(("looks", "looked"), lines, strict=True):
            self.pane(name).styles.height = count
        explained, parts = self.explains(state), self.pane("parts")
        parts.display = explained > 0
        parts.styles.height = min(max(explained, 1), showing.parts_lines(state))
        predicts = views.answers(state, find)
        self.pane("predicts").display = predicts
        least = _NOTHING if views.asks_nothing(state, find) else _PREDICTS
        self.pane("predicts").styles.height = least if least == _NOTHING else "1fr"
        room = height - 2 - sum(lines) - (least if predicts else 0)
        grid = min(len(state.scene.tower.layers) + 3, max(room - (0 if predicts else _RANKING[0]), 6))
        self.pane("grid").styles.height = grid
        ranking = self.pane("ranking")
        ranking.display = not predicts or room - grid >= _RANKING[0]
        ranking.styles.height = min(room - grid, _RANKING[1]) if predicts and least == _PREDICTS else "1fr"

    def _prove(self, state: State, find: Find, full: bool) -> None:
        shown = head(state, find)
        self.set_class(shown is not None and shown.verdict is Verdict.FAILED, "failed")
        part = showing.of_proof(state, find, full)
        pane = self.pane("proof")
        pane.display = part is not None
        if part is not None:
            lines = self._surface.lines(part.drawing(0, 0), max(self.size.width, 1))
            pane.styles.height = min(len(lines), 3)
            pane.show(part.key, part.drawing)
