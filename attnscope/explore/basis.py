"""Base of the explorer app: the state, its questions, and the board that shows the answers."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding

from attnscope.errors import InputError
from attnscope.explore import questions as ask
from attnscope.explore.asking import Desk, Failed, attempt
from attnscope.explore.card import KEYS, hints
from attnscope.explore.matrix import Shown
from attnscope.explore.panes import Board, Card, Pane
from attnscope.explore.questions import sharpest
from attnscope.explore.showing import BAD, head
from attnscope.explore.source import Source
from attnscope.explore.state import Scene, State, start
from attnscope.explore.surface import Surface
from attnscope.printable import printable
from attnscope.render.terminal.console import Paper
from attnscope.results import Overview


class Notices:
    """Session listener that shows notices in the bottom line of the screen."""

    def __init__(self) -> None:
        self.tell: Callable[[str], object] | None = None
        self.doing: list[str] = []

    def notice(self, text: str) -> None:
        if self.tell is not None:
            self.tell(text)

    def detail(self, text: str) -> None:
        pass

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        self.doing.append(what)
        try:
            yield
        finally:
            self.doing.remove(what)


_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TURN = 0.1  # seconds
_SOON = 8.0  # seconds in which a first screen may still go to another head


class Basis(App[str]):
    """Textual app base with state, desk and board; `source` is the model, `surface` the colours."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding(each.keys, each.action, each.does, show=False, priority=each.keys == "ctrl+c")
        for each in KEYS
    ]

    def __init__(self, source: Source, notices: Notices, surface: Surface) -> None:
        super().__init__(ansi_color=True)
        self.error_console = Paper(stderr=True)  # where Textual tells a bug, its message and variables raw
        self.source, self.surface, self.notices = source, surface, notices
        notices.tell = lambda text: self.call_later(self.tell, text)
        self.state: State | None = None
        self.desk = Desk(source, lambda _: self.call_later(self._answered))
        self.message, self.bad = "", False
        self.full_proof = False
        self._reading, self._turn, self._gone = 0, 0, 0.0
        self._opening = False  # whether the head to begin with is still to be found
        self._board: Board | None = None

    def compose(self) -> ComposeResult:
        self._board = Board(self.surface)
        yield self._board

    def on_mount(self) -> None:
        self.pane("grid").focus()
        self.set_interval(_TURN, self._tick)
        self.read(None)

    def on_unmount(self) -> None:
        self.desk.close()

    @property
    def board(self) -> Board | None:
        """The board, or None before it is mounted and after the screen is gone."""
        return self._board if self._board is not None and self._board.pane("status").is_mounted else None

    def pane(self, name: str) -> Pane:
        assert self._board is not None, "composed before any key"
        return self._board.pane(name)

    # what was read, what was answered

    def read(self, text: str | None, *, tower: str | None = None) -> None:
        """Read a text on a background thread; the screen stays as it is until the text is read."""
        self._reading += 1
        layer = None if self.state is None else self.state.layer

        def run() -> None:
            self.call_later(self._was_read, attempt(lambda: self.source.scene(text, tower, layer)))

        threading.Thread(target=run, daemon=True).start()
        self.draw_status()

    def _was_read(self, scene: Scene | Failed) -> None:
        self._reading -= 1
        if isinstance(scene, Failed):
            self.tell(scene.why, bad=True)
        elif self.state is not None:
            self.go(self.state.on(scene))
        else:
            self.message = ""
            self._opening = self.source.wanted.layer is None and self.source.wanted.head is None
            self.go(start(scene))

    def _answered(self) -> None:
        if self._opening and self.state is not None:
            self._open(self.state)
        self.draw()

    def _open(self, state: State) -> None:
        answers = [self.desk.find(question) for question in ask.grid_of(state)]
        if None in answers:
            return
        self._opening = False
        measured = [each for each in answers if isinstance(each, Overview)]
        place = sharpest(measured)
        if place is None:
            return
        told = f"L{place[0]} H{place[1]}: most focused, not by its place"
        if time.monotonic() - self._gone < _SOON:
            self.go(state.to_head(*place))
            self.tell(told)
        else:
            self.tell(f"{told} (/ goes there)")

    def tell(self, text: str, bad: bool = False) -> None:
        """Show one line at the bottom, until the next key."""
        self.message, self.bad = printable(text), bad
        self.draw_status()

    @property
    def settled(self) -> bool:
        """True where the answer to every shown question is known."""
        return not (self._reading or self.desk.open or self._opening)

    @property
    def shown(self) -> Shown | None:
        """The chosen head, or None where its answer is not known yet."""
        return None if self.state is None else head(self.state, self.desk.find)

    def go(self, state: State) -> None:
        """Switch to a state: ask its questions and draw the answers that are known."""
        self.state, self._gone = state, time.monotonic()
        self._want()
        self.draw()

    def on_board_sized(self, event: Board.Sized) -> None:
        self._want()

    def _want(self) -> None:
        if self.state is not None:
            board = self.board
            self.desk.want(ask.needed(self.state, board is not None and board.explains(self.state) > 0))

    def step(self, change: Callable[[State], State]) -> None:
        """Apply a key's change of state; show the error of an impossible change."""
        if self.state is None:
            return
        self.message, self._opening = "", False
        try:
            self.go(change(self.state))
        except InputError as error:
            self.tell(str(error), bad=True)

    def push_card(self, title: str, shown: RenderableType) -> None:
        """Show a card over the panes."""
        lines = len(self.surface.lines(shown, max(min(int(self.size.width * 0.9), 100) - 4, 10)))
        self.push_screen(Card(self.surface, title, shown, lines))

    # what is drawn

    def draw(self) -> None:
        """Draw every pane whose content has changed."""
        board = self.board
        if board is None:
            return
        self.draw_status()
        if self.state is not None:
            board.draw(self.state, self.desk.find, full=self.full_proof, since=self._gone)

    def draw_status(self) -> None:
        board, doing = self.board, self._doing()
        if board is None:
            return
        if self.message:
            room = self.size.width - len(self.message) - 2
            keys = hints(self.state, room) if self.state is not None and not self.bad else ""
            line = Text.assemble(
                (self.message, BAD if self.bad else ""), (f"  {keys}" if keys else "", "dim")
            )
        else:
            before = f"{_SPINNER[self._turn % len(_SPINNER)]} {doing}  " if doing else ""
            keys = hints(self.state, self.size.width - len(before)) if self.state is not None else ""
            line = Text(f"{before}{keys}", "dim")
        line.no_wrap, line.overflow = True, "ellipsis"
        board.say(line, (line.plain, self.bad))
        if self.state is None:
            ends = Text("\n\nq quits", "dim") if self.bad else Text()
            board.wait(Text.assemble(line, ends))

    def _doing(self) -> str:
        if self.notices.doing:
            return f"{self.notices.doing[-1]} …"
        if self._reading:
            return "reading …" if self.state is not None else "opening the model …"
        slow = [question for question in self.desk.busy if question.lane is not ask.Lane.QUICK]
        return "" if not slow or isinstance(slow[0], ask.OfLayer) else "working …"

    def _tick(self) -> None:
        self._turn += 1
        self.draw_status()
        if self.state is not None and self.desk.find(ask.head_of(self.state)) is None:
            self.draw()  # it takes longer: say so
