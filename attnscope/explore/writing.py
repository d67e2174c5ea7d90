"""Keys that open an input line: edit the text, add a second one, jump to a head, write a file."""

import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed, attempt
from attnscope.explore.basis import Basis, Notices
from attnscope.explore.matrix import cursor
from attnscope.explore.panes import Line
from attnscope.explore.source import Source
from attnscope.explore.state import State, View
from attnscope.explore.surface import Surface
from attnscope.render.kit.command import asking, asking_of_text, label, looked_at
from attnscope.render.sheets import Focus
from attnscope.vocabulary import Unit


class Writing(Basis):
    """Actions that write; `commands` lists the shell commands that `y` showed."""

    def __init__(self, source: Source, notices: Notices, surface: Surface) -> None:
        super().__init__(source, notices, surface)
        self.commands: list[str] = []
        self._unblanked: tuple[str, str] | None = None

    def action_jump(self) -> None:
        self._line("jump to a head, as 3.11", "", lambda text: self.step(lambda state: state.jumped(text)))

    def action_edit(self) -> None:
        if self.state is not None:
            self._line("the sentence", self.state.scene.text, self._edited)

    def _edited(self, text: str) -> None:
        if self.state is not None and text != self.state.scene.text:
            self.read(text, tower=self.state.scene.tower.pattern)

    def action_blank(self) -> None:
        """Put a mask in place of the token at the cursor, or the token back where it is masked."""
        if self.state is None:
            return
        scene, query = self.state.scene, self.state.query
        if scene.is_masked(query) and self._unblanked is not None and self._unblanked[0] == scene.text:
            self._edited(self._unblanked[1])
            return

        def put(state: Any) -> Any:
            text = scene.with_mask(query)
            self._unblanked = text, scene.text
            self._edited(text)
            return state

        self.step(put)

    def action_beside(self) -> None:
        if self.state is not None:
            first = self.state.other or self.state.scene.text
            self._line("the second sentence (empty: none)", first, self._second)

    def _second(self, text: str) -> None:
        self.step(lambda state: state.beside(text if text.strip() else None))

    def action_write(self) -> None:
        """Write the view to a page, under a name that no file has yet."""
        if self.state is not None:
            self._saved(str(unused(Path(file_name(self.state, ".html")))))

    def action_save(self) -> None:
        if self.state is not None:
            name = unused(Path(file_name(self.state, ".png")))
            self._line("write what is seen to (.png .svg .pdf .html .npz .json .csv)", str(name), self._saved)

    def _saved(self, name: str) -> None:
        """Write the view on a background thread, because a picture takes a second or more."""
        state, shown = self.state, self.shown
        if state is None or not name.strip():
            return
        if Path(name).exists():
            self.tell(f"{name} is there already: nothing was written, o takes another name", bad=True)
            return
        answer = self.desk.find(ask.view_of(state))
        if answer is None or isinstance(answer, Failed) or shown is None:
            self.tell("there is nothing to save yet", bad=True)
            return
        looked = focus(state, *cursor(shown, state))
        self.tell(f"writing {name} …")

        def run() -> None:
            written = attempt(lambda: save(answer, Path(name), looked, self.notices.notice))
            bad = isinstance(written, Failed)
            told = written.why if bad else f"wrote {', '.join(map(str, written))}"
            self.call_later(self.tell, told, bad)

        threading.Thread(target=run, daemon=True).start()

    def action_command(self) -> None:
        if self.state is None:
            return
        line = command(self.state)
        if line not in self.commands:
            self.commands.append(line)
        self.copy_to_clipboard(line)
        shown = Text.assemble(
            (line, "bold"), "\n\ncopied where the terminal allows it, and printed again at the end"
        )
        self.push_card("the same view by a command", shown)

    def _line(self, title: str, value: str, then: Callable[[str], Any]) -> None:
        def written(text: str | None) -> None:
            if text is not None:
                then(text)

        if self.state is not None:
            self.message, self._opening = "", False
            self.push_screen(Line(title, value), written)


def command(state: State) -> str:
    """Shell command line for the view; for two sentences, three commands."""
    scene, place = state.scene, ["--layer", str(state.layer), "--head", str(state.head)]
    query = ["--query", label(scene.queries, state.query)]
    key = [] if state.key is None else ["--key", label(scene.keys, state.key)]
    looking = looked_at(Unit.WORD if state.words else Unit.TOKEN, state.special)
    match state.view:
        case View.TERMS:
            return asking(scene, "heads", *place, "--terms", *query, *key)
        case View.MAP:
            return asking(scene, "tsne", *place, *query) + looking
        case View.FOUND if state.sought is not None:
            ends = label(scene.queries, state.sought[0]), label(scene.keys, state.sought[1])
            return asking(scene, "find", "--from", ends[0], "--to", ends[1])
        case View.WITHOUT if state.removed:
            heads = "--heads", ",".join(f"L{removed[0]}H{removed[1]}" for removed in state.removed)
            if scene.queries.written:
                return asking_of_text("ablate", "".join(scene.queries.texts), scene.provenance, *heads)
            return asking(scene, "ablate", *heads)
        case View.BESIDE if state.other is not None:
            first = asking(scene, "heads", *place, "-o", "a.npz")
            second = asking_of_text("heads", state.other, scene.provenance, *place, "-o", "b.npz")
            return f"{first} && {second} && attnscope compare a.npz b.npz"
    if scene.medium:
        return asking(scene, "heads", *place, *query)
    return asking(scene, "heads", *place, *query, *key) + looking


def focus(state: State, row: int | None, column: int | None) -> Focus:
    """Focus of the saved picture: the query for parts and map, else the whole result."""
    if state.view is View.TERMS or (state.view is View.MAP and row is not None):
        assert row is not None, "a query of the head itself"
        return Focus(queries=(row,), key=column if state.view is View.TERMS else None)
    return Focus()


def file_name(state: State, suffix: str) -> str:
    """Default file name of the view: `L3H11.png`, `L3H11-map.html`."""
    of = dict(zip(View, ("", "-parts", "-map", "-found", "-without", "-beside"), strict=True))[state.view]
    return f"L{state.layer}H{state.head}{of}{suffix}"


def unused(target: Path) -> Path:
    """`target`, or with the first free number behind its stem where that file exists."""
    numbered = (target.with_stem(f"{target.stem}-{number}") for number in count(2))
    return target if not target.exists() else next(each for each in numbered if not each.exists())


def save(answer: Any, target: Path, focus: Focus, notice: Callable[[str], None]) -> list[Path]:
    """Write the view's result; for two sentences their difference, or else the second one's head.

    `InputError`, before any work, for a suffix that the result cannot be written with.
    """
    from attnscope.explore.questions import Beside
    from attnscope.render.look import USUAL
    from attnscope.render.saving import check_targets, save

    os.environ["MPLBACKEND"] = "agg"  # no window is ever opened, whatever the environment asks for
    result = (answer.difference or answer.other) if isinstance(answer, Beside) else answer
    check_targets([target], type(result))
    return list(save(result, target, focus, USUAL, notice))
