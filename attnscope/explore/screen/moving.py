"""Keys and the mouse that go somewhere: another head, another query, another key."""

from attnscope.explore.drawing import grid as heads
from attnscope.explore.drawing import matrix
from attnscope.explore.drawing.shown import Shown, cursor, key_at, prepared, query_at, row_of
from attnscope.explore.screen.basis import Basis
from attnscope.explore.screen.pane import Pane
from attnscope.explore.showing import top
from attnscope.explore.state import State, View


class Moving(Basis):
    """In the grid arrows go to other heads, elsewhere to other queries and keys; a click goes where it is."""

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
        """The next query that is shown: the next word where words are."""
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
        token = top.set_text(state, shown, backwards, self.surface.shades, *size).at(event.x, event.y)
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
    """Another query; a key that was chosen stays chosen."""
    key = state.key
    moved = state.to_query(query)
    return moved if key is None else moved.to_key(key)
