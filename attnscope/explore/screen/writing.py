"""Keys that take a line: another sentence, a second one, a head to jump to, a file to write."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.text import Text

from attnscope.explore import commands
from attnscope.explore import questions as ask
from attnscope.explore.asking import Failed, attempt
from attnscope.explore.drawing.shown import cursor
from attnscope.explore.drawing.surface import Surface
from attnscope.explore.screen.basis import Basis, Notices, Told
from attnscope.explore.screen.pane import Line
from attnscope.explore.source import Source


class Writing(Basis):
    """What `y` showed is in `commands` when it ends."""

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
        """A mask in the place of the token under the cursor; there already, the token again."""
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
        """What is seen as a page, under a name that no file has yet."""
        if self.state is not None:
            self._saved(str(commands.unused(Path(commands.file_name(self.state, ".html")))))

    def action_save(self) -> None:
        if self.state is not None:
            name = commands.unused(Path(commands.file_name(self.state, ".png")))
            self._line("write what is seen to (.png .svg .pdf .html .npz .json .csv)", str(name), self._saved)

    def _saved(self, name: str) -> None:
        """Write it on a thread: a picture takes a second, and matplotlib more when it is first needed."""
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
        focus = commands.focus(state, *cursor(shown, state))
        self.tell(f"writing {name} …")

        def run() -> None:
            written = attempt(lambda: commands.save(answer, Path(name), focus, self.notices.notice))
            if isinstance(written, Failed):
                self.post_message(Told(written.why, bad=True))
            else:
                self.post_message(Told(f"wrote {', '.join(map(str, written))}"))

        threading.Thread(target=run, daemon=True).start()

    def action_command(self) -> None:
        if self.state is None:
            return
        line = commands.command(self.state)
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
