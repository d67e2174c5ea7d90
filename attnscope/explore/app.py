"""The explorer as a Textual app: all key actions on one board of panes.

Slow work runs on other threads. Keys are read from the terminal even where the text was piped in, and the
terminal's settings are restored at the end.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from rich.console import Console

from attnscope.errors import InputError
from attnscope.explore import grid as heads
from attnscope.explore import matrix, showing, views
from attnscope.explore import questions as ask
from attnscope.explore.basis import Basis, Notices
from attnscope.explore.card import card
from attnscope.explore.matrix import Shown, cursor, key_at, prepared, query_at, row_of
from attnscope.explore.panes import PANES, Choice, Pane
from attnscope.explore.source import Source
from attnscope.explore.state import State, View
from attnscope.explore.surface import Surface
from attnscope.explore.views import answers, asks_nothing
from attnscope.explore.writing import Writing
from attnscope.measures import MEASURES
from attnscope.process.ending import undone_by_a_signal
from attnscope.render.terminal.console import Background
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.verbs.find.result import Finding

# out of the alternate screen, cursor, wrapping, mouse, pasting and keys as they were
_MODES = b"?1049l ?25h ?7h ?1000l ?1003l ?1015l ?1006l ?2004l ?1004l <u 0m"
_LEFT = b"".join(b"\x1b[" + mode for mode in _MODES.split())


def keys_from_the_terminal() -> None:
    """Make the terminal standard input after a piped text; `InputError` where there is no terminal."""
    try:
        there = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise InputError(
            "explore needs a terminal to read keys from, and found none behind the piped text: "
            "give the text itself"
        ) from error
    os.dup2(there, 0)
    os.close(there)


def _restoring() -> Callable[[], object]:
    if sys.platform == "win32":
        return lambda: None
    import termios

    place = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0
    before = termios.tcgetattr(place)

    def restore() -> None:
        with suppress(OSError):
            os.write(2, _LEFT)
        with suppress(termios.error):
            termios.tcsetattr(place, termios.TCSANOW, before)

    return restore


class Viewing(Basis):
    """Actions for measures, views, words and special tokens, towers, and the certificate."""

    opened = -1  # which of the heads that were found was opened last

    def action_measure(self) -> None:
        """Colour by the next report measure that has a value here; the `M` list has all measures."""

        def following(state: State) -> State:
            there = [name for name in ask.TOGETHER if not self._absent(state, name)] or [*ask.TOGETHER]
            at = there.index(state.measure) if state.measure in there else -1
            return state.measured(there[(at + 1) % len(there)])

        self.step(following)

    def _absent(self, state: State, measure: str) -> bool:
        measured = showing.heads_measured(state.measured(measure), self.desk.find)
        return bool(measured) and all(head.scores.absent for head in measured.values())

    def action_measures(self) -> None:
        options = [(name, measure.description.meaning) for name, measure in MEASURES.items()]

        def chosen(name: str | None) -> None:
            if name is not None:
                self.step(lambda state: state.measured(name))

        if self.state is not None:
            self.push_screen(Choice("measures", options, self.state.measure), chosen)

    def action_view(self, name: str) -> None:
        self.step(lambda state: state.shows(View[name]))

    def action_matrix(self) -> None:
        self.step(lambda state: replace(state, view=View.MATRIX))

    def action_find(self) -> None:
        """Show the heads that link the query to the key at the cursor; a second time, show the matrix."""
        shown = self.shown
        if shown is None or self.state is None:
            return
        column = cursor(shown, self.state)[1]
        self.opened = -1
        if self.state.view is View.FOUND and self.state.sought == (self.state.query, self.state.key):
            self.step(lambda state: state.shows(View.FOUND))
        elif column is not None:
            self.step(lambda state: state.seeks(key_at(shown, column)))

    def action_open(self) -> None:
        """Go to the first head of the shown ranking, then to the next at each further call."""
        if self.state is None or self.state.view is not View.FOUND:
            return
        finding = self.desk.find(ask.view_of(self.state))
        if isinstance(finding, Finding) and finding.ranking:
            ranked = views.found(finding)
            self.opened = (self.opened + 1) % len(ranked)
            head = ranked[self.opened]
            self.step(lambda state: state.to_head(*head))
            rank = f"number {self.opened + 1} of {len(ranked)} by the evidence for it"
            self.tell(f"L{head[0]} H{head[1]}: {rank}; Esc shows it")

    def action_without(self) -> None:
        """Take the head out or put it back, where the model's prediction could change."""
        if self.state is None:
            return
        if asks_nothing(self.state, self.desk.find) and self.state.scene.mask:
            self.tell(
                f"nothing is predicted here: _ puts {self.state.scene.mask} in the place of a token", bad=True
            )
            return
        if not answers(self.state, self.desk.find):
            self.tell(f"{self.state.scene.model} predicts nothing that could change without a head", bad=True)
            return
        self.step(lambda state: state.takes())

    def action_words(self) -> None:
        self.step(lambda state: replace(state, words=not state.words))

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
        patterns = [tower.pattern for tower in scene.towers]
        following = scene.towers[(patterns.index(scene.tower.pattern) + 1) % len(patterns)]
        self.read(scene.text or None, tower=following.pattern)

    def action_proof(self) -> None:
        self.full_proof = not self.full_proof
        self.draw()

    def action_keys(self) -> None:
        board = self.board
        if self.state is None or board is None:
            return
        self._opening = False
        panes = [name for name in PANES if board.pane(name).display]
        shown = card(self.state, self.desk.find, panes)
        self.push_card(f"{self.state.view} · {self.state.name}", shown)


class Moving(Basis):
    """Cursor actions: arrows move between heads in the grid, between queries and keys elsewhere."""

    def action_move(self, across: int, down: int) -> None:
        if self.focused is self.pane("grid"):
            self.step(lambda state: state.by_heads(down, across))
        elif self.focused is self.pane("looks"):
            self._to_row(down or across)
        elif down:
            self._to_row(down)
        else:
            self._to_column(across)

    def action_head(self, layers: int, across: int) -> None:
        self.step(lambda state: state.by_heads(layers, across))

    def action_page(self, step: int) -> None:
        self.pane("main").page(step)

    def _to_row(self, step: int) -> None:
        shown = self.shown
        row = None if shown is None or self.state is None else row_of(shown, self.state.query)
        if shown is None or row is None:
            self.step(lambda state: state.to_query(state.query + step))
            return
        there = min(max(row + step, 0), len(shown.query_tokens) - 1)
        self.step(lambda state: _keeping_key(state, query_at(shown, there)))

    def _to_column(self, step: int) -> None:
        shown = self.shown
        if shown is None or self.state is None:
            return
        column = cursor(shown, self.state)[1]
        there = min(max((column or 0) + step, 0), len(shown.key_tokens) - 1)
        self.step(lambda state: state.to_key(key_at(shown, there)))

    def on_pane_pressed(self, event: Pane.Pressed) -> None:
        state, shown, name = self.state, self.shown, event.pane.id
        if state is None:
            return
        if name == "grid":
            place = heads.places(state, *event.pane.content_size).at(event.x, event.y)
            if place is not None:
                self.step(lambda now: now.to_head(*place))
        elif shown is not None and name in ("looks", "looked"):
            self._to_word(state, shown, name == "looked", event)
        elif shown is not None and name == "main" and state.view is View.MATRIX and not state.scene.medium:
            row, column = cursor(shown, state)
            size, tight = event.pane.content_size, not self.surface.shades
            laid = matrix.lay(prepared(shown), row or 0, column or 0, *size, tight)
            pair = laid.at(event.x, event.y)
            if pair is not None:
                self.step(lambda now: now.to_pair(query_at(shown, pair[0]), key_at(shown, pair[1])))

    def _to_word(self, state: State, shown: Shown, backwards: bool, event: Pane.Pressed) -> None:
        size = event.pane.content_size
        token = showing.set_text(state, shown, backwards, self.surface.shades, *size).at(event.x, event.y)
        if token is None:
            return
        if backwards or state.scene.one_side:
            self.step(lambda now: now.to_query(query_at(shown, token)))
        else:
            self.step(lambda now: now.to_key(key_at(shown, token)))

    def on_pane_wheeled(self, event: Pane.Wheeled) -> None:
        if event.pane.id == "grid":
            self.step(lambda state: state.by_heads(event.step, 0))
        elif event.pane.id == "main" and self.state is not None and self.state.view is not View.MATRIX:
            event.pane.page(event.step)
        else:
            self._to_row(event.step)


def _keeping_key(state: State, query: int) -> State:
    key = state.key
    moved = state.to_query(query)
    return moved if key is None else moved.to_key(key)


INTERRUPTED = "interrupted"


class Explorer(Moving, Viewing, Writing):
    """The explorer app: keys change the state, the state names its questions, the board draws the answers."""

    CSS_PATH = "explore.tcss"

    def action_leave(self) -> None:
        self.exit()

    def action_interrupt(self) -> None:
        self.exit(INTERRUPTED)


def run(
    request: ModelRequest, inputs: Inputs, wanted: Wanted, screen: Console, background: Background
) -> list[str]:
    """Run the explorer until the user quits; returns the commands that the user asked for.

    Raises `KeyboardInterrupt` after Ctrl-C, and `SystemExit` after an internal error, whose traceback Textual
    has shown.
    """
    notices = Notices()
    source = Source(request, inputs, wanted, notices)
    surface = Surface(screen.color_system, background, screen.no_color)
    explorer = Explorer(source, notices, surface)
    with undone_by_a_signal(_restoring()):  # where it ends by itself Textual does so
        ended = explorer.run()
    if ended == INTERRUPTED:
        raise KeyboardInterrupt
    if explorer.return_code:
        raise SystemExit(explorer.return_code)
    return explorer.commands
