"""Where the cursor stands in what is shown: rows and columns of a head, or of its view by words."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from attnscope.explore.drawing.surface import Line
from attnscope.explore.state import State
from attnscope.render.kit.cells import cell_texts, widest
from attnscope.render.kit.numbers import descending
from attnscope.render.kit.stage import Panel, panel
from attnscope.render.terminal.matrix import Shading, shading
from attnscope.results import HeadView, HeadWeights

Shown = HeadWeights | HeadView


@dataclass(frozen=True, eq=False)
class Prepared:
    """What every drawing of a head needs: its panel, how strong each weight is drawn, its number as text."""

    panel: Panel
    shades: Shading
    lines: dict[Any, Line] = field(default_factory=dict)  # rows that were drawn, by what they depend on

    @cached_property
    def widest(self) -> int:
        """The cells of its widest number."""
        return widest(self.texts)

    @cached_property
    def texts(self) -> list[list[str]]:
        return cell_texts(self.panel)

    @cached_property
    def shares(self) -> list[list[float]]:
        """By row and column, NaN where a pair is masked."""
        listed: list[list[float]] = self.shades.shares.tolist()
        return listed


_PREPARED: WeakKeyDictionary[Shown, Prepared] = WeakKeyDictionary()


def prepared(shown: Shown) -> Prepared:
    """What is drawn of a head, as long as that is kept."""
    ready = _PREPARED.get(shown)
    if ready is None:
        of = panel(shown, "weights")
        ready = _PREPARED[shown] = Prepared(of, shading(of))
    return ready


def row_of(shown: Shown, query: int) -> int | None:
    """The row of the query at this position; None where a view leaves it out."""
    if isinstance(shown, HeadView):
        return shown.query_row(query)
    return query if query < len(shown.query_tokens) else None


def column_of(shown: Shown, key: int) -> int | None:
    """The column of the key at this position; None where a view leaves it out."""
    if isinstance(shown, HeadView):
        return next((i for i, group in enumerate(shown.key_groups) if key in group), None)
    return key if key < len(shown.key_tokens) else None


def strongest(shown: Shown, row: int | None) -> int | None:
    """The column of the largest weight of a row; None where it has no key."""
    if row is None or not shown.answered[row]:
        return None
    ranked = (column for column in descending(shown.weights[row]) if shown.allowed[row, column])
    return next(ranked, None)


def cursor(shown: Shown, state: State) -> tuple[int | None, int | None]:
    """Row and column: the chosen key, or else the strongest of the row."""
    row = row_of(shown, state.query)
    column = None if state.key is None else column_of(shown, state.key)
    return row, strongest(shown, row) if column is None else column


def query_at(shown: Shown, row: int) -> int:
    """The position of the first token of a row."""
    return shown.query_groups[row][0] if isinstance(shown, HeadView) else row


def key_at(shown: Shown, column: int) -> int:
    return shown.key_groups[column][0] if isinstance(shown, HeadView) else column
