"""The screen and its keys: a key changes the state, the state says what is asked, answers are drawn.

Nothing is computed here, and nothing slow runs on this thread: the model is opened and asked on others.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Container
from textual.message import Message

from attnscope.errors import InputError
from attnscope.explore import commands, keycard, showing
from attnscope.explore import questions as ask
from attnscope.explore.asking import Answering, Desk, Failed, attempt
from attnscope.explore.drawing import grid as heads
from attnscope.explore.drawing import matrix
from attnscope.explore.drawing.shown import cursor, key_at, prepared, query_at, row_of
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.keys import KEYS
from attnscope.explore.state import Scene, State, View, start
from attnscope.explore.widgets.dialogs import Card, Choice, Line
from attnscope.explore.widgets.pane import Pane
from attnscope.measures import MEASURES
from attnscope.results import Finding, Verdict
from attnscope.session.request import Inputs, ModelRequest, Wanted
from attnscope.tokens import printable

LEAST = (60, 16)  # cells
_WIDE, _TALL = 120, 34
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PATIENCE = 0.25  # seconds that the head before is left standing
INTERRUPTED = "interrupted"


class Model(Answering, Protocol):
    """Who opens the model and answers: `Source`, or in a test somebody else."""

    request: ModelRequest
    inputs: Inputs
    wanted: Wanted

    def scene(self, text: str | None = None, tower: str | None = None) -> Scene:
        """What there is to look at, in the text that was given first where none is named."""
        ...


class Read(Message):
    """A text was read, or could not be."""

    def __init__(self, scene: Scene | Failed) -> None:
        super().__init__()
        self.scene = scene


class Answered(Message):
    """One more answer is known."""


class Told(Message):
    """A line for the bottom of the screen; `bad` where something went wrong."""

    def __init__(self, text: str, bad: bool = False) -> None:
        super().__init__()
        self.text, self.bad = text, bad


class Notices:
    """What the session tells on the way comes to the bottom line of the screen."""

    def __init__(self) -> None:
        self.app: Explorer | None = None
        self.doing: list[str] = []

    def notice(self, text: str) -> None:
        if self.app is not None:
            self.app.post_message(Told(text))

    def detail(self, text: str) -> None:
        pass

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        self.doing.append(what)
        try:
            yield
        finally:
            self.doing.remove(what)


class Explorer(App[str]):
    """`source` is the model, `surface` the colours; what `y` showed is in `commands` when it ends."""

    CSS_PATH = "explore.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        Binding(each.keys, each.action, each.does, show=False, priority=each.keys == "ctrl+c")
        for each in KEYS
    ]

    def __init__(self, source: Model, notices: Notices, surface: Surface) -> None:
        super().__init__(ansi_color=True)
        self.source, self.surface, self._notices = source, surface, notices
        notices.app = self
        self.state: State | None = None
        self.desk = Desk(source, lambda _: self._tell_answered())
        self.commands: list[str] = []
        self.message, self.bad = "", False
        self.full_proof = False
        self._reading, self._turn, self._opened = 0, 0, -1
        self._gone = 0.0

    def compose(self) -> ComposeResult:
        yield Pane(self.surface, id="small")
        for name in ("head", "proof"):
            yield Pane(self.surface, id=name)
        yield Pane(self.surface, id="looks", focusable=True)
        yield Pane(self.surface, id="looked")
        with Container(id="body"):
            with Container(id="left"):
                yield Pane(self.surface, id="grid", focusable=True)
                yield Pane(self.surface, id="ranking")
                yield Pane(self.surface, id="predicts")
            with Container(id="rest"):
                yield Pane(self.surface, id="main", focusable=True)
                yield Pane(self.surface, id="bars")
        yield Pane(self.surface, id="status")

    def on_mount(self) -> None:
        self.pane("grid").focus()
        self.set_interval(0.1, self._tick)
        self._resized()
        self.read(None)

    def on_unmount(self) -> None:
        self.desk.close()

    def pane(self, name: str) -> Pane:
        return self.screen_stack[0].query_one(f"#{name}", Pane)

    @property
    def _stands(self) -> bool:
        """Whether there are panes: an answer may come when the screen is gone, or not yet there."""
        return bool(self.screen_stack) and bool(self.screen_stack[0].query("#status"))

    # what was read, what was answered

    def read(self, text: str | None, *, tower: str | None = None) -> None:
        """Read a text on a thread of its own; the screen stays as it is until that is done."""
        self._reading += 1

        def run() -> None:
            scene = attempt(lambda: self.source.scene(text, tower))
            self.post_message(Read(scene))

        threading.Thread(target=run, daemon=True).start()
        self.draw()

    def on_read(self, event: Read) -> None:
        self._reading -= 1
        if isinstance(event.scene, Failed):
            self.tell(event.scene.why, bad=True)
            return
        if self.state is not None:
            self.go(self.state.on(event.scene))
            return
        wanted = self.source.wanted
        self.message = ""
        self.go(_start(event.scene, wanted))

    def _tell_answered(self) -> None:
        self.post_message(Answered())

    def on_answered(self, event: Answered) -> None:
        self.draw()

    def on_told(self, event: Told) -> None:
        self.tell(event.text, event.bad)

    def tell(self, text: str, bad: bool = False) -> None:
        """One line at the bottom, until the next key."""
        self.message, self.bad = printable(text), bad
        self._draw_status()

    @property
    def settled(self) -> bool:
        """Whether all that is shown is known."""
        return not self._reading and not self.desk.open

    def go(self, state: State) -> None:
        """The next state: what it needs is asked, what is known of it drawn at once."""
        self.state, self._gone = state, time.monotonic()
        self.desk.want(ask.needed(state))
        self.draw()

    def step(self, change: Callable[[State], State]) -> None:
        """A key: the message of the one before goes; what cannot be is told."""
        self.message = ""
        if self.state is None:
            return
        try:
            self.go(change(self.state))
        except InputError as error:
            self.tell(str(error), bad=True)

    # drawing

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        width, height = self.size
        base = self.screen_stack[0]
        base.set_class(width < LEAST[0] or height < LEAST[1], "small")
        base.set_class(width >= _WIDE, "wide")
        base.set_class(height >= _TALL, "tall")
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Every pane whose content has changed."""
        if not self._stands:
            return
        self._draw_status()
        width, height = self.size
        told = Text(f"explore needs {LEAST[0]} x {LEAST[1]} cells: here are {width} x {height}")
        self.pane("small").show((width, height), lambda w, h: told)
        if self.state is None:
            return
        state, find = self.state, self.desk.find
        self._lay(state)
        grid = {
            "grid": showing.of_grid(state, find, self.surface),
            "ranking": showing.of_ranking(state, find),
        }
        self._show(grid)
        if find(ask.head_of(state)) is None and time.monotonic() - self._gone < _PATIENCE:
            return  # the head before stays, whole and under its own name, for the moment that this one takes
        parts = {
            "head": showing.of_header(state, find),
            "looks": showing.of_sentence(state, find, self.surface, False),
            "looked": showing.of_sentence(state, find, self.surface, True),
            "main": showing.of_main(state, find, self.surface),
            "bars": showing.of_bars(state, find),
            "predicts": showing.of_prediction(state, find),
        }
        self._show(parts)
        self._draw_proof(state)

    def _show(self, parts: dict[str, showing.Part]) -> None:
        for name, part in parts.items():
            self.pane(name).show(part.key, part.drawing, part.title, part.subtitle)

    def _lay(self, state: State) -> None:
        """The grid is as wide and high as it needs to be, where there is room."""
        self.screen_stack[0].set_class(state.view is not View.MATRIX, "viewing")
        width, height = self.size
        wide = heads.wide(state, max(2 * width // 5 - 2, 20))
        left = self.screen_stack[0].query_one("#left", Container)
        left.styles.width = max(wide, min(26, width // 3)) + 2
        for name in ("looks", "looked"):
            self.pane(name).styles.height = showing.lines_of(
                state, self.desk.find, self.surface, width, height
            )
        most = height - 11 - (16 if width >= _WIDE else 0)
        self.pane("grid").styles.height = min(len(state.scene.tower.layers) + 3, max(most, 6))

    def _draw_proof(self, state: State) -> None:
        shown = showing.head(state, self.desk.find)
        failed = shown is not None and shown.verdict is Verdict.FAILED
        self.screen_stack[0].set_class(failed, "failed")
        part = showing.of_proof(state, self.desk.find, self.full_proof)
        pane = self.pane("proof")
        pane.display = part is not None
        if part is not None:
            lines = self.surface.lines(part.drawing(0, 0), max(self.size.width, 1))
            pane.styles.height = min(len(lines), 3)
            pane.show(part.key, part.drawing)

    def _draw_status(self) -> None:
        doing = self._doing()
        if self.message:
            told = Text(self.message, showing.BAD if self.bad else "")
        elif doing:
            told = Text(f"{_SPINNER[self._turn % len(_SPINNER)]} {doing}", "dim")
        else:
            told = Text(
                "  ".join(each.short for each in KEYS if each.short), "dim", no_wrap=True, overflow="ellipsis"
            )
        if self._stands:
            self.pane("status").show((told.plain, self.bad), lambda w, h: told)

    def _doing(self) -> str:
        if self._notices.doing:
            return f"{self._notices.doing[-1]} …"
        if self._reading:
            return "reading …" if self.state is not None else "opening the model …"
        slow = [each for each in self.desk.busy if each.lane is not ask.Lane.QUICK]
        return "" if not slow or isinstance(slow[0], ask.OfLayer) else "working …"

    def _tick(self) -> None:
        self._turn += 1
        self._draw_status()
        if self.state is not None and self.desk.find(ask.head_of(self.state)) is None:
            self.draw()  # it takes longer: say so

    # keys

    def action_move(self, across: int, down: int) -> None:
        """In the grid to another head, elsewhere to another query or key."""
        if self.focused is self.pane("grid"):
            self.step(lambda state: state.by_heads(down, across))
        elif self.focused is self.pane("looks"):
            self._to_row(down or across)
        elif down:
            self._to_row(down)
        else:
            self._to_column(across)

    def _to_row(self, step: int) -> None:
        """The next query that is shown: the next word where words are."""
        shown = None if self.state is None else showing.head(self.state, self.desk.find)
        row = None if shown is None or self.state is None else row_of(shown, self.state.query)
        if shown is None or row is None:
            self.step(lambda state: state.to_query(state.query + step))
            return
        there = min(max(row + step, 0), len(shown.query_tokens) - 1)
        self.step(lambda state: _keeping_key(state, query_at(shown, there)))

    def _to_column(self, step: int) -> None:
        shown = None if self.state is None else showing.head(self.state, self.desk.find)
        if shown is None or self.state is None:
            return
        column = cursor(shown, self.state)[1]
        there = min(max((column or 0) + step, 0), len(shown.key_tokens) - 1)
        self.step(lambda state: state.to_key(key_at(shown, there)))

    def action_head(self, layers: int, across: int) -> None:
        self.step(lambda state: state.by_heads(layers, across))

    def action_jump(self) -> None:
        self._line("jump to a head, as 3.11", "", lambda text: self.step(lambda state: state.jumped(text)))

    def action_edit(self) -> None:
        if self.state is not None:
            self._line("the sentence", self.state.scene.text, self._edited)

    def _edited(self, text: str) -> None:
        if self.state is not None and text != self.state.scene.text:
            self.read(text, tower=self.state.scene.tower.pattern)

    def action_measure(self) -> None:
        """The next of those that stand in reports; all others are in the list."""
        brief = [name for name, each in MEASURES.items() if each.brief and not each.description.apart]

        def following(state: State) -> State:
            at = brief.index(state.measure) if state.measure in brief else -1
            return state.measured(brief[(at + 1) % len(brief)])

        self.step(following)

    def action_measures(self) -> None:
        options = [(name, each.description.meaning) for name, each in MEASURES.items()]

        def chosen(name: str | None) -> None:
            if name is not None:
                self.step(lambda state: state.measured(name))

        if self.state is not None:
            self.push_screen(Choice("measures", options, self.state.measure), chosen)

    def action_view(self, name: str) -> None:
        self.step(lambda state: state.shows(View[name]))

    def action_find(self) -> None:
        """The heads that link the query to the key of the cursor; again, and the matrix is back."""
        shown = None if self.state is None else showing.head(self.state, self.desk.find)
        if shown is None or self.state is None:
            return
        column = cursor(shown, self.state)[1]
        self._opened = -1
        if self.state.view is View.FOUND and self.state.sought == (self.state.query, self.state.key):
            self.step(lambda state: state.shows(View.FOUND))
        elif column is not None:
            self.step(lambda state: state.seeks(key_at(shown, column)))

    def action_open(self) -> None:
        """The head that is farthest above its own control texts, then the next one."""
        if self.state is None or self.state.view is not View.FOUND:
            return
        found = self.desk.find(ask.view_of(self.state))
        if isinstance(found, Finding) and found.ranking:
            ranked = showing.above_controls(found)
            self._opened = (self._opened + 1) % len(ranked)
            head = ranked[self._opened]
            self.step(lambda state: state.to_head(*head))
            told = f"number {self._opened + 1} of {len(ranked)} heads by how far it is above its own controls"
            self.tell(f"L{head[0]} H{head[1]}: {told}; Esc shows it")

    def action_without(self) -> None:
        self.step(lambda state: state.takes())

    def action_beside(self) -> None:
        if self.state is not None:
            first = self.state.other or self.state.scene.text
            self._line("the second sentence (empty: none)", first, self._second)

    def _second(self, text: str) -> None:
        self.step(lambda state: state.beside(text if text.strip() else None))

    def action_words(self) -> None:
        self.step(lambda state: _replaced(state, words=not state.words))

    def action_special(self) -> None:
        self.step(lambda state: state.with_special())
        if self.state is not None:
            self.tell(f"special tokens: {self.state.special}")

    def action_tower(self) -> None:
        if self.state is None:
            return
        scene = self.state.scene
        if len(scene.towers) < 2:
            self.tell(f"{scene.model} has one attention: {scene.tower.name}")
            return
        patterns = [each.pattern for each in scene.towers]
        following = scene.towers[(patterns.index(scene.tower.pattern) + 1) % len(patterns)]
        self.read(scene.text or None, tower=following.pattern)

    def action_save(self) -> None:
        if self.state is not None:
            self._line("save what is on the screen as", commands.file_name(self.state), self._saved)

    def _saved(self, name: str) -> None:
        """Write it on a thread: a picture takes a second, and matplotlib more when it is first needed."""
        state = self.state
        if state is None or not name.strip():
            return
        found = self.desk.find(ask.view_of(state))
        shown = showing.head(state, self.desk.find)
        if found is None or isinstance(found, Failed) or shown is None:
            self.tell("there is nothing to save yet", bad=True)
            return
        focus = commands.focus(state, *cursor(shown, state))
        self.tell(f"writing {name} …")

        def run() -> None:
            written = attempt(lambda: commands.save(found, Path(name), focus, self._notices.notice))
            if isinstance(written, Failed):
                self.post_message(Told(written.why, bad=True))
            else:
                self.post_message(Told(f"wrote {', '.join(map(str, written))}"))

        threading.Thread(target=run, daemon=True).start()

    def action_command(self) -> None:
        if self.state is None:
            return
        line = commands.command(self.state, self.source.request, self.source.inputs, self.source.wanted)
        if line not in self.commands:
            self.commands.append(line)
        self.copy_to_clipboard(line)
        told = Text.assemble(
            (line, "bold"), "\n\ncopied where the terminal allows it, and printed again at the end"
        )
        lines = len(self.surface.lines(told, max(min(int(self.size.width * 0.9), 100) - 4, 10)))
        self.push_screen(Card(self.surface, "the same view by a command", told, lines))

    def action_proof(self) -> None:
        self.full_proof = not self.full_proof
        self.draw()

    def action_page(self, step: int) -> None:
        self.pane("main").page(step)

    def action_matrix(self) -> None:
        self.step(lambda state: _replaced(state, view=View.MATRIX))

    def action_keys(self) -> None:
        card = keycard.card()
        self.push_screen(Card(self.surface, "keys", card, card.plain.count("\n") + 1))

    def action_leave(self) -> None:
        self.exit()

    def action_interrupt(self) -> None:
        self.exit(INTERRUPTED)

    def _line(self, title: str, value: str, then: Callable[[str], Any]) -> None:
        """A line to write in, where there is something to be changed."""
        self.message = ""

        def written(text: str | None) -> None:
            if text is not None:
                then(text)

        if self.state is not None:
            self.push_screen(Line(title, value), written)

    # the mouse

    def on_pane_pressed(self, event: Pane.Pressed) -> None:
        state, name = self.state, event.pane.id
        if state is None:
            return
        width, height = event.pane.content_size
        if name == "grid":
            place = heads.places(state, width, height).at(event.x, event.y)
            if place is not None:
                self.step(lambda now: now.to_head(*place))
            return
        shown = showing.head(state, self.desk.find)
        if shown is None:
            return
        if name in ("looks", "looked"):
            marks = self.surface.shades
            token = showing.set_text(state, shown, name == "looked", marks, width, height).at(
                event.x, event.y
            )
            if token is not None:
                of_query = name == "looked" or state.scene.one_side
                self.step(
                    lambda now: (
                        now.to_query(query_at(shown, token)) if of_query else now.to_key(key_at(shown, token))
                    )
                )
        elif name == "main" and state.view is View.MATRIX and not state.scene.medium:
            row, column = cursor(shown, state)
            tight = not self.surface.shades
            laid = matrix.lay(prepared(shown), row or 0, column or 0, width, height, tight)
            pair = laid.at(event.x, event.y)
            if pair is not None:
                self.step(lambda now: now.to_pair(query_at(shown, pair[0]), key_at(shown, pair[1])))

    def on_pane_wheeled(self, event: Pane.Wheeled) -> None:
        if event.pane.id == "grid":
            self.step(lambda state: state.by_heads(event.step, 0))
        elif event.pane.id == "main" and self.state is not None and self.state.view is not View.MATRIX:
            event.pane.page(event.step)
        else:
            self._to_row(event.step)


def _start(scene: Scene, wanted: Wanted) -> State:
    """The head that was asked for, or the first."""
    begun = start(scene)
    layer = wanted.layer if wanted.layer is not None else begun.layer
    head = wanted.head if wanted.head is not None else begun.head
    return begun.jumped(f"{layer}.{head}")


def _keeping_key(state: State, query: int) -> State:
    """Another query; a key that was chosen stays chosen."""
    key = state.key
    moved = state.to_query(query)
    return moved if key is None else moved.to_key(key)


def _replaced(state: State, **changes: Any) -> State:
    from dataclasses import replace

    return replace(state, **changes)
