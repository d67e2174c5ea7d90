"""The panes: where they stand, how large they are, and what each of them shows of a state."""

import time

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message

from attnscope.explore import questions as ask
from attnscope.explore.drawing import grid as heads
from attnscope.explore.drawing import matrix
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.screen.pane import Pane
from attnscope.explore.showing import Find, Part, answer, head, side, top, views
from attnscope.explore.state import State, View
from attnscope.results import Verdict

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
    """`draw` shows a state, as far as its answers are known to `find`."""

    class Sized(Message):
        """There is room for more now, or for less."""

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
        """The bottom line."""
        self.pane("status").show(key, lambda w, h: line)

    def wait(self, why: Text) -> None:
        """Nothing can be looked at yet, or never: why, in the one pane that there is."""
        self.pane("main").show(why.plain, lambda w, h: why)

    def draw(self, state: State, find: Find, *, full: bool, since: float) -> None:
        """Every pane whose content has changed, the certificate in `full` where that is wished.

        A head that is not known yet leaves the one before standing for a moment after `since`, when one went
        there: whole, and under its own name.
        """
        self._drawn, self._full, self._since = (state, find), full, since
        self._lay(state, find)
        self._show(
            {"grid": side.of_grid(state, find, self._surface), "ranking": side.of_ranking(state, find)}
        )
        if find(ask.head_of(state)) is None and time.monotonic() - since < _PATIENCE:
            return
        self.remove_class("empty")
        self._show(
            {
                "head": top.of_header(state, find),
                "looks": top.of_sentence(state, find, self._surface, False),
                "looked": top.of_sentence(state, find, self._surface, True),
                "main": views.of_main(state, find, self._surface),
                "bars": side.of_bars(state, find),
                **({"parts": side.of_parts(state, find)} if self.explains(state) else {}),
                "predicts": answer.of_prediction(state, find),
            }
        )
        self._prove(state, find, full)

    def _show(self, parts: dict[str, Part]) -> None:
        for name, part in parts.items():
            self.pane(name).show(part.key, part.drawing, part.title, part.subtitle)

    def explains(self, state: State) -> int:
        """The lines under the matrix of a short sentence, which the parts of its score get; 0 where few."""
        if not self.has_class("wide") or state.view is not View.MATRIX or state.scene.medium:
            return 0
        room = self.size.height - 4 - matrix.lines_needed(len(state.scene.queries), len(state.scene.keys))
        return room if room >= _PARTS else 0

    def _lay(self, state: State, find: Find) -> None:
        self.set_class(state.view is not View.MATRIX, "viewing")
        width, height = self.size
        wide = heads.wide(state, max(2 * width // 5 - 2, 20))
        self._left.styles.width = max(wide, min(26, width // 3)) + 2
        lines = top.lines_of(state, find, self._surface, width, height)
        for name, count in zip(("looks", "looked"), lines, strict=True):
            self.pane(name).styles.height = count
        explained, parts = self.explains(state), self.pane("parts")
        parts.display = explained > 0
        parts.styles.height = min(max(explained, 1), side.parts_lines(state))
        predicts = answer.answers(state, find)
        self.pane("predicts").display = predicts
        least = _NOTHING if answer.asks_nothing(state, find) else _PREDICTS
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
        part = top.of_proof(state, find, full)
        pane = self.pane("proof")
        pane.display = part is not None
        if part is not None:
            lines = self._surface.lines(part.drawing(0, 0), max(self.size.width, 1))
            pane.styles.height = min(len(lines), 3)
            pane.show(part.key, part.drawing)
