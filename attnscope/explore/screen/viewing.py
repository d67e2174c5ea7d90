"""Keys that ask something else of the same text: another measure, another view, what if a head were gone."""

from dataclasses import replace

from attnscope.explore import questions as ask
from attnscope.explore.drawing.shown import cursor, key_at
from attnscope.explore.screen.basis import Basis
from attnscope.explore.screen.board import PANES
from attnscope.explore.screen.dialogs import Card, Choice
from attnscope.explore.showing import side, views
from attnscope.explore.showing.answer import answers, asks_nothing
from attnscope.explore.showing.card import card
from attnscope.explore.state import State, View
from attnscope.measures import MEASURES
from attnscope.results import Finding


class Viewing(Basis):
    """`m` and `M`, the views of the largest pane, words and special tokens, towers, the certificate."""

    opened = -1  # which of the heads that were found was opened last

    def action_measure(self) -> None:
        """The next of those that stand in reports and have a meaning here; all others are in the list."""

        def following(state: State) -> State:
            there = [name for name in ask.TOGETHER if not self._absent(state, name)] or [*ask.TOGETHER]
            at = there.index(state.measure) if state.measure in there else -1
            return state.measured(there[(at + 1) % len(there)])

        self.step(following)

    def _absent(self, state: State, measure: str) -> bool:
        measured = side.heads_measured(state.measured(measure), self.desk.find)
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
        """The heads that link the query to the key of the cursor; again, and the matrix is back."""
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
        """The first head of the ranking that is shown, then the next one."""
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
        """Without the head or with it again, where there is an answer that could change."""
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
        lines = len(self.surface.lines(shown, max(min(int(self.size.width * 0.9), 100) - 4, 10)))
        self.push_screen(Card(self.surface, f"{self.state.view} · {self.state.name}", shown, lines))
